@testable import Delivery
import EventLoops
import Logs
import Model
import Queue
import Synchronization
import TestKit
import Testing

/// A destination that remembers what it has, by event and by batch, and fails as it is told.
private final class Collector: BatchSender {
    struct State {
        var random = SplitMix64(seed: 5)
        var received: [Int: Set<BatchID>] = [:]
        var isFailing = true
        var bad: Set<Int> = []
    }

    let state = Mutex(State())

    func send(_ batch: Batch) async -> Outcome {
        let events = batch.parts.flatMap { part in
            // Chunks of these tests are stored as they are: a number a line.
            part.frame.split(separator: UInt8(ascii: "\n"))[part.events].compactMap {
                Int(String(decoding: $0, as: UTF8.self))
            }
        }
        return state.withLock { state in
            if events.count != batch.header.events {
                return .held(Failure(kind: .local, message: "the batch is not what its header says"))
            }
            if state.isFailing, Int.random(in: 0..<3, using: &state.random) == 0 {
                return .retry(.unavailable)
            }
            if !state.bad.isDisjoint(with: events) { return .rejected(.badRequest) }
            if events.count > 30 {
                return .tooLarge(wireBytes: batch.header.bytes, .tooLarge)
            }
            for event in events { state.received[event, default: []].insert(batch.header.id) }
            // The batch is there, but the answer is lost now and then: it comes again, under the same id.
            let isLost = state.isFailing && Int.random(in: 0..<5, using: &state.random) == 0
            return isLost ? .retry(.unavailable) : .acknowledged
        }
    }
}

@Suite("Delivery with the real queue")
struct RealQueueTests {
    private struct Agent {
        let store: QueueStore
        let driver: DeliveryDriver

        init(_ directory: TemporaryDirectory, _ collector: any BatchSender, _ loops: (EventLoop, EventLoop))
            async throws
        {
            let (storeLoop, deliveryLoop) = loops
            let box = Box()
            let options = QueueOptions(stateDirectory: directory.path, destinations: ["main"])
            let store = try QueueStore(options, on: storeLoop, time: SystemTime(), log: Log(KeptLog())) { _ in
                guard let driver = box.driver.withLock({ $0 }) else { return }
                deliveryLoop.post { driver.assumeIsolated { $0.summariesChanged() } }
            }
            self.store = store
            let quick = RetrySchedule(intervals: Array(repeating: .milliseconds(20), count: 20))
            let delivery = DeliveryOptions(
                interval: .every(.seconds(1)), startSpread: .zero,
                destinations: [
                    DestinationOptions(name: "main", retry: quick, probeInterval: .milliseconds(200))
                ])
            driver = DeliveryDriver(
                on: deliveryLoop, store: store, senders: ["main": collector], options: delivery,
                switches: try await store.switches(), log: Log(KeptLog()),
                summaries: {
                    var lanes = Lanes()
                    for priority in [Priority.critical, .normal] {
                        lanes[priority] = store.snapshot.lane("main", priority)?.summary ?? LaneSummary()
                    }
                    return ["main": lanes]
                }, persist: { try await store.setSwitch($0, $1) })
            box.driver.withLock { [driver] in $0 = driver }
            await driver.start()
        }

        final class Box: Sendable {
            let driver = Mutex<DeliveryDriver?>(nil)
        }

        func queued() -> Int { store.snapshot.lanes.reduce(0) { $0 + $1.ledger.queued } }
    }

    /// Takes what it is sent when it is told to.
    private final class Slow: BatchSender {
        let mayAnswer = Mutex(false)

        func send(_ batch: Batch) async -> Outcome {
            await eventually { self.mayAnswer.withLock { $0 } } ? .acknowledged : .retry(.unavailable)
        }
    }

