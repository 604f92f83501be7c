internal import EventLoops
internal import Model

// What people switch: pauses, the network, the interval, and the agent's stop. Switches are made durable by
// `.persist` effects and come back through `init` after a restart.
extension DeliveryMachine {
    /// Takes a pause token. One that is not durable also removes the durable form of an earlier pause with
    /// that token; otherwise a restart would bring it back.
    mutating func pause(_ key: PauseTokens.Key, ttl: Duration?, isDurable: Bool, at now: Moment) {
        pauses.take(key, until: ttl.map { now.boot + $0 })
        destinations.touch(key.destination)
        let value = isDurable ? PauseTokens.switchValue(ttl: ttl, at: now) : nil
        emit(.persist(PauseTokens.switchName(key), value))
        emit(.note(key.destination, .paused(token: key.token)))
    }

    /// Releases a token or all (nil), of one destination or all (nil). Without a token also ends the waits
    /// and holds of the destinations, because a person says that all has recovered.
    mutating func resume(_ token: String?, _ name: DestinationName?, at now: Moment) {
        // Without a destination every token is meant, including those that hold back a single one.
        let keys = pauses.holds.keys.filter {
            (name == nil || $0.destination == name) && (token == nil || $0.token == token)
        }
        for key in keys.sorted(by: PauseTokens.comesBefore) { release(key) }
        guard token == nil else { return }
        destinations.updateAll { destination, machine in
            if name == nil || name == destination {
                machine.resume(at: now)
            }
        }
    }

    /// Releases one token, even if it has expired.
    mutating func release(_ key: PauseTokens.Key) {
        pauses.release(key)
        destinations.touch(key.destination)
        emit(.persist(PauseTokens.switchName(key), nil))
        emit(.note(key.destination, .resumed(token: key.token)))
    }

    /// Switches the network on or off, durably. Switched on, waits after failures end: they were about the
    /// time before.
    mutating func setNetwork(_ on: Bool, at now: Moment) {
        guard on != isNetworkOn else { return }
        isNetworkOn = on
        destinations.touchAll()
        emit(.persist(SwitchName.network, on ? nil : "off"))
        emit(.note(nil, .network(on: on)))
        if on {
            destinations.updateAll { _, machine in machine.resetRetries(at: now) }
        }
    }

    /// Sets the interval for all destinations; nil returns to the configured ones.
    mutating func setInterval(_ new: DispatchInterval?, isDurable: Bool) {
        intervalOverride = new
        destinations.touchAll()
        if isDurable {
            emit(.persist(SwitchName.interval, new?.kept))
        }
        emit(.note(nil, .interval(interval)))
    }

    /// Begins the stop: commands end, requests in flight may end within the grace, and the queue is drained
    /// unless sending is disabled, paused, off or without network.
    mutating func beginStop(grace: Duration, at now: Moment) {
        guard stop == nil else { return }
        for id in commands.keys.sorted(by: { $0.number < $1.number }) { cancel(id) }
        stop = Stop(deadline: now.boot + grace)
        let isPossible = grace > .zero && isEnabled && isNetworkOn
        for name in destinations.names {
            let drains = isPossible && interval(of: name) != .off && !pauses.holdsBack(name)
            destinations.update(name) { machine in
                machine.pushing.beginStop()
                if drains {
                    machine.beginPush(everything: true)
                }
            }
        }
    }

    /// At the end of the grace, cuts what is still in flight.
    mutating func expireStop(at now: Moment) {
        guard let stop, stop.deadline <= now.boot else { return }
        destinations.updateAll { _, machine in
            machine.stopPush()
            machine.cutAll()
        }
    }

    /// Ends the stop when nothing is in flight and no drain is active.
    mutating func finishStop() {
        guard stop != nil, !destinations.contains(where: { !$0.attempts.isEmpty || $0.pushing.isActive })
        else {
            return
        }
        stop?.isOver = true
        emit(.stopped)
    }

    /// Gives everything back at once. An acknowledgement that the queue does not have yet is lost: that batch
    /// is sent again under the same id.
    mutating func hurry(at now: Moment) {
        if stop == nil {
            beginStop(grace: .zero, at: now)
        }
        var last: [DeliveryEffect] = []
        destinations.updateAll { _, machine in
            machine.stopPush()
            machine.cutAll()
            machine.moveEffects(to: &last)
            machine.attempts.endAll()
        }
        for effect in last { emit(effect) }
    }

    /// Answers that arrive after the stop: leases are given back, commands cancelled.
    mutating func handleAfterStop(_ input: DeliveryInput) -> [DeliveryEffect] {
        switch input {
        case .leased(_, .batch(let header, _), _, _): [.release(header.id)]
        case .dispatch(let id?, _), .drain(let id, _, _): [.finish(id, .cancelled)]
        default: []
        }
    }
}
