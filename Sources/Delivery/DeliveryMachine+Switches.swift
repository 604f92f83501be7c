internal import EventLoops
internal import Model

// Pause (ac16), network, interval, stop (ga07).
extension DeliveryMachine {
    mutating func pause(_ key: PauseTokens.Key, ttl: Duration?, isDurable: Bool, at now: Moment) {
        pauses.take(key, until: ttl.map { now.boot + $0 })
        let value = isDurable ? PauseTokens.switchValue(ttl: ttl, at: now) : nil
        effects.append(.persist(PauseTokens.switchName(key), value))
        effects.append(.note(key.destination, .paused(token: key.token)))
    }

    mutating func resume(_ token: String?, _ name: DestinationName?, at now: Moment) {
        // Without a destination all are meant, those that hold back a single one included.
        let keys = pauses.holds.keys.filter {
            (name == nil || $0.destination == name) && (token == nil || $0.token == token)
        }
        for key in keys.sorted(by: PauseTokens.comesBefore) { release(key) }
        guard token == nil else { return }
        destinations.updateAll { destination, machine in
            if name == nil || name == destination { machine.resume(at: now) }
        }
    }

    mutating func release(_ key: PauseTokens.Key) {
        pauses.release(key)
        effects.append(.persist(PauseTokens.switchName(key), nil))
        effects.append(.note(key.destination, .resumed(token: key.token)))
    }

    mutating func setNetwork(_ on: Bool, at now: Moment) {
        guard on != isNetworkOn else { return }
        isNetworkOn = on
        effects.append(.persist(SwitchName.network, on ? nil : "off"))
        effects.append(.note(nil, .network(on: on)))
        if on { destinations.updateAll { _, machine in machine.resetRetries(at: now) } }
    }

    mutating func setInterval(_ new: DispatchInterval?, isDurable: Bool) {
        intervalOverride = new
        if isDurable { effects.append(.persist(SwitchName.interval, new?.kept)) }
        effects.append(.note(nil, .interval(interval)))
    }

    /// Finishes what is in flight; drains, unless somebody wants that nothing is sent (ga07).
    mutating func beginStop(grace: Duration, at now: Moment) {
        guard stop == nil else { return }
        for id in commands.keys.sorted(by: { $0.number < $1.number }) { cancel(id) }
        stop = Stop(deadline: now.boot + grace)
        let isPossible = grace > .zero && isEnabled && isNetworkOn
        for name in destinations.keys {
            let drains = isPossible && interval(of: name) != .off && !pauses.holdsBack(name)
            destinations.update(name) { machine in
                machine.isStopping = true
                machine.stopPush()
                if drains { machine.beginPush(everything: true) }
            }
        }
    }

    mutating func expireStop(at now: Moment) {
        guard let stop, stop.deadline <= now.boot else { return }
        destinations.updateAll { _, machine in
            machine.stopPush()
            machine.cutAll()
        }
    }

    /// It is over when nothing is in flight and nothing more is to go.
    mutating func finishStop() {
        guard stop != nil, !destinations.contains(where: { !$0.attempts.isEmpty || $0.push != nil }) else { return }
        stop?.isOver = true
        effects.append(.stopped)
    }

    /// Gives all back at once; what the queue has not been told yet will be sent again under the same id.
    mutating func hurry(at now: Moment) {
        if stop == nil { beginStop(grace: .zero, at: now) }
        var last: [DeliveryEffect] = []
        destinations.updateAll { _, machine in
            machine.stopPush()
            machine.cutAll()
            last += machine.effects
            machine.effects = []
            machine.attempts = SmallMap()
        }
        effects += last
    }

    mutating func handleAfterStop(_ input: DeliveryInput) -> [DeliveryEffect] {
        switch input {
        case .leased(_, .batch(let header, _), _): [.release(header.id)]
        case .dispatch(let id?, _), .drain(let id, _, _): [.finish(id, .cancelled)]
        default: []
        }
    }
}
