@testable import Delivery
import EventLoops
import Model
import Testing

@Suite("Rejected events, oversized bodies, poisonous batches")
struct RejectionTests {
    /// Rejects every batch with one of these events in it.
    private func rejecting(_ bad: Set<Int>, _ outcome: Outcome) -> (inout World, World.Sent) -> (
        Duration, Outcome
    ) {
        { _, sent in (.milliseconds(10), bad.isDisjoint(with: sent.events) ? .acknowledged : outcome) }
    }

    @Test("a rejected batch is bisected to the rejected events, and the others are sent")
    func fault11_bisects() {
        var world = World(options())
        world.accept(50)
        world.run(.seconds(1))
        world.answer = rejecting([77, 78, 133], .rejected(.badRequest))
        world.accept(150)
        world.runUntilQuiet()
        #expect(Set(world.store.deadLettered.keys) == [77, 78, 133])
        #expect(world.store.acknowledged.count == 197)
        #expect(world.store.acknowledged.values.allSatisfy { $0 == 1 })
        #expect(world.sent.count < 40)
        #expect(world.boot - world.sent[0].at < .seconds(10))
    }

    @Test("a new destination whose first batch has a bad event accepts the others at once")
    func fault11_beforeTheFirstAcknowledgement() {
        var world = World(options())
        world.answer = rejecting([7], .rejected(.badRequest))
        world.accept(50)
        world.run(.seconds(10))
        #expect(world.store.deadLettered.keys.sorted() == [7])
        #expect(world.store.acknowledged.count == 49 && !world.isHeld)

        // Where another batch is on its way already, nobody has to wait for a probe.
        var both = World(options())
        both.answer = rejecting([7], .rejected(.badRequest))
        both.accept(100)
        both.run(.seconds(10))
        #expect(both.store.deadLettered.keys.sorted() == [7])
        #expect(both.store.acknowledged.count == 99)
    }

    @Test("a wrong setting never turns the queue into dead letters")
    func fault11_wrongSetting() {
        var world = World(options())
        world.accept(1000)
        world.run(.seconds(60))
        world.answer = { _, _ in (.milliseconds(10), .rejected(.badRequest)) }
        world.accept(5000)
        world.run(.seconds(86_400))
        #expect(world.store.deadLettered.count <= 110)
        #expect(world.isHeld)
        // The same with an answer event by event.
        var partly = World(options())
        partly.accept(1000)
        partly.run(.seconds(60))
        partly.answer = { _, sent in
            let all = sent.events.indices.map { RejectedEvent(index: $0, failure: .badRequest) }
            return (.milliseconds(10), .partial(rejected: all, retry: []))
        }
        partly.accept(5000)
        partly.run(.seconds(86_400))
        #expect(partly.store.deadLettered.count <= 150)
        // And with a destination that never took anything.
        var never = World(options())
        never.answer = { _, _ in (.milliseconds(10), .rejected(.badRequest)) }
        never.accept(500)
        never.run(.seconds(86_400))
        #expect(never.store.deadLettered.isEmpty && never.store.queued == 500)
    }

    @Test("after a restart an acknowledgement with the same settings still counts; with others it does not")
    func fault11_acknowledgedWithSettingsSurvives() {
        var world = World(options { $0.fingerprint = "a" })
        world.accept(50)
        world.run(.seconds(1))
        world.answer = { _, _ in (.milliseconds(1), .rejected(.badRequest)) }
        world.restart()
        world.accept(1)
        world.run(.seconds(10))
        #expect(world.store.deadLettered.count == 1, "the destination has accepted others")
        world.restart(options { $0.fingerprint = "b" })
        world.accept(1)
        world.run(.seconds(10))
        #expect(world.store.deadLettered.count == 1 && world.isHeld, "these settings may be wrong")
    }

