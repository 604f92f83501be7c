internal import EventLoops
internal import Model

// Commands that wait for their requests: dispatch (no deadline) and drain (with one). A command marks what
// waits as a push of each destination, reports each request, and ends when every push has ended.
extension DeliveryMachine {
    /// Begins a drain (with a timeout) or a dispatch (without one). A timeout of zero starts no request and
    /// only reports what waits.
    mutating func begin(_ id: CommandID?, _ name: DestinationName?, timeout: Duration? = nil, at now: Moment)
    {
        let names = (name.map { [$0] } ?? destinations.names).filter {
            destinations.contains($0) && !leaving.contains($0)
        }
        let command = Command(for: names, timeout: timeout, at: now.boot)
        for name in names {
            destinations.touch(name)
            guard !command.isTimedOut else { continue }
            destinations.update(name) { $0.beginPush(everything: timeout != nil, byCommandAt: now) }
        }
        if let id {
            commands[id] = command
        }
    }

    /// The client of a command is gone: its pushes end unless another command shares them. Requests in flight
    /// end normally.
    mutating func cancel(_ id: CommandID) {
        guard let command = end(id) else { return }
        for name in command.open { stopPushUnlessShared(name) }
        emit(.finish(id, .cancelled))
    }

    /// Removes a command; its destinations send by themselves again.
    private mutating func end(_ id: CommandID) -> Command? {
        guard let command = commands.removeValue(forKey: id) else { return nil }
        for name in command.destinations { destinations.touch(name) }
        return command
    }

    /// At the deadline, stops new requests; those in flight may end. After the grace the command ends without
    /// them, and their events are reported as still waiting.
    mutating func expireCommands(at now: Moment) {
        for id in commands.keys {
            for name in commands[id]?.expire(at: now.boot) ?? [] { stopPushUnlessShared(name, except: id) }
        }
    }

    /// Ends a destination's push unless another command still waits for it.
    private mutating func stopPushUnlessShared(_ name: DestinationName, except id: CommandID? = nil) {
        let isShared = commands.contains {
            $0.key != id && !$0.value.isTimedOut && $0.value.isOpen(at: name)
        }
        if !isShared {
            destinations.update(name) { $0.stopPush() }
        }
    }

    /// Reports to commands how requests of a destination ended, and closes the destination for each command
    /// when its push is over.
    mutating func tellCommands(of name: DestinationName) {
        guard !commands.isEmpty else {
            destinations.updateReport(name) { if !$0.pushing.ends.isEmpty { $0.pushing.clearEnds() } }
            return
        }
        guard let machine = destinations[name] else { return }
        let concerned = commands.keys.filter { commands[$0]?.isOpen(at: name) == true }
            .sorted { $0.number < $1.number }
        for end in machine.pushing.ends {
            for id in concerned {
                commands[id]?.noteRequest(to: name)
                let waiting = machine.eventsLeft
                let report: DispatchReport =
                    if let end {
                        .error(name, end, waiting: waiting)
                    } else {
                        .good(name, waiting: waiting)
                    }
                emit(.report(id, report))
            }
        }
        destinations.updateReport(name) { $0.pushing.clearEnds() }
        guard !machine.pushing.isActive, machine.attempts.counts.pushed == 0 else { return }
        for id in concerned {
            if let report = commands[id]?.close(name, machine.pushing.reason) {
                emit(.report(id, report))
            }
        }
    }

    /// Ends commands that are closed at every destination. A drain that found new events begins another round
    /// first.
    ///
    /// - Returns: whether any command has ended.
    mutating func finishCommands(at now: Moment) -> Bool {
        guard !commands.isEmpty else { return false }
        var hasEnded = false
        for id in commands.keys.sorted(by: { $0.number < $1.number }) {
            guard let command = commands[id], command.isOver else { continue }
            if result(of: command) == nil {
                drainOnce(more: id, command.destinations, at: now)
            }
            guard let command = commands[id], command.isOver else { continue }
            _ = end(id)
            hasEnded = true
            emit(.finish(id, result(of: command) ?? command.stuck(.waitingForRetry)))
        }
        return hasEnded
    }

    /// Begins another round of a drain: events came in at one destination while others were still busy.
    private mutating func drainOnce(more id: CommandID, _ names: [DestinationName], at now: Moment) {
        for name in names where destinations.look(name, { $0.hasSomething }) == true {
            destinations.update(name) { $0.beginPush(everything: true) }
            commands[id]?.reopen(name)
            advance(name, at: now)
        }
    }

    /// The result of a command; nil for a drain that has to continue.
    private func result(of command: Command) -> CommandResult? {
        let waiting = command.destinations.compactMap { destinations.look($0) { $0.eventsLeft } }.reduce(0, +)
        return command.result(waiting: waiting, isEnabled: isEnabled)
    }
}
