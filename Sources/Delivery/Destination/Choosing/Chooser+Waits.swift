internal import EventLoops
internal import Model

// When a choice changes although nothing happens.
extension Chooser {
    /// When the destination has to be looked at again even if nothing happens; nil for never.
    ///
    /// Each time that `DestinationMachine.advance` compares with the clock must be added here. A forgotten
    /// one stalls the destination until something else happens.
    func wakeAt() -> BootInstant? {
        var next = NextPoint(after: now.boot)
        next.take(standing.retryAfterUntil)
        attempts.forEach { attempt in
            next.take(attempt.settleAgainAt)
            next.take(attempt.unproven?.until)
        }
        if case .until(let again) = standing.offline {
            next.take(again)
        }
        let waiting = backlog.views.critical.summary.events + backlog.views.normal.summary.events
        guard gate.block == nil,
            pushing.isActive || gate.automatic != nil && (waiting > 0 || !kept.isEmpty)
        else {
            return next.point
        }
        next.take(standing.storeRetryAt)
        next.take(turns.lookAt)
        next.take(planned())
        guard !standing.isForProbesOnly else { return next.point }
        next.take(standing.startNotBefore)
        next.take(turns.rateRetryAt)
        for priority in Priority.inOrder {
            backlog.views[priority].addChanges(to: &next)
            guard gate.automatic != nil, let risk = backlog.atRisk(priority) else { continue }
            // At most an hour: the deadline follows the time of day, which may be set meanwhile.
            next.take(now.boot + min(risk - now.wall, .seconds(3600)))
        }
        return next.point
    }

    /// When the next attempt begins if nothing happens before; nil if none is planned or one could begin now.
    /// Shown by `status` as the next attempt.
    func planned() -> BootInstant? {
        var next = NextPoint(after: now.boot)
        guard gate.block == nil, gate.automatic != nil || pushing.isActive, standing.offline != .noRoute
        else { return nil }
        var barrier = [standing.retryAfterUntil, standing.storeRetryAt].compactMap { $0 }.max() ?? now.boot
        if case .until(let again) = standing.offline {
            barrier = max(barrier, again)
        }
        if let probe = standing.nextProbe {
            next.take(max(probe, barrier))
        } else if !standing.isForProbesOnly {
            barrier = [standing.startNotBefore, turns.rateRetryAt].compactMap { $0 }.reduce(barrier, max)
            next.take(kept.nextNotBefore(after: now.boot, atLeast: barrier))
            for priority in Priority.inOrder {
                if backlog.freeToTake(priority) > 0 {
                    next.take(barrier)
                }
                next.take(backlog.dueAt(priority, gate).map { max($0, barrier) })
            }
        }
        return next.point
    }
}
