import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Room in the queue by holder")
struct QueueHolderTests {
    private func open(_ fixture: QueueFixture) throws -> QueueStore {
        try fixture.open {
            $0.maxSize = 64 << 10
            $0.whenFull = .evict
            $0.durability = .crash
        }
    }

    @Test(
        "holders are read as they were stored, whatever their names are",
        arguments: ["shop", "team/shop", "/", "a b", "\u{301}shop", "", "ä/ö"])
    func storedNames(name: String) {
        var holders = ChunkHolders()
        holders.add(ChunkHolders.Run(holder: name, events: 3, bytes: 400))
        holders.add(ChunkHolders.Run(holder: "other", events: 1, bytes: 50))
        #expect(ChunkHolders(text: holders.text) == holders)
        // If one event's holder is unknown, all are.
        #expect(holders.apps(of: 0..<4) == [name, "other"])
        #expect(holders.apps(of: 2..<5) == [""] && holders.names(of: 2..<5) == ["", "", ""])
    }

    /// What is left, by the numbers of the events.
    private func drain(_ store: QueueStore) async throws -> Set<Int> {
        var left: Set<Int> = []
        for priority in Priority.allCases {
            while let batch = try await store.leaseNext(request("main", priority, events: 1_000)) {
                for number in numbers(batch) {
                    #expect(left.insert(number).inserted, "\(number) comes twice")
                }
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        return left
    }

    private func commit(_ chunks: [NewChunk]) -> Commit {
        var commit = Commit()
        commit.chunks = chunks
        commit.read = chunks.reduce(0) { $0 + $1.events }
        return commit
    }

    @Test("the apps of a batch's events are known, stored, joined or in pieces; unknown apps stay unknown")
    func whoseEvents() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try open(fixture)
        let chunks = [
            maker.chunk(of: [("A", 2), ("B", 1), ("A", 1)], full: true), maker.chunk(of: [("B", 2)]),
            maker.chunk(1),
            maker.chunk(of: [("A", 1)]),
        ]
        #expect(try await store.store(commit(chunks)) == .stored(refused: 0))
        let whole = try #require(try await store.leaseNext(request("main", events: 4)))
        #expect(await store.apps(of: whole.header.id) == ["A", "A", "B", "A"])
        let joined = try #require(try await store.leaseNext(request("main", events: 4)))
        #expect(await store.apps(of: joined.header.id) == ["B", "B", "", "A"])
        let parts = [Settlement.Part(0..<1, .again(group: 0)), Settlement.Part(1..<4, .again(group: 1))]
        let children = try await store.settle(Settlement(batch: whole.header.id, parts: parts))
        #expect(await store.apps(of: children[0].id) == ["A"])
        #expect(await store.apps(of: children[1].id) == ["A", "B", "A"])
        #expect(await store.apps(of: whole.header.id) == [])
        await store.close()
    }

    @Test("if only other apps' events are requested, a chunk is cut before the first of those")
    func otherApps() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try open(fixture)
        let chunks = [
            maker.chunk(of: [("A", 3)]),
            maker.chunk(of: [("A", 2), ("B", 1), ("A", 2), ("B", 1)], full: true),
        ]
        #expect(try await store.store(commit(chunks)) == .stored(refused: 0))
        var others = request("main", events: 1)
        (others.notOf, others.free) = (["A"], .none)
        var batches: [Batch] = []
        for number in [5, 8] {
            let batch = try #require(try await store.leaseNext(others))
            #expect(numbers(batch) == [number])
            #expect(await store.apps(of: batch.header.id) == ["B"])
            batches.append(batch)
        }
        #expect(try await store.leaseNext(others) == nil)
        var usual = request("main", events: 10)
        usual.free = .none
        let left = try #require(try await store.leaseNext(usual))
        #expect(numbers(left) == [0, 1, 2, 3, 4, 6, 7])
        for batch in batches + [left] { _ = try await store.settle(.acknowledged(batch.header)) }
        try await store.flush()
        let lane = try #require(store.snapshot.lane("main", .normal))
        #expect(lane.summary.waitingEvents == 0 && lane.ledger.acknowledged == 9)
        await store.close()
    }

