internal import Model

extension DestinationMachine {
    /// A command wants what waits (and, for a drain, what comes) to go now.
    ///
    /// A person's or an app's "now" ends every wait, once: retries, what is set aside, a Retry-After. The answer decides what
    /// follows. A stop and the rounds of a drain end none.
    mutating func beginPush(everything: Bool, byCommandAt now: Moment? = nil) {
        if let now {
            for id in tracked.keys { tracked[id]?.notBefore = now.boot }
            if retryAfterUntil != nil { effects.append(.persist(SwitchName.retryAfter(name), nil)) }
            retryAfterUntil = nil
            if case .until = offline { offline = nil }
        }
        let events = PerPriority(critical: waiting(.critical), normal: waiting(.normal))
        let free = PerPriority(critical: freeToTake(.critical), normal: freeToTake(.normal))
        push = Push(
            everything: everything || push?.everything == true, events: events, free: free,
            batches: Set(tracked.values.filter { !$0.isSetAside }.map(\.header.id)))
        pushEnd = nil
        // What is in flight already belongs to a drain; what was asked for and is not sent yet belongs to what waits.
        attempts.updateAll { _, attempt in
            guard !attempt.isForgotten else { return }
            if everything || attempt.isLeasing || attempt.isReady { attempt.isPushed = true }
        }
    }

    /// Nothing new is started for commands, for a reason that they are told; what is in flight ends.
    mutating func stopPush(_ reason: DestinationStateName? = nil) {
        push = nil
        pushEnd = reason
    }

    /// A request of the push failed, or no route leads there (nil): the rest stays where it is.
    mutating func endPush(after failure: Failure?) {
        guard let failure else { return stopPush(.offline) }
        ends.append(failure)
        stopPush(hold != nil ? .held : retryAfterUntil != nil ? .retryAfter : .waitingForRetry)
    }

    /// What takes precedence over commands ends them at once.
    mutating func endPushAtObstacle(_ gate: Gate) {
        guard let push, let obstacle = obstacle(gate) else { return }
        // With the breaker open or a hold, a command has one probe.
        if obstacle == .breakerOpen || obstacle == .held, push.probe || attempts.contains(where: \.isProbe) { return }
        stopPush(obstacle)
    }

    /// A push ends when nothing of it is in flight and nothing of it can start.
    mutating func endPushWhenOver(_ gate: Gate) {
        // While all places are taken by others, something of it may be left.
        guard push != nil, pushedInFlight == 0, storeRetryAt == nil, rateRetryAt == nil,
            begun < options.parallelBatches
        else { return }
        if Priority.inOrder.contains(where: mayStillShow) { return }
        if let obstacle = obstacle(gate), hasSomething {
            stopPush(obstacle)
        } else {
            // Batches may be left that have failed.
            stopPush(tracked.isEmpty ? nil : .waitingForRetry)
        }
    }

    /// Whether a lane may hold more of the push than is known: it is asked again.
    private func mayStillShow(_ priority: Priority) -> Bool {
        guard let push, push.everything || push.events[priority] > 0 || push.free[priority] > 0 else { return false }
        let state = laneStates[priority]
        // The summary is from before the last leases: what waits is known with the next one.
        if let taken = state.taken, taken > lanes[priority].handedOut { return true }
        // The queue had nothing, but says that something waits.
        if state.emptyUntil != nil && waiting(priority) > 0 { return true }
        // Nobody knows whether what it says is from before or after what was taken just now.
        return state.takenUntil != nil && waiting(priority) + lanes[priority].freeBatches > 0
    }
}