    @Test(
        "ac17: disabling waits for requests in flight; unanswered ones are reported apart, and nothing counts twice",
        arguments: [true, false])
    func ac17_disable(arrives: Bool) async throws {
        let directory = try TemporaryDirectory()
        let storeLoop = try EventLoop(name: "store")
        let deliveryLoop = try EventLoop(name: "delivery")
        try storeLoop.start()
        try deliveryLoop.start()
        defer {
            storeLoop.stop()
            deliveryLoop.stop()
        }
        let slow = Slow()
        let agent = try await Agent(directory, slow, (storeLoop, deliveryLoop))
        var commit = Commit()
        commit.chunks = (0..<10).map { chunk($0 * 50..<$0 * 50 + 50, .normal) }
        commit.read = 500
        _ = try await agent.store.store(commit)
        #expect(await eventually { agent.driver.snapshot.destinations.first?.inFlight == 3 })
        async let disabled: Void = agent.driver.disable(grace: arrives ? .seconds(60) : .milliseconds(300))
        if arrives { slow.mayAnswer.withLock { $0 = true } }
        await disabled
        let discarded = try await agent.store.discardAll(reason: "disabled")
        slow.mayAnswer.withLock { $0 = true }
        let ledger = try #require(agent.store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.balances && ledger.queued == 0)
        // At least the three that were seen in flight; others may have gone before.
        #expect(arrives ? ledger.acknowledged >= 150 : ledger.acknowledged == 0)
        #expect(discarded.all == 500 - ledger.acknowledged && discarded.inFlight == (arrives ? 0 : 150))
        await agent.driver.stop(grace: .seconds(5))
        await agent.store.close()
    }

    private func chunk(_ numbers: Range<Int>, _ priority: Priority) -> NewChunk {
        let frame = Array(numbers.map { "\($0)\n" }.joined().utf8)
        let now = SystemTime().wallTime
        return NewChunk(
            priority: priority, destinations: ["main"], events: numbers.count, bytes: frame.count,
            eventTimes: now...now, acceptedAt: now, compression: .none, frame: frame,
            isFull: numbers.count == 50)
    }

    @Test(
        "good events arrive under one batch id, bad ones are dead letters, the ledger balances, across a restart"
    )
    func everythingArrives() async throws {
        let directory = try TemporaryDirectory()
        let collector = Collector()
        collector.state.withLock { $0.bad = [17, 333, 1999] }
        let storeLoop = try EventLoop(name: "store")
        let deliveryLoop = try EventLoop(name: "delivery")
        try storeLoop.start()
        try deliveryLoop.start()
        defer {
            storeLoop.stop()
            deliveryLoop.stop()
        }
        var random = SplitMix64(seed: 3)
        var next = 0
        func fill(_ agent: Agent, until end: Int) async throws {
            while next < end {
                let count = min(end - next, [50, 1, 7, 20].randomElement(using: &random) ?? 1)
                var commit = Commit()
                commit.chunks = [
                    chunk(
                        next..<next + count, Int.random(in: 0..<4, using: &random) == 0 ? .critical : .normal)
                ]
                commit.read = count
                let result = try await agent.store.store(commit)
                #expect(result == .stored(refused: 0))
                next += count
            }
        }
        var agent = try await Agent(directory, collector, (storeLoop, deliveryLoop))
        try await fill(agent, until: 1000)
        // The process ends in the middle of it all.
        await agent.driver.hurry()
        await agent.store.close()

        agent = try await Agent(directory, collector, (storeLoop, deliveryLoop))
        try await fill(agent, until: 2000)
        collector.state.withLock { $0.isFailing = false }
        let isEmpty = await eventually { agent.queued() == 0 }
        #expect(isEmpty, "\(agent.driver.snapshot)")
        let ledgers = agent.store.snapshot.lanes.map(\.ledger)
        #expect(ledgers.allSatisfy { $0.balances })
        #expect(ledgers.reduce(0) { $0 + $1.deadLettered } == 3)
        #expect(ledgers.reduce(0) { $0 + $1.acknowledged } == 1997)
        let received = collector.state.withLock { $0.received }
        #expect(Set(received.keys) == Set(0..<2000).subtracting([17, 333, 1999]))
        #expect(received.values.allSatisfy { $0.count == 1 })

        // A drain of what comes next tells that nothing is left.
        try await fill(agent, until: 2100)
        let result = try await agent.driver.drain(timeout: .seconds(30))
        #expect(result == .done)
        // ga06: and it is durable by then, every time.
        for end in stride(from: 2110, through: 2200, by: 10) {
            try await fill(agent, until: end)
            #expect(try await agent.driver.drain(timeout: .seconds(30)) == .done)
            #expect(agent.queued() == 0)
        }
        await agent.driver.stop(grace: .seconds(5))
        await agent.store.close()
    }
}
