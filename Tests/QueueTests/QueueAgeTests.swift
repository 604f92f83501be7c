import EventLoops
import Glibc
import Model
import Synchronization
import TestKit
import Testing

@testable import Queue

@Suite("Queue ages")
struct QueueAgeTests {
    /// When each event happened, by its number.
    private final class Times: Sendable {
        let all = Mutex<[Timestamp]>([])
    }

    @Test("ac12: across kills and restarts, exactly the events older than a destination's maximum age expire")
    func ac12_ageAcrossKills() async throws {
        for seed in Seeds.list(1...6) { try await run(seed) }
    }

    private func run(_ seed: UInt64) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        let again = Seeds.again(seed)
        var random = SplitMix64(seed: seed)
        let ages: [DestinationName: Duration] = ["main": .seconds(150), "pager": .seconds(60)]
        let times = Times()
        var state = fixture.options.stateDirectory
        var lives = 0
        func open() throws -> QueueStore {
            try fixture.open {
                $0.stateDirectory = state
                $0.destinations = ["main", "pager"]
                $0.maxAge = .seconds(150)
                $0.maxAges = ["pager": .seconds(60)]
                $0.durability = .crash
            } eventTime: { line, _ in
                let number = Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)) ?? 0
                return times.all.withLock { $0[number] }
            }
        }
        var store = try open()
        var maker = ChunkMaker()
        /// Those that were leased and not given back, and the others that may be leased again.
        var leased: [Batch] = []
        var known: [BatchID: DestinationName] = [:]
        /// What was acknowledged, by destination.
        var taken: [DestinationName: Set<Int>] = [:]

        func check(_ batch: Batch) {
            for number in numbers(batch) {
                let age = fixture.time.wallTime - times.all.withLock { $0[number] }
                #expect(
                    age <= ages[batch.header.destination] ?? .zero,
                    "event \(number) of \(age) went to \(batch.header.destination); \(again)")
            }
            leased.append(batch)
            known[batch.header.id] = batch.header.destination
        }

        for _ in 0..<400 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<5:
                let count = Bool.random(using: &random) ? 50 : Int.random(in: 1...20, using: &random)
                var chunk = maker.chunk(count, to: ["main", "pager"], full: count == 50)
                let now = fixture.time.wallTime
                let mine = (0..<count).map { _ in now - .seconds(Int.random(in: 0..<80, using: &random)) }
                times.all.withLock { $0 += mine }
                chunk.eventTimes = (mine.min() ?? now)...(mine.max() ?? now)
                chunk.acceptedAt = now
                var commit = Commit()
                commit.chunks = [chunk]
                _ = try await store.store(commit)
            case 5..<11:
                let name: DestinationName = Bool.random(using: &random) ? "main" : "pager"
                if let batch = try await store.leaseNext(
                    request(name, events: [50, 20, 70].randomElement(using: &random) ?? 50))
                {
                    check(batch)
                }
            case 11:
                if let id = known.keys.sorted().randomElement(using: &random), let name = known[id],
                    let batch = try await store.lease(id, for: name)
                {
                    check(batch)
                }
            case 12, 13:
                guard !leased.isEmpty else { continue }
                await store.release(
                    leased.remove(at: Int.random(in: leased.indices, using: &random)).header.id)
            case 14:
                guard !leased.isEmpty else { continue }
                let batch = leased.remove(at: Int.random(in: leased.indices, using: &random))
                taken[batch.header.destination, default: []].formUnion(numbers(batch))
                _ = try await store.settle(.acknowledged(batch.header))
            case 15:
                guard let batch = leased.popLast(), batch.header.events > 1 else { continue }
                let half = Int.random(in: 1..<batch.header.events, using: &random)
                let parts: [Settlement.Part] = [
                    .init(0..<half, .again(group: 0)), .init(half..<batch.header.events, .again(group: 1)),
                ]
                for child in try await store.settle(Settlement(batch: batch.header.id, parts: parts)) {
                    known[child.id] = child.destination
                }
            case 16:
                await store.close()
                store = try open()
                leased = []
            case 17:
                // A kill: the next process finds what was written by then.
                lives += 1
                let next = "\(fixture.directory.path)/state-\(lives)"
                #expect(system("cp -r '\(state)' '\(next)'") == 0)
                await store.close()
                state = next
                store = try open()
                leased = []
            default:
                fixture.time.advance(by: .seconds(Int.random(in: 1...15, using: &random)))
            }
        }
        // What is young enough at the end, and was not taken, comes out.
        await store.close()
        store = try open()
        for (name, age) in ages {
            while let batch = try await store.leaseNext(request(name)) {
                check(batch)
                taken[name, default: []].formUnion(numbers(batch))
                _ = try await store.settle(.acknowledged(batch.header))
            }
            let young = times.all.withLock { all in
                all.indices.filter { fixture.time.wallTime - all[$0] <= age }
            }
            #expect(taken[name, default: []].isSuperset(of: young), "\(name): \(again)")
            let ledger = try #require(store.snapshot.lane(name, .normal)?.ledger)
            #expect(ledger.balances && ledger.expired > 0, "\(name): \(again)")
        }
        #expect(await eventually { store.snapshot.lanes.allSatisfy { $0.ledger.queued == 0 } })
        await store.close()
    }

    @Test("ac12: events in flight do not expire, those behind them do; returned to the queue they expire too")
    func inFlight() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker(time: fixture.time.wallTime)
        let store = try fixture.open { $0.maxAge = .seconds(100) }
        for _ in 0..<3 { _ = try await store.store(maker.commit(50, full: true)) }
        let first = try #require(try await store.leaseNext(request()))
        let second = try #require(try await store.leaseNext(request()))
        fixture.time.advance(by: .seconds(200))
        #expect(try await store.expire() == 50)
        #expect(try await store.settle(.acknowledged(first.header)) == [])
        await store.release(second.header.id)
        #expect(try await store.expire() == 50)
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.queued == 0 })
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.acknowledged == 50 && ledger.expired == 100 && ledger.balances)
        await store.close()
    }
}