    @Test("free batches are leased oldest or newest first, or skipped, also those from before a restart")
    func freeBatches() async throws {
        for restarts in [false, true] {
            let fixture = try QueueFixture()
            var maker = ChunkMaker()
            var store = try open(fixture)
            #expect(try await store.store(maker.commit(6)) == .stored(refused: 0))
            let whole = try #require(try await store.leaseNext(request("main", events: 5)))
            let parts = (0..<5).map { Settlement.Part($0..<$0 + 1, .again(group: $0)) }
            let made = try await store.settle(Settlement(batch: whole.header.id, parts: parts))
            if restarts {
                await store.close()
                store = try open(fixture)
            }
            var asked = request("main", events: 5)
            asked.free = .newest
            #expect(try await store.leaseNext(asked)?.header.id == made[4].id)
            asked.except = [made[3].id]
            #expect(try await store.leaseNext(asked)?.header.id == made[2].id)
            asked.free = .oldest
            #expect(try await store.leaseNext(asked)?.header.id == made[0].id)
            asked.free = .none
            #expect(try await store.leaseNext(asked).map { numbers($0) } == [5])
            #expect(try await store.leaseNext(asked)?.header.id == nil)
            asked.free = .newest
            #expect(try await store.leaseNext(asked)?.header.id == made[1].id)
            await store.close()
        }
    }

