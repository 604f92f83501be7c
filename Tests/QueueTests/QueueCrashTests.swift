import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Queue

/// What a program that uses the queue has been told, and when: counted in operations of the disk.
struct CrashJournal {
    /// After each call that returned.
    struct Mark {
        var operations = 0
        /// Events of the commits that were stored.
        var committed = 0
        /// Of `acknowledged`, so many are durable.
        var acknowledged = 0
        /// Of `dead`, so many are durable.
        var dead = 0
        /// Events of the commits that `sync` covers.
        var synced = 0
    }

    var marks = [Mark()]
    /// Acknowledged events in their order, and when that was told.
    var acknowledged: [(number: Int, operations: Int)] = []
    var dead: [Int] = []
    /// The batches that an event was in, and when each was known.
    var batches: [Int: [(operations: Int, id: BatchID)]] = [:]
    var contents: [BatchID: [Int]] = [:]

    mutating func mark(_ store: QueueStore, _ change: (inout Mark) -> Void = { _ in }) {
        var mark = marks[marks.count - 1]
        mark.operations = CrashDisk.operations
        mark.acknowledged = store.snapshot.lanes.reduce(0) { $0 + $1.ledger.acknowledged }
        change(&mark)
        marks.append(mark)
    }

    mutating func note(_ id: BatchID, _ numbers: [Int]) {
        contents[id] = numbers
        for number in numbers { batches[number, default: []].append((CrashDisk.operations, id)) }
    }
}

@Suite("Queue crashes", .serialized)
struct QueueCrashTests {
    /// How many crash points are tried in all; 10,000 take some minutes.
    static let allPoints = getenv("CRASH_POINTS").flatMap { Int(String(cString: $0)) } ?? 510
    static let points = allPoints / 3

    @Test("after power cuts nothing accepted is lost, nothing acknowledged returns, and the ledger balances")
    func powerCuts() async throws { try await CrashDisk.exclusively { try await run(.power, .powerLoss) } }

    @Test("durability crash: after a kill nothing accepted is lost, nothing acknowledged returns")
    func processDeath() async throws { try await CrashDisk.exclusively { try await run(.process, .crash) } }

    @Test("durability crash: after a power cut everything synced is there, and consistent")
    func powerCutsWithoutSync() async throws {
        try await CrashDisk.exclusively { try await run(.power, .crash) }
    }

    @Test(
        "while the disk is not writable nothing is stored or lost, and it recovers by itself",
        arguments: [EROFS, EIO, ENOSPC])
    func fault08_unwritable(error: Int32) async throws {
        try await CrashDisk.exclusively { try await unwritable(error) }
    }

