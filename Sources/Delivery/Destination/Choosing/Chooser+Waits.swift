internal import EventLoops
internal import Model

// When a choice changes although nothing happens.
extension Chooser {
    /// When `DestinationMachine.advance` could do something that it does not do now, though nothing happens;
    /// nil for never.
    ///
    /// Each time that `advance` compares with the clock must be added here, whether or not anything waits. A
    /// forgotten one is noticed only when something else happens.
    func changesAt() -> BootInstant? {
        var next = NextPoint(after: now.boot)
        addEnds(to: &next)
        next.take(standing.storeRetryAt)
        next.take(standing.startNotBefore)
        next.take(standing.nextProbe)
        next.take(turns.lookAt)
        next.take(turns.rateRetryAt)
        next.take(blame.suspicionEnds(after: options.probeInterval))
        next.take(kept.nextNotBefore(after: now.boot, atLeast: now.boot))
        for priority in Priority.inOrder {
            let view = backlog.views[priority]
            next.take(view.refusedUntil)
            guard let automatic = gate.automatic else { continue }
            next.take(view.oldestAcceptedAt.map { automatic.due(priority, since: $0) })
            next.take(riskAt(priority))
        }
        return next.point
    }

    /// When the destination needs the timer: the times of `changesAt` that matter while nothing happens; nil
    /// for never. With nothing to send, the agent does not wake up.
    func wakeAt() -> BootInstant? {
        var next = NextPoint(after: now.boot)
        addEnds(to: &next)
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
            guard gate.automatic != nil else { continue }
            next.take(riskAt(priority))
        }
        return next.point
    }

    /// Adds the ends of waits that count whatever else stops sending.
    private func addEnds(to next: inout NextPoint) {
        next.take(standing.retryAfterUntil)
        attempts.forEach { attempt in
            next.take(attempt.settleAgainAt)
            next.take(attempt.unproven?.until)
        }
        if case .until(let again) = standing.offline {
            next.take(again)
        }
    }

    /// When events of a lane come close to a deadline; nil if none do. At most an hour ahead: the deadline
    /// follows the time of day, which may be set meanwhile.
    private func riskAt(_ priority: Priority) -> BootInstant? {
        backlog.atRisk(priority).map { now.boot + min($0 - now.wall, .seconds(3600)) }
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