    @Test(
        "one app's flood evicts its own events, and none of an app that holds less", arguments: [false, true])
    func floodEvictsItself(isMixed: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try open(fixture)
        var honest: Set<Int> = []
        for round in 0..<1_000 {
            let first = maker.next
            var chunks: [NewChunk] = []
            if round < 100, isMixed {
                // In the middle of the other's, in a batch as it is stored.
                chunks.append(maker.chunk(of: [("A", 20), ("B", 1), ("A", 20)], full: true))
                honest.insert(first + 20)
            } else {
                if round < 100 { chunks.append(maker.chunk(of: [("B", 1)])) }
                if round < 100 { honest.insert(first) }
                chunks.append(maker.chunk(of: [("A", 40)], full: true))
            }
            #expect(try await store.store(commit(chunks)) == .stored(refused: 0))
        }
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted ?? 0 > 10_000)
        #expect(
            store.snapshot.storedBytes <= 64 << 10 && store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        let left = try await drain(store)
        #expect(honest.isSubset(of: left), "\(honest.subtracting(left).count) of \(honest.count) are lost")
        #expect(left.contains(maker.next - 1))
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        await store.close()
    }

    @Test(
        "after a restart a chunk that may have been sent as a batch is not cut: it keeps its events and its id"
    )
    func batchOfAnEarlierProcess() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try open(fixture)
        _ = try await store.store(commit([maker.chunk(of: [("flood", 20), ("tiny", 30)], full: true)]))
        let sent = try #require(try await store.leaseNext(request()))
        // The answer is lost with the process.
        await store.close()
        store = try open(fixture)
        for _ in 0..<200 { _ = try await store.store(commit([maker.chunk(of: [("flood", 40)], full: true)])) }
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted ?? 0 > 1_000)
        let again = try #require(try await store.leaseNext(request()))
        #expect(again.header.id == sent.header.id && numbers(again) == Array(0..<50))
        _ = try await store.settle(.acknowledged(again.header))
        #expect(try await drain(store).allSatisfy { $0 >= 50 })
        await store.close()
    }

    @Test("a flood of critical events evicts normal ones first, of any app, and then its own")
    func lanesFirst() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try open(fixture)
        _ = try await store.store(commit([maker.chunk(of: [("B", 40)])]))
        _ = try await store.store(commit([maker.chunk(of: [("B", 10)], priority: .critical)]))
        for _ in 0..<200 {
            _ = try await store.store(commit([maker.chunk(of: [("A", 40)], priority: .critical, full: true)]))
        }
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == 40)
        let left = try await drain(store)
        #expect(left.isSuperset(of: 40..<50) && left.isDisjoint(with: 0..<40))
        await store.close()
    }

    @Test("events of an older version belong to no app, and are evicted like those of an app")
    func nobodys() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try open(fixture)
        for _ in 0..<70 { _ = try await store.store(commit([maker.chunk(of: [("A", 40)])])) }
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("DELETE FROM holding")
        database.close()
        store = try open(fixture)
        _ = try await store.store(commit([maker.chunk(of: [("B", 40)])]))
        for _ in 0..<100 { _ = try await store.store(commit([maker.chunk(of: [("C", 40)])])) }
        let left = try await drain(store)
        #expect(left.isSuperset(of: 2_800..<2_840))
        // Nobody and C are level.
        let nobodys = left.count { $0 < 2_800 }
        #expect((1_500...1_900).contains(nobodys), "\(nobodys)")
        await store.close()
    }

    @Test("dead letters of the app with the most make room; after a retry dead letters still have their app")
    func deadLetters() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.deadLettersMaxSize = 100 * 82 }
        let failure = Failure(kind: .status, status: 400, message: "no", excerpt: "")
        func reject() async throws {
            while let batch = try await store.leaseNext(request(events: 1_000)) {
                let all = Settlement.Part(0..<batch.header.events, .deadLetter(failure))
                _ = try await store.settle(Settlement(batch: batch.header.id, parts: [all]))
            }
        }
        func count(_ app: String) async throws -> Int {
            var selection = RecordSelection()
            selection.app = app
            let records = try await store.list(.deadLetters, selection, limit: 1_000).records
            #expect(records.allSatisfy { $0["app"] == .string(app) })
            return records.count
        }
        // 16 bytes of event, 2 of message, 64 of metadata: 100 fit.
        _ = try await store.store(commit([maker.chunk(of: [("A", 5), ("B", 20), ("A", 5)])]))
        try await reject()
        for _ in 0..<10 {
            _ = try await store.store(commit([maker.chunk(of: [("A", 50)])]))
            try await reject()
        }
        #expect(store.snapshot.deadLetters == .init(count: 100, bytes: 8_200, purged: 430))
        #expect(try await count("A") == 80)
        #expect(try await count("B") == 20)
        var selection = RecordSelection()
        selection.app = "B"
        #expect(try await store.retryDeadLetters(selection) == 20)
        #expect(try await count("B") == 0)
        try await reject()
        #expect(try await count("A") == 80)
        #expect(try await count("B") == 20)
        await store.close()
    }

    /// What each holder has, by the file.
    private func held(_ fixture: QueueFixture) throws -> [String: Int] {
        let database = try Database(
            path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil, readOnly: true)
        defer { database.close() }
        let rows = try database.prepare("SELECT chunk, priority, cost, holders FROM holding")
        var held: [String: Int] = [:]
        while try rows.step() {
            let holding = Holding(rows)
            for share in holding.holders.shares(of: holding.cost) {
                held[share.holder, default: 0] += share.cost
            }
        }
        return held
    }

    @Test(
        "by seed: the largest holder is evicted first, and an app below its equal share loses nothing",
        arguments: Seeds.list(1...12))
    func largestFirst(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try open(fixture)
        let apps = (0..<Int.random(in: 2...10, using: &random)).map { "app\($0)" }
        let greedy = Set(apps.prefix(Int.random(in: 1...max(1, apps.count / 2), using: &random)))
        // Alone in its chunk an event costs 144 bytes.
        var budget = Dictionary(uniqueKeysWithValues: apps.map { ($0, (48 << 10) / apps.count / 144) })
        var owner: [Int: String] = [:]
        for _ in 0..<300 {
            var runs: [(app: String, events: Int)] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let app = apps.randomElement(using: &random) ?? ""
                let events = Int.random(in: 1...(greedy.contains(app) ? 40 : 3), using: &random)
                guard greedy.contains(app) || budget[app, default: 0] >= events else { continue }
                budget[app, default: 0] -= events
                runs.append((app, events))
            }
            guard !runs.isEmpty else { continue }
            let first = maker.next
            for (place, run) in runs.flatMap({ Array(repeating: $0.app, count: $0.events) }).enumerated() {
                owner[first + place] = run
            }
            let before = try held(fixture)
            let coming = maker.chunk(of: runs, full: Bool.random(using: &random))
            #expect(try await store.store(commit([coming])) == .stored(refused: 0))
            var after = try held(fixture)
            for share in ChunkHolders(coming.origins).shares(of: coming.cost) {
                after[share.holder, default: 0] -= share.cost
            }
            // Rounding may cost a byte a run; what is cut out of a chunk leaves its row to the others, some hundred bytes.
            let losers = before.filter { after[$0.key, default: 0] < $0.value - 64 }
            let most = after.values.max() ?? 0
            for (app, bytes) in losers {
                #expect(
                    bytes >= most - most / 8 - 1_000,
                    "\(Seeds.again(seed)): \(app) gave up, \(before), \(after)")
                #expect(greedy.contains(app), "\(Seeds.again(seed)): \(app) is honest, \(before), \(after)")
            }
        }
        #expect(
            store.snapshot.storedBytes <= 64 << 10 && store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        let left = try await drain(store)
        let lost = owner.filter { !greedy.contains($0.value) && !left.contains($0.key) }
        #expect(lost.isEmpty, "\(Seeds.again(seed)): \(lost.count) honest events are lost")
        await store.close()
    }
}
