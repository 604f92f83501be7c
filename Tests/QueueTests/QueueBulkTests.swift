import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

/// Input in masses: each transaction is bounded by what it writes, and one that does not fit gives way.
@Suite("Queue: every commit ends")
struct QueueBulkTests {
    private func record(_ number: Int, path: String, content: Int = 1, _ maker: ChunkMaker)
        -> QuarantineRecord
    {
        QuarantineRecord(
            reason: .notJSON, detail: "expected a value at byte 0", app: "shop", path: path,
            offset: Int64(number),
            length: 1, content: [UInt8](repeating: 65, count: content), time: maker.time)
    }

    private func goesOn(_ store: QueueStore, _ maker: inout ChunkMaker) async throws {
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        #expect(store.snapshot.accepting == .all && store.snapshot.health.failure == nil)
        let batch = try #require(try await store.leaseNext(request()))
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.queued == 0 })
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances } && store.snapshot.intake.balances)
    }

    @Test(
        "bad lines of one commit beyond the quarantine's bound are counted as purged, and the first are stored",
        arguments: ["a.log", String(repeating: "long/", count: 800)])
    func badLinesInMasses(path: String) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open()
        for round in 0..<2 {
            var commit = Commit()
            commit.read = 60_000
            commit.quarantined = (0..<60_000).map { record(round * 60_000 + $0, path: path, maker) }
            #expect(try await store.store(commit) == .stored(refused: 0))
        }
        let kept = store.snapshot.quarantine
        #expect(kept.bytes <= 1 << 20 && kept.bytes > (1 << 20) - 8_192)
        #expect(kept.count + kept.purged == 120_000)
        #expect(store.snapshot.intake.quarantined == 120_000)
        let newest = try await store.quarantined(after: 0).last
        #expect(newest != nil)
        try await goesOn(store, &maker)
        await store.close()
    }

    @Test(
        "only quarantined lines older than a day make room; a file whose bad lines find none stays until reread"
    )
    func filesStay() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        var store = try fixture.open()
        func commit(_ offsets: [Int], of app: String, _ file: UInt8) -> Commit {
            var commit = Commit()
            commit.read = offsets.count
            commit.quarantined = offsets.map { record($0, path: "\(app)/a.log", maker) }
            for index in commit.quarantined.indices {
                commit.quarantined[index].app = app
                commit.quarantined[index].file = [0, file]
                commit.quarantined[index].time = fixture.time.wallTime
            }
            return commit
        }
        #expect(try await store.store(commit(Array(0..<100), of: "first", 1)) == .stored(refused: 0))
        #expect(!store.mustStay([0, 1]) && store.snapshot.unkept.isEmpty)
        // All but every tenth line is bad from here on.
        let bad = (100..<60_000).filter { $0 % 10 > 0 }
        #expect(try await store.store(commit(bad, of: "greedy", 2)) == .stored(refused: 0))
        let held = store.snapshot.quarantine
        #expect(held.count + held.purged == 100 + bad.count && held.count > 2_000)
        #expect(store.mustStay([0, 2]) && !store.mustStay([0, 1]))
        #expect(store.snapshot.unkept == ["0002": "greedy/a.log"])
        #expect(try await store.store(commit([7], of: "late", 3)) == .stored(refused: 0))
        #expect(store.mustStay([0, 3]) && store.snapshot.quarantine.count == held.count)
        #expect(
            fixture.log.messages.contains {
                $0.text == "the quarantine is full: files with bad lines stay in the spool"
            })
        await store.close()

        store = try fixture.open()
        #expect(store.mustStay([0, 2]) && store.mustStay([0, 3]) && !store.mustStay([0, 1]))
        let rows = try await store.unkept(of: "0002")
        #expect(rows.count == 1 && rows[0].lines.app == "greedy" && rows[0].lines.path == "greedy/a.log")
        let missing = bad.dropFirst(held.count - 100).map { Int64($0)..<Int64($0 + 1) }
        #expect(rows[0].lines.ranges.flatMap { range in range.map { $0..<($0 + 1) } } == missing)
        // They are read again: what is bad still stays, and is said in a row of its own.
        fixture.time.advance(by: .seconds(86_401))
        var again = commit([missing[0], missing[1]].map { Int($0.lowerBound) }, of: "greedy", 2)
        again.memory.updateValue(nil, forKey: rows[0].name)
        #expect(try await store.store(again) == .stored(refused: 0))
        #expect(!store.mustStay([0, 2]), "day-old lines made room")
        #expect(store.snapshot.quarantine.bytes <= 1 << 20 && store.snapshot.intake.balances)
        // Of a file that is done only the place is forgotten; one that is gone has no bad lines any more.
        let done = DoneRecord(claim: [1], handle: [0, 3])
        var commit = Commit()
        (commit.progress.done, commit.progress.forgotten) = ([done], [done.handle])
        #expect(try await store.store(commit) == .stored(refused: 0))
        #expect(store.mustStay([0, 3]))
        commit = Commit()
        commit.progress.unlinked = [done]
        #expect(try await store.store(commit) == .stored(refused: 0))
        #expect(!store.mustStay([0, 3]))
        #expect(try await store.unkept(of: "0003").isEmpty)
        try await goesOn(store, &maker)
        await store.close()
    }

    @Test(
        "a quarantined line larger than the bound is counted but not stored; with a bound of 0 none is stored",
        arguments: [0, 500])
    func recordBeyondTheBound(bound: Int) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open { $0.quarantineMaxSize = bound }
        var commit = Commit()
        commit.read = 2
        commit.quarantined = [
            record(0, path: "a", content: 10, maker), record(1, path: "a", content: 4_096, maker),
        ]
        #expect(try await store.store(commit) == .stored(refused: 0))
        #expect(store.snapshot.quarantine.count == (bound == 0 ? 0 : 1))
        #expect(store.snapshot.quarantine.count + store.snapshot.quarantine.purged == 2)
        try await goesOn(store, &maker)
        await store.close()
    }

    @Test(
        "checkpoints of too many files displace events, and never wait for a queue that is empty",
        arguments: [(15_000, 3_700, 200), (120_000, 30, 200), (20_000, 30, 1_100)])
    func manyFiles(files: Int, path: Int, state: Int) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open()
        let long = String(repeating: "p", count: path)
        for start in stride(from: 0, to: files, by: 5_000) {
            var commit = maker.commit(1)
            commit.progress.checkpoints = (start..<start + 5_000).map { number in
                // A handle, in no order.
                let key =
                    withUnsafeBytes(of: UInt64(number) &* 0x9E37_79B9_7F4A_7C15) { Array($0) } + [0, 0, 0, 1]
                return Checkpoint(
                    key: key, path: "\(number)/\(long)", offset: Int64(number),
                    state: [UInt8](repeating: 7, count: state))
            }
            #expect(try await store.store(commit) == .stored(refused: 0), "from \(start)")
        }
        let restored = try await store.restore()
        #expect(restored.checkpoints.count == files)
        #expect(restored.checkpoints.allSatisfy { $0.path.utf8.count <= 512 })
        // All of them leave at once.
        var commit = Commit()
        commit.progress.forgotten = restored.checkpoints.map(\.key)
        #expect(try await store.store(commit) == .stored(refused: 0))
        #expect(try await store.restore().checkpoints.isEmpty)
        while let batch = try await store.leaseNext(request()) {
            _ = try await store.settle(.acknowledged(batch.header))
        }
        try await goesOn(store, &maker)
        await store.close()
        let reopened = try fixture.open()
        try await goesOn(reopened, &maker)
        await reopened.close()
    }

    @Test(
        "if quarantined lines fill pages badly, the oldest are deleted early, and commits continue",
        arguments: [WhenFull.wait, .evict])
    func badlyFilledPages(whenFull: WhenFull) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.quarantineMaxSize = 16 << 20
            $0.maxSize = 64 << 10
            $0.deadLettersMaxSize = 0
            $0.whenFull = whenFull
            $0.durability = .crash
        }
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        // Two of them do not fit in a page of 4 KiB.
        for round in 0..<30 {
            var commit = Commit()
            commit.read = 300
            commit.quarantined = (0..<300).map { record(round * 300 + $0, path: "a", content: 2_000, maker) }
            #expect(try await store.store(commit) == .stored(refused: 0), "round \(round)")
        }
        let kept = store.snapshot.quarantine
        #expect(kept.count + kept.purged == 9_000 && kept.purged > 0 && kept.count > 1_000)
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 50, "nothing was evicted for it")
        #expect(fixture.log.messages.contains { $0.text == "queue file is full before its bounds" })
        #expect(store.snapshot.health.failure == nil)
        let batch = try #require(try await store.leaseNext(request()))
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.queued == 0 })
        try await goesOn(store, &maker)
        await store.close()
    }

    @Test("dead letters are purged while they are stored, so a batch larger than their bound is possible")
    func deadLettersInMasses() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open { $0.deadLettersMaxSize = 64 << 10 }
        #expect(try await store.store(maker.commit(20_000, full: true)) == .stored(refused: 0))
        let batch = try #require(try await store.leaseNext(request(events: 20_000)))
        let failure = Failure(
            kind: .status, status: 400, message: "no", excerpt: String(repeating: "x", count: 1_000))
        _ = try await store.settle(
            Settlement(batch: batch.header.id, parts: [.init(0..<20_000, .deadLetter(failure))]))
        let kept = store.snapshot.deadLetters
        #expect(kept.count + kept.purged == 20_000 && kept.bytes <= 64 << 10 && kept.count > 50)
        #expect(store.snapshot.lane("main", .normal)?.deadLetters == kept.count)
        try await goesOn(store, &maker)
        await store.close()
    }
}
