import Logs
import Model
import TestKit
import Testing

@testable import Queue

/// Issue 34: one dead destination is nobody else's trouble.
@Suite("A destination that cannot keep up")
struct QueueBehindTests {
    private static let names: [DestinationName] = ["main", "other", "dead"]

    /// Takes and acknowledges all that waits for some destinations.
    private func take(
        _ names: [DestinationName], from store: QueueStore, into taken: inout [DestinationName: [Int]]
    ) async throws {
        for name in names {
            for priority in Priority.allCases {
                while let batch = try await store.leaseNext(request(name, priority)) {
                    taken[name, default: []] += numbers(batch)
                    _ = try await store.settle(.acknowledged(batch.header))
                }
            }
        }
    }

    @Test("one of three destinations is dead and may skip: it gets the newest events, the others all events")
    func oneDeadOfThree() async throws {
        for seed in Seeds.list(1...4) {
            let fixture = try QueueFixture(in: "/dev/shm")
            var random = SplitMix64(seed: seed)
            var maker = ChunkMaker()
            let store = try fixture.open {
                $0.destinations = QueueBehindTests.names
                $0.maxSize = 24 << 10
                $0.skipping = ["dead"]
                $0.durability = .crash
            }
            var taken: [DestinationName: [Int]] = [:]
            var sent = Set<Int>()
            for _ in 0..<400 {
                let events = Int.random(in: 1...40, using: &random)
                let priority: Priority = Int.random(in: 0..<5, using: &random) == 0 ? .critical : .normal
                sent.formUnion(maker.next..<maker.next + events)
                let commit = maker.commit(
                    events, priority: priority, to: QueueBehindTests.names,
                    size: Int.random(in: 10...60, using: &random), full: Bool.random(using: &random))
                if try await store.store(commit) != .stored(refused: 0) {
                    // The healthy ones are late themselves: their acknowledgements make room.
                    try await take(["main", "other"], from: store, into: &taken)
                    try await store.flush()
                    let again = try await store.store(commit)
                    #expect(again == .stored(refused: 0), "\(seed): an event waits for the dead one")
                } else if Int.random(in: 0..<3, using: &random) == 0 {
                    try await take(["main", "other"], from: store, into: &taken)
                }
            }
            // It comes back.
            try await take(QueueBehindTests.names, from: store, into: &taken)
            try await store.flush()
            for name in ["main", "other"] as [DestinationName] {
                #expect(
                    taken[name]?.count == sent.count && Set(taken[name] ?? []) == sent, "\(seed): \(name)")
            }
            let late = taken["dead"] ?? []
            #expect(Set(late).count == late.count && late.contains(maker.next - 1), "\(seed)")
            var evicted = 0
            for lane in store.snapshot.lanes {
                #expect(lane.ledger.balances && lane.ledger.queued == 0, "\(seed): \(lane)")
                #expect(lane.ledger.evicted == 0 || lane.destination == "dead", "\(seed): \(lane)")
                evicted += lane.ledger.evicted
            }
            #expect(evicted > 0 && evicted == sent.count - late.count, "\(seed)")
            #expect(store.snapshot.storedBytes == 0, "\(seed)")
            await store.close()
        }
    }

    @Test("if all destinations are behind, or the only one is, storing waits and nothing is evicted")
    func allAreBehind() async throws {
        for names in [QueueBehindTests.names, ["dead"]] {
            let fixture = try QueueFixture(in: "/dev/shm")
            var maker = ChunkMaker()
            let store = try fixture.open {
                $0.destinations = names
                $0.maxSize = 24 << 10
                $0.skipping = Set(names)
            }
            var result = StoreResult.stored(refused: 0)
            for _ in 0..<200 where result == .stored(refused: 0) {
                result = try await store.store(maker.commit(20, to: names))
            }
            #expect(result == .wait(.full))
            #expect(store.snapshot.lanes.allSatisfy { $0.ledger.evicted == 0 })
            await store.close()
        }
    }

    @Test("normal events are skipped before critical ones, the oldest first, and never those in flight")
    func order() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.destinations = ["main", "dead"]
            $0.maxSize = 24 << 10
            $0.skipping = ["dead"]
        }
        let cost = 50 * 16 + 64 * 2
        _ = try await store.store(maker.commit(50, to: ["dead"], full: true))
        let inFlight = try #require(try await store.leaseNext(request("dead")))
        _ = try await store.store(maker.commit(50, priority: .critical, to: ["dead"], full: true))
        for _ in 2..<(24 << 10) / cost {
            _ = try await store.store(maker.commit(50, to: ["dead"], full: true))
        }
        #expect(try await store.store(maker.commit(50, to: ["main"], full: true)) == .stored(refused: 0))
        #expect(store.snapshot.lane("dead", .normal)?.ledger.evicted == 50)
        #expect(store.snapshot.lane("dead", .critical)?.ledger.evicted == 0)
        await store.release(inFlight.header.id)
        #expect(numbers(try #require(try await store.leaseNext(request("dead")))) == Array(0..<50))
        #expect(numbers(try #require(try await store.leaseNext(request("dead")))).first == 150)
        #expect(fixture.log.messages.count { $0.text == "queue is full, evicting" } == 1)
        await store.close()
    }

    @Test(
        "while it is given up, a dead destination loses events, a healthy one none; later storing waits again"
    )
    func givenUpForAWhile() async throws {
        for seed in Seeds.list(1...4) {
            let fixture = try QueueFixture(in: "/dev/shm")
            var random = SplitMix64(seed: seed)
            var maker = ChunkMaker()
            let names: [DestinationName] = ["main", "dead"]
            let store = try fixture.open {
                $0.destinations = names
                $0.maxSize = 24 << 10
                $0.durability = .crash
            }
            var taken: [DestinationName: [Int]] = [:]
            var waits = 0
            for _ in 0..<400 {
                let priority: Priority = Int.random(in: 0..<5, using: &random) == 0 ? .critical : .normal
                let commit = maker.commit(
                    Int.random(in: 1...40, using: &random), priority: priority, to: names,
                    full: Bool.random(using: &random))
                while try await store.store(commit) == .wait(.full) {
                    waits += 1
                    try #require(waits < 10_000, "\(seed): it waits for ever")
                    // The healthy one may be late, but never loses anything for it.
                    if Bool.random(using: &random) { try await take(["main"], from: store, into: &taken) }
                    try await store.flush()
                    await store.giveUp(for: ["dead"], atMost: Int.random(in: 1...4_000, using: &random))
                }
            }
            try await take(names, from: store, into: &taken)
            try await store.flush()
            #expect(waits > 10 && taken["main"]?.sorted() == Array(0..<maker.next), "\(seed)")
            for lane in store.snapshot.lanes {
                #expect(lane.ledger.balances && lane.ledger.queued == 0, "\(seed): \(lane)")
                #expect((lane.ledger.evicted > 0) == (lane.destination == "dead"), "\(seed): \(lane)")
            }
            await store.close()
        }
    }

    @Test("if all are given up, the largest backlog goes first, then the queue evicts for all, then it waits")
    func allAreGivenUp() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let names: [DestinationName] = ["late", "dead"]
        let store = try fixture.open {
            $0.destinations = names
            $0.maxSize = 24 << 10
        }
        while try await store.store(maker.commit(50, to: maker.next < 500 ? ["dead"] : names, full: true))
            != .wait(.full)
        {}
        let size = maker.commit(50, to: names).chunks[0].bytes
        // Each costs a little more than one that only the dead one waits for.
        await store.giveUp(for: Set(names), atMost: 9 * size)
        for _ in 0..<9 {
            #expect(try await store.store(maker.commit(50, to: names, full: true)) == .stored(refused: 0))
        }
        #expect(try await store.store(maker.commit(50, to: names, full: true)) == .wait(.full))
        #expect(store.snapshot.lane("late", .normal)?.ledger.evicted == 0)
        #expect(store.snapshot.lane("dead", .normal)?.ledger.evicted ?? 0 >= 500)
        await store.giveUp(for: Set(names), atMost: 10 * size)
        for _ in 0..<10 {
            #expect(try await store.store(maker.commit(50, to: names, full: true)) == .stored(refused: 0))
        }
        #expect(store.snapshot.lane("late", .normal)?.ledger.evicted ?? 0 > 0)
        await store.close()
    }
}
