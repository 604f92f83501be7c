import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Queue store")
struct QueueStoreTests {
    @Test("ac25: an event counts as accepted after its commit, together with checkpoint, figures and memory")
    func ac25_commitIsAllOrNothing() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        var commit = maker.commit(12)
        commit.progress.checkpoints = [Checkpoint(key: [1, 2], path: "app/a.jsonl", offset: 77, state: [9])]
        commit.progress.done = [DoneRecord(claim: [3], handle: [])]
        commit.memory = ["sessions": [5, 6], "gone": nil]
        commit.quarantined = [
            QuarantineRecord(
                reason: .notJSON, detail: "", app: "a", path: "p", offset: 1, length: 2, content: [],
                time: maker.time)
        ]
        commit.read = 14
        commit.refused = 1
        #expect(try await store.store(commit) == .stored(refused: 0))
        await store.close()
        store = try fixture.open()
        let restored = try await store.restore()
        #expect(restored.checkpoints == commit.progress.checkpoints)
        #expect(restored.done == commit.progress.done)
        #expect(restored.memory == ["sessions": [5, 6]])
        let lane = try #require(store.snapshot.lane("main", .normal))
        #expect(lane.ledger.accepted == 12 && lane.ledger.queued == 12 && lane.ledger.balances)
        #expect(store.snapshot.intake.read == 14 && store.snapshot.intake.balances)
        #expect(store.snapshot.quarantine.count == 1)
        await store.close()
    }

    @Test("the queue's files are accessible only to their owner, with any umask")
    func filesAreClosed() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        #expect(try await store.store(maker.commit(1)) == .stored(refused: 0))
        for name in ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm"] {
            var status = stat()
            #expect(stat("\(fixture.options.stateDirectory)/\(name)", &status) == 0, "\(name)")
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
        await store.close()
    }

    @Test("ga09: events of apps that a deadline names are sent first when it is near, also after a restart")
    func ga09_urgentByApp() async throws {
        let fixture = try QueueFixture()
        func open() throws -> QueueStore { try fixture.open { $0.eventTimeLookahead = 64 } }
        var maker = ChunkMaker()
        let shop = try #require(DeadlineNames(["shop"]))
        let both = try #require(DeadlineNames(["shop", "bank"]))
        let start = maker.time
        var commit = Commit()
        // Other apps' events are older; the ones that matter stand behind them.
        for (hours, full, names) in [(0, true, nil), (2, false, shop), (1, true, both), (3, false, nil)]
            as [(Int, Bool, DeadlineNames?)]
        {
            maker.time = start + .seconds(3600 * hours)
            commit.chunks.append(maker.chunk(full ? 50 : 5, full: full, deadlines: names))
        }
        commit.read = 110
        var store = try open()
        #expect(try await store.store(commit) == .stored(refused: 0))
        for round in 0..<2 {
            let summary = try #require(store.snapshot.lane("main", .normal)?.summary)
            #expect(summary.earliestEventTime == start)
            #expect(
                summary.earliestByDeadlines == [shop: start + .seconds(7200), both: start + .seconds(3600)])
            guard round == 0 else { break }
            await store.close()
            store = try open()
            _ = try await store.restore()
        }
        let listed = try await store.list(.queue).records
        #expect(listed.map { $0["deadlines"]?.string } == [nil, "shop", "bank,shop", nil])

        var urgent = request()
        urgent.urgentBefore = start + .seconds(10 * 3600)
        urgent.urgentFor = "bank"
        let first = try #require(try await store.leaseNext(urgent))
        #expect(numbers(first) == Array(55..<105))
        urgent.urgentFor = "shop"
        let second = try #require(try await store.leaseNext(urgent))
        #expect(numbers(second) == Array(50..<55))
        #expect(store.snapshot.lane("main", .normal)?.summary.earliestByDeadlines == [:])
        // None left that it concerns: the lane's own order.
        let third = try #require(try await store.leaseNext(urgent))
        #expect(numbers(third) == Array(0..<50))
        for batch in [first, second, third] { _ = try await store.settle(.acknowledged(batch.header)) }
        await store.close()
    }

    @Test("on request the newest waiting events are leased first, and then the others in order")
    func newest() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var commit = Commit()
        for full in [true, false, true, false] {
            commit.chunks.append(maker.chunk(full ? 50 : 5, full: full))
        }
        commit.read = 110
        let store = try fixture.open()
        #expect(try await store.store(commit) == .stored(refused: 0))
        var newest = request()
        (newest.isNewest, newest.maxEvents, newest.free) = (true, 1, .none)
        var batches: [Batch] = []
        for first in [105, 106, 107, 108, 109, 55] {
            let batch = try #require(try await store.leaseNext(newest))
            #expect(numbers(batch) == [first])
            batches.append(batch)
        }
        var usual = request()
        usual.free = .none
        for expected in [Array(0..<50), Array(50..<55) + Array(56..<101)] {
            let batch = try #require(try await store.leaseNext(usual))
            #expect(numbers(batch) == expected)
            batches.append(batch)
        }
        for batch in batches { _ = try await store.settle(.acknowledged(batch.header)) }
        await store.close()
    }

    @Test("invariant 2: a batch keeps its id and its events through release, restart and another process")
    func invariant2_batchesAreStable() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        _ = try await store.store(maker.commit(10))
        _ = try await store.store(maker.commit(15))
        let full = try #require(try await store.leaseNext(request()))
        let joined = try #require(try await store.leaseNext(request()))
        #expect(numbers(full) == Array(0..<50))
        #expect(numbers(joined) == Array(50..<75))
        #expect(joined.header.bytes == 25 * 16)
        #expect(!full.mayHaveBeenSent && !joined.mayHaveBeenSent)
        #expect(try await store.leaseNext(request()) == nil)
        await store.release(joined.header.id)
        var others = request()
        others.except = [joined.header.id]
        #expect(try await store.leaseNext(others) == nil)
        let again = try #require(try await store.lease(joined.header.id, for: "main"))
        #expect(numbers(again) == numbers(joined) && again.header == joined.header && again.mayHaveBeenSent)
        await store.close()
        store = try fixture.open()
        _ = try await store.store(maker.commit(10))
        let first = try #require(try await store.leaseNext(request()))
        let second = try #require(try await store.leaseNext(request()))
        #expect(first.header == joined.header && numbers(first) == numbers(joined))
        #expect(second.header == full.header && numbers(second) == numbers(full))
        #expect(first.mayHaveBeenSent && second.mayHaveBeenSent)
        let third = try #require(try await store.leaseNext(request()))
        #expect(numbers(third) == Array(75..<85) && !third.mayHaveBeenSent)
        await store.close()
    }

    @Test(
        "invariant 3: an acknowledgement removes and counts events in one transaction, at most 250 ms later")
    func invariant3_acknowledgedOnce() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let batch = try #require(try await store.leaseNext(request()))
        #expect(try await store.settle(.acknowledged(batch.header)).isEmpty)
        #expect(try await store.leaseNext(request()) == nil)
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.acknowledged == 50 })
        #expect(store.snapshot.storedBytes == 0)
        #expect(store.snapshot.lane("main", .normal)?.ledger.balances == true)
        _ = try await store.settle(.acknowledged(batch.header))
        await store.close()
        #expect(store.snapshot.lane("main", .normal)?.ledger.acknowledged == 50)
        #expect(store.snapshot.lane("main", .normal)?.ledger.balances == true)
    }

    @Test("with a commit every 100 ms acknowledgements need no transactions of their own")
    func acknowledgementsGoWithCommits() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        // The first lease writes by itself.
        _ = try await store.store(maker.commit(50, full: true))
        _ = try await store.leaseNext(request())
        let clock = ContinuousClock()
        let (rounds, before) = (8, await store.health.transactions)
        var (late, acknowledged) = (0, clock.now)
        for _ in 0..<rounds {
            _ = try await store.store(maker.commit(50, full: true))
            // As it may be on a busy machine.
            if clock.now - acknowledged > .milliseconds(250) { late += 1 }
            let batch = try #require(try await store.leaseNext(request()))
            acknowledged = clock.now
            _ = try await store.settle(.acknowledged(batch.header))
            try await Task.sleep(for: .milliseconds(100))
        }
        let transactions = await store.health.transactions - before
        #expect(transactions <= rounds + late)
        await store.close()
    }

    @Test("a settlement divides a batch into acknowledged events, dead letters and batches to be sent again")
    func fault11_settlementDivides() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        for _ in 0..<4 { _ = try await store.store(maker.commit(5)) }
        let batch = try #require(try await store.leaseNext(request()))
        #expect(numbers(batch) == Array(0..<20))
        let failure = Failure(kind: .status, status: 400, message: "rejected", excerpt: "no")
        let children = try await store.settle(
            Settlement(
                batch: batch.header.id,
                parts: [
                    .init(0..<3, .acknowledged), .init(3..<4, .deadLetter(failure)),
                    .init(4..<12, .again(group: 1)),
                    .init(12..<20, .again(group: 2)),
                ]))
        #expect(children.map(\.events) == [8, 8] && children.map(\.bytes) == [128, 128])
        #expect(store.snapshot.lane("main", .normal)?.ledger.deadLettered == 1)
        let second = try #require(try await store.lease(children[1].id, for: "main"))
        #expect(numbers(second) == Array(12..<20))
        _ = try await store.settle(.acknowledged(second.header))
        await store.close()
        store = try fixture.open()
        let first = try #require(try await store.leaseNext(request()))
        #expect(first.header.id == children[0].id && numbers(first) == Array(4..<12))
        let lane = try #require(store.snapshot.lane("main", .normal))
        #expect(lane.ledger.acknowledged == 11 && lane.ledger.deadLettered == 1 && lane.ledger.queued == 8)
        #expect(lane.ledger.balances)
        #expect(store.snapshot.deadLetters.count == 1)
        await store.close()
    }

    @Test("a batch has at most the requested events; a chunk is cut if necessary")
    func requestsAreLimits() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        _ = try await store.store(maker.commit(3, size: 100))
        var taken: [Int] = []
        while let batch = try await store.leaseNext(request(events: 20, bytes: 250)) {
            #expect(batch.header.events <= 20 && batch.header.bytes <= 250)
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(taken == Array(0..<53))
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        await store.close()
    }

    @Test("one call leases several batches: free ones, full chunks as stored, the others by one transaction")
    func severalAtOnce() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        // 0..<50 is noted as a size that may be leased as it is.
        for events in [50, 50, 50, 10, 50, 30] {
            _ = try await store.store(maker.commit(events, full: events == 50))
        }
        let first = try #require(try await store.leaseNext(request()))
        let second = try #require(try await store.leaseNext(request()))
        await store.release(second.header.id)
        let before = await store.health.transactions
        let leased = await store.leaseNext(request(), count: 9)
        #expect(leased.failure == nil)
        #expect(leased.batches.first?.header.id == second.header.id)
        // The small ones are joined around the full chunk between them.
        let expected = [
            Array(50..<100), Array(100..<150), Array(150..<160) + Array(210..<240), Array(160..<210),
        ]
        #expect(leased.batches.map { numbers($0) } == expected)
        #expect(await store.health.transactions == before + 1)
        for batch in [first] + leased.batches { _ = try await store.settle(.acknowledged(batch.header)) }
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        await store.close()
        let closed = await store.leaseNext(request(), count: 3)
        #expect(closed.batches.isEmpty && (closed.failure as? QueueError)?.code == .closed)
    }

    @Test("each answer to a lease brings the lane as it leaves it, newer than all before it")
    func answersCarryRevisions() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        func published() -> LaneSummary? { store.snapshot.lane("main", .normal)?.summary }
        #expect((published()?.revision ?? 0) > 0)
        _ = try await store.store(maker.commit(20, full: true))
        _ = try await store.store(maker.commit(7))
        let before = try #require(published())
        // A full chunk as it is stored, events that a transaction joins, nothing, and a batch by its id.
        let whole = await store.leaseNext(request(events: 20), count: 1)
        let formed = await store.leaseNext(request(events: 20), count: 1)
        let none = await store.leaseNext(request(events: 20), count: 1)
        let batch = try #require(whole.batches.first).header.id
        await store.release(batch)
        let again = await store.leaseAgain(batch, for: "main")
        let lanes = try [whole, formed, none, again].map { try #require($0.lane) }
        #expect(before.waitingEvents == 27 && lanes.map(\.waitingEvents) == [7, 0, 0, 0])
        #expect(lanes.map(\.batchedEvents) == [20, 27, 27, 27] && lanes.map(\.freeBatches) == [0, 0, 0, 0])
        let revisions = [before.revision] + lanes.map(\.revision)
        #expect(none.batches.isEmpty && revisions == revisions.sorted())
        #expect(Set(revisions.prefix(3)).count == 3 && lanes[2].revision < lanes[3].revision)
        // What is published later is no older.
        #expect(try #require(published()).revision >= lanes[2].revision)
        let missing = await store.leaseAgain(batch, for: "main")
        #expect(missing.batches.isEmpty && missing.failure == nil)
        await store.close()
    }

    @Test("requests that arrive while a transaction forms a batch share it, and each gets a different batch")
    func requestsShareTransaction() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for events in [10, 50, 50, 50, 50] {
            _ = try await store.store(maker.commit(events, full: events == 50))
        }
        let before = await store.health.transactions
        let taken = try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<6 {
                group.addTask { try await store.leaseNext(request()).map { numbers($0) } ?? [] }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(taken.count { $0.isEmpty } == 1)
        #expect(taken.flatMap(\.self).sorted() == Array(0..<210))
        #expect(await store.health.transactions <= before + 6)
        await store.close()
    }

    @Test("late and invalid calls change nothing, and are reported where possible")
    func callsThatChangeNothing() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<4 { _ = try await store.store(maker.commit(5)) }
        func ledger() -> Ledger? { store.snapshot.lane("main", .normal)?.ledger }
        for limits in [request(events: 0), request(bytes: 0)] {
            let leased = await store.leaseNext(limits, count: 1)
            #expect(leased.batches.isEmpty && (leased.failure as? QueueError)?.code == .misuse)
        }
        let batch = try #require(try await store.leaseNext(request(bytes: 1)))
        #expect(batch.header.events == 1, "one event goes, however small the limit")
        let rest = try #require(try await store.leaseNext(request()))
        #expect(rest.header.events == 19)
        let no = Settlement.Disposition.deadLetter(Failure(kind: .status, status: 400, message: "no"))
        for ranges in [[0..<5, 6..<19], [0..<5, 5..<5, 5..<19], [0..<18], [5..<19, 0..<5], [0..<20], []] {
            let settlement = Settlement(batch: rest.header.id, parts: ranges.map { Settlement.Part($0, no) })
            let error = await #expect(throws: QueueError.self) { try await store.settle(settlement) }
            #expect(error?.code == .misuse, "\(ranges)")
        }
        // Of a batch that is leased already nobody gets a second lease; one that was given back has no end to tell of.
        #expect(try await store.lease(rest.header.id, for: "main") == nil)
        await store.release(rest.header.id)
        await store.release(rest.header.id)
        #expect(store.snapshot.lane("main", .normal)?.summary.freeBatches == 1)
        let whole = Settlement(batch: rest.header.id, parts: [Settlement.Part(0..<19, no)])
        #expect(try await store.settle(whole) == [] && store.snapshot.deadLetters.count == 0)
        try await store.acknowledge([rest.header.id])
        #expect(numbers(try #require(try await store.lease(rest.header.id, for: "main"))) == numbers(rest))
        #expect(try await store.settle(whole) == [] && store.snapshot.deadLetters.count == 19)
        #expect(try await store.settle(whole) == [] && ledger()?.deadLettered == 19)
        #expect(ledger()?.balances == true && ledger()?.queued == 1)
        await store.close()
        await store.close()
    }

    @Test("reasons of discards come from documents; beyond two thousand they count as `other`")
    func manyReasons() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        let store = try fixture.open { $0.durability = .crash }
        for round in 0..<3 {
            var commit = Commit()
            commit.notStored = (0..<1_000).map { number in
                NotStored(
                    priority: .normal, destinations: ["main"],
                    fate: .discarded(reason: "rule \(round * 1_000 + number)"), events: 1)
            }
            commit.read = 1_000
            _ = try await store.store(commit)
        }
        let discarded = store.snapshot.discarded
        #expect(discarded.count == 2_001 && discarded.first { $0.reason == "other" }?.events == 1_000)
        #expect(store.snapshot.lane("main", .normal)?.ledger.discarded == 3_000)
        await store.close()
    }

    @Test("ac07: `wait` stores nothing beyond the limit, and continues below 90 % of it")
    func ac07_waitsForRoom() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.maxSize = 24 << 10 }
        var stored = 0
        while case .stored = try await store.store(maker.commit(50, size: 20, full: true)) { stored += 1 }
        #expect(stored == (24 << 10) / (1000 + 128))
        #expect(store.snapshot.storedBytes == stored * 1128)
        #expect(store.snapshot.accepting == .nothing(.full))
        for _ in 0..<2 {
            let batch = try #require(try await store.leaseNext(request()))
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(await eventually { store.snapshot.accepting == .nothing(.full) })
        let batch = try #require(try await store.leaseNext(request()))
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(await eventually { store.snapshot.accepting == .all })
        #expect(try await store.store(maker.commit(50, size: 20, full: true)) == .stored(refused: 0))
        await store.close()
    }

    @Test("invariant 7: a second owner is refused, and the first one continues")
    func invariant7_oneOwner() async throws {
        let fixture = try QueueFixture()
        let store = try fixture.open()
        let error = #expect(throws: QueueError.self) { _ = try fixture.open() }
        #expect(error?.code == .locked)
        await store.close()
    }

    @Test("ac05: the acceptance time of the oldest waiting event is durable")
    func ac05_oldestSurvivesRestart() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        _ = try await store.store(maker.commit(1))
        maker.time = maker.time + .seconds(5)
        _ = try await store.store(maker.commit(1))
        await store.close()
        store = try fixture.open()
        let summary = try #require(store.snapshot.lane("main", .normal)?.summary)
        #expect(summary.oldestAcceptedAt == ChunkMaker().time)
        #expect(summary.waitingEvents == 2 && summary.waitingBytes == 32)
        await store.close()
    }

    @Test("the acceptance time of the oldest event is known while it is in flight, until it is acknowledged")
    func oldestInBatch() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let batch = try #require(try await store.leaseNext(request()))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.summary.waitingEvents == 0 })
        #expect(store.snapshot.lane("main", .normal)?.oldestQueuedAt == batch.header.acceptedAt)
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.oldestQueuedAt == nil })
        await store.close()
    }
}