    @Test("a batch that alone exhausts its retries is set aside and bisected later, and others continue")
    func fault11_poisonousBatch() {
        var world = World(options())
        world.answer = rejecting([25], .retry(.unavailable))
        for minute in 0..<(60 * 48) { world.later(.seconds(60 * minute), .accept("main", .normal, 50)) }
        world.run(.seconds(3600 * 48 - 1))
        #expect(world.store.acknowledged.count == 50 * 60 * 48 - 1)
        #expect(!world.isBroken)
        #expect(!world.notes.contains { if case .breakerOpened = $0 { true } else { false } })
        #expect(world.shown.setAside == ["": 1])
        // The one event is tried now and then, not all the time.
        #expect(world.sent.count { $0.events.contains(25) } < 48 * 6 + 40)
    }

    @Test(
        "a batch that alone loses its answers is repeated as it is, as its halves would be stored under other ids"
    )
    func fault11_lostAnswers() {
        var world = World(options())
        for (index, failure) in [
            Failure(kind: .timeout, message: "no answer"), Failure(kind: .connection, message: "broken"),
            Failure(kind: .status, status: 504, message: "gateway"),
        ].enumerated() {
            world.answer = rejecting([25], .retry(failure))
            for minute in 0..<600 { world.later(.seconds(60 * minute), .accept("main", .normal, 50)) }
            world.run(.seconds(36_000))
            #expect(world.shown.setAside == ["": 50], "\(index)")
            #expect(Set(world.sent.filter { $0.events.contains(25) }.map(\.batch)).count == 1, "\(index)")
        }
    }

    @Test("a destination that is down opens the breaker, and no batch is set aside")
    func fault11_downIsNotPoison() {
        var world = World(options())
        world.accept(500)
        world.run(.seconds(10))
        world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
        world.accept(500)
        world.run(.seconds(7200))
        #expect(world.isBroken)
        #expect(!world.notes.contains { if case .setAside = $0 { true } else { false } })
    }

    @Test("too many batches that fail alone hold the destination: memory is bounded, and it is reported")
    func fault11_tooManyAlone() {
        var world = World(options())
        var ids = UUIDv7Generator()
        for _ in 0..<1000 {
            let header = BatchHeader(
                id: ids.next(at: world.wall, using: &world.random), destination: "main", priority: .normal,
                events: 1,
                bytes: 1, acceptedAt: world.wall, firstEventTime: world.wall)
            var batch = TrackedBatch(header: header, notBefore: world.boot + .seconds(86_400))
            batch.aside = .fails
            world.machine.destinations["main"]?.kept.keep(batch)
        }
        world.answer = rejecting([25], .retry(.unavailable))
        for minute in 0..<60 { world.later(.seconds(60 * minute), .accept("main", .normal, 50)) }
        world.run(.seconds(3600))
        #expect(world.alerts == 1)
        #expect(world.notes.contains { if case .held = $0 { true } else { false } })
    }

    @Test(
        "413 halves batches until they fit, and sets a size limit until a reload; one event is a dead letter"
    )
    func fault12_tooLarge() throws {
        var world = World(options())
        let limit = 10 * ModelStore.bytesPerEvent
        world.answer = { _, sent in
            let bytes = sent.events.count * ModelStore.bytesPerEvent
            let fits = bytes <= limit && !sent.events.contains(3)
            return (.milliseconds(10), fits ? .acknowledged : .tooLarge(wireBytes: bytes, .tooLarge))
        }
        world.accept(50)
        world.runUntilQuiet()
        #expect(world.store.deadLettered.keys.sorted() == [3])
        #expect(world.store.acknowledged.count == 49)
        let kept = try #require(world.switches[SwitchName.ceiling("main")])
        #expect(try #require(SizeCeiling(stored: kept, fingerprint: "")).bytes < 2 * limit)
        let before = world.sent.count
        world.accept(50)
        world.runUntilQuiet()
        #expect(world.store.acknowledged.count == 99)
        // With the ceiling nothing is refused any more.
        #expect(world.sent.dropFirst(before).allSatisfy { $0.events.count <= 10 })
        world.input(.reload(world.machine.options))
        #expect(world.switches[SwitchName.ceiling("main")] == nil)
    }

