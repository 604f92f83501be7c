@testable import Delivery
import EventLoops
import Logs
import Model
import Queue
import Synchronization
import TestKit
import Testing

/// The model of a queue behind the protocol, for a driver on a real loop.
private final class SharedStore: BatchStore {
    let state: Mutex<ModelStore>
    /// How many batches each call asked for.
    let wished = Mutex<[Int]>([])
    /// How many calls are still to fail after their first batch.
    let failing = Mutex(0)
    /// How long the queue takes to store an acknowledgement, and how many it has begun to store.
    let storing = Mutex((takes: Duration.zero, begun: 0))
    let changed: @Sendable () -> Void

    init(changed: @escaping @Sendable () -> Void = {}) {
        state = Mutex(ModelStore(seed: 7))
        self.changed = changed
    }

    var lanes: [DestinationName: Lanes] { state.withLock { $0.lanes } }

    func accept(_ count: Int, _ priority: Priority = .normal) {
        state.withLock { $0.accept(count, priority, to: "main", at: SystemTime().wallTime) }
    }

    func leaseNext(_ request: LeaseRequest, count: Int) async -> LeasedBatches {
        wished.withLock { $0.append(count) }
        var leased = LeasedBatches()
        let isFailing = failing.withLock { left in
            defer { left = max(0, left - 1) }
            return left > 0
        }
        while leased.batches.count < (isFailing ? 1 : count),
            let header = state.withLock({ $0.leaseNext(request, at: SystemTime().wallTime) })
        {
            leased.batches.append(Batch(header: header, parts: []))
        }
        if isFailing { leased.failure = StoreFailure() }
        leased.lane = state.withLock { $0.summary(request.destination, request.priority) }
        return leased
    }

    struct StoreFailure: Error {}

    func leaseAgain(_ id: BatchID, for destination: DestinationName) async -> LeasedBatches {
        var leased = LeasedBatches()
        state.withLock { state in
            guard let header = state.lease(id, for: destination) else { return }
            leased.batches.append(Batch(header: header, parts: []))
            leased.lane = state.summary(destination, header.priority)
        }
        return leased
    }

    func apps(of batch: BatchID) async -> [String] { state.withLock { $0.apps(of: batch) } }

    func flush() async throws { state.withLock { $0.flushes += 1 } }

    func release(_ id: BatchID) async { state.withLock { _ = $0.leased.remove(id) } }

    func settle(_ settlement: Settlement) async throws -> [BatchHeader] {
        state.withLock { $0.settle(settlement, at: SystemTime().wallTime) }
    }

    func acknowledge(_ batches: [BatchID]) async throws {
        let takes = storing.withLock { storing in
            storing.begun += 1
            return storing.takes
        }
        try await Task.sleep(for: takes)
        state.withLock { state in
            for id in batches {
                guard let stored = state.batches[id] else { continue }
                _ = state.settle(.acknowledged(stored.header), at: SystemTime().wallTime)
            }
        }
    }
}

private struct ScriptedSender: BatchSender {
    let answer: @Sendable (Batch) async -> Outcome
    var dropped: @Sendable () async -> Void = {}
    func send(_ batch: Batch) async -> Outcome { await answer(batch) }
    func dropIssuedCredentials() async { await dropped() }
}

@Suite("Delivery driver")
struct DeliveryDriverTests {
    private func withDriver(
        _ options: DeliveryOptions, switches: [String: String] = [:],
        answer: @escaping @Sendable (Batch) async -> Outcome = { _ in .acknowledged },
        _ body: (DeliveryDriver, SharedStore, Kept, KeptLog) async throws -> Void
    ) async throws {
        let loop = try EventLoop(name: "delivery")
        try loop.start()
        defer { loop.stop() }
        let store = SharedStore()
        let log = KeptLog()
        let kept = Kept()
        let driver = DeliveryDriver(
            on: loop, store: store, senders: ["main": ScriptedSender(answer: answer)], options: options,
            switches: switches, log: Log(log), summaries: { store.lanes },
            persist: { name, value in kept.values.withLock { $0[name] = .some(value) } })
        await driver.start()
        try await body(driver, store, kept, log)
    }

    private final class Kept: Sendable {
        let values = Mutex<[String: String?]>([:])
    }

