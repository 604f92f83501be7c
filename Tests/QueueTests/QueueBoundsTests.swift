import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Queue: smallest and largest sizes, and leftovers")
struct QueueBoundsTests {
    private func size(_ fixture: QueueFixture) -> Int {
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        return [path, path + "-wal"].reduce(0) { sum, name in
            var information = stat()
            return stat(name, &information) == 0 ? sum + Int(information.st_size) : sum
        }
    }

    @Test(
        "ac07: the smallest limit, 24 KiB, works: all events arrive in order, and the files keep their bound",
        arguments: [50, 7])
    func ac07_leastCap(events: Int) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 24 << 10
            $0.deadLettersMaxSize = 0
            $0.quarantineMaxSize = 0
            $0.durability = .crash
        }
        let bound = (24 << 10) * 3 / 2 + (4 << 20)
        var taken: [Int] = []
        var waits = 0
        for _ in 0..<300 {
            let before = maker
            // A full chunk is a batch; small ones are joined.
            if case .wait(let reason) = try await store.store(
                maker.commit(events, size: 100, full: events == 50))
            {
                #expect(reason == .full)
                maker = before
                waits += 1
                for _ in 0..<3 {
                    guard let batch = try await store.leaseNext(request()) else { break }
                    taken += numbers(batch)
                    _ = try await store.settle(.acknowledged(batch.header))
                }
                #expect(await eventually { store.snapshot.accepting == .all })
            }
            #expect(store.snapshot.storedBytes <= 24 << 10)
        }
        #expect(size(fixture) <= bound)
        while let batch = try await store.leaseNext(request()) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(taken == Array(0..<maker.next) && waits > 10)
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances && $0.ledger.evicted == 0 })
        await store.close()
        #expect(size(fixture) <= bound)
    }

    @Test("after a large backlog the file shrinks by itself, even if no events arrive")
    func drainedFileShrinks() async throws {
        let fixture = try QueueFixture()
        let store = try fixture.open {
            $0.maxSize = 1 << 30
            $0.batchBytes = 1 << 20
            $0.durability = .crash
        }
        let now = fixture.time.wallTime
        let frame = [UInt8](repeating: UInt8(ascii: "x"), count: (256 << 10) - 1) + [UInt8(ascii: "\n")]
        var commit = Commit()
        commit.chunks = Array(
            repeating: NewChunk(
                priority: .normal, destinations: ["main"], events: 1, bytes: frame.count,
                eventTimes: now...now,
                acceptedAt: now, compression: .none, frame: frame, isFull: true), count: 40)
        commit.read = 40
        for _ in 0..<12 { #expect(try await store.store(commit) == .stored(refused: 0)) }
        #expect(size(fixture) > 110 << 20)
        while let batch = try await store.leaseNext(request()) {
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        // What is kept free for what comes next, and the WAL.
        #expect(await eventually { size(fixture) < (64 << 20) + (32 << 20) }, "\(size(fixture)) bytes")
        #expect(try await store.store(commit) == .stored(refused: 0))
        await store.close()
        let reopened = try fixture.open { $0.maxSize = 1 << 30 }
        #expect(reopened.snapshot.lane("main", .normal)?.ledger.queued == 40)
        await reopened.close()
    }

    @Test(
        "ga09, ac12: the earliest event time is searched in as many of the oldest chunks as requested, also after a start"
    )
    func ga09_eventTimeLookahead() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let base = maker.time
        var store = try fixture.open()
        // Each later chunk has the earlier event.
        for hours in [50, 40, 30, 20, 10] {
            maker.time = base + .seconds(3_600 * hours)
            _ = try await store.store(maker.commit(50, full: true))
        }
        // What this process took in it knows, whatever is looked at.
        #expect(store.snapshot.lane("main", .normal)?.summary.earliestEventTime == base + .seconds(36_000))
        await store.close()
        for (lookahead, hours, afterFirst) in [(1, 50, 40), (3, 30, 20), (64, 10, 10)] {
            store = try fixture.open { $0.eventTimeLookahead = lookahead }
            func earliest() -> Timestamp? { store.snapshot.lane("main", .normal)?.summary.earliestEventTime }
            #expect(earliest() == base + .seconds(3_600 * hours), "of \(lookahead)")
            // In a batch it waits no more.
            let batch = try #require(try await store.leaseNext(request()))
            #expect(numbers(batch).first == 0)
            #expect(await eventually { earliest() == base + .seconds(3_600 * afterFirst) }, "of \(lookahead)")
            await store.close()
        }
    }

    @Test("events for a removed destination are listed, block no others, and can be purged")
    func orphans() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["main", "gone"] }
        for _ in 0..<3 { _ = try await store.store(maker.commit(50, to: ["main", "gone"], full: true)) }
        let rejected = try #require(try await store.leaseNext(request("gone")))
        let failure = Failure(kind: .status, status: 400, message: "no", excerpt: "")
        _ = try await store.settle(
            Settlement(batch: rejected.header.id, parts: [.init(0..<50, .deadLetter(failure))]))
        await store.close()

        store = try fixture.open()
        var selection = RecordSelection()
        selection.destination = "gone"
        #expect(store.snapshot.lanes.map(\.isConfigured) == [true, true, false, false])
        #expect(
            try await store.list(.queue, selection).records.map { $0["id"]?.string } == [
                "gone/2.0", "gone/3.0",
            ])
        #expect(try await store.list(.deadLetters, selection).records.count == 50)
        #expect(store.snapshot.lanes.map(\.deadLetters) == [0, 0, 50, 0])
        // The payload is there for the one that still waits for it, and goes with the last.
        var taken: [Int] = []
        while let batch = try await store.leaseNext(request()) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(taken == Array(0..<150))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.acknowledged == 150 })
        #expect(store.snapshot.storedBytes == 2 * (50 * 16 + 3 * 64))
        #expect(try await store.purge(.queue, selection) == 100)
        #expect(try await store.purge(.deadLetters, selection) == 50)
        #expect(store.snapshot.storedBytes == 0 && store.snapshot.lanes.allSatisfy { $0.deadLetters == 0 })
        #expect(store.snapshot.discarded.map(\.reason) == ["purged"])
        await store.close()

        // Its ledger stays: what was accepted for it was accounted for.
        store = try fixture.open()
        let ledger = try #require(store.snapshot.lane("gone", .normal)?.ledger)
        #expect(
            ledger.accepted == 150 && ledger.deadLettered == 50 && ledger.discarded == 100 && ledger.balances)
        #expect(try await store.list(.queue, selection).records.isEmpty)
        await store.close()
    }

    @Test(
        "if the file holds less than expected, commits are stored or wait, losses are counted, room comes back",
        arguments: [WhenFull.wait, .evict], Seeds.list(0..<6))
    func fileHoldsLess(whenFull: WhenFull, seed: UInt64) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var random = SplitMix64(seed: seed)
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 32 << 20
            $0.quarantineMaxSize = 1 << 20
            $0.deadLettersMaxSize = seed.isMultiple(of: 2) ? 1 << 20 : 0
            $0.whenFull = whenFull
            $0.durability = .crash
        }
        var less = fixture.options
        (less.maxSize, less.quarantineMaxSize, less.deadLettersMaxSize) = (256 << 10, 1 << 20, 256 << 10)
        try await store.narrow(to: FileBounds(less))
        var taken: [Int] = []
        func take(_ most: Int, as disposition: Settlement.Disposition) async throws {
            for _ in 0..<most {
                guard let batch = try await store.leaseNext(request(events: 400)) else { return }
                if disposition == .acknowledged { taken += numbers(batch) }
                let part = Settlement.Part(0..<batch.header.events, disposition)
                do throws(QueueError) {
                    _ = try await store.settle(Settlement(batch: batch.header.id, parts: [part]))
                } catch {
                    // Dead letters may find no room. Nothing has changed then, and delivery tries again.
                    try #require(error.code == .fileFull && disposition != .acknowledged)
                    return await store.release(batch.header.id)
                }
            }
        }
        var (brought, refused, waited) = (0, 0, 0)
        for round in 0..<200 {
            let size = [60, 400, 2_500].randomElement(using: &random) ?? 400
            var commit = maker.commit(
                Int.random(in: 1...400, using: &random), size: size, full: Bool.random(using: &random))
            if Int.random(in: 0..<4, using: &random) == 0 {
                commit.quarantined = (0..<150).map { line in
                    QuarantineRecord(
                        reason: .notJSON, detail: "", app: "shop", path: "a",
                        offset: Int64(round * 1_000 + line),
                        length: 1,
                        content: [UInt8](repeating: 65, count: 2_100), time: maker.time)
                }
                if Bool.random(using: &random) { (commit.chunks, commit.read) = ([], 0) }
                commit.read += commit.quarantined.count
            }
            let result = try await store.store(commit)
            if case .stored(let more) = result {
                brought += commit.read - commit.quarantined.count
                refused += more
            } else {
                waited += 1
                try await take(Int.random(in: 1...20, using: &random), as: .acknowledged)
            }
            if Int.random(in: 0..<8, using: &random) == 0 {
                try await take(
                    Int.random(in: 1...4, using: &random),
                    as: .deadLetter(Failure(kind: .status, message: "no")))
            }
        }
        try await take(.max, as: .acknowledged)
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.queued == 0 })
        let again = Seeds.again(seed)
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.balances && store.snapshot.intake.balances, "\(again)")
        #expect(ledger.accepted == brought - refused, "\(again)")
        #expect(ledger.acknowledged == taken.count && Set(taken).count == taken.count, "\(again)")
        #expect(
            whenFull == .wait ? ledger.evicted == 0 : ledger.evicted > 0,
            "\(again): \(ledger), \(waited) waited")
        #expect(fixture.log.messages.contains { $0.text.hasPrefix("queue file is full before") }, "\(again)")
        #expect(store.snapshot.health.failure == nil, "\(again)")
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0), "\(again)")
        await store.close()
    }
}

extension QueueStore {
    /// The file holds no more than that from now on, whatever the configuration says.
    fileprivate func narrow(to bounds: FileBounds) throws {
        state.bounds = bounds
        try file?.limit(to: bounds)
    }
}
