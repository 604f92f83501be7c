public import EventLoops
public import Logs
public import Model
internal import Synchronization

/// Carries out what `DeliveryMachine` decides: asks the queue, sends to destinations, keeps the one timer.
///
/// It lives on the delivery loop. Every call and every result becomes an input of the machine; the machine's
/// effects are carried out in order, and nothing changes between two inputs. The snapshot can be read from
/// any thread at any time.
public actor DeliveryDriver: LoopActor {
    /// Makes a switch durable; a value of nil removes it. The next start passes all switches to `init`.
    public typealias Persist = @Sendable (_ name: String, _ value: String?) async throws -> Void

    /// Receives the result of each request while a command waits.
    public typealias Report = @Sendable (DispatchReport) -> Void

    /// Counts the events of a batch that are from before an instant and that a deadline concerns (its apps).
    public typealias CountLate = @Sendable (_ batch: Batch, _ deadline: Deadline, _ before: Timestamp) -> Int

    /// The delivery loop.
    public nonisolated let loop: EventLoop
    /// The queue.
    let store: any BatchStore
    private let time: any TimeSource
    let log: Log
    /// Reads the queue's published summaries; called on the delivery loop.
    let summaries: @Sendable () -> [DestinationName: Lanes]
    let persist: Persist
    private let countLate: CountLate
    /// The last published snapshot; the only state that other threads read.
    private let published = Mutex(DeliverySnapshot())

    /// The sender of each destination; those of removed destinations stay for requests in flight.
    var senders: [DestinationName: any BatchSender]
    /// All decisions.
    private(set) var machine: DeliveryMachine
    /// Source of the machine's seeds and jitter.
    private var random = SystemRandomNumberGenerator()
    /// Leased batches with their events, by attempt; dropped when the attempt has been answered or cut.
    var batches: [AttemptID: Batch] = [:]
    /// Tasks of requests in flight, so that a cut can cancel them.
    private var sends: [AttemptID: Task<Void, Never>] = [:]
    /// Clients that wait for a command's result.
    private var waiters:
        [CommandID: (report: Report, continuation: CheckedContinuation<CommandResult, Never>)] = [:]
    private var nextCommand: UInt64 = 1
    /// Callers of `stop`.
    private var stopWaiters: [CheckedContinuation<Void, Never>] = []
    /// Callers that wait until nothing is in flight (`disable`).
    private var quietWaiters: [CheckedContinuation<Void, Never>] = []
    /// Whether the stop is over.
    var isStopped = false
    /// The one timer of all waits, and its time.
    private var timer: (id: EventLoop.TimerID, at: BootInstant)?
    /// The summaries that the machine was last given.
    var lastLanes: [DestinationName: Lanes] = [:]
    /// Inputs for the next turn.
    private var inputs: [DeliveryInput] = []
    /// Whether a turn is posted already.
    private var isHandlingSoon = false
    /// When the snapshot was last published.
    private var publishedAt: BootInstant?
    /// Fires when a postponed snapshot is due.
    private var publishTimer: EventLoop.TimerID?
    /// Fires when credential files are checked next; nil if no destination needs that.
    var credentialTimer: EventLoop.TimerID?
    /// Acknowledged batches that the queue does not know of yet.
    var acknowledged: [(id: AttemptID, batch: BatchID)] = []
    /// Fires when the queue has to learn of acknowledgements at the latest.
    var tellTimer: EventLoop.TimerID?
    /// Batches to request at the end of this turn, all by the same request.
    var wishes: [(id: AttemptID, request: LeaseRequest)] = []
    /// Switches to store, oldest first.
    var toPersist: [(name: String, value: String?)] = []
    /// Whether a task is storing switches.
    var isPersisting = false

    /// A driver that does nothing before `start`.
    ///
    /// - Parameters:
    ///   - loop: the delivery loop.
    ///   - store: the queue.
    ///   - senders: the sender of each destination.
    ///   - switches: what `persist` was given in earlier runs.
    ///   - isEnabled: whether collection is enabled.
    ///   - summaries: what waits, as the queue has published it; called on the delivery loop.
    ///   - countLate: called only for batches with a late event; by default all events of such a batch count.
    ///   - persist: makes a switch durable; called in order, one at a time.
    public init(
        on loop: EventLoop, store: any BatchStore, senders: [DestinationName: any BatchSender],
        options: DeliveryOptions, switches: [String: String] = [:], isEnabled: Bool = true,
        time: any TimeSource = SystemTime(), log: Log,
        summaries: @escaping @Sendable () -> [DestinationName: Lanes],
        countLate: @escaping CountLate = { batch, _, _ in batch.header.events }, persist: @escaping Persist
    ) {
        self.loop = loop
        self.store = store
        self.senders = senders
        self.time = time
        self.log = log
        self.summaries = summaries
        self.persist = persist
        self.countLate = countLate
        machine = DeliveryMachine(
            options, switches: switches, isEnabled: isEnabled, at: Moment(time), using: &random)
    }

    /// How old the snapshot may be while batches come and go.
    private static let publishInterval = Duration.milliseconds(50)

    /// The state of delivery, at most 50 ms old. Can be read from any thread without waiting for the loop.
    public nonisolated var snapshot: DeliverySnapshot { published.withLock { $0 } }

    package func start() {
        loop.gatherWakeUps()
        handle(.lanes(summaries()))
    }

    /// The queue has published new summaries.
    public func summariesChanged() {
        // An answer of the queue that waits in `inputs` brings the summaries along; see `handleAll`.
        guard !inputs.contains(where: \.isAnswerOfQueue) else { return }
        let before = lastLanes
        let lanes = currentLanes()
        if lanes != before {
            handle(.lanes(lanes))
        }
    }

    // MARK: Stopping

    /// Stops delivery: requests in flight may end within the grace, the queue is drained unless sending is
    /// off or paused, and the rest is given back.
    ///
    /// Returns when nothing is in flight, at the latest at the end of the grace or after `hurry`. It waits
    /// longer only if the queue is storing an acknowledgement, which would otherwise be sent again.
    /// - Parameter grace: zero sends nothing and cuts what is in flight.
    public func stop(grace: Duration) async {
        guard !isStopped else { return }
        await withCheckedContinuation { continuation in
            stopWaiters.append(continuation)
            handle(.stop(grace: grace))
        }
    }

    /// Ends at once (a second SIGTERM). Nothing is lost; what was in flight is sent again under the same id.
    public func hurry() { handle(.hurry) }

    // MARK: Inside

    /// Waits until nothing is in flight, at most for the grace.
    func ending(of grace: Duration) async {
        guard machine.hasAttempts else { return }
        let timer = loop.after(grace) { self.assumeIsolated { $0.endQuietWait() } }
        await withCheckedContinuation { quietWaiters.append($0) }
        loop.cancel(timer)
    }

    /// Wakes the callers that wait until nothing is in flight.
    private func endQuietWait() {
        for waiter in quietWaiters { waiter.resume() }
        quietWaiters = []
    }

    /// Throws `unknownDestination` for a name that is not configured.
    func check(_ destination: DestinationName?) throws(DeliveryError) {
        guard let destination, !machine.destinations.contains(destination) else { return }
        let known = machine.destinations.keys.map(\.text).joined(separator: ", ")
        throw DeliveryError(
            .unknownDestination, "there is no destination \"\(destination)\"; the configuration has: \(known)"
        )
    }

    /// Begins a command and waits for its result.
    func command(
        _ report: @escaping Report, _ input: (CommandID) -> DeliveryInput
    ) async -> CommandResult {
        let id = CommandID(number: nextCommand)
        nextCommand += 1
        // The summaries first: events accepted just before the command belong to it.
        handle(.lanes(summaries()))
        let begin = input(id)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiters[id] = (report, continuation)
                handle(Task.isCancelled ? .cancel(id) : begin)
                // The machine ignores the cancellation of a command that it does not know, so it would never
                // end the wait.
                if Task.isCancelled {
                    finish(id, .cancelled)
                }
            }
        } onCancel: {
            loop.post { self.assumeIsolated { $0.handle(.cancel(id)) } }
        }
    }

    /// Gives a command's client the result; a second result is ignored.
    func finish(_ id: CommandID, _ result: CommandResult) {
        waiters.removeValue(forKey: id)?.continuation.resume(returning: result)
    }

    /// Handles inputs now, after those that wait already.
    func handle(_ new: DeliveryInput...) {
        inputs += new
        handleAll()
    }

    /// Handles an input in the next turn of the loop; for the traffic of batches.
    ///
    /// Answers of the queue and of destinations often arrive several at a time, and handling them together
    /// costs little more than one.
    func handleSoon(_ input: DeliveryInput) {
        inputs.append(input)
        guard !isHandlingSoon else { return }
        isHandlingSoon = true
        loop.post { self.assumeIsolated { $0.handleAll() } }
    }

    /// One turn: gives all inputs to the machine and carries out its effects.
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
            // The attempt's state changed while the queue was asked (paused, for example), and the machine
            // gave the batch back.
            case .leased(let id, _, _) where !machine.holdsBatch(id): batches[id] = nil
            case .sent(let id, _, _): batches[id] = nil
            default: break
            }
        }
        arm(now)
        lookForCredentialsLater()
        if !quietWaiters.isEmpty, !machine.hasAttempts {
            endQuietWait()
        }
        publish(now, isUrgent: !taken.allSatisfy(\.isRoutine) || effects.contains { !$0.isRoutine })
    }

    /// Publishes the snapshot; while batches come and go at most every 50 ms, since the copy costs as much as
    /// a batch. While something is in flight it waits for what follows, so that a fast answer does not wake
    /// the loop twice.
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
        if let publishTimer {
            loop.cancel(publishTimer)
        }
        publishTimer = nil
        publishedAt = now.boot
        published.withLock { $0 = machine.snapshot(at: now) }
    }

    /// Sets the one timer. A timer that is too early is left alone: firing for nothing costs less than
    /// setting it for each batch.
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
            guard var batch = batches[id] else { return }
            let sender = senders[id.destination]
            batch.timeFactor = machine.timeFactor(of: id)
            sends[id] = Task(executorPreference: loop) { [batch] in await self.attempt(id, batch, sender) }
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
            // What is reported as done must not come back after a crash.
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

    /// Sends one batch and reports the answer.
    ///
    /// All of it is isolated to this actor. In a closure without isolation, each awaited call would return
    /// through the inbox of the loop, a dozen times per batch.
    private func attempt(_ id: AttemptID, _ batch: Batch, _ sender: (any BatchSender)?) async {
        guard let sender else {
            let missing = Failure(
                kind: .local, message: "the destination has no sender; reload the configuration")
            return sent(id, .held(missing))
        }
        let (header, start) = (batch.header, time.bootTime)
        log.debug(
            "sending a batch",
            ["destination": header.destination, "batch": header.id, "events": header.events])
        let outcome = await sender.send(batch)
        log.debug(
            "batch answered",
            [
                "destination": header.destination, "batch": header.id, "events": header.events,
                "outcome": DeliveryCounters.Answer(outcome).outcome,
                "answer": outcome.failure?.summary ?? "good",
                "took": (time.bootTime - start).brief,
            ])
        let asksWhose = machine.asksWhose(outcome, of: id.destination)
        sent(id, outcome, apps: asksWhose ? await store.apps(of: batch.header.id) : [])
    }

    /// Hands an answer to the machine, which ignores it if the attempt was cut meanwhile.
    private func sent(_ id: AttemptID, _ outcome: Outcome, apps: [String] = []) {
        // The machine knows whether it was cut meanwhile, and given back.
        sends[id] = nil
        handleSoon(.sent(id, outcome, apps: apps))
    }
}
