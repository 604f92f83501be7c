import EventLoops
import Model
import Synchronization
import TestKit
import Testing

@testable import Queue

@Suite("What looks too old after a step of the clock")
struct QueueAgedHeadTests {
    private static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }

    /// A queue of 50 events in a full chunk and three in a small one, all 40 days old by a clock that was set
    /// just now.
    private func aged(
        _ fixture: QueueFixture, _ maker: inout ChunkMaker, isRestarted: Bool = false,
        _ change: (inout QueueOptions) -> Void = { _ in }
    ) async throws -> QueueStore {
        var store = try fixture.open(change)
        _ = try await store.store(maker.commit(50, full: true))
        _ = try await store.store(maker.commit(3))
        if isRestarted {
            // A batch that an earlier process has formed.
            while try await store.leaseNext(request()) != nil {}
            await store.close()
        }
        fixture.time.step(to: fixture.time.wallTime + QueueAgedHeadTests.days(40))
        if isRestarted { store = try fixture.open(change) }
        maker.time = fixture.time.wallTime
        return store
    }

    /// Numbers of all events that leases give out, in their order; they are acknowledged.
    private func taken(
        _ store: QueueStore, _ wanted: LeaseRequest = request()
    ) async throws -> [Int] {
        var found: [Int] = []
        while let batch = try await store.leaseNext(wanted) {
            found += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        return found
    }

    @Test(
        "ac12: it waits until it expires or the clock is corrected; what is younger does not wait",
        arguments: [true, false], [true, false])
    func waits(isCorrected: Bool, isRestarted: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker(time: fixture.time.wallTime)
        let right = fixture.time.wallTime
        let store = try await aged(fixture, &maker, isRestarted: isRestarted)
        // A chunk with one young event is sent: it may be another app's.
        var mixed = maker.commit(4, full: true)
        mixed.chunks[0].eventTimes = right...maker.time
        _ = try await store.store(mixed)
        _ = try await store.store(maker.commit(2))
        #expect(try await taken(store).sorted() == Array(53..<59))
        #expect(try await store.expire() == 0)
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 53)
        if isCorrected {
            fixture.time.step(to: right)
            #expect(try await taken(store).sorted() == Array(0..<53))
        } else {
            fixture.time.advance(by: .seconds(599))
            #expect(try await store.leaseNext(request()) == nil)
            #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 0)
            fixture.time.advance(by: .seconds(1))
            #expect(try await store.leaseNext(request()) == nil)
            #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.expired == 53 })
        }
        #expect(
            await eventually {
                store.snapshot.lanes.allSatisfy { $0.ledger.balances && $0.ledger.queued == 0 }
            })
        await store.close()
    }

    @Test("thousands of chunks that wait do not keep a younger event, and none of them is sent")
    func manyChunks() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker(time: fixture.time.wallTime)
        let store = try fixture.open { $0.durability = .crash }
        for _ in 0..<50 {
            var commit = Commit()
            commit.chunks = (0..<90).map { _ in maker.chunk(1, full: true) }
            _ = try await store.store(commit)
        }
        fixture.time.step(to: fixture.time.wallTime + QueueAgedHeadTests.days(40))
        maker.time = fixture.time.wallTime
        _ = try await store.store(maker.commit(1))
        #expect(try await taken(store) == [4_500])
        await store.close()
    }

    @Test("where the order is kept, and where events could be needed room for, it is sent as before")
    func cannotWait() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker(time: fixture.time.wallTime)
        var ordered = request()
        ordered.inOrder = true
        let store = try await aged(fixture, &maker)
        _ = try await store.store(maker.commit(2))
        #expect(try await taken(store, ordered) == Array(0..<55))
        await store.close()

        let small = try QueueFixture()
        maker = ChunkMaker(time: small.time.wallTime)
        let full = try await aged(small, &maker) { $0.maxSize = 60_000 }
        #expect(try await full.leaseNext(request()) == nil)
        while full.snapshot.storedBytes <= 30_000 { _ = try await full.store(maker.commit(50, size: 64)) }
        let first = try #require(try await full.leaseNext(request()))
        #expect(numbers(first) == Array(0..<50))
        await full.close()
    }

    @Test("an app's age counts; an age that settings raise, and events that are moved, are looked at anew")
    func agesAndMoves() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker(time: fixture.time.wallTime)
        let old = maker.time
        let store = try fixture.open {
            $0.destinations = ["main", "other"]
            $0.appMaxAges = ["shop": QueueAgedHeadTests.days(20)]
            $0.maxAge = QueueAgedHeadTests.days(50)
        } eventTime: { _, _ in
            old
        }
        func add(_ app: String, _ events: Int, _ time: Timestamp, to name: DestinationName) async throws {
            var commit = Commit()
            commit.chunks = [maker.chunk(of: [(app, events)], to: [name], full: true)]
            commit.chunks[0].eventTimes = time...time
            _ = try await store.store(commit)
        }
        try await add("web", 1, old, to: "other")
        try await add("shop", 3, old, to: "main")
        try await add("web", 2, old, to: "main")
        try await add("shop", 3, old, to: "main")
        fixture.time.step(to: fixture.time.wallTime + QueueAgedHeadTests.days(40))
        // web's are sent, and shop's that stand behind them wait now.
        let web = try #require(try await store.leaseNext(request()))
        #expect(numbers(web) == [4, 5])
        _ = try await store.settle(.acknowledged(web.header))
        #expect(try await store.leaseNext(request()) == nil)
        // An older chunk of web arrives before them.
        #expect(try await store.move("other", to: "main").moved == 1)
        let moved = try #require(try await store.leaseNext(request()))
        #expect(numbers(moved) == [0])
        _ = try await store.settle(.acknowledged(moved.header))
        #expect(try await store.leaseNext(request()) == nil)
        var longer = await store.options
        longer.appMaxAges = [:]
        try await store.apply(longer)
        #expect(try await taken(store) == [1, 2, 3, 6, 7, 8])
        await store.close()
    }

    @Test(
        "by seeds, over steps, restarts and caps: nothing expires in doubt; what looks young never waits; what waits expires or is sent"
    )
    func model() async throws {
        var waits = 0
        for seed in Seeds.list(1...12) { waits += try await run(seed) }
        #expect(waits > 0)
    }

    /// What the model knows of a chunk: its events by number, when they happened, and whose they are.
    private struct Chunk {
        var events: Range<Int>
        var time: Timestamp
        var app: String
    }

    /// - Returns: how often a lease gave nothing because all that waited looked too old.
    private func run(_ seed: UInt64) async throws -> Int {
        let again = Seeds.again(seed)
        let fixture = try QueueFixture(in: "/dev/shm")
        var random = SplitMix64(seed: seed)
        let maxAge = QueueAgedHeadTests.days(25)
        let ages = ["shop": QueueAgedHeadTests.days(5)]
        let times = Mutex<[Timestamp]>([])
        // Some queues are soon half full.
        let cap = Bool.random(using: &random) ? 1 << 30 : 200_000
        func open() throws -> QueueStore {
            try fixture.open {
                $0.maxAge = maxAge
                $0.appMaxAges = ages
                $0.durability = .crash
                $0.maxSize = cap
            } eventTime: { line, _ in
                let number = Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)) ?? 0
                return times.withLock { $0[number] }
            }
        }
        var store = try open()
        var maker = ChunkMaker()
        var chunks: [Chunk] = []
        var left: Set<Int> = []
        var leased: [Batch] = []
        var tried: [BatchID] = []
        var lastStep: BootInstant?
        var waits = 0

        func limit(_ chunk: Chunk) -> Duration { min(maxAge, ages[chunk.app] ?? maxAge) }
        func isOld(_ chunk: Chunk) -> Bool { fixture.time.wallTime - chunk.time > limit(chunk) }
        func isInDoubt() -> Bool { lastStep.map { fixture.time.bootTime - $0 < .seconds(600) } ?? false }
        /// The head that waits: chunks with events that are in the queue, up to the first that looks young.
        func waiting() -> [Chunk] {
            Array(chunks.filter { !left.isDisjoint(with: $0.events) }.prefix(while: isOld))
        }
        func expired() -> Int { store.snapshot.lane("main", .normal)?.ledger.expired ?? 0 }
        /// Removes what is too old, unless the clock is in doubt.
        func expire() async throws {
            _ = try await store.expire()
            guard !isInDoubt() else { return }
            let inFlight = Set(leased.flatMap(numbers))
            let old = Set(chunks.filter(isOld).flatMap(\.events))
            left.subtract(old.subtracting(inFlight))
        }

        /// One lease as delivery asks for it, and what must be true of it.
        func lease() async throws {
            let canWait = isInDoubt() && store.snapshot.storedBytes <= cap / 2
            let head = waiting()
            let before = expired()
            let most = [50, 7].randomElement(using: &random) ?? 50
            let batch = try await store.leaseNext(request(events: most))
            let inHead = Set(head.flatMap(\.events))
            if isInDoubt() {
                #expect(expired() == before, "events expired in doubt; \(again)")
            }
            let inFlight = Set(leased.flatMap(numbers))
            guard let batch else {
                // Nothing that looks young waits.
                let young = left.subtracting(inFlight).filter { number in
                    chunks.contains { $0.events.contains(number) && !isOld($0) }
                }
                #expect(young.isEmpty, "\(young.count) young events were not leased; \(again)")
                let stays = left.subtracting(inFlight)
                #expect(stays.isEmpty || canWait || !isInDoubt(), "\(stays.count) events wait; \(again)")
                waits += canWait && !stays.isEmpty ? 1 : 0
                if !isInDoubt() {
                    // All others have expired.
                    left = inFlight
                }
                return
            }
            if canWait {
                #expect(!inHead.isSuperset(of: numbers(batch)), "what looks too old was sent; \(again)")
            }
            if !isInDoubt() {
                for number in numbers(batch) {
                    let chunk = try #require(chunks.first { $0.events.contains(number) })
                    #expect(!isOld(chunk), "event \(number) is too old; \(again)")
                }
            }
            leased.append(batch)
            tried.append(batch.header.id)
        }

        for _ in 0..<300 {
            switch Int.random(in: 0..<16, using: &random) {
            case 0..<5:
                let app = ["shop", "web", "news"].randomElement(using: &random) ?? "web"
                let isFull = Bool.random(using: &random)
                let count = isFull ? 50 : Int.random(in: 1...9, using: &random)
                let age = QueueAgedHeadTests.days(Int.random(in: 0...4, using: &random))
                let time = fixture.time.wallTime - age
                var chunk = maker.chunk(of: [(app, count)], size: 64, full: isFull)
                chunk.eventTimes = time...time
                chunk.acceptedAt = fixture.time.wallTime
                times.withLock { $0 += Array(repeating: time, count: count) }
                var commit = Commit()
                commit.chunks = [chunk]
                let events = maker.next - count..<maker.next
                chunks.append(Chunk(events: events, time: time, app: app))
                guard case .stored(refused: 0) = try await store.store(commit) else { continue }
                left.formUnion(events)
            case 5..<10: try await lease()
            case 10:
                guard let batch = leased.popLast() else { continue }
                await store.release(batch.header.id)
            case 11:
                // What was tried before is tried again, whatever its age: unless it expires.
                if let id = tried.randomElement(using: &random),
                    let batch = try await store.lease(id, for: "main")
                {
                    leased.append(batch)
                }
            case 12, 13:
                guard !leased.isEmpty else { continue }
                let batch = leased.remove(at: Int.random(in: leased.indices, using: &random))
                left.subtract(numbers(batch))
                _ = try await store.settle(.acknowledged(batch.header))
            case 14:
                await store.close()
                store = try open()
                leased = []
            default:
                if Int.random(in: 0..<3, using: &random) == 0 {
                    try await expire()
                    let days = [-40, -30, 10, 30, 40].randomElement(using: &random) ?? 30
                    fixture.time.step(to: fixture.time.wallTime + QueueAgedHeadTests.days(days))
                    lastStep = fixture.time.bootTime
                    // The queue sees a step when it looks at the clock.
                    _ = try await store.expire()
                } else {
                    fixture.time.advance(by: .seconds(Int.random(in: 1...400, using: &random)))
                }
            }
        }
        for batch in leased { await store.release(batch.header.id) }
        leased = []
        // The clock is trusted again: what is young comes out, all else has expired.
        fixture.time.advance(by: .seconds(600))
        let young = left.filter { number in chunks.contains { $0.events.contains(number) && !isOld($0) } }
        var found: Set<Int> = []
        while let batch = try await store.leaseNext(request()) {
            found.formUnion(numbers(batch))
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(found == young, "\(again)")
        #expect(
            await eventually {
                store.snapshot.lanes.allSatisfy { $0.ledger.queued == 0 && $0.ledger.balances }
            }, "\(again)")
        await store.close()
        return waits
    }
}
