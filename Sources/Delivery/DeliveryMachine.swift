//  Delivery: when and what to send. Interval, batch size, critical delay, parallel batches, retries, breaker, holds,
//  pause, drain, shutdown.
//  Promise: no lane stalls; never more than the limit in flight; what stands higher in the order of precedence wins;
//  one bad batch never holds up the others; every batch is settled or given back.
//  It knows nothing of SQL or HTTP: the queue is a `BatchStore`, a destination a `BatchSender`.

internal import EventLoops
internal import Model

/// All destinations together: switches, commands and the stop, as values in and effects out.
///
/// What stands higher wins: disabled, network off, paused, held, Retry-After, offline, breaker open, drain or dispatch,
/// critical delay, interval. The first three live here, the others in each destination's own machine.
struct DeliveryMachine: Sendable {
    struct Command: Sendable {
        /// A drain's; nil for a dispatch: it ends by itself.
        let deadline: BootInstant?
        let destinations: [DestinationName]
        /// Those where it still goes on.
        var open: Set<DestinationName>
        /// Why it ended where it ended, other than by success.
        var reasons: [DestinationName: DestinationStateName] = [:]
        /// Those that had at least one request.
        var requested: Set<DestinationName> = []
        /// Its time is over; what is in flight ends, unless that takes longer than `grace`.
        var isTimedOut = false

        /// How long a drain waits for what is in flight when its time is over: less than its caller waits for the answer.
        private static let grace = Duration.seconds(8)

        /// When something is to be done about its time; nil for a dispatch.
        var due: BootInstant? { deadline.map { isTimedOut ? $0 + Command.grace : $0 } }
    }

    struct Stop: Sendable {
        let deadline: BootInstant
        var isOver = false
    }

    var options: DeliveryOptions
    var destinations = SmallMap<DestinationName, DestinationMachine>()
    /// Gone from the settings; kept until nothing of it is in flight.
    var leaving: Set<DestinationName> = []
    var isEnabled: Bool
    var isNetworkOn = true
    var pauses = PauseTokens()
    /// Set by a command, for all destinations; nil for the configured ones.
    var intervalOverride: DispatchInterval?
    var commands: [CommandID: Command] = [:]
    var stop: Stop?
    var effects: [DeliveryEffect] = []

