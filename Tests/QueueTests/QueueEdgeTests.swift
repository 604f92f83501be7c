import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Queue: what its guards prevent")
struct QueueEdgeTests {
    @Test("a delivery row is valid only if its chunk contains all of its events")
    func parts() {
        let time = ChunkMaker().time
        let chunk = StoredChunk(
            destinations: 1, events: 5, bytes: 80, firstTime: time, lastTime: time, compression: .none,
            frame: [UInt8](repeating: 0x0A, count: 80))
        for first in Int(-2)...6 {
            for events in Int(-2)...7 {
                let row = DeliveryRow(
                    chunk: 1, first: first, events: events, bytes: 80, firstTime: time, acceptedAt: time,
                    batch: nil,
                    isFormed: false, deadlines: nil)
                let part = chunk.part(row)
                let isInside = first >= 0 && events > 0 && first + events <= 5
                #expect(part?.events == (isInside ? first..<first + events : nil), "\(first), \(events)")
            }
        }
    }

    @Test("a command creates neither a state directory nor a queue")
    func openers() throws {
        let fixture = try QueueFixture()
        let state = fixture.options.stateDirectory
        for isThere in [false, true] {
            if isThere { mkdir(state, 0o700) }
            #expect(
                #expect(throws: QueueError.self) { try fixture.open { $0.opener = .command } }?.code
                    == .missing)
            #expect(access(state, F_OK) == (isThere ? 0 : -1) && access("\(state)/queue.sqlite", F_OK) != 0)
        }
        // A file is where the directory should be made.
        #expect(
            #expect(throws: QueueError.self) { try fixture.open { $0.stateDirectory = "/dev/null/state" } }?
                .message
                .contains("cannot make") == true)
    }

    @Test("a database file that was created but never written reads as an empty queue")
    func emptyFile() throws {
        let fixture = try QueueFixture()
        let state = fixture.options.stateDirectory
        #expect(try StoredQueue.look(in: state) == nil)
        mkdir(state, 0o700)
        close(open("\(state)/queue.sqlite", O_CREAT | O_WRONLY, 0o600))
        let found = try #require(try StoredQueue.look(in: state))
        #expect(found.refusal == nil && found.waiting.isEmpty)
    }

    @Test("dead letters can be selected by priority")
    func deadLettersByPriority() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        let failure = Failure(kind: .status, status: 400, message: "no", excerpt: "")
        for (priority, events) in [(Priority.normal, 3), (.critical, 2)] {
            _ = try await store.store(maker.commit(events, priority: priority))
            let batch = try #require(try await store.leaseNext(request("main", priority)))
            _ = try await store.settle(
                Settlement(batch: batch.header.id, parts: [.init(0..<events, .deadLetter(failure))]))
        }
        for (priority, events) in [(Priority.normal, 3), (.critical, 2)] {
            var selection = RecordSelection()
            selection.priority = priority
            #expect(try await store.list(.deadLetters, selection).records.count == events)
        }
        await store.close()
    }

    @Test(
        "dead letters beyond their bound are counted as purged; those beyond the queue's limit stay on a retry"
    )
    func deadLettersWithoutRoom() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let failure = Failure(kind: .status, status: 400, message: "no", excerpt: "")
        for bound in [0, 100, 1 << 20] {
            let store = try fixture.open {
                $0.deadLettersMaxSize = bound
                $0.maxSize = 24 << 10
            }
            _ = try await store.store(maker.commit(10, size: 1_000))
            let batch = try #require(try await store.leaseNext(request()))
            let before = store.snapshot.deadLetters
            _ = try await store.settle(
                Settlement(batch: batch.header.id, parts: [.init(0..<10, .deadLetter(failure))]))
            let kept = store.snapshot.deadLetters
            #expect(
                kept.count == (bound > 100 ? 10 : 0) && kept.purged - before.purged == (bound > 100 ? 0 : 10))
            #expect(kept.bytes <= bound)
            if bound > 100 {
                _ = try await store.store(maker.commit(20, size: 1_000))
                await #expect(throws: QueueError.self) { _ = try await store.retryDeadLetters() }
                #expect(store.snapshot.deadLetters.count == 10 && store.snapshot.storedBytes <= 24 << 10)
            }
            #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
            await store.close()
        }
    }

    @Test("a batch is settled once, and later settlements change nothing")
    func settledOnce() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(10))
        let batch = try #require(try await store.leaseNext(request()))
        let failure = Failure(kind: .status, status: 400, message: "no", excerpt: "")
        let parts: [Settlement.Part] = [.init(0..<5, .deadLetter(failure)), .init(5..<10, .again(group: 0))]
        #expect(try await store.settle(.acknowledged(batch.header)).isEmpty)
        #expect(try await store.settle(Settlement(batch: batch.header.id, parts: parts)).isEmpty)
        try await store.flush()
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(
            ledger.acknowledged == 10 && ledger.deadLettered == 0 && ledger.queued == 0 && ledger.balances)
        await store.close()
    }

    @Test(
        "events that fill the queue exactly are stored, and evict nothing",
        arguments: [WhenFull.wait, .evict])
    func exactFit(whenFull: WhenFull) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let cost = maker.commit(50, size: 100, full: true).chunks[0].cost
        let store = try fixture.open {
            $0.maxSize = 6 * cost
            $0.whenFull = whenFull
        }
        for _ in 0..<6 {
            #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .stored(refused: 0))
        }
        #expect(
            store.snapshot.storedBytes == 6 * cost
                && store.snapshot.lane("main", .normal)?.ledger.evicted == 0)
        // One more waits or evicts one; what brings no events does neither.
        let more = try await store.store(maker.commit(50, size: 100, full: true))
        #expect(more == (whenFull == .wait ? .wait(.full) : .stored(refused: 0)))
        var progress = Commit()
        progress.progress.checkpoints = [Checkpoint(key: [1], path: "a", offset: 7, state: [])]
        #expect(try await store.store(progress) == .stored(refused: 0))
        #expect(try await store.restore().checkpoints.map(\.offset) == [7])
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == (whenFull == .wait ? 0 : 50))
        await store.close()
    }

    @Test("if expired events free enough room, storing does not wait")
    func expiryMakesRoom() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        maker.time = fixture.time.wallTime
        let store = try fixture.open {
            $0.maxSize = 24 << 10
            $0.maxAge = .seconds(3_600)
        }
        for _ in 0..<4 { _ = try await store.store(maker.commit(50, size: 100, full: true)) }
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .wait(.full))
        while store.snapshot.accepting != .all, let batch = try await store.leaseNext(request()) {
            _ = try await store.settle(.acknowledged(batch.header))
            try await store.flush()
        }
        while try await store.store(maker.commit(10, size: 100, full: true)) == .stored(refused: 0) {}
        await store.close()
        fixture.time.advance(by: .seconds(3_601))
        maker.time = fixture.time.wallTime
        let reopened = try fixture.open {
            $0.maxSize = 24 << 10
            $0.maxAge = .seconds(3_600)
        }
        #expect(try await reopened.store(maker.commit(50, size: 100, full: true)) == .stored(refused: 0))
        #expect(reopened.snapshot.lane("main", .normal)?.ledger.evicted == 0)
        #expect(reopened.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await reopened.close()
    }

    @Test("a discard is logged once, and not at all if it concerns no events")
    func saysWhatItDiscards() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        func lines() -> [String] {
            fixture.log.messages.map(\.text).filter {
                $0.hasPrefix("queue discarded") || $0.hasPrefix("queue purged")
            }
        }
        _ = try await store.discard("main", reason: "purged")
        _ = try await store.discardAll(reason: "disabled")
        #expect(lines().isEmpty)
        _ = try await store.store(maker.commit(10))
        _ = try await store.discard("main", reason: "purged")
        _ = try await store.store(maker.commit(10))
        _ = try await store.discardAll(reason: "disabled")
        #expect(lines() == ["queue purged", "queue discarded"])
        #expect(store.snapshot.lane("main", .normal)?.ledger.discarded == 20)
        await store.close()
    }

    @Test(
        "if other data fills the file, quarantined lines and then events go; each commit ends, all is counted"
    )
    func filledByOthers() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        func options(_ options: inout QueueOptions) {
            options.maxSize = 256 << 10
            options.whenFull = .evict
            options.durability = .crash
        }
        let store = try fixture.open(options)
        func bad(_ count: Int) -> [QuarantineRecord] {
            (0..<count).map {
                QuarantineRecord(
                    reason: .notJSON, detail: "", app: "shop", path: "a", offset: Int64($0), length: 2_000,
                    content: [UInt8](repeating: 65, count: 2_000), time: maker.time)
            }
        }
        var commit = maker.commit(50, full: true)
        commit.read += 200
        commit.quarantined = bad(200)
        #expect(try await store.store(commit) == .stored(refused: 0))
        let batch = try #require(try await store.leaseNext(request()))
        let failure = Failure(
            kind: .status, status: 400, message: "no", excerpt: String(repeating: "x", count: 1_000))
        _ = try await store.settle(
            Settlement(batch: batch.header.id, parts: [.init(0..<50, .deadLetter(failure))]))
        // A table of another program takes the pages, also those that become free.
        let other = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try other.execute("CREATE TABLE other (x)")
        func said(_ text: String) -> Int { fixture.log.messages.count { $0.text == text } }
        var rounds = 0
        while rounds < 300, store.snapshot.quarantine.count + store.snapshot.deadLetters.count > 0 {
            rounds += 1
            try other.execute("INSERT INTO other VALUES (zeroblob(\(rounds == 1 ? 8 << 20 : 64 << 10)))")
            for _ in 0..<3 {
                let result = try await store.store(maker.commit(50, size: 100, full: true))
                guard case .stored = result else { throw QueueError(.full, "round \(rounds)") }
            }
        }
        #expect(said("queue file is full before its bounds") == 1)
        #expect(store.snapshot.quarantine.count == 0 && store.snapshot.quarantine.purged >= 200)
        #expect(store.snapshot.deadLetters.count == 0 && store.snapshot.deadLetters.purged == 50)
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances } && store.snapshot.intake.balances)
        // Once there is room again, all is kept as before, from the next checkpoint on.
        try other.execute("DROP TABLE other")
        other.close()
        _ = try await store.discardAll(reason: "test")
        let before = store.snapshot.lane("main", .normal)?.ledger.accepted ?? 0
        var more = maker.commit(50, full: true)
        more.read += 10
        more.quarantined = bad(10)
        #expect(try await store.store(more) == .stored(refused: 0))
        #expect(store.snapshot.quarantine.count == 10)
        #expect(store.snapshot.lane("main", .normal)?.ledger.accepted == before + 50)
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances } && store.snapshot.intake.balances)
        await store.close()
    }
}
