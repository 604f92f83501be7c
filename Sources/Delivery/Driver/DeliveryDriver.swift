public import EventLoops
public import Logs
public import Model
internal import Synchronization

/// Carries out what the delivery machine decides: asks the queue, sends to destinations, keeps the one timer.
///
/// It lives on the delivery loop. Results come back to it as inputs; between two inputs nothing changes. Its snapshot
/// can be read from anywhere at any time.
public actor DeliveryDriver: LoopActor {
    /// Makes a switch durable; nil removes it. Given the switches back at the next start.
    public typealias Persist = @Sendable (_ name: String, _ value: String?) async throws -> Void

    /// What is reported about each request while a command waits.
    public typealias Report = @Sendable (DispatchReport) -> Void

    /// Counts the events of a batch whose time is before an instant and that a deadline concerns (its apps).
    public typealias CountLate = @Sendable (_ batch: Batch, _ deadline: Deadline, _ before: Timestamp) -> Int

    /// The loop that it lives on.
    public nonisolated let loop: EventLoop
    let store: any BatchStore
    private let time: any TimeSource
    let log: Log
    let summaries: @Sendable () -> [DestinationName: Lanes]
    let persist: Persist
    private let countLate: CountLate
    private let published = Mutex(DeliverySnapshot())

    var senders: [DestinationName: any BatchSender]
    private(set) var machine: DeliveryMachine
    private var random = SystemRandomNumberGenerator()
    var batches: [AttemptID: Batch] = [:]
    private var sends: [AttemptID: Task<Void, Never>] = [:]
    private var waiters: [CommandID: (report: Report, continuation: CheckedContinuation<CommandResult, Never>)] = [:]
    private var nextCommand: UInt64 = 1
    private var stopWaiters: [CheckedContinuation<Void, Never>] = []
    /// Callers that wait until nothing is in flight.
    private var quietWaiters: [CheckedContinuation<Void, Never>] = []
    var isStopped = false
    private var timer: (id: EventLoop.TimerID, at: BootInstant)?
    var lastLanes: [DestinationName: Lanes] = [:]
    private var inputs: [DeliveryInput] = []
    private var isHandlingSoon = false
    private var publishedAt: BootInstant?
    private var publishTimer: EventLoop.TimerID?
    var credentialTimer: EventLoop.TimerID?
    var acknowledged: [(id: AttemptID, batch: BatchID)] = []
    var tellTimer: EventLoop.TimerID?
    /// Batches that the queue is to be asked for at the end of this turn, all by the same request.
    var wishes: [(id: AttemptID, request: LeaseRequest)] = []
    var toPersist: [(name: String, value: String?)] = []
    var isPersisting = false

    /// A driver that does nothing before `start`.
    ///
    /// - Parameters:
    ///   - loop: the delivery loop.
    ///   - switches: what `persist` was given in earlier runs.
    ///   - isEnabled: whether collection is enabled.
    ///   - summaries: what waits, as the queue has published it; read on the delivery loop.
    ///   - countLate: asked only for batches that hold a late event; by default all events of such a batch are late.
    ///   - persist: makes a switch durable; called in order, one at a time.
    public init(
        on loop: EventLoop, store: any BatchStore, senders: [DestinationName: any BatchSender],
        options: DeliveryOptions, switches: [String: String] = [:], isEnabled: Bool = true,
        time: any TimeSource = SystemTime(), log: Log,
        summaries: @escaping @Sendable () -> [DestinationName: Lanes],
        countLate: @escaping CountLate = { batch, _, _ in batch.header.events }, persist: @escaping Persist
    ) {
        (self.loop, self.store, self.senders, self.time) = (loop, store, senders, time)
        (self.log, self.summaries, self.persist, self.countLate) = (log, summaries, persist, countLate)
        machine = DeliveryMachine(options, switches: switches, isEnabled: isEnabled, at: Moment(time), using: &random)
    }

    /// How old the snapshot may be while batches come and go.
    private static let publishInterval = Duration.milliseconds(50)

    /// What delivery does now. From any thread.
    public nonisolated var snapshot: DeliverySnapshot { published.withLock { $0 } }

    package func start() {
        loop.gatherWakeUps()
        handle(.lanes(summaries()))
    }

    /// The queue has published other summaries.
    public func summariesChanged() {
        // What comes with an answer of the queue is known then.
        guard !inputs.contains(where: \.isAnswerOfQueue) else { return }
        let before = lastLanes
        let lanes = currentLanes()
        if lanes != before { handle(.lanes(lanes)) }
    }

    // MARK: Stopping

    /// Finishes what is in flight within the grace, drains unless off or paused, gives the rest back (ga07).
    ///
    /// Returns when nothing is in flight any more, at the end of the grace or after `hurry` at the latest, except that
    /// the queue is waited for where it is being told of an acknowledgement.
    /// - Parameter grace: how long; zero sends nothing and cuts what is in flight.
    public func stop(grace: Duration) async {
        guard !isStopped else { return }
        await withCheckedContinuation { continuation in
            stopWaiters.append(continuation)
            handle(.stop(grace: grace))
        }
    }

    /// Ends at once: a second SIGTERM. Nothing is lost; what was in flight is sent again, under the same id.
    public func hurry() { handle(.hurry) }

    // MARK: Inside

    /// Returns when nothing is in flight, or after the grace.
    func ending(of grace: Duration) async {
        guard machine.hasAttempts else { return }
        let timer = loop.after(grace) { self.assumeIsolated { $0.endQuietWait() } }
        await withCheckedContinuation { quietWaiters.append($0) }
        loop.cancel(timer)
    }

    private func endQuietWait() {
        for waiter in quietWaiters { waiter.resume() }
        quietWaiters = []
    }

    func check(_ destination: DestinationName?) throws(DeliveryError) {
        guard let destination, !machine.destinations.contains(destination) else { return }
        let known = machine.destinations.keys.map(\.text).joined(separator: ", ")
        throw DeliveryError(
            .unknownDestination, "there is no destination \"\(destination)\"; the configuration has: \(known)")
    }

    func command(
        _ report: @escaping Report, _ input: (CommandID) -> DeliveryInput
    ) async -> CommandResult {
        let id = CommandID(number: nextCommand)
        nextCommand += 1
        handle(.lanes(summaries()))
        let begin = input(id)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiters[id] = (report, continuation)
                handle(Task.isCancelled ? .cancel(id) : begin)
                // A command that was cancelled before it began is unknown to the machine.
                if Task.isCancelled { finish(id, .cancelled) }
            }
        } onCancel: {
            loop.post { self.assumeIsolated { $0.handle(.cancel(id)) } }
        }
    }

    func finish(_ id: CommandID, _ result: CommandResult) {
        waiters.removeValue(forKey: id)?.continuation.resume(returning: result)
    }

    func handle(_ new: DeliveryInput...) {
        inputs += new
        handleAll()
    }

    /// Takes up what belongs to every batch that comes and goes, once the loop has done what it does now.
    ///
    /// Answers of the queue and of the destination often come several at a time; together they cost little more than one.
    func handleSoon(_ input: DeliveryInput) {
        inputs.append(input)
        guard !isHandlingSoon else { return }
        isHandlingSoon = true
        loop.post { self.assumeIsolated { $0.handleAll() } }
    }

    private func handleAll() {
        isHandlingSoon = false
        guard !inputs.isEmpty else { return }
        var taken = inputs
        inputs.removeAll(keepingCapacity: true)
        if let answer = taken.lastIndex(where: \.isAnswerOfQueue) {
            taken.insert(.lanes(currentLanes()), at: answer + 1)
        }
        let now = Moment(time)
        let effects = machine.handle(taken, at: now, using: &random)
        for effect in effects { perform(effect) }
        askForBatches()
        tellAcknowledged(isUrgent: sends.isEmpty || effects.contains { $0.asksQueue })
        for input in taken {
            switch input {
            // Refused at the last moment (paused meanwhile): it was given back.
            case .leased(let id, _, _) where !machine.holdsBatch(id): batches[id] = nil
            case .sent(let id, _, _): batches[id] = nil
            default: break
            }
        }
        arm(now)
        lookForCredentialsLater()
        if !quietWaiters.isEmpty, !machine.hasAttempts { endQuietWait() }
        publish(now, isUrgent: !taken.allSatisfy(\.isRoutine) || effects.contains { !$0.isRoutine })
    }

    /// Publishes what delivery does now; between batches only each `publishInterval`: the copy costs as much as a batch. While something
    /// is in flight it waits for what follows, so that a batch that is answered soon wakes the loop no second time.
    private func publish(_ now: Moment, isUrgent: Bool) {
        let isDue = publishedAt.map { $0 + DeliveryDriver.publishInterval <= now.boot } ?? true
        guard isUrgent || isDue && !machine.hasAttempts || isStopped else {
            guard publishTimer == nil else { return }
            publishTimer = loop.at(now.boot + DeliveryDriver.publishInterval) {
                self.assumeIsolated {
                    $0.publishTimer = nil
                    $0.publish(Moment($0.time), isUrgent: true)
                }
            }
            return
        }
        if let publishTimer { loop.cancel(publishTimer) }
        publishTimer = nil
        publishedAt = now.boot
        published.withLock { $0 = machine.snapshot(at: now) }
    }

    /// Keeps the one timer. One that is too early is left: firing for nothing costs less than setting it for each batch.
    private func arm(_ now: Moment) {
        let wake = machine.wakeAt(now)
        if let timer {
            if let wake, timer.at <= wake { return }
            loop.cancel(timer.id)
        }
        timer = wake.map { at in (loop.at(at) { self.assumeIsolated { $0.wake() } }, at) }
    }

    private func wake() {
        timer = nil
        handle(.timer)
    }

    private func perform(_ effect: DeliveryEffect) {
        switch effect {
        case .leaseNext(let id, let request):
            wish(id, request)
        case .leaseAgain(let id, let batch):
            Task(executorPreference: loop) { await self.leaseAgain(id, batch) }
        case .send(let id):
            guard let batch = batches[id] else { return }
            let sender = senders[id.destination]
            sends[id] = Task(executorPreference: loop) { await self.attempt(id, batch, sender) }
        case .cut(let id):
            batches[id] = nil
            sends.removeValue(forKey: id)?.cancel()
        case .release(let batch):
            Task(executorPreference: loop) { [store] in await store.release(batch) }
        case .settle(let id, let settlement) where settlement.isAcknowledgement:
            acknowledged.append((id, settlement.batch))
        case .settle(let id, let settlement):
            Task(executorPreference: loop) { await self.settle(id, settlement) }
        case .countLate(let id, let deadline, let before, let most):
            guard let batch = batches[id] else { return }
            machine.noteLate(id.destination, deadline.name, min(most, countLate(batch, deadline, before)))
        case .persist(let name, let value):
            toPersist.append((name, value))
            if !isPersisting {
                isPersisting = true
                Task(executorPreference: loop) { await self.persistAll() }
            }
        case .report(let id, let report): waiters[id]?.report(report)
        case .finish(let id, .done):
            // What is said to be done must not come back after a crash.
            Task(executorPreference: loop) { await self.finishDurably(id) }
        case .finish(let id, let result): finish(id, result)
        case .stopped:
            isStopped = true
            for waiter in stopWaiters { waiter.resume() }
            stopWaiters = []
        case .note(let destination, let note): note.write(to: log, destination)
        }
    }

    // MARK: Sending

    /// One attempt, wholly on this actor: from a closure that is nobody's, each call that waits would come back by way of
    /// the loop's inbox, a dozen times a batch.
    private func attempt(_ id: AttemptID, _ batch: Batch, _ sender: (any BatchSender)?) async {
        guard let sender else {
            let missing = Failure(kind: .local, message: "the destination has no sender; reload the configuration")
            return sent(id, .held(missing))
        }
        let (header, start) = (batch.header, time.bootTime)
        log.debug("sending a batch", ["destination": header.destination, "batch": header.id, "events": header.events])
        let outcome = await sender.send(batch)
        log.debug(
            "batch answered",
            [
                "destination": header.destination, "batch": header.id, "events": header.events,
                "outcome": DeliveryCounters.Answer(outcome).outcome, "answer": outcome.failure?.summary ?? "good",
                "took": (time.bootTime - start).brief,
            ])
        let asksWhose = machine.asksWhose(outcome, of: id.destination)
        sent(id, outcome, apps: asksWhose ? await store.apps(of: batch.header.id) : [])
    }

    private func sent(_ id: AttemptID, _ outcome: Outcome, apps: [String] = []) {
        // The machine knows whether it was cut meanwhile, and given back.
        sends[id] = nil
        handleSoon(.sent(id, outcome, apps: apps))
    }
}
