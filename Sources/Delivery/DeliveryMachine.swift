//  Delivery: when and what to send. Intervals, batch sizes, the delay of critical events, parallel batches,
//  retries, breaker, holds, pauses, commands (dispatch, drain) and the stop.
//
//  Promises:
//  - No lane stalls: whenever something may be sent, it is started, or `wakeAt` names the time.
//  - Never more requests in flight than `parallel_batches`, plus one for a critical batch.
//  - Of several reasons not to send, the higher one wins: disabled, network off, paused, held, Retry-After,
//    offline, breaker open, then the interval.
//  - A batch or an event that the receiver refuses delays no other for long.
//  - Every leased batch is settled or released; a restart sends what was not settled again under its old id.
//
//  Parts:
//  - `DeliveryMachine` (this file): all destinations; a value without I/O that turns inputs (`DeliveryInput`)
//    into effects (`DeliveryEffect`). Switches, commands, stop.
//  - `Destinations`: which destinations an input concerns; the others are not advanced.
//  - `DestinationMachine` (Destination/): one destination. Its parts are in folders: Waiting (what the queue
//    holds), Attempts (what is on its way), Standing (may anything be sent), Blame (whose fault a failure
//    is), Choosing (what is next).
//  - `DeliveryDriver` (Driver/): the actor that carries out effects and returns results as inputs.
//  - `NetworkMonitor` (Network/): the kernel's routes; reports to the driver what became reachable.
//  - `Deadline`: the local time by which events must have arrived.
//
//  Rules:
//  - Only the driver touches a machine, on the delivery loop. A machine reads no clock (`Moment` is passed
//    in) and draws random numbers from a given generator, so that tests replay hours within seconds.
//  - Delivery holds headers, waits and counters; the events stay in the queue (`BatchStore`). What delivery
//    remembers is never needed to send a batch: losing it costs time, not events.
//  - Bounds of each destination: 1,000 rejected batches waiting for another try, 1,000 set aside for each
//    reason, 16 unproven events, 5 batches leased ahead, and 1,000 to 4,096 app names.
//  - Hostile: answers of receivers (positions outside the batch, absurd waits, refusing everything) and app
//    names, of which an attacker can invent any number.
//  - It knows nothing of SQL and HTTP: the queue is a `BatchStore`, a destination a `BatchSender`.
//
//  Words:
//  - lane: the critical or the normal half of a destination's queue.
//  - place: one of the `parallel_batches` requests that may be in flight.
//  - attempt: the way of one batch from the request to the queue to its settlement.
//  - free batch: a batch in the queue that delivery does not remember: from an earlier run, or forgotten.
//  - piece: a part of a batch that was split.
//  - probe: the attempt that finds out whether a destination has recovered.
//  - set aside: waiting beside the other batches, which are sent without regard to it.
//  - doubt: the time in which nothing shows whether rejected events or the destination are at fault.
//  - push: what a command still wants sent.
//
//  Begin with `DeliveryMachine.handle`, then `DestinationMachine.advance`
//  (Destination/DestinationMachine+Starting.swift) and `DestinationMachine.sent` (+Answers). DESIGN.md gives
//  the reasons.

internal import EventLoops
internal import Model

/// All destinations together, with switches, commands and the stop: inputs in, effects out.
///
/// Precedence of reasons not to send: disabled, network off, paused, held, Retry-After, offline, breaker
/// open. The first three live here (see `gate`), the others in each destination's own machine. What remains
/// is decided by drain or dispatch, the critical delay and the interval.
struct DeliveryMachine: Sendable {
    /// The agent's stop: drains until the deadline, then cuts what is in flight.
    struct Stop: Sendable {
        /// End of the grace.
        let deadline: BootInstant
        /// Whether everything was given back. From then on `handle` only answers (`handleAfterStop`).
        var isOver = false
    }

