internal import EventLoops
internal import Model

extension DestinationMachine {
    /// What may be attempted next.
    enum Start {
        /// A batch that was given back.
        case again(BatchID, isProbe: Bool)
        /// The lane's next batch, or one that is free since a restart.
        case next(Priority, takesFree: Bool, isProbe: Bool)
        /// A batch that was asked for ahead.
        case ready(UInt64)
    }

    /// Starts all that may start now.
    mutating func advance(_ gate: Gate, at now: Moment) {
        passTime(at: now)
        settleAgain(at: now)
        endPushAtObstacle(gate)
        markWhatIsDue(gate, at: now)
        returnReady(gate)
        while let start = nextStart(gate, at: now) { begin(start, at: now) }
        askAhead(gate, at: now)
        endPushWhenOver(gate)
    }

    private mutating func passTime(at now: Moment) {
        if let until = retryAfterUntil, until <= now.boot {
            retryAfterUntil = nil
            effects.append(.persist(SwitchName.retryAfter(name), nil))
        }
        if case .until(let again) = offline, again <= now.boot { offline = nil }
        if let at = storeRetryAt, at <= now.boot { storeRetryAt = nil }
        if let at = startNotBefore, at <= now.boot { startNotBefore = nil }
        forgetSuspects(at: now.boot)
        rateRetryAt = nil
        for priority in Priority.inOrder {
            if let until = laneStates[priority].takenUntil, until <= now.boot {
                laneStates[priority].takenFree = 0
                laneStates[priority].takenUntil = nil
            }
            if let until = laneStates[priority].emptyUntil, until <= now.boot { laneStates[priority].emptyUntil = nil }
            if let at = laneStates[priority].leasedAt, at + DestinationMachine.countsSettle <= now.boot,
                !attempts.contains(where: { $0.priority == priority && $0.isLeasing })
            {
                laneStates[priority].leasedAt = nil
                laneStates[priority].taken = lanes[priority].handedOut
            }
        }
    }

    private mutating func settleAgain(at now: Moment) {
        for number in attempts.keys(where: { $0.settleAgainAt.map { $0 <= now.boot } ?? false }) {
            attempts.update(number) { $0.tell(again: nil) }
            guard let settlement = attempts.look(number, { $0.settlement }) else { continue }
            effects.append(.settle(attemptID(number), settlement))
        }
    }

    /// A lane whose oldest event has waited long enough sends all that waits in it (ac01, ac03).
    private mutating func markWhatIsDue(_ gate: Gate, at now: Moment) {
        for priority in Priority.inOrder {
            guard let automatic = gate.automatic else {
                laneStates[priority].flush = 0
                continue
            }
            if laneStates[priority].taken ?? 0 <= lanes[priority].handedOut, let risk = atRisk(priority),
                risk <= now.wall
            {
                // One batch; the summary then says whether more are at risk (ga09).
                laneStates[priority].flush = max(laneStates[priority].flush, 1)
            }
            guard let oldest = laneStates[priority].oldest else { continue }
            if automatic.due(priority, since: oldest.boot) <= now.boot, available(priority) > 0 {
                laneStates[priority].flush = max(laneStates[priority].flush, waiting(priority))
            }
        }
    }

    private mutating func begin(_ start: Start, at now: Moment) {
        bucket?.charge(1, at: now.boot)
        prefersPieces = true
        switch start {
        case .ready(let number):
            guard var batch = attempts.look(number, { $0.batch }) else { return }
            send(&batch, number, at: now)
        case .again(let batchID, let isProbe):
            guard let batch = tracked.removeValue(forKey: batchID) else { return }
            if batch.rejectedAt != nil || isProbe { prefersPieces = false }
            let id = newAttempt()
            attempts[id.number] = Attempt(
                .known(Boxed(batch)), priority: batch.header.priority, isProbe: isProbe, isPushed: push != nil)
            push?.batches.remove(batchID)
            if isProbe { push?.probe = false }
            effects.append(.leaseAgain(id, batchID))
        case .next(let priority, let takesFree, let isProbe):
            if takesFree, suspectsFree { prefersPieces = false }
            if isProbe { exchangeRejected() }
            let elsewhere = isProbe && !takesFree ? lookElsewhere() : nil
            let priority = elsewhere?.lane ?? priority
            if isProbe, !takesFree, elsewhere == nil { hold?.doubt?.lane = priority }
            let id = newAttempt()
            attempts[id.number] = Attempt(
                takesFree ? .free : .next, priority: priority, isProbe: isProbe, isPushed: push != nil)
            if takesFree { push?.free[priority] -= 1 }
            if isProbe { push?.probe = false }
            // In order, what passes the first of its lane is one event, close behind it; in a long doubt, one is likely to pass.
            let isOne = options.order == .free ? hold?.doubt?.isAnnounced == true : oldest(priority) != nil
            let notOf = elsewhere?.notOf ?? []
            let most = isProbe && isOne && !takesFree && notOf.isEmpty ? 1 : nil
            var request = request(priority, atMost: most, takesFree: takesFree, at: now)
            request.notOf.formUnion(notOf)
            effects.append(.leaseNext(id, request))
            if !takesFree, looks(at: now) { lookAt = nil }
        }
    }