    /// A machine that has sent nothing yet; `switches` are what was made durable by `persist` before.
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
            effects.append(.note(key.destination, .pauseKept(token: key.token)))
        }
        if !isNetworkOn { effects.append(.note(nil, .network(on: false))) }
    }

    /// The interval in force where a destination has none of its own.
    var interval: DispatchInterval { intervalOverride ?? options.interval }

    /// The interval in force for a destination: a command's takes precedence over its own.
    func interval(of name: DestinationName) -> DispatchInterval {
        intervalOverride ?? destinations.look(name) { $0.options.interval } ?? options.interval
    }

    // MARK: Inputs

    /// Takes what happened, in order, and tells what is to be done.
    mutating func handle(
        _ inputs: [DeliveryInput], at now: Moment, using random: inout some RandomNumberGenerator
    ) -> [DeliveryEffect] {
        guard stop?.isOver != true else { return inputs.flatMap { handleAfterStop($0) } }
        for input in inputs { take(input, at: now, using: &random) }
        return settleDown(at: now)
    }

    private mutating func take(
        _ input: DeliveryInput, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        switch input {
        case .lanes(let new):
            destinations.updateAll { name, machine in machine.update(new[name] ?? Lanes(), at: now) }
        case .leased(let id, let result, let apps):
            let gate = gate(id.destination)
            destinations.update(id.destination) { $0.leased(id.number, result, apps, gate, at: now) }
        case .sent(let id, let outcome, let apps):
            destinations.update(id.destination) { $0.sent(id.number, outcome, apps, at: now) }
        case .settled(let id, let headers):
            destinations.update(id.destination) { $0.settled(id.number, headers, at: now) }
        case .timer: break
        case .dispatch(let id, let name): begin(id, name, at: now)
        case .drain(let id, let name, let timeout): begin(id, name, timeout: timeout, at: now)
        case .cancel(let id): cancel(id)
        case .pause(let token, let name, let ttl, let untilRestart):
            pause(PauseTokens.Key(destination: name, token: token), ttl: ttl, isDurable: !untilRestart, at: now)
        case .resume(let token, let name): resume(token, name, at: now)
        case .retrySetAside(let name, let app):
            for target in destinations.keys where name == nil || name == target {
                destinations.update(target) { $0.retrySetAside(of: app, at: now.boot) }
            }
        case .network(let on): setNetwork(on, at: now)
        case .networkChanged:
            destinations.updateAll { _, machine in machine.resetRetries(at: now) }
        case .newCredentials(let name): destinations.update(name) { $0.resume(at: now) }
        case .routes(let routes):
            for (name, isPresent) in routes { destinations.update(name) { $0.setRoute(isPresent, at: now) } }
        case .interval(let interval, let isDurable): setInterval(interval, isDurable: isDurable)
        case .enabled(let on): isEnabled = on
        case .forget: destinations.updateAll { _, machine in machine.forgetAll() }
        case .reload(let new, let isByPerson): reload(new, isByPerson, at: now, using: &random)
        case .stop(let grace): beginStop(grace: grace, at: now)
        case .hurry: hurry(at: now)
        }
    }

    /// Starts all that may start, tells the commands, and collects what is to be done.
    private mutating func settleDown(at now: Moment) -> [DeliveryEffect] {
        for key in pauses.expired(at: now.boot) { release(key) }
        expireCommands(at: now)
        expireStop(at: now)
        for name in destinations.keys {
            advance(name, at: now)
            tellCommands(of: name)
        }
        finishCommands(at: now)
        for name in leaving where destinations.look(name, { $0.attempts.isEmpty }) == true {
            destinations[name] = nil
            leaving.remove(name)
        }
        finishStop()
        let all = effects
        effects = []
        return all
    }

    mutating func advance(_ name: DestinationName, at now: Moment) {
        let gate = gate(name)
        destinations.update(name) { machine in
            machine.advance(gate, at: now)
            guard !machine.effects.isEmpty else { return }
            effects += machine.effects
            machine.effects.removeAll(keepingCapacity: true)
        }
    }

    /// Whether the attempt has a batch that is being sent or will be.
    func holdsBatch(_ id: AttemptID) -> Bool {
        destinations.look(id.destination) { $0.attempts.look(id.number) { $0.isLeased } } == true
    }

    /// Whether it has to know whose the events are that a destination has answered so; nil: that it is to get.
    func asksWhose(_ outcome: Outcome?, of name: DestinationName) -> Bool {
        if let outcome, outcome != .acknowledged { return true }
        return destinations.look(name) { $0.asksApps || outcome != nil && !$0.rejections.kept.isEmpty } == true
    }

    /// Whether the queue has given out any batch, or is asked for one.
    var hasAttempts: Bool { destinations.keys.contains { destinations.look($0) { !$0.attempts.isEmpty } == true } }

    /// Destinations that other credentials may help: held, or their breaker open.
    var stuck: [DestinationName] {
        destinations.keys.filter { name in
            destinations.look(name) { $0.hold != nil || $0.breaker != nil } == true && !leaving.contains(name)
        }
    }

    /// So many events came after their deadline.
    mutating func noteLate(_ name: DestinationName, _ deadline: String, _ events: Int) {
        destinations.update(name) { $0.counters.late[deadline, default: 0] += events }
    }

    /// When `handle(.timer)` has to be called although nothing has happened; nil for never.
    func wakeAt(_ now: Moment) -> BootInstant? {
        guard stop?.isOver != true else { return nil }
        var next = NextPoint(after: now.boot)
        next.take(pauses.nextExpiry)
        next.take(stop?.deadline)
        for command in commands.values { next.take(command.due) }
        destinations.forEach { name, destination in next.take(destination.wakeAt(gate(name), at: now)) }
        return next.point
    }

    // MARK: What takes precedence over a destination

    func gate(_ name: DestinationName) -> DestinationMachine.Gate {
        var gate = DestinationMachine.Gate()
        if !isEnabled {
            gate.block = .disabled
        } else if !isNetworkOn {
            gate.block = .networkOff
        } else if pauses.holdsBack(name) {
            gate.block = .paused
        } else if leaving.contains(name) || stop?.isOver == true {
            gate.block = .stopping
        }
        // Periodic dispatch stops while a command waits for its own requests (ga05, ga06).
        let isStandingStill = stop != nil || commands.values.contains { $0.destinations.contains(name) }
        if !isStandingStill, case .every(let interval) = interval(of: name) {
            let delay = destinations.look(name) { $0.options.criticalDelay } ?? options.criticalDelay
            gate.automatic = .init(
                waits: PerPriority(critical: min(delay, interval), normal: interval),
                batchOnSize: options.batchOnSize, phase: options.phase)
        }
        return gate
    }

    // MARK: Destinations

    mutating func add(
        _ destination: DestinationOptions, switches: [String: String], at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        let name = destination.name
        let left = switches[SwitchName.retryAfter(name)].flatMap { KeptWait.left(of: $0, at: now) }
        destinations[name] = DestinationMachine(
            destination, startNotBefore: now.boot + options.startSpread * Double.random(in: 0...1, using: &random),
            retryAfterUntil: left.map { now.boot + $0 },
            acknowledgedFingerprint: switches[SwitchName.acknowledged(name)],
            random: RepeatableRandom(seed: random.next()), at: now)
    }

    private mutating func reload(
        _ new: DeliveryOptions, _ isByPerson: Bool, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        options = new
        let names = Set(new.destinations.map(\.name))
        for name in destinations.keys where !names.contains(name) { leaving.insert(name) }
        for destination in new.destinations {
            leaving.remove(destination.name)
            if !destinations.contains(destination.name) {
                add(destination, switches: [:], at: now, using: &random)
            } else {
                destinations.update(destination.name) { $0.update(destination, isByPerson: isByPerson, at: now) }
            }
        }
    }
}
