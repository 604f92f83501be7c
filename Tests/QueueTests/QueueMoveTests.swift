import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Moving waiting events to another destination")
struct QueueMoveTests {
    private func ledger(_ store: QueueStore, _ name: DestinationName) -> Ledger {
        store.snapshot.lanes.filter { $0.destination == name }.reduce(into: Ledger()) { sum, lane in
            sum.accepted += lane.ledger.accepted
            sum.discarded += lane.ledger.discarded
            sum.queued += lane.ledger.queued
            sum.acknowledged += lane.ledger.acknowledged
        }
    }

    /// Acknowledgements leave the file by and by: after closing all of them have.
    private func expectEmpty(_ store: QueueStore, _ fixture: QueueFixture) async throws {
        await store.close()
        let again = try fixture.open { $0.destinations = ["old", "new"] }
        #expect(again.snapshot.storedBytes == 0)
        #expect(again.snapshot.lanes.allSatisfy { $0.ledger.queued == 0 && $0.ledger.balances })
        await again.close()
    }

    private func drain(_ store: QueueStore, _ name: DestinationName) async throws -> [Int] {
        var found: [Int] = []
        for priority in [Priority.critical, .normal] {
            while let batch = try await store.leaseNext(request(name, priority, events: 100)) {
                found += numbers(batch)
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        return found
    }

    @Test(
        "all waiting events move to the other destination, in order; the ledger balances, also after a start")
    func everythingMoves() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["old"] }
        for _ in 0..<30 { _ = try await store.store(maker.commit(50, to: ["old"], full: true)) }
        _ = try await store.store(maker.commit(7, priority: .critical, to: ["old"]))
        _ = try await store.store(maker.commit(3, to: ["old"]))
        await store.close()
        store = try fixture.open { $0.destinations = ["new"] }
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 1510, kept: 0))
        #expect(ledger(store, "old").discarded == 1510 && ledger(store, "old").queued == 0)
        #expect(ledger(store, "new").accepted == 1510 && ledger(store, "new").queued == 1510)
        await store.close()
        store = try fixture.open { $0.destinations = ["new"] }
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        #expect(try await drain(store, "new") == Array(1500..<1507) + Array(0..<1500) + Array(1507..<1510))
        try await expectEmpty(store, fixture)
    }

    @Test("a dead letter that is retried and moved reaches no destination that was to get it anyway")
    func retriedThenMoved() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["one", "two", "three"] }
        _ = try await store.store(maker.commit(10, to: ["one", "two"]))
        _ = try await drain(store, "one")
        // Twice over: what two rejected moves to three, is rejected there too, and goes back.
        for (source, target) in [("two", "three"), ("three", "two")] as [(DestinationName, DestinationName)] {
            let batch = try #require(try await store.leaseNext(request(source, .normal, events: 100)))
            let no = Failure(kind: .status, status: 400, message: "no")
            let part = Settlement.Part(0..<10, .deadLetter(no))
            _ = try await store.settle(Settlement(batch: batch.header.id, parts: [part]))
            #expect(try await store.retryDeadLetters() == 10)
            #expect(try await store.move(source, to: "one") == MovedEvents(moved: 0, kept: 10))
            #expect(try await store.move(source, to: target) == MovedEvents(moved: 10, kept: 0))
        }
        #expect(try await drain(store, "one") == [])
        #expect(try await drain(store, "two") == Array(0..<10))
        await store.close()
    }

    @Test(
        "a batch that may have been sent and can move only in part stays, unless its destination is removed"
    )
    func partOfABatch() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["old", "new"] }
        _ = try await store.store(maker.commit(10, to: ["old", "new"]))
        _ = try await store.store(maker.commit(10, to: ["old"]))
        let sent = try #require(try await store.leaseNext(request("old", .normal, events: 20)))
        #expect(numbers(sent).count == 20)
        await store.release(sent.header.id)
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 0, kept: 20))
        let again = try #require(try await store.leaseNext(request("old", .normal, events: 20)))
        #expect(again.header.id == sent.header.id && numbers(again) == numbers(sent))
        await store.close()
        store = try fixture.open { $0.destinations = ["new"] }
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 10, kept: 10))
        #expect(try await drain(store, "new") == Array(0..<20))
        await store.close()
    }

    @Test("moved events are salvaged for their new destination only")
    func salvagedWhereItWent() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["old", "new", "third"] }
        for _ in 0..<4 { _ = try await store.store(maker.commit(50, to: ["old"], full: true)) }
        #expect(try await store.move("old", to: "new").moved == 200)
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("DELETE FROM delivery; UPDATE ledger SET queued = queued + 7 WHERE queued > 0")
        database.close()
        store = try fixture.open { $0.destinations = ["old", "new", "third"] }
        #expect(ledger(store, "old").queued == 0 && ledger(store, "third").queued == 0)
        #expect(try await drain(store, "new") == Array(0..<200))
        try await expectEmpty(store, fixture)
    }

    @Test("a batch that may have been sent keeps its id and its events; events in flight stay")
    func batchesKeepTheirIDs() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["old", "new"] }
        _ = try await store.store(maker.commit(50, to: ["old"], full: true))
        for _ in 0..<3 { _ = try await store.store(maker.commit(4, to: ["old"])) }
        let full = try #require(try await store.leaseNext(request("old")))
        let joined = try #require(try await store.leaseNext(request("old", events: 6)))
        await store.release(full.header.id)
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 56, kept: 6))
        // Smaller limits of the new destination split neither.
        let again = try #require(try await store.leaseNext(request("new", events: 5)))
        #expect(again.header.id == full.header.id && numbers(again) == numbers(full))
        #expect(again.header.destination == "new")
        _ = try await store.settle(.acknowledged(again.header))
        await store.release(joined.header.id)
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 6, kept: 0))
        // Whoever had it before has not heard of it, perhaps.
        #expect(try await store.lease(joined.header.id, for: "old") == nil)
        #expect(store.snapshot.lane("old", .normal)?.summary.withdrawn == 62)
        let second = try #require(try await store.lease(joined.header.id, for: "new"))
        #expect(second.header.destination == "new" && numbers(second) == numbers(joined))
        _ = try await store.settle(.acknowledged(second.header))
        #expect(try await drain(store, "new") == Array(56..<62))
        try await expectEmpty(store, fixture)
    }

    @Test("events that the other destination was to get anyway stay: it gets none twice")
    func whatItHasHadStays() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["old", "new"] }
        for _ in 0..<3 { _ = try await store.store(maker.commit(50, to: ["old", "new"], full: true)) }
        let taken = try #require(try await store.leaseNext(request("new")))
        _ = try await store.settle(.acknowledged(taken.header))
        let rejected = try #require(try await store.leaseNext(request("new")))
        let no = Failure(kind: .status, status: 400, message: "no")
        let part = Settlement.Part(0..<50, .deadLetter(no))
        _ = try await store.settle(Settlement(batch: rejected.header.id, parts: [part]))
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 0, kept: 150))
        #expect(try await drain(store, "new") == Array(100..<150))
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 0, kept: 150))
        #expect(try await drain(store, "old") == Array(0..<150))
        try await expectEmpty(store, fixture)
    }

    @Test(
        "after any moves, with any batches in flight, no destination gets an event twice, and none is lost",
        arguments: Seeds.list(0..<30))
    func onceForEach(seed: UInt64) async throws {
        let fixture = try QueueFixture()
        var random = SplitMix64(seed: seed)
        var maker = ChunkMaker()
        let names: [DestinationName] = ["old", "new", "third"]
        let store = try fixture.open {
            $0.destinations = names
            $0.durability = .crash
        }
        /// For how many destinations each event was accepted, and who has got it.
        var accepted: [Int: Int] = [:]
        var taken: [DestinationName: [Int]] = [:]
        var leased: [Batch] = []
        for _ in 0..<250 {
            let name = names.randomElement(using: &random) ?? "old"
            let place = leased.isEmpty ? nil : Int.random(in: leased.indices, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1:
                let all = names.filter { $0 == name || Int.random(in: 0..<3, using: &random) == 0 }
                let count = Bool.random(using: &random) ? 50 : Int.random(in: 1...20, using: &random)
                for number in maker.next..<maker.next + count { accepted[number] = all.count }
                _ = try await store.store(maker.commit(count, to: all, full: count == 50))
            case 2, 3, 4:
                let most = [50, 7].randomElement(using: &random) ?? 50
                if let batch = try await store.leaseNext(request(name, events: most)) { leased.append(batch) }
            case 5, 6:
                if let place { await store.release(leased.remove(at: place).header.id) }
            case 7:
                guard let place else { continue }
                let batch = leased.remove(at: place)
                taken[batch.header.destination, default: []] += numbers(batch)
                _ = try await store.settle(.acknowledged(batch.header))
            default:
                if let other = names.randomElement(using: &random), other != name {
                    _ = try await store.move(name, to: other)
                }
            }
        }
        for batch in leased { await store.release(batch.header.id) }
        for name in names { taken[name, default: []] += try await drain(store, name) }
        let again = Seeds.again(seed)
        for (name, numbers) in taken { #expect(Set(numbers).count == numbers.count, "\(again): \(name)") }
        var found: [Int: Int] = [:]
        for number in taken.values.joined() { found[number, default: 0] += 1 }
        #expect(found == accepted, "\(again)")
        try await store.flush()
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.queued == 0 && $0.ledger.balances }, "\(again)")
        await store.close()
    }

    @Test("moved events can move on and back, but not to a destination that got them by another move")
    func thereAndBack() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["old", "new", "third"] }
        _ = try await store.store(maker.commit(50, to: ["old"]))
        let flying = try #require(try await store.leaseNext(request("old", events: 20)))
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 30, kept: 20))
        _ = try await store.settle(.acknowledged(flying.header))
        #expect(try await store.move("new", to: "old") == MovedEvents(moved: 30, kept: 0))
        #expect(try await store.move("old", to: "third") == MovedEvents(moved: 30, kept: 0))
        #expect(try await store.move("third", to: "new") == MovedEvents(moved: 30, kept: 0))
        #expect(try await drain(store, "new") == Array(20..<50))
        _ = try await store.store(maker.commit(5, to: ["old", "new"]))
        #expect(try await store.move("old", to: "third") == MovedEvents(moved: 5, kept: 0))
        #expect(try await drain(store, "third") == Array(50..<55))
        // It has had them in place of the first.
        #expect(try await store.move("new", to: "third") == MovedEvents(moved: 0, kept: 5))
        #expect(try await drain(store, "new") == Array(50..<55))
        try await expectEmpty(store, fixture)
    }

    @Test("events that wait for both destinations stay; an unknown destination gets nothing")
    func whatIsThereStays() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["old", "new"] }
        _ = try await store.store(maker.commit(5, to: ["old", "new"]))
        _ = try await store.store(maker.commit(5, to: ["old"]))
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 5, kept: 5))
        await #expect(throws: QueueError.self) { try await store.move("old", to: "nowhere") }
        await #expect(throws: QueueError.self) { try await store.move("old", to: "old") }
        #expect(try await drain(store, "new") == Array(0..<10))
        #expect(try await drain(store, "old") == Array(0..<5))
        try await expectEmpty(store, fixture)
    }
}