    /// The next batch of a lane, other than those whose waits are known here.
    func request(
        _ priority: Priority, atMost most: Int? = nil, takesFree: Bool = false, at now: Moment
    ) -> LeaseRequest {
        var known = Set(tracked.keys)
        attempts.forEach { _, attempt in
            if let batch = attempt.wishedBatch { known.insert(batch.header.id) }
        }
        // A deadline gives up no order that is promised.
        let urgent = options.order == .free ? options.deadlines.urgent(in: lanes[priority], at: now.wall) : nil
        var request = LeaseRequest(
            destination: name, priority: priority, maxEvents: most ?? options.mostEvents, maxBytes: maxBytes)
        (request.urgentBefore, request.urgentFor) = (urgent?.before, urgent?.deadline)
        (request.inOrder, request.except) = (options.order != .free, known)
        if suspectsFree { request.free = takesFree ? .newest : .none }
        if !takesFree, looks(at: now) { request.notOf = asked }
        return request
    }

    /// When `advance` has to be called again although nothing has happened; nil for never.
    func wakeAt(_ gate: Gate, at now: Moment) -> BootInstant? {
        var next = NextPoint(after: now.boot)
        next.take(retryAfterUntil)
        attempts.forEach { _, attempt in next.take(attempt.settleAgainAt) }
        if case .until(let again) = offline { next.take(again) }
        guard gate.block == nil, push != nil || gate.automatic != nil && (lanes.events > 0 || !tracked.isEmpty) else {
            return next.point
        }
        next.take(storeRetryAt)
        next.take(lookAt)
        next.take(planned(gate, at: now))
        guard hold == nil, breaker == nil else { return next.point }
        next.take(startNotBefore)
        next.take(rateRetryAt)
        for priority in Priority.inOrder {
            if lanes[priority].waitingEvents + lanes[priority].freeBatches > 0 {
                next.take(laneStates[priority].takenUntil)
                next.take(laneStates[priority].emptyUntil)
            }
            if laneStates[priority].taken ?? 0 != lanes[priority].handedOut {
                next.take(laneStates[priority].leasedAt.map { $0 + DestinationMachine.countsSettle })
            }
            guard gate.automatic != nil, let risk = atRisk(priority) else { continue }
            // An appointment: the time of day may be set meanwhile.
            next.take(now.boot + min(risk - now.wall, .seconds(3600)))
        }
        return next.point
    }

    /// When the next attempt begins, if nothing happens before; nil when none is planned, or one could begin now.
    func planned(_ gate: Gate, at now: Moment) -> BootInstant? {
        var next = NextPoint(after: now.boot)
        guard gate.block == nil, gate.automatic != nil || push != nil, offline != .noRoute else { return nil }
        var barrier = [retryAfterUntil, storeRetryAt].compactMap { $0 }.max() ?? now.boot
        if case .until(let again) = offline { barrier = max(barrier, again) }
        if let probe = nextProbe {
            next.take(max(probe, barrier))
        } else if hold == nil, breaker == nil {
            barrier = [startNotBefore, rateRetryAt].compactMap { $0 }.reduce(barrier, max)
            for batch in tracked.values { next.take(max(batch.notBefore, barrier)) }
            for priority in Priority.inOrder {
                if freeToTake(priority) > 0 { next.take(barrier) }
                next.take(dueAt(priority, gate).map { max($0, barrier) })
            }
        }
        return next.point
    }

    /// When the lane's oldest event has waited long enough.
    func dueAt(_ priority: Priority, _ gate: Gate) -> BootInstant? {
        guard let automatic = gate.automatic, let oldest = laneStates[priority].oldest, available(priority) > 0 else {
            return nil
        }
        return automatic.due(priority, since: oldest.boot)
    }
}
