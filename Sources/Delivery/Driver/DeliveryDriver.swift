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
    /// Requests in flight.
    var requests = Requests()
    /// Clients that wait for a command's result.
    private var clients = Clients()
    /// Who waits for the stop, or until nothing is in flight.
    var ends = Ends()
    /// Inputs for the next turn.
    var inbox = Inbox()
    /// The one timer of all waits, and its time.
    private var timer: (id: EventLoop.TimerID, at: BootInstant)?
    /// When the snapshot was published, and when it is next.
    private var publication = Publication()
    /// Fires when credential files are checked next; nil if no destination needs that.
    var credentialTimer: EventLoop.TimerID?
    /// What the queue has yet to be asked or told.
    var calls = QueueCalls()
    /// Switches to store.
    var switches = KeptSwitches()

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
        guard !inbox.inputs.contains(where: \.isAnswerOfQueue) else { return }
        let before = inbox.lanes
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
    /// longer only if the queue is storing something: an acknowledged batch would otherwise be sent again,
    /// and a switch would be lost.
    /// - Parameter grace: zero sends nothing and cuts what is in flight.
    public func stop(grace: Duration) async {
        if !ends.isStopped {
            await withCheckedContinuation { continuation in
                ends.stopWaiters.append(continuation)
                handle(.stop(grace: grace))
            }
        }
        guard calls.storing.count > 0 else { return }
        await withCheckedContinuation { calls.storing.waiters.append($0) }
    }

    /// Ends at once (a second SIGTERM). Nothing is lost; what was in flight is sent again under the same id.
    public func hurry() { handle(.hurry) }

    // MARK: Inside

    /// Waits until nothing is in flight, at most for the grace.
    func ending(of grace: Duration) async {
        guard machine.hasAttempts else { return }
        let timer = loop.after(grace) { self.assumeIsolated { $0.ends.quiet() } }
        await withCheckedContinuation { ends.quietWaiters.append($0) }
        loop.cancel(timer)
    }

    /// Throws `unknownDestination` for a name that is not configured.
    func check(_ destination: DestinationName?) throws(DeliveryError) {
        guard let destination, !machine.destinations.contains(destination) else { return }
        let known = machine.destinations.names.map(\.text).joined(separator: ", ")
        throw DeliveryError(
            .unknownDestination, "there is no destination \"\(destination)\"; the configuration has: \(known)"
        )
    }

    /// Begins a command and waits for its result.
    func command(
        _ report: @escaping Report, _ input: (CommandID) -> DeliveryInput
    ) async -> CommandResult {
        let id = clients.nextCommand()
        // The summaries first: events accepted just before the command belong to it.
        handle(.lanes(summaries()))
        let begin = input(id)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                clients.waiting[id] = (report, continuation)
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
        clients.finish(id, result)
    }

    /// Handles inputs now, after those that wait already.
    func handle(_ new: DeliveryInput...) {
        inbox.inputs += new
        handleAll()
    }

    /// Handles an input in the next turn of the loop; for the traffic of batches.
    ///
    /// Answers of the queue and of destinations often arrive several at a time, and handling them together
    /// costs little more than one.
    func handleSoon(_ input: DeliveryInput) {
        inbox.inputs.append(input)
        guard !inbox.isPosted else { return }
        inbox.isPosted = true
        loop.post { self.assumeIsolated { $0.handleAll() } }
    }

    /// One turn: gives all inputs to the machine and carries out its effects.
    private func handleAll() {
        var taken = inbox.take()
        guard !taken.isEmpty else { return }
        if let answer = taken.lastIndex(where: \.isAnswerOfQueue) {
            taken.insert(.lanes(currentLanes()), at: answer + 1)
        }
        let now = Moment(time)
        let effects = machine.handle(taken, at: now, using: &random)
        for effect in effects { perform(effect) }
        askForBatches()
        tellAcknowledged(isUrgent: requests.tasks.isEmpty || effects.contains { $0.asksQueue })
        for input in taken {
            switch input {
            // The attempt's state changed while the queue was asked (paused, for example), and the machine
            // gave the batch back.
            case .leased(let id, _, _, _) where !machine.holdsBatch(id): requests.batches[id] = nil
            case .sent(let id, _, _): requests.batches[id] = nil
            default: break
            }
        }
        arm(now)
        lookForCredentialsLater()
        if !ends.quietWaiters.isEmpty, !machine.hasAttempts {
            ends.quiet()
        }
        publish(now, isUrgent: !taken.allSatisfy(\.isRoutine) || effects.contains { !$0.isRoutine })
    }

    /// Publishes the snapshot; while batches come and go at most every 50 ms, since the copy costs as much as
    /// a batch. While something is in flight it waits for what follows, so that a fast answer does not wake
    /// the loop twice.
    private func publish(_ now: Moment, isUrgent: Bool) {
        let isDue = publication.at.map { $0 + DeliveryDriver.publishInterval <= now.boot } ?? true
        guard isUrgent || isDue && !machine.hasAttempts || ends.isStopped else {
            guard publication.timer == nil else { return }
            publication.timer = loop.at(now.boot + DeliveryDriver.publishInterval) {
                self.assumeIsolated {
                    $0.publication.timer = nil
                    $0.publish(Moment($0.time), isUrgent: true)
                }
            }
            return
        }
        if let timer = publication.timer {
            loop.cancel(timer)
        }
        publication.timer = nil
        publication.at = now.boot
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
            guard var batch = requests.batches[id] else { return }
            let sender = senders[id.destination]
            batch.timeFactor = machine.timeFactor(of: id)
            requests.tasks[id] = Task(executorPreference: loop) { [batch] in
                await self.attempt(id, batch, sender)
            }
        case .cut(let id):
            requests.batches[id] = nil
            requests.tasks.removeValue(forKey: id)?.cancel()
        case .release(let batch):
            Task(executorPreference: loop) { [store] in await store.release(batch) }
        case .settle(let id, let settlement) where settlement.isAcknowledgement:
            calls.acknowledged.append((id, settlement.batch))
        case .settle(let id, let settlement):
            storeSoon { await $0.settle(id, settlement) }
        case .countLate(let id, let deadline, let before, let most):
            guard let batch = requests.batches[id] else { return }
            machine.noteLate(id.destination, deadline.name, min(most, countLate(batch, deadline, before)))
        case .persist(let name, let value):
            switches.waiting.append((name, value))
            if !switches.isBusy {
                switches.isBusy = true
                storeSoon { await $0.persistAll() }
            }
        case .report(let id, let report): clients.waiting[id]?.report(report)
        case .finish(let id, .done):
            // What is reported as done must not come back after a crash.
            storeSoon { await $0.finishDurably(id) }
        case .finish(let id, let result): finish(id, result)
        case .stopped: ends.stopped()
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
        let header = batch.header
        let start = time.bootTime
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
        requests.tasks[id] = nil
        handleSoon(.sent(id, outcome, apps: apps))
    }
}