    var options: DeliveryOptions
    var destinations = Destinations()
    /// Destinations that were removed from the settings. Their machines stay until nothing of them is in
    /// flight.
    var leaving: Set<DestinationName> = []
    /// Whether collection is enabled (`spoolship enable`); if not, nothing is sent.
    var isEnabled: Bool
    /// Whether connections may be made (`spoolship network`).
    var isNetworkOn = true
    /// Tokens that pause sending, to one destination or to all.
    var pauses = PauseTokens()
    /// Interval set by a command for all destinations; nil if the configured ones are in force.
    var intervalOverride: DispatchInterval?
    /// Commands whose clients wait, by their numbers.
    var commands: [CommandID: Command] = [:]
    /// Set once the stop has begun.
    var stop: Stop?
    /// Effects that the next return of `handle` hands to the driver.
    private var effects: [DeliveryEffect] = []

    /// A machine that has sent nothing yet.
    ///
    /// - Parameter switches: names and values that `.persist` effects made durable in earlier runs. Unknown
    ///   names and unreadable values change nothing, except that an unreadable pause still pauses.
    init(
        _ options: DeliveryOptions, switches: [String: String], isEnabled: Bool, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        self.options = options
        self.isEnabled = isEnabled
        isNetworkOn = switches[SwitchName.network] != "off"
        intervalOverride = switches[SwitchName.interval].flatMap(DispatchInterval.init(kept:))
        for (name, value) in switches { pauses.restore(name: name, value: value, at: now) }
        for destination in options.destinations {
            add(destination, switches: switches, at: now, using: &random)
        }
        for key in pauses.holds.keys.sorted(by: PauseTokens.comesBefore) {
            emit(.note(key.destination, .pauseKept(token: key.token)))
        }
        if !isNetworkOn {
            emit(.note(nil, .network(on: false)))
        }
    }

    /// The interval of destinations without one of their own: a command's, else the configured one.
    var interval: DispatchInterval { intervalOverride ?? options.interval }

    /// The interval in force for a destination: a command's, else its own, else the one for all.
    func interval(of name: DestinationName) -> DispatchInterval {
        intervalOverride ?? destinations.look(name) { $0.options.interval } ?? options.interval
    }

    // MARK: Inputs

    /// Handles inputs in their order and returns what the driver has to do, in order.
    ///
    /// Everything that may start is started after the last input: inputs that arrive together cost little
    /// more than one. Destinations that no input concerns are left alone until a time of theirs has come.
    mutating func handle(
        _ inputs: [DeliveryInput], at now: Moment, using random: inout some RandomNumberGenerator
    ) -> [DeliveryEffect] {
        guard stop?.isOver != true else {
            return inputs.flatMap { handleAfterStop($0) }
        }
        for input in inputs { take(input, at: now, using: &random) }
        return settleDown(at: now)
    }

    /// Applies one input; `settleDown` draws the consequences.
    private mutating func take(
        _ input: DeliveryInput, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        switch input {
        case .lanes(let new):
            destinations.show(new, at: now)
        case .leased(let id, let result, let apps, let lane):
            let gate = gate(id.destination)
            destinations.update(id.destination) {
                $0.show(lane, to: id.number, at: now)
                $0.leased(id.number, result, apps, lane?.revision, gate, at: now)
            }
        case .sent(let id, let outcome, let apps):
            destinations.update(id.destination) { $0.sent(id.number, outcome, apps, at: now) }
        case .settled(let id, let headers):
            destinations.update(id.destination) { $0.settled(id.number, headers, at: now) }
        case .timer: break
        case .clockSet: destinations.touchAll()
        case .eventsWithheld: destinations.updateAll { _, machine in machine.returnAllReady() }
        case .dispatch(let id, let name): begin(id, name, at: now)
        case .drain(let id, let name, let timeout): begin(id, name, timeout: timeout, at: now)
        case .cancel(let id): cancel(id)
        case .pause(let token, let name, let ttl, let untilRestart):
            pause(
                PauseTokens.Key(destination: name, token: token), ttl: ttl, isDurable: !untilRestart, at: now)
        case .resume(let token, let name): resume(token, name, at: now)
        case .retrySetAside(let name, let app):
            for target in destinations.names where name == nil || name == target {
                destinations.update(target) { $0.retryAside(of: app, at: now.boot) }
            }
        case .network(let on): setNetwork(on, at: now)
        case .networkChanged:
            destinations.updateAll { _, machine in machine.resetRetries(at: now) }
        case .newCredentials(let name): destinations.update(name) { $0.renewCredentials(at: now) }
        case .routes(let routes):
            for (name, isPresent) in routes { destinations.update(name) { $0.setRoute(isPresent, at: now) } }
        case .interval(let interval, let isDurable): setInterval(interval, isDurable: isDurable)
        case .enabled(let on):
            isEnabled = on
            destinations.touchAll()
        case .forget: destinations.updateAll { _, machine in machine.forgetAll() }
        case .reload(let new, let isByPerson): reload(new, isByPerson, at: now, using: &random)
        case .stop(let grace): beginStop(grace: grace, at: now)
        case .hurry: hurry(at: now)
        }
    }