    @Test("resume drops issued credentials before the next attempt; a pause's end does not")
    func resumeDropsCredentials() async throws {
        let loop = try EventLoop(name: "delivery")
        try loop.start()
        defer { loop.stop() }
        let store = SharedStore()
        let token = Mutex(1)
        let sender = ScriptedSender { _ in
            token.withLock { $0 } < 2 ? .held(.unauthorised) : .acknowledged
        } dropped: {
            token.withLock { $0 += 1 }
        }
        let driver = DeliveryDriver(
            on: loop, store: store, senders: ["main": sender], options: options(), log: Log(KeptLog()),
            summaries: { store.lanes }, persist: { _, _ in })
        await driver.start()
        store.accept(50)
        await driver.summariesChanged()
        #expect(await eventually { driver.snapshot.destinations.first?.obstacle == .held })
        try await driver.pause(token: "t")
        try await driver.resume(token: "t")
        #expect(token.withLock { $0 } == 1)
        try await driver.resume()
        #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 50 })
    }

    @Test("ga01, ga06: stored events are sent by the loop; drain waits for the end and reports each request")
    func ga06_drainEndToEnd() async throws {
        try await withDriver(options(interval: .off)) { driver, store, _, _ in
            store.accept(1000)
            store.accept(10, .critical)
            await driver.summariesChanged()
            let reports = Mutex<[DispatchReport]>([])
            let result = try await driver.drain(timeout: .seconds(60)) { report in
                reports.withLock { $0.append(report) }
            }
            #expect(result == .done)
            #expect(store.state.withLock { $0.acknowledged.count } == 1010)
            #expect(store.state.withLock { $0.flushes } >= 1)
            #expect(reports.withLock { $0.count } == 21)
            #expect(driver.snapshot.destinations[0].counters.attempts == 21)
            #expect(driver.snapshot.destinations[0].lastSuccess != nil)
        }
    }