    private func unwritable(_ error: Int32) async throws {
        let fixture = try QueueFixture()
        CrashDisk.reset()
        var maker = ChunkMaker()
        let store = try open(fixture, .powerLoss)
        for _ in 0..<2 { _ = try await store.store(maker.commit(50, full: true)) }
        let batch = try #require(try await store.leaseNext(request()))
        CrashDisk.fail(error)
        let reason: WaitReason = error == ENOSPC ? .diskFull : .notWritable
        #expect(try await store.store(maker.commit(50, full: true)) == .wait(reason))
        #expect(store.snapshot.accepting == .nothing(reason))
        #expect(store.snapshot.health.failure != nil && !store.snapshot.health.failures.isEmpty)
        // What is there can still be leased, and is acknowledged once writing works again.
        let second = try #require(try await store.leaseNext(request()))
        #expect(numbers(second) == Array(50..<100))
        _ = try await store.settle(.acknowledged(batch.header))
        await #expect(throws: QueueError.self) { try await store.setSwitch("delivery.network", "off") }
        #expect(store.snapshot.lane("main", .normal)?.ledger.acknowledged == 0)
        CrashDisk.fail(0)
        #expect(await eventually { store.snapshot.accepting == .all && store.snapshot.health.failure == nil })
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.acknowledged == 50 })
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0))
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
        CrashDisk.reset()
    }

    @Test(
        "after a crash at any write or sync of a commit, a position is never stored without its events",
        arguments: [CrashDisk.Cut.power, .process])
    func fault04_positionWithEvents(cut: CrashDisk.Cut) async throws {
        try await CrashDisk.exclusively { try await positionWithEvents(cut) }
    }

    private func positionWithEvents(_ cut: CrashDisk.Cut) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        CrashDisk.reset()
        CrashDisk.record()
        defer { CrashDisk.reset() }
        let writing = try fixture.open { $0.vfs = CrashDisk.name }
        for _ in 0..<3 { _ = try await writing.store(positioned(&maker, 20)) }
        let before = CrashDisk.operations
        #expect(try await writing.store(positioned(&maker, 50)) == .stored(refused: 0))
        let after = CrashDisk.operations
        await writing.close()
        #expect(after - before > 4)
        var seen: Set<Int> = []
        for place in before...after {
            for seed in 0..<UInt64(3) {
                CrashDisk.cut(cut, after: place, seed: seed)
                let store = try fixture.open {
                    $0.vfs = CrashDisk.name
                    $0.durability = .crash
                }
                let (position, events) = try await standing(store)
                #expect(events == Array(0..<position), "cut after \(place)")
                #expect(
                    store.snapshot.intake.accepted == position
                        && store.snapshot.lanes.allSatisfy { $0.ledger.balances }
                )
                seen.insert(position)
                await store.close()
            }
        }
        // Both sides of the commit were met, and nothing between.
        #expect(seen == [60, 110])
    }

    private func run(
        _ cut: CrashDisk.Cut, _ durability: Durability, test: String = #function
    ) async throws {
        let seed = Seeds.one(12)
        var random = SplitMix64(seed: seed)
        let fixture = try QueueFixture(in: "/dev/shm")
        CrashDisk.reset()
        CrashDisk.record()
        let journal = try await work(fixture, durability, &random)
        let operations = CrashDisk.operations
        #expect(operations > 500)
        for point in 0..<QueueCrashTests.points {
            let place = operations * point / QueueCrashTests.points
            let chance = random.next()
            CrashDisk.cut(cut, after: place, seed: chance)
            do {
                try await verify(fixture, journal, place, isStrict: !(cut == .power && durability == .crash))
            } catch {
                Issue.record(
                    """
                    cut after \(place) of \(operations) operations (\(chance)): \(error); \(Seeds.again(seed, test: test))
                    """)
                return
            }
        }
        CrashDisk.reset()
    }

    private func open(_ fixture: QueueFixture, _ durability: Durability) throws -> QueueStore {
        try fixture.open {
            $0.vfs = CrashDisk.name
            $0.durability = durability
            $0.maxSize = 256 << 10
            $0.deadLettersMaxSize = 256 << 10
        }
    }

    /// Stores, leases, settles, releases and opens again, and writes down what it was told.
    private func work(
        _ fixture: QueueFixture, _ durability: Durability, _ random: inout SplitMix64
    ) async throws -> CrashJournal {
        var journal = CrashJournal()
        var maker = ChunkMaker()
        var store = try open(fixture, durability)
        var leased: [BatchHeader] = []
        for _ in 0..<400 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8:
                var commit = Commit()
                for _ in 0..<Int.random(in: 1...2, using: &random) {
                    let isFull = Bool.random(using: &random)
                    commit.chunks.append(
                        maker.chunk(
                            isFull ? 50 : Int.random(in: 1...20, using: &random),
                            priority: Bool.random(using: &random) ? .normal : .critical,
                            size: Int.random(in: 10...120, using: &random), full: isFull))
                }
                commit.read = commit.chunks.reduce(0) { $0 + $1.events }
                commit.progress.checkpoints = [
                    Checkpoint(key: [1], path: "a", offset: Int64(maker.next), state: [])
                ]
                guard case .stored = try await store.store(commit) else {
                    maker.next -= commit.read; continue
                }
                journal.mark(store) { $0.committed = maker.next }
            case 8..<13:
                let lane = request("main", Bool.random(using: &random) ? .normal : .critical)
                guard let batch = try await store.leaseNext(lane) else { continue }
                leased.append(batch.header)
                journal.note(batch.header.id, numbers(batch))
                journal.mark(store)
            case 13..<17:
                guard !leased.isEmpty else { continue }
                let header = leased.removeFirst()
                guard let content = journal.contents[header.id] else { continue }
                for number in content { journal.acknowledged.append((number, CrashDisk.operations)) }
                _ = try await store.settle(.acknowledged(header))
                journal.mark(store)
            case 17:
                guard let header = leased.popLast(), let content = journal.contents[header.id],
                    content.count > 2
                else { continue }
                let third = content.count / 3
                journal.acknowledged += content[..<third].map { ($0, CrashDisk.operations) }
                journal.dead += content[third..<2 * third]
                let failure = Failure(kind: .status, status: 400, message: "", excerpt: "")
                let children = try await store.settle(
                    Settlement(
                        batch: header.id,
                        parts: [
                            .init(0..<third, .acknowledged), .init(third..<2 * third, .deadLetter(failure)),
                            .init(2 * third..<content.count, .again(group: 0)),
                        ]))
                for child in children { journal.note(child.id, Array(content[(2 * third)...])) }
                let dead = journal.dead.count
                journal.mark(store) { $0.dead = dead }
            case 18:
                if let header = leased.popLast() { await store.release(header.id) }
                if durability == .crash { try await store.syncNow() }
                journal.mark(store) { $0.synced = $0.committed }
            default:
                if Int.random(in: 0..<3, using: &random) == 0 {
                    await store.close()
                    journal.mark(store)
                    store = try open(fixture, durability)
                    leased = []
                }
            }
        }
        await store.close()
        return journal
    }

    /// What is there after a cut is what the program was told before it, or what it was about to be told.
    private func verify(
        _ fixture: QueueFixture, _ journal: CrashJournal, _ place: Int, isStrict: Bool
    ) async throws {
        let mark = journal.marks.last { $0.operations <= place } ?? .init()
        let store = try open(fixture, .crash)
        guard store.snapshot.health.recoveries == 0 else { throw Difference("the database was damaged") }
        let accepted = store.snapshot.lanes.reduce(0) { $0 + $1.ledger.accepted }
        let checkpoint = Int(try await store.restore().checkpoints.first?.offset ?? 0)
        guard accepted == checkpoint else {
            throw Difference("\(accepted) accepted, but the checkpoint stands at \(checkpoint)")
        }
        guard checkpoint >= (isStrict ? mark.committed : mark.synced) else {
            throw Difference("\(mark.committed) were stored, \(checkpoint) are there")
        }
        let dead = String(decoding: try await store.export(.deadLetters).lines, as: UTF8.self)
            .split(separator: "\n").compactMap { Int($0.filter { $0 != " " }) }
        let counted = store.snapshot.lanes.reduce(0) { $0 + $1.ledger.acknowledged }
        var left: Set<Int> = []
        for priority in Priority.allCases {
            while let batch = try await store.leaseNext(request("main", priority)) {
                for number in numbers(batch) where !left.insert(number).inserted {
                    throw Difference("event \(number) is there twice")
                }
                try check(batch, journal, mark, isStrict: isStrict)
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        guard left.count + dead.count + counted == checkpoint, left.isDisjoint(with: dead) else {
            throw Difference(
                "\(left.count) queued + \(dead.count) dead + \(counted) acknowledged of \(checkpoint)")
        }
        let told = Set(journal.acknowledged.filter { $0.operations <= place }.map(\.number))
        for number in 0..<checkpoint
        where !left.contains(number) && !dead.contains(number) && !told.contains(number) {
            throw Difference("event \(number) is lost")
        }
        if isStrict {
            for entry in journal.acknowledged.prefix(mark.acknowledged) where left.contains(entry.number) {
                throw Difference("event \(entry.number) was acknowledged and comes back")
            }
            guard Set(dead).isSuperset(of: journal.dead.prefix(mark.dead)) else {
                throw Difference("a dead letter is lost")
            }
        }
        await store.close()
        guard store.snapshot.storedBytes == 0, store.snapshot.lanes.allSatisfy({ $0.ledger.balances }) else {
            throw Difference("the figures do not balance")
        }
    }

    /// Invariant 2: a batch that was handed out is there under its id with its events, or not at all.
    private func check(
        _ batch: Batch, _ journal: CrashJournal, _ mark: CrashJournal.Mark, isStrict: Bool
    ) throws {
        if let known = journal.contents[batch.header.id], known != numbers(batch) {
            throw Difference("batch \(batch.header.id) has other events than before")
        }
        guard isStrict else { return }
        for number in numbers(batch) {
            guard let history = journal.batches[number],
                let last = history.last(where: { $0.operations <= mark.operations })
            else { continue }
            let later = history.filter { $0.operations > mark.operations }.map(\.id)
            guard batch.header.id == last.id || later.contains(batch.header.id) else {
                throw Difference("event \(number) was in batch \(last.id) and is in \(batch.header.id) now")
            }
        }
    }
}