    /// Starts all that may start, tells commands what happened, and hands out the effects.
    ///
    /// Order: expired pauses, commands and the stop come first, because they decide what may start; commands
    /// and the stop are finished last, because only then it is known what is left.
    private mutating func settleDown(at now: Moment) -> [DeliveryEffect] {
        for key in pauses.expired(at: now.boot) { release(key) }
        expireCommands(at: now)
        expireStop(at: now)
        advanceDue(at: now)
        // Without a command its destinations send by themselves again. Otherwise events that became due
        // meanwhile would wait for the next input.
        while finishCommands(at: now) { advanceDue(at: now) }
        for name in leaving where destinations.look(name, { $0.attempts.isEmpty }) == true {
            destinations[name] = nil
            leaving.remove(name)
        }
        finishStop()
        let all = effects
        effects = []
        return all
    }

    /// Advances the destinations that have changed, or for which a time has come.
    private mutating func advanceDue(at now: Moment) {
        for name in destinations.due(at: now.boot) { advance(name, at: now) }
    }

    /// Lets one destination start what it may, collects its effects, and tells commands what happened.
    mutating func advance(_ name: DestinationName, at now: Moment) {
        let gate = gate(name)
        destinations.advance(name, gate, at: now, to: &effects)
        tellCommands(of: name)
    }

    /// Whether an attempt still holds a leased batch. If not, the driver drops the events that it was given.
    func holdsBatch(_ id: AttemptID) -> Bool {
        destinations.look(id.destination) { $0.attempts.look(id.number) { $0.isLeased } } == true
    }

    /// Factor by which an attempt's request may exceed the request time-out; 1 unless the batch timed out
    /// before.
    func timeFactor(of id: AttemptID) -> Int {
        destinations.look(id.destination) { $0.attempts.look(id.number) { $0.batch?.timeFactor } ?? nil } ?? 1
    }

    /// Whether the app of each event in a batch must be looked up in the queue.
    ///
    /// - Parameter outcome: the answer of the destination, or nil before the batch is sent. A good answer
    ///   needs the apps only if a failure or rejection is remembered: the look-up reads the batch once more.
    func asksWhose(_ outcome: Outcome?, of name: DestinationName) -> Bool {
        if let outcome, outcome != .acknowledged { return true }
        return destinations.look(name) { $0.asksApps || outcome != nil && $0.blame.asksAppsOfAccepted }
            == true
    }

    /// Whether the queue has leased a batch to any destination, or is being asked for one.
    var hasAttempts: Bool {
        destinations.contains { !$0.attempts.isEmpty }
    }

    /// Destinations that new credentials may help: held, or with an open breaker.
    var stuck: [DestinationName] {
        destinations.names.filter { name in
            destinations.look(name) { $0.hold != nil || $0.breaker != nil } == true && !leaving.contains(name)
        }
    }