    @Test("batches that one turn requests are leased with one call, and each is sent once")
    func batchesComeTogether() async throws {
        try await withDriver(options(interval: .every(.seconds(600)))) { driver, store, _, _ in
            store.accept(2000)
            await driver.summariesChanged()
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 2000 })
            let wished = store.wished.withLock { $0 }
            #expect(wished.contains { $0 > 1 })
            #expect(wished.reduce(0, +) >= 40)
            #expect(await eventually { driver.snapshot.destinations[0].counters.attempts == 40 })
        }
    }

    @Test("what the queue had leased when it failed is sent, and the rest is requested again")
    func someOfSeveralFail() async throws {
        try await withDriver(options(interval: .every(.seconds(600)))) { driver, store, _, log in
            store.failing.withLock { $0 = 1 }
            store.accept(500)
            await driver.summariesChanged()
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 500 })
            #expect(await eventually { driver.snapshot.destinations[0].counters.attempts == 10 })
            #expect(log.messages.contains { $0.text == "leasing a batch failed" })
            #expect(store.state.withLock { $0.leased.isEmpty })
        }
    }

    @Test("at debug level the log shows each request and answer, and nothing that a destination quotes")
    func requestsInTheLog() async throws {
        let failures = Mutex(1)
        try await withDriver(
            options(interval: .every(.seconds(1))),
            answer: { _ in
                let isFirst = failures.withLock { left in
                    left -= 1
                    return left == 0
                }
                guard isFirst else { return .acknowledged }
                return .retry(Failure(kind: .status, status: 503, message: "answered 503", excerpt: "SECRET"))
            }
        ) { driver, store, _, log in
            store.accept(3)
            await driver.summariesChanged()
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 3 })
            let told = log.messages.filter { $0.level == .debug }
            func values(_ key: String) -> [String] {
                told.compactMap { $0.fields.first { $0.key == key }?.value }
            }
            let texts = ["sending a batch", "batch answered"]
            #expect(told.map(\.text) == texts + texts)
            #expect(
                values("destination") == ["main", "main", "main", "main"]
                    && values("events") == ["3", "3", "3", "3"])
            #expect(
                Set(values("batch")).count == 1 && values("batch").count == 4 && values("took").count == 2)
            #expect(values("outcome") == ["retry", "acknowledged"])
            #expect(values("answer") == ["status 503: answered 503", "good"])
            #expect(!"\(told)".contains("SECRET"))
        }
    }

    @Test("timers fire by themselves, without a call from outside")
    func timersFire() async throws {
        try await withDriver(options(interval: .every(.seconds(1)))) { driver, store, _, _ in
            store.accept(3)
            await driver.summariesChanged()
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 3 })
        }
    }

    @Test("ac16: switches are stored and restored")
    func ac16_switchesAreKept() async throws {
        try await withDriver(options()) { driver, _, kept, _ in
            try await driver.pause(token: "backup")
            await driver.setNetwork(on: false)
            #expect(await eventually { kept.values.withLock { $0["delivery.network"] } == .some("off") })
            #expect(kept.values.withLock { $0["delivery.pause//backup"] } == .some("held"))
        }
        let switches = ["delivery.pause//backup": "held", "delivery.network": "off"]
        try await withDriver(options(), switches: switches) { driver, store, _, log in
            store.accept(100)
            await driver.summariesChanged()
            #expect(driver.snapshot.destinations[0].obstacle == .networkOff)
            await driver.setNetwork(on: true)
            #expect(driver.snapshot.destinations[0].obstacle == .paused)
            #expect(driver.snapshot.pauseTokens == ["backup"])
            try await driver.resume(token: "backup")
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 100 })
            #expect(log.messages.contains { $0.text.hasPrefix("sending was paused before the start") })
        }
    }

    @Test("ga07: stop drains and returns; afterwards nothing is sent and commands end at once")
    func ga07_stop() async throws {
        try await withDriver(options(interval: .every(.seconds(600)))) { driver, store, _, _ in
            store.accept(120)
            await driver.summariesChanged()
            await driver.stop(grace: .seconds(30))
            #expect(store.state.withLock { $0.queued } == 0)
            store.accept(100)
            await driver.summariesChanged()
            let result = try await driver.drain(timeout: .seconds(5))
            #expect(result == .cancelled)
            await driver.stop(grace: .seconds(30))
            #expect(store.state.withLock { $0.queued } == 100)
        }
    }

    @Test("ga07: a second stop ends the first although the destination hangs, and its batch stays as it is")
    func ga07_hurry() async throws {
        let hang: @Sendable (Batch) async -> Outcome = { _ in
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                hanging.withLock { $0.append(continuation) }
            }
            return .acknowledged
        }
        try await withDriver(options(), answer: hang) { driver, store, _, _ in
            store.accept(50)
            await driver.summariesChanged()
            #expect(await eventually { driver.snapshot.destinations[0].inFlight == 1 })
            #expect(await eventually { hanging.withLock { $0.count } == 1 })
            async let stopped: Void = driver.stop(grace: .seconds(600))
            #expect(await eventually { await driver.machine.stop != nil })
            await driver.hurry()
            await stopped
            #expect(await eventually { store.state.withLock { $0.leased.isEmpty } })
            hanging.withLock { $0.removeFirst() }.resume()
            #expect(store.state.withLock { $0.queued } == 50)
        }
    }

    @Test("stop returns once every switch is stored, because the queue is closed after it")
    func stopAwaitsSwitches() async throws {
        let loop = try EventLoop(name: "delivery")
        try loop.start()
        defer { loop.stop() }
        let kept = Kept()
        let driver = DeliveryDriver(
            on: loop, store: SharedStore(), senders: [:], options: options(), log: Log(KeptLog()),
            summaries: { [:] },
            persist: { name, value in
                try await Task.sleep(for: .milliseconds(30))
                kept.values.withLock { $0[name] = .some(value) }
            })
        await driver.start()
        for token in ["backup", "night", "tests"] { try await driver.pause(token: token) }
        await driver.stop(grace: .seconds(5))
        #expect(kept.values.withLock { $0.count } == 3)
    }

    @Test("ga07: an acknowledgement that is being stored is awaited, also by a hurried stop")
    func ga07_hurryAwaitsAcknowledgements() async throws {
        try await withDriver(options()) { driver, store, _, _ in
            store.storing.withLock { $0.takes = .milliseconds(300) }
            store.accept(50)
            await driver.summariesChanged()
            #expect(await eventually { store.storing.withLock { $0.begun } == 1 })
            async let stopped: Void = driver.stop(grace: .seconds(600))
            #expect(await eventually { await driver.machine.stop != nil })
            await driver.hurry()
            await stopped
            #expect(store.state.withLock { $0.queued } == 0)
        }
    }

    @Test("a switch that cannot be stored is logged with the queue's own words")
    func switchNotStored() async throws {
        let loop = try EventLoop(name: "delivery")
        try loop.start()
        defer { loop.stop() }
        let log = KeptLog()
        let driver = DeliveryDriver(
            on: loop, store: SharedStore(), senders: [:], options: options(), log: Log(log),
            summaries: { [:] },
            persist: { _, _ in throw QueueError(.diskFull, "the disk is full; free some space") })
        await driver.start()
        try await driver.pause(token: "backup")
        await driver.stop(grace: .seconds(5))
        let told = log.messages.first { $0.text.hasPrefix("a switch could not be stored") }
        #expect(told?.fields.first { $0.key == "reason" }?.value == "the disk is full; free some space")
    }

    @Test("ga06: a command whose client has disconnected ends, and periodic dispatch resumes")
    func ga06_cancelledClient() async throws {
        let answer: @Sendable (Batch) async -> Outcome = { _ in .retryAfter(.seconds(1), .unavailable) }
        try await withDriver(options(interval: .off), answer: answer) { driver, store, _, _ in
            let task = Task { try await driver.drain(timeout: .seconds(600)) }
            let done = try await task.value
            #expect(done == .done)
            store.accept(10)
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await driver.drain(timeout: .seconds(600))
            }
            let result = try await cancelled.value
            #expect(result == .cancelled)
            #expect(await driver.machine.commands.isEmpty)
        }
    }

    @Test(
        "ac15: the network monitor's findings reach the destination: no route, and a change that ends waits"
    )
    func ac15_networkNews() async throws {
        let answers = Mutex<[Outcome]>([.retry(.unavailable)])
        let answer: @Sendable (Batch) async -> Outcome = { _ in
            answers.withLock { $0.popLast() } ?? .acknowledged
        }
        var options = options(interval: .every(.seconds(1)))
        options.destinations[0].retry = RetrySchedule(intervals: [.seconds(3600)])
        try await withDriver(options, answer: answer) { driver, store, _, _ in
            store.accept(10)
            await driver.summariesChanged()
            #expect(await eventually { driver.snapshot.destinations[0].counters.retries == 1 })
            await driver.networkNews(NetworkNews(hasChanged: true, routes: [:]))
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 10 })
            await driver.networkNews(NetworkNews(hasChanged: false, routes: ["main": false]))
            #expect(driver.snapshot.destinations[0].obstacle == .offline)
        }
    }

    @Test(
        "disabling returns at once with nothing in flight, else when its result is known; also to a second caller"
    )
    func disable() async throws {
        let open = Mutex(false)
        let answer: @Sendable (Batch) async -> Outcome = { _ in
            _ = await eventually { open.withLock { $0 } }
            return .acknowledged
        }
        try await withDriver(options(), answer: answer) { driver, store, _, _ in
            await driver.disable(grace: .seconds(3600))
            await driver.enable()
            store.accept(50)
            await driver.summariesChanged()
            #expect(await eventually { driver.snapshot.destinations[0].inFlight == 1 })
            async let first: Void = driver.disable(grace: .seconds(3600))
            async let second: Void = driver.disable(grace: .seconds(3600))
            open.withLock { $0 = true }
            _ = await (first, second)
            #expect(await eventually { store.state.withLock { $0.acknowledged.count } == 50 })
        }
    }

    @Test("an unknown destination is an error with the known names")
    func unknownDestination() async throws {
        try await withDriver(options()) { driver, _, _, _ in
            try await driver.dispatch(to: "main")
            let error = await #expect(throws: DeliveryError.self) { try await driver.dispatch(to: "mian") }
            #expect(error?.code == .unknownDestination && error?.message.contains("main") == true)
        }
    }
}

/// Senders that hang, until they are let go.
private let hanging = Mutex<[CheckedContinuation<Void, Never>]>([])