    @Test("the size limit from 413 survives a restart with the same settings only")
    func fault52_ceilingSurvives() {
        var world = World(options { $0.fingerprint = "a" })
        let limit = 10 * ModelStore.bytesPerEvent
        world.answer = { _, sent in
            let bytes = sent.events.count * ModelStore.bytesPerEvent
            return (
                .milliseconds(10), bytes <= limit ? .acknowledged : .tooLarge(wireBytes: bytes, .tooLarge)
            )
        }
        world.accept(50)
        world.runUntilQuiet()
        world.restart()
        let before = world.sent.count
        world.accept(50)
        world.runUntilQuiet()
        #expect(
            world.sizes.dropFirst(before).allSatisfy { $0 <= 10 } && world.store.acknowledged.count == 100)
        // Another limit is found out anew.
        world.restart(options { $0.fingerprint = "b" })
        world.accept(50)
        world.runUntilQuiet()
        #expect(world.sizes.contains(50) && world.sizes.last.map { $0 <= 10 } == true)
        // So it is after a person had the settings read again, and after the next restart.
        world.input(.reload(world.machine.options))
        world.restart()
        let reloaded = world.sent.count
        world.accept(50)
        world.runUntilQuiet()
        #expect(world.sizes.dropFirst(reloaded).first == 50)
    }

    @Test("after a hundred acknowledged batches a larger one is tried again")
    func fault12_ceilingGrows() {
        var ceiling = SizeCeiling(refusedWireBytes: 1000, bytes: 4000)
        #expect(ceiling.wireBytes == 900 && ceiling.bytes == 3600)
        ceiling.refuse(wireBytes: 2000, bytes: 8000)
        #expect(ceiling.wireBytes == 900)
        for _ in 0..<99 { ceiling.acknowledge() }
        #expect(ceiling.wireBytes == 900)
        ceiling.acknowledge()
        #expect(ceiling.wireBytes == 1800 && ceiling.bytes == 7200)
    }

    @Test("a limit of a few bytes holds the destination instead of making dead letters")
    func fault12_absurdLimit() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(1), .tooLarge(wireBytes: 5000, .tooLarge)) }
        world.accept(5000)
        world.run(.seconds(86_400))
        #expect(world.store.deadLettered.count <= 110)
        #expect(world.isHeld)
    }

    @Test(
        "partial success: acknowledged, rejected and retried events, each once; invalid positions are ignored"
    )
    func partialSuccess() {
        var world = World(options())
        var first = true
        world.accept(50)
        world.run(.seconds(1))
        world.answer = { _, sent in
            guard first else { return (.milliseconds(1), .acknowledged) }
            first = false
            let rejected = [3, 4, 99, -1].map { RejectedEvent(index: $0, failure: .badRequest) }
            return (.milliseconds(1), .partial(rejected: rejected, retry: [4, 10, 11, 49, 50, 1 << 40]))
        }
        world.accept(50)
        world.runUntilQuiet()
        #expect(world.store.deadLettered.keys.sorted() == [54, 55])
        #expect(world.store.acknowledged.count == 98)
        #expect(world.store.received.values.allSatisfy { $0 == 1 })
        #expect(world.sizes == [50, 50, 3])
    }

    @Test("ac18: one bad batch never delays the others")
    func ac18_badBatchDelaysNobody() {
        for outcome in [
            Outcome.rejected(.badRequest), .retry(.unavailable), .tooLarge(wireBytes: 1, .tooLarge),
        ] {
            var world = World(options())
            world.accept(50)
            world.run(.seconds(1))
            world.answer = rejecting([51], outcome)
            world.accept(2000)
            world.run(.seconds(30))
            #expect(world.store.acknowledged.count >= 2000, "\(outcome)")
        }
    }
}