    /// Counts events that were acknowledged after a deadline.
    mutating func noteLate(_ name: DestinationName, _ deadline: String, _ events: Int) {
        destinations.updateReport(name) { $0.counters.late[deadline, default: 0] += events }
    }

    /// When `handle(.timer)` has to be called even if nothing happens; nil for never. Destinations are as the
    /// last call of `handle` left them.
    func wakeAt(_ now: Moment) -> BootInstant? {
        guard stop?.isOver != true else { return nil }
        var next = NextPoint(after: now.boot)
        next.take(pauses.nextExpiry)
        next.take(stop?.deadline)
        for command in commands.values { next.take(command.due) }
        destinations.addTimers(to: &next)
        return next.point
    }

    /// The state now. It copies what it shows, so the driver makes it at most every 50 ms between batches.
    func snapshot(at now: Moment) -> DeliverySnapshot { DeliverySnapshot(of: self, at: now) }

    /// Adds an effect.
    mutating func emit(_ effect: DeliveryEffect) { effects.append(effect) }

    // MARK: What takes precedence over a destination

    /// What overrides a destination's own state: whether it is blocked, and when it sends by itself.
    func gate(_ name: DestinationName) -> Gate {
        var gate = Gate()
        if !isEnabled {
            gate.block = .disabled
        } else if !isNetworkOn {
            gate.block = .networkOff
        } else if pauses.holdsBack(name) {
            gate.block = .paused
        } else if leaving.contains(name) || stop?.isOver == true {
            gate.block = .stopping
        }
        // Without automatic sending while a command or the stop runs: only their own requests count for its
        // result.
        let isStandingStill = stop != nil || commands.values.contains { $0.destinations.contains(name) }
        if !isStandingStill, case .every(let interval) = interval(of: name) {
            let delay = destinations.look(name) { $0.options.criticalDelay } ?? options.criticalDelay
            gate.automatic = .init(
                waits: PerPriority(critical: min(delay, interval), normal: interval),
                batchOnSize: options.batchOnSize, phase: options.phase, jitter: jitter(of: name))
        }
        return gate
    }

    /// The share of a destination's waits that may be left out.
    private func jitter(of name: DestinationName) -> Double {
        destinations.look(name) { machine in
            if let jitter = machine.options.jitter { return jitter }
            return intervalOverride != nil || machine.options.isIntervalSet ? 0 : nil
        } ?? DeliveryOptions.standardJitter
    }

    // MARK: Destinations

    /// Adds a destination with what earlier runs made durable: Retry-After, size ceiling, acknowledged
    /// settings.
    mutating func add(
        _ destination: DestinationOptions, switches: [String: String], at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        let name = destination.name
        let left = switches[SwitchName.retryAfter(name)].flatMap { KeptWait.left(of: $0, at: now) }
        destinations[name] = DestinationMachine(
            destination,
            startNotBefore: now.boot + options.startSpread * Double.random(in: 0...1, using: &random),
            retryAfterUntil: left.map { now.boot + $0 },
            acknowledgedFingerprint: switches[SwitchName.acknowledged(name)],
            keptCeiling: switches[SwitchName.ceiling(name)],
            random: RepeatableRandom(seed: random.next()), at: now)
    }

    /// Replaces the settings. Destinations that are gone leave when nothing of them is in flight; one that
    /// comes back meanwhile keeps its machine.
    private mutating func reload(
        _ new: DeliveryOptions, _ isByPerson: Bool, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        options = new
        destinations.touchAll()
        let names = Set(new.destinations.map(\.name))
        for name in destinations.names where !names.contains(name) { leaving.insert(name) }
        for destination in new.destinations {
            leaving.remove(destination.name)
            if !destinations.contains(destination.name) {
                add(destination, switches: [:], at: now, using: &random)
            } else {
                destinations.update(destination.name) {
                    $0.update(destination, isByPerson: isByPerson, at: now)
                }
            }
        }
    }
}
