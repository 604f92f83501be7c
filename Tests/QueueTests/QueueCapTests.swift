import EventLoops
import Logs
import Model
import Synchronization
import TestKit
import Testing

@testable import Queue

@Suite("Queue cap and age")
struct QueueCapTests {
    /// Leases and acknowledges everything; the numbers in the order in which they came.
    private func drain(_ store: QueueStore, _ destination: DestinationName = "main") async throws -> [Int] {
        var taken: [Int] = []
        for priority in [Priority.critical, .normal] {
            while let batch = try await store.leaseNext(request(destination, priority)) {
                taken += numbers(batch)
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        #expect(await eventually { store.snapshot.lanes.allSatisfy { $0.ledger.balances } })
        return taken
    }

    @Test("ac07: `evict` discards the oldest events of the lowest priority, as many as necessary")
    func ac07_evictsInOrder() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 24 << 10
            $0.whenFull = .evict
        }
        // Ten events of 100 bytes and 128 bytes of metadata: 21 chunks fit.
        for _ in 0..<3 {
            _ = try await store.store(maker.commit(10, priority: .critical, size: 100, full: true))
        }
        for _ in 0..<18 { _ = try await store.store(maker.commit(10, size: 100, full: true)) }
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.evicted == 0 })
        #expect(try await store.store(maker.commit(10, size: 100, full: true)) == .stored(refused: 0))
        #expect(
            try await store.store(maker.commit(10, priority: .critical, size: 100)) == .stored(refused: 0))
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == 20)
        #expect(store.snapshot.lane("main", .critical)?.ledger.evicted == 0)
        #expect(store.snapshot.storedBytes <= 24 << 10)
        let expected = Array(0..<30) + Array(220..<230) + Array(50..<220)
        #expect(try await drain(store) == expected)
        #expect(fixture.log.messages.count { $0.text == "queue is full, evicting" } == 1)
        // One line more at the end of the episode, with its totals.
        func ends() -> [LogMessage] { fixture.log.messages.filter { $0.text == "queue was full" } }
        #expect(await eventually { !ends().isEmpty })
        #expect(ends().count == 1 && ends().first?.fields.contains { $0 == ("evicted", "20") } == true)
        await store.close()
    }

    @Test(
        "ac08, ac09: in a queue full of critical events a normal event is refused, and a critical one evicts the oldest"
    )
    func ac08_fullOfCritical() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 24 << 10
            $0.whenFull = .evict
        }
        for _ in 0..<21 {
            _ = try await store.store(maker.commit(10, priority: .critical, size: 100, full: true))
        }
        #expect(try await store.store(maker.commit(10, size: 100)) == .stored(refused: 10))
        #expect(store.snapshot.accepting == .critical)
        #expect(store.snapshot.intake.refused == 10 && store.snapshot.intake.balances)
        #expect(store.snapshot.quarantine.count == 10)
        #expect(store.snapshot.lane("main", .normal)?.ledger.accepted == 0)
        _ = try await store.store(maker.commit(10, priority: .critical, size: 100))
        #expect(store.snapshot.lane("main", .critical)?.ledger.evicted == 10)
        #expect(try await drain(store) == Array(10..<210) + Array(220..<230))
        #expect(await eventually { store.snapshot.accepting == .all })
        await store.close()
    }

    @Test("ac08: a normal event that would not fit even then is refused and evicts nothing")
    func ac08_refusedEvictsNothing() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 24 << 10
            $0.whenFull = .evict
        }
        for _ in 0..<18 {
            _ = try await store.store(maker.commit(10, priority: .critical, size: 100, full: true))
        }
        for _ in 0..<3 { _ = try await store.store(maker.commit(10, size: 100, full: true)) }
        // Room for it only where three of the critical ones are.
        #expect(try await store.store(maker.commit(60, size: 100, full: true)) == .stored(refused: 60))
        let normal = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(normal.evicted == 0 && normal.queued == 30)
        #expect(store.snapshot.quarantine.count == 60 && store.snapshot.intake.balances)
        // One that fits evicts as many as it needs.
        #expect(try await store.store(maker.commit(15, size: 100, full: true)) == .stored(refused: 0))
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == 10)
        await store.close()
    }

    @Test("ac10: an event that can never fit evicts nothing and is quarantined", arguments: [true, false])
    func ac10_neverFits(evicting: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 24 << 10
            $0.whenFull = evicting ? .evict : .wait
        }
        _ = try await store.store(maker.commit(10, size: 100))
        #expect(try await store.store(maker.commit(1, size: 25 << 10)) == .stored(refused: 1))
        #expect(store.snapshot.quarantine.count == 1 && store.snapshot.intake.balances)
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 10)
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == 0)
        await store.close()
    }

    @Test(
        "ac11: a limit below the stored size is refused with both figures by a reload; a start keeps the old one"
    )
    func ac11_capBelowStored() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, size: 1_000, full: true))
        var smaller = fixture.options
        smaller.maxSize = 24 << 10
        let refused = smaller
        let error = await #expect(throws: QueueError.self) { try await store.apply(refused) }
        #expect(error?.code == .capBelowStored)
        #expect(error?.message.contains("24576") == true && error?.message.contains("50128") == true)
        #expect(store.snapshot.maxSize == 10 << 20)
        smaller.maxSize = 60_000
        try await store.apply(smaller)
        #expect(store.snapshot.maxSize == 60_000)
        await store.close()
        #expect(try StoredQueue.look(in: fixture.options.stateDirectory)?.storedBytes == 50_128)
        let again = try fixture.open { $0.maxSize = 24 << 10 }
        #expect(again.snapshot.maxSize == 60_000 && again.snapshot.health.refusedMaxSize == 24 << 10)
        let (bounds, options) = (await again.bounds, await again.options)
        #expect(bounds == FileBounds(options))
        #expect(
            fixture.log.messages.contains { $0.text.hasPrefix("queue.max_size is below the size stored") })
        // While it runs the answer is the same.
        #expect(try StoredQueue.look(in: fixture.options.stateDirectory)?.storedBytes == 50_128)
        #expect(try await again.store(maker.commit(5, size: 1_000)) == .stored(refused: 0))
        #expect(try StoredQueue.look(in: fixture.options.stateDirectory)?.storedBytes == 55_256)
        await again.close()
        let reopened = try fixture.open { $0.maxSize = 60_000 }
        #expect(reopened.snapshot.health.refusedMaxSize == nil)
        #expect(try await drain(reopened) == Array(0..<55))
        await reopened.close()
    }

    @Test(
        "ac12: a clock that is set weeks ahead expires nothing for ten minutes, in which it can be corrected"
    )
    func ac12_clockStep() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let right = fixture.time.wallTime
        fixture.time.step(to: right + .seconds(40 * 86_400))
        #expect(try await store.expire() == 0)
        let kept = try #require(try await store.leaseNext(request()))
        await store.release(kept.header.id)
        fixture.time.advance(by: .seconds(599))
        #expect(try await store.expire() == 0)
        // Set back in time: nothing was lost, and ten minutes begin anew.
        fixture.time.step(to: right)
        fixture.time.advance(by: .seconds(599))
        #expect(try await store.expire() == 0)
        // It stays ahead: what it says counts.
        fixture.time.step(to: right + .seconds(40 * 86_400))
        #expect(try await store.expire() == 0)
        fixture.time.advance(by: .seconds(600))
        #expect(try await store.expire() == 50)
    }

    @Test(
        "ac12: a restart remembers a step of the clock, and notices one made while down; time that passes is no step"
    )
    func ac12_clockStepAcrossRestarts() async throws {
        for isSetBefore in [true, false] {
            let fixture = try QueueFixture()
            var maker = ChunkMaker()
            var store = try fixture.open()
            _ = try await store.store(maker.commit(50, full: true))
            if isSetBefore {
                fixture.time.step(to: fixture.time.wallTime + .seconds(40 * 86_400))
                _ = try await store.store(maker.commit(1))
                fixture.time.advance(by: .seconds(300))
            }
            await store.close()
            if !isSetBefore { fixture.time.step(to: fixture.time.wallTime + .seconds(40 * 86_400)) }
            store = try fixture.open()
            #expect(try await store.expire() == 0)
            fixture.time.advance(by: .seconds(isSetBefore ? 299 : 599))
            await store.close()
            store = try fixture.open()
            #expect(try await store.expire() == 0)
            fixture.time.advance(by: .seconds(1))
            #expect(try await store.expire() == (isSetBefore ? 51 : 50))
            await store.close()
            // Time that has passed is no step.
            store = try fixture.open()
            maker.time = fixture.time.wallTime
            _ = try await store.store(maker.commit(2))
            await store.close()
            fixture.time.advance(by: .seconds(40 * 86_400))
            store = try fixture.open()
            #expect(try await store.expire() == 2)
            await store.close()
        }
    }

    @Test("events of old files never expire, and do not delay the expiry of others")
    func oldFilesDoNotExpire() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open(eventTime: { _, _ in Timestamp(milliseconds: 0) })
        for isFull in [true, false] {
            var commit = maker.commit(50, full: isFull)
            commit.chunks[0].eventTimes = maker.time...Timestamp(nanoseconds: .max)
            _ = try await store.store(commit)
        }
        _ = try await store.store(maker.commit(7))
        for _ in 0..<2 {
            fixture.time.advance(by: .seconds(26 * 86_400))
            _ = try await store.expire()
            #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 7)
            let first = try #require(try await store.leaseNext(request(events: 20)))
            await store.release(first.header.id)
        }
        #expect(try await drain(store).sorted() == Array(0..<100))
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
    }

    @Test("a thousand chunks of old files delay the expiry of events behind them no more than one chunk does")
    func manyOldFiles() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open()
        var commit = maker.commit(1)
        for _ in 0..<1_200 {
            let next = maker.commit(1)
            commit.chunks += next.chunks
            commit.read += next.read
        }
        for index in commit.chunks.indices {
            commit.chunks[index].eventTimes = maker.time...Timestamp(nanoseconds: .max)
        }
        _ = try await store.store(commit)
        _ = try await store.store(maker.commit(7))
        fixture.time.advance(by: .seconds(26 * 86_400))
        #expect(try await store.expire() == 7)
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 1_201)
        await store.close()
    }

    @Test("a refused limit does not count as a failed write")
    func refusedCapIsNoFailure() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, size: 1_000, full: true))
        var smaller = fixture.options
        smaller.maxSize = 40_000
        await #expect(throws: QueueError.self) { try await store.apply(smaller) }
        #expect(store.snapshot.health.failures.isEmpty)
        await store.close()
    }

    @Test("while the clock is not trusted, no line in a full quarantine counts as old")
    func quarantineOfWrongClock() async throws {
        let fixture = try QueueFixture()
        let isTrusted = Mutex(false)
        let store = try fixture.open(
            { $0.quarantineMaxSize = 1_000 }, clock: { _ in isTrusted.withLock { $0 } })
        func keep(_ lines: Int) async throws {
            var commit = Commit()
            commit.quarantined = (0..<lines).map { number in
                QuarantineRecord(
                    reason: .notJSON, detail: "", app: "shop", path: "a", offset: Int64(number), length: 200,
                    content: Array(repeating: 0x78, count: 200), time: fixture.time.wallTime)
            }
            commit.read = lines
            _ = try await store.store(commit)
        }
        try await keep(3)
        fixture.time.advance(by: .seconds(40 * 86_400))
        try await keep(1)
        #expect(store.snapshot.quarantine.count == 3 && store.snapshot.quarantine.purged == 1)
        isTrusted.withLock { $0 = true }
        try await keep(1)
        #expect(store.snapshot.quarantine.count == 3 && store.snapshot.quarantine.purged == 2)
        #expect(try await store.list(.quarantine).records.count == 3)
        await store.close()
    }

    @Test("ac12: the clock is watched from the opening of the queue, so that an early step is noticed")
    func ac12_clockWatchedFromTheStart() async throws {
        let fixture = try QueueFixture()
        let first = Mutex<Timestamp?>(nil)
        let store = try fixture.open(clock: { time in
            first.withLock { $0 = $0 ?? time.wallTime }
            return true
        })
        #expect(first.withLock { $0 } == fixture.time.wallTime)
        await store.close()
    }

    @Test(
        "ac12: an event of exactly 25 days is kept, an older one expires unsent, unless the clock is not trusted"
    )
    func ac12_expiry() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let isTrusted = Mutex(true)
        let store = try fixture.open(clock: { _ in isTrusted.withLock { $0 } })
        _ = try await store.store(maker.commit(50, full: true))
        _ = try await store.store(maker.commit(3))
        fixture.time.advance(by: .seconds(25 * 86_400))
        let kept = try #require(try await store.leaseNext(request()))
        await store.release(kept.header.id)
        #expect(try await store.expire() == 0)
        fixture.time.advance(by: .nanoseconds(1))
        isTrusted.withLock { $0 = false }
        #expect(try await store.lease(kept.header.id, for: "main") != nil)
        await store.release(kept.header.id)
        isTrusted.withLock { $0 = true }
        #expect(try await store.lease(kept.header.id, for: "main") == nil)
        #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 50)
        #expect(try await store.leaseNext(request()) == nil)
        #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 53)
        #expect(store.snapshot.storedBytes == 0)
        maker.time = fixture.time.wallTime - .seconds(26 * 86_400)
        _ = try await store.store(maker.commit(4))
        #expect(try await store.expire() == 4)
        // Whichever way they were found: the log adds up to the ledger.
        let lines = fixture.log.messages.filter { $0.text == "events expired" }
        let logged = lines.compactMap { line in
            line.fields.first { $0.key == "deliveries" }.flatMap { Int($0.value) }
        }
        #expect(logged.reduce(0, +) == 57 && store.snapshot.lane("main", .normal)?.ledger.expired == 57)
        #expect(lines.last?.fields.contains { $0 == ("total", "57") } == true)
        #expect(store.snapshot.lane("main", .normal)?.ledger.balances == true)
        await store.close()
    }

    @Test(
        "ac17: disable deletes and counts the queued events; late acknowledgements change nothing",
        arguments: [64 << 20, 0])
    func ac17_discardAll(atOnce: Int) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        _ = try await store.store(maker.commit(5, priority: .critical))
        let batch = try #require(try await store.leaseNext(request()))
        #expect(
            try await store.discardAll(reason: "disabled", atOnce: atOnce)
                == DiscardedEvents(all: 55, inFlight: 50))
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(try await store.leaseNext(request()) == nil)
        #expect(store.snapshot.storedBytes == 0)
        let discarded = store.snapshot.discarded.map { ($0.priority, $0.reason, $0.events) }
        #expect(discarded.contains { $0 == (.normal, "disabled_in_flight", 50) })
        #expect(discarded.contains { $0 == (.critical, "disabled", 5) })
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances && $0.ledger.queued == 0 })
        var emptied = LaneSummary()
        emptied.withdrawn = 50
        var shown = try #require(store.snapshot.lane("main", .normal)?.summary)
        shown.revision = 0
        #expect(shown == emptied)
        _ = try await store.store(maker.commit(2))
        #expect(try await drain(store) == [55, 56])
        await store.close()
    }

    @Test("deleted content is overwritten in the file by disable and purge", arguments: [true, false])
    func deletedIsOverwritten(isAll: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        maker.next = 7_654_000
        let store = try fixture.open()
        for _ in 0..<4 { _ = try await store.store(maker.commit(200, size: 64, full: true)) }
        if isAll {
            _ = try await store.discardAll(reason: "disabled")
        } else {
            _ = try await store.discard("main", reason: "purged")
        }
        await store.close()
        for name in try WholeFile.names(in: fixture.options.stateDirectory)
        where name.hasPrefix("queue.sqlite") {
            let path = "\(fixture.options.stateDirectory)/\(name)"
            let bytes = try #require(try WholeFile.bytes(of: path, atMost: 64 << 20))
            #expect(!String(decoding: bytes, as: UTF8.self).contains("7654"), "\(name)")
        }
    }

    @Test(
        "disable and purge also erase the remains of acknowledged events from the file",
        arguments: [(true, RecordStore.queue), (false, .queue), (false, .deadLetters), (false, .quarantine)])
    func acknowledgedIsGone(isAll: Bool, purged: RecordStore) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        maker.next = 7_654_000
        let store = try fixture.open()
        for _ in 0..<4 { _ = try await store.store(maker.commit(200, size: 64, full: true)) }
        // Some stay behind those that go, so that pages in use lie behind free ones.
        #expect(try await drain(store).count == 800)
        maker.next = 1_000_000
        for _ in 0..<4 { _ = try await store.store(maker.commit(200, size: 64, full: true)) }
        if isAll {
            _ = try await store.discardAll(reason: "disabled")
        } else {
            _ = try await store.purge(purged)
        }
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        let left = try await drain(store).count
        #expect(left == (purged == .queue ? 0 : 800))
        await store.close()
        for name in try WholeFile.names(in: fixture.options.stateDirectory)
        where name.hasPrefix("queue.sqlite") {
            let path = "\(fixture.options.stateDirectory)/\(name)"
            let bytes = try #require(try WholeFile.bytes(of: path, atMost: 64 << 20))
            #expect(!String(decoding: bytes, as: UTF8.self).contains("7654"), "\(name)")
        }
    }

    @Test(
        "several destinations share a stored event; one that is down blocks no other; orphans stay until purged"
    )
    func severalDestinations() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["main", "other"] }
        let both: [DestinationName] = ["main", "other"]
        for _ in 0..<10 { _ = try await store.store(maker.commit(50, to: both, full: true)) }
        #expect(store.snapshot.storedBytes == 10 * (50 * 16 + 3 * 64))
        #expect(try await drain(store, "main") == Array(0..<500))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.acknowledged == 500 })
        #expect(store.snapshot.storedBytes == 10 * (50 * 16 + 3 * 64))
        await store.close()
        store = try fixture.open()
        let orphan = try #require(store.snapshot.lane("other", .normal))
        #expect(!orphan.isConfigured && orphan.ledger.queued == 500)
        #expect(try await store.discard("other", reason: "purged") == 500)
        #expect(store.snapshot.storedBytes == 0)
        #expect(store.snapshot.lane("other", .normal)?.ledger.discarded == 500)
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
    }

    @Test("eviction removes a chunk for all destinations that wait for it, unless one has it in flight")
    func evictionOverDestinations() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.destinations = ["main", "other"]
            $0.maxSize = 24 << 10
            $0.whenFull = .evict
        }
        let both: [DestinationName] = ["main", "other"]
        // 1,192 bytes each: 20 fit.
        for _ in 0..<20 { _ = try await store.store(maker.commit(10, to: both, size: 100, full: true)) }
        let flying = try #require(try await store.leaseNext(request("main")))
        #expect(numbers(flying) == Array(0..<10))
        _ = try await store.store(maker.commit(10, to: both, size: 100, full: true))
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == 10)
        #expect(store.snapshot.lane("other", .normal)?.ledger.evicted == 10)
        #expect(try await drain(store, "other") == Array(0..<10) + Array(20..<210))
        _ = try await store.settle(.acknowledged(flying.header))
        #expect(try await drain(store, "main") == Array(20..<210))
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        await store.close()
    }

    @Test("dead letters and quarantine have their own bounds, and drop the oldest first, counted")
    func keptRowsAreBounded() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.deadLettersMaxSize = 1_000
            $0.quarantineMaxSize = 500
        }
        _ = try await store.store(maker.commit(50, full: true))
        let batch = try #require(try await store.leaseNext(request()))
        let failure = Failure(kind: .status, status: 400, message: "no", excerpt: "")
        _ = try await store.settle(
            Settlement(batch: batch.header.id, parts: [.init(0..<50, .deadLetter(failure))]))
        // 16 bytes of event, 2 of message, 64 of metadata.
        #expect(store.snapshot.deadLetters == .init(count: 12, bytes: 12 * 82, purged: 38))
        #expect(store.snapshot.lane("main", .normal)?.ledger.deadLettered == 50)
        #expect(store.snapshot.lane("main", .normal)?.deadLetters == 12)
        #expect(store.snapshot.storedBytes == 0)
        var commit = Commit()
        commit.read = 20
        commit.quarantined = (0..<20).map { number in
            QuarantineRecord(
                reason: .notJSON, detail: "", app: "", path: "", offset: Int64(number), length: 1,
                content: [65],
                time: maker.time)
        }
        _ = try await store.store(commit)
        #expect(store.snapshot.quarantine == .init(count: 7, bytes: 7 * 65, purged: 13))
        #expect(store.snapshot.intake.quarantined == 20 && store.snapshot.intake.balances)
        await store.close()
    }

    @Test("the file shrinks with its bounds: a lower limit returns what a backlog has used")
    func fileShrinks() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.maxSize = 64 << 20 }
        for _ in 0..<16 {
            var commit = Commit()
            for _ in 0..<32 { commit.chunks.append(maker.chunk(50, size: 1_000, full: true)) }
            commit.read = 1_600
            _ = try await store.store(commit)
        }
        #expect(try await drain(store).count == 25_600)
        await store.close()
        store = try fixture.open { $0.maxSize = 64 << 20 }
        #expect(store.snapshot.fileBytes > 24 << 20)
        var options = await store.options
        options.maxSize = 1 << 20
        try await store.apply(options)
        let bound = (3 << 20) * 3 / 2 + (4 << 20)
        #expect(await eventually { store.snapshot.fileBytes + store.snapshot.walBytes <= bound })
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        await store.close()
    }

    @Test("ac07: a limit of 100 GB: storing waits at the limit, and continues below nine tenths of it")
    func ac07_hundredGigabytes() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let cap = 100_000_000_000
        /// The figures of a queue that holds so much; the rows themselves are left out.
        func pretend(_ stored: Int) throws -> QueueStore {
            let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
            try database.execute("UPDATE total SET stored_bytes = \(stored)")
            database.close()
            return try fixture.open { $0.maxSize = cap }
        }
        var store = try fixture.open { $0.maxSize = cap }
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        let needs = store.snapshot.storedBytes
        await store.close()
        store = try pretend(cap - needs)
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        #expect(store.snapshot.storedBytes == cap)
        #expect(try await store.store(maker.commit(50, full: true)) == .wait(.full))
        await store.close()
        store = try pretend(cap / 10 * 9 - needs - 1)
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        // The file may grow to its bound: more pages than 32 bits of bytes, and no more than SQLite counts.
        let bounds = await store.bounds
        #expect(bounds.file > cap && bounds.file / bounds.pageSize < 0xFFFF_FFFE)
        await store.close()
    }
}
