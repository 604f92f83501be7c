import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Settings of a destination, in the queue")
struct QueueOwnSettingsTests {
    private static let names: [DestinationName] = ["main", "archive", "pager"]

    /// Takes and acknowledges all that a lane gives; the sizes of its batches and the events.
    private func drain(
        _ store: QueueStore, _ name: DestinationName, events: Int
    ) async throws -> (sizes: [Int], events: [Int], parts: [Int]) {
        var taken: (sizes: [Int], events: [Int], parts: [Int]) = ([], [], [])
        while let batch = try await store.leaseNext(request(name, events: events)) {
            taken.sizes.append(batch.header.events)
            taken.events += numbers(batch)
            taken.parts.append(batch.parts.count)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        return taken
    }

    @Test(
        "a full chunk is a batch if the batch size is equal; larger batches join chunks, smaller ones cut them"
    )
    func batchesOfTheirOwnSize() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = QueueOwnSettingsTests.names }
        var commit = Commit()
        for _ in 0..<20 {
            var chunk = maker.chunk(50, to: QueueOwnSettingsTests.names, full: true)
            chunk.otherBatches = ["archive", "pager"]
            commit.chunks.append(chunk)
        }
        _ = try await store.store(commit)
        // One of each is under way when the process ends: it comes again as it was.
        var begun: [DestinationName: Batch] = [:]
        for (name, events) in [("main", 50), ("archive", 400), ("pager", 1)] as [(DestinationName, Int)] {
            begun[name] = try await store.leaseNext(request(name, events: events))
        }
        await store.close()
        store = try fixture.open { $0.destinations = QueueOwnSettingsTests.names }
        for (name, batch) in begun {
            let again = try #require(try await store.leaseNext(request(name, events: 50)))
            #expect(again.header.id == batch.header.id && numbers(again) == numbers(batch), "\(name)")
            await store.release(again.header.id)
        }
        let main = try await drain(store, "main", events: 50)
        #expect(main.sizes == Array(repeating: 50, count: 20) && main.parts.allSatisfy { $0 == 1 })
        let archive = try await drain(store, "archive", events: 400)
        #expect(archive.sizes == [400, 400, 200] && archive.parts == [8, 8, 4])
        let pager = try await drain(store, "pager", events: 1)
        #expect(pager.sizes == Array(repeating: 1, count: 1_000))
        for taken in [main, archive, pager] { #expect(taken.events == Array(0..<1_000)) }
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        await store.close()
    }

    @Test(
        "a destination with order = true gets nothing before older events, across chunks and starts",
        arguments: Seeds.list(1...8))
    func inOrder(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        var store = try fixture.open()
        var taken: [Int] = []
        for _ in 0..<60 {
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let isFull = Bool.random(using: &random)
                let commit = maker.commit(isFull ? 50 : Int.random(in: 1...40, using: &random), full: isFull)
                #expect(try await store.store(commit) == .stored(refused: 0))
            }
            var wanted = request(events: Int.random(in: 50...300, using: &random))
            wanted.inOrder = true
            let batch = try #require(try await store.leaseNext(wanted))
            guard Int.random(in: 0..<3, using: &random) > 0 else {
                // In flight when the agent dies.
                await store.close()
                store = try fixture.open()
                continue
            }
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(taken.count > 1_000 && taken == Array(0..<taken.count), "\(Seeds.again(seed))")
        await store.close()
    }

    @Test("a batch joins at most two thousand chunks of one event each")
    func joinsManyChunks() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        var commit = Commit()
        for _ in 0..<2_500 { commit.chunks.append(maker.chunk(1)) }
        _ = try await store.store(commit)
        let taken = try await drain(store, "main", events: 10_000)
        #expect(taken.sizes == [2_000, 500] && taken.events == Array(0..<2_500))
        await store.close()
    }

    @Test(
        "ac12: events too old for one destination expire there only, counted, and are sent to the others",
        arguments: [true, false], [true, false])
    func ac12_maximumAgeOfItsOwn(isFull: Bool, isAsked: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let base = fixture.time.wallTime
        let hour = Duration.seconds(3600)
        // Event n happened n % 10 hours before its acceptance.
        let store = try fixture.open {
            $0.destinations = QueueOwnSettingsTests.names
            $0.maxAges = ["pager": hour * 5, "archive": .seconds(86_400 * 100)]
        } eventTime: { line, _ in
            let number = Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)) ?? 0
            return base - hour * (number % 10)
        }
        var commit = Commit()
        commit.chunks = [maker.chunk(50, to: QueueOwnSettingsTests.names, full: isFull)]
        commit.chunks[0].eventTimes = base - hour * 9...base
        _ = try await store.store(commit)
        if isAsked {
            // Exactly five hours is kept.
            let pager = try await drain(store, "pager", events: 50)
            #expect(pager.events == (0..<50).filter { $0 % 10 <= 5 })
        } else {
            // Nobody asks: the hourly round takes out what is wholly too old.
            fixture.time.advance(by: hour * 6)
            #expect(try await store.expire() == 50)
        }
        fixture.time.advance(by: .seconds(86_400 * 30))
        // Too old for all but the one that keeps for 100 days.
        #expect(try await drain(store, "main", events: 50).events.isEmpty)
        #expect(try await drain(store, "archive", events: 50).events == Array(0..<50))
        #expect(await eventually { store.snapshot.lane("archive", .normal)?.ledger.acknowledged == 50 })
        for (name, expired) in [("main", 50), ("archive", 0), ("pager", isAsked ? 20 : 50)]
            as [(DestinationName, Int)]
        {
            let ledger = try #require(store.snapshot.lane(name, .normal)?.ledger)
            #expect(
                ledger.expired == expired && ledger.acknowledged == 50 - expired && ledger.balances, "\(name)"
            )
        }
        #expect(store.snapshot.storedBytes == 0)
        await store.close()
    }

    @Test("ac12: a changed maximum age of a destination applies after the reload")
    func ac12_reload() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var options = fixture.options
        options.destinations = QueueOwnSettingsTests.names
        let store = try fixture.open { $0 = options }
        _ = try await store.store(maker.commit(5, to: ["main", "pager"]))
        fixture.time.advance(by: .seconds(3600))
        #expect(try await store.expire() == 0)
        options.maxAges = ["pager": .seconds(60)]
        try await store.apply(options)
        #expect(try await store.expire() == 5)
        #expect(store.snapshot.lane("pager", .normal)?.ledger.expired == 5)
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 5)
        await store.close()
    }
}
