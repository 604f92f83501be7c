internal import EventLoops
internal import Model

// Starting attempts: `advance` after every change, `wakeAt` for the time of the next one.
extension DestinationMachine {
    /// What may be attempted next.
    enum Start {
        /// A batch that was given back.
        case again(BatchID, isProbe: Bool)
        /// The next waiting events of a lane, or a free batch.
        case next(Priority, takesFree: Bool, isProbe: Bool)
        /// A batch that was leased ahead; the number is its attempt's.
        case ready(UInt64)
    }

    /// Starts everything that may start now.
    ///
    /// The order matters: waits that are over end first, then commands that can no longer send; batches
    /// leased ahead go back before places are given away; and only what is left after all starts shows
    /// whether a push is over.
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

    /// Ends all waits that are over.
    private mutating func passTime(at now: Moment) {
        if standing.passTime(at: now.boot) {
            effects.append(.persist(SwitchName.retryAfter(name), nil))
        }
        blame.forgetSuspects(olderThan: options.probeInterval, at: now.boot)
        returnUnproven(at: now.boot)
        turns.passTime()
        for priority in Priority.inOrder {
            views[priority].passTime(at: now.boot, isAsked: attempts.counts.leasing[priority] > 0)
        }
    }

    /// Tells the queue again how batches ended, if it failed to store that and the wait is over.
    private mutating func settleAgain(at now: Moment) {
        for number in attempts.numbers(where: { $0.settleAgainAt.map { $0 <= now.boot } ?? false }) {
            attempts.update(number) { $0.tell(again: nil) }
            guard let settlement = attempts.look(number, { $0.settlement }) else { continue }
            effects.append(.settle(attemptID(number), settlement))
        }
    }

    /// Releases all waiting events of a lane when its oldest event has waited long enough, and one batch of
    /// events that come close to a deadline.
    private mutating func markWhatIsDue(_ gate: Gate, at now: Moment) {
        for priority in Priority.inOrder {
            guard let automatic = gate.automatic else {
                views[priority].letNoneGo()
                continue
            }
            if !views[priority].isAheadOfSummary, let risk = atRisk(priority), risk <= now.wall {
                // One batch only: the next summary shows whether more events are at risk.
                views[priority].letGo(1)
            }
            guard let oldest = views[priority].oldestAcceptedAt else { continue }
            if automatic.due(priority, since: oldest) <= now.boot, available(priority) > 0 {
                views[priority].letGo(waiting(priority))
            }
        }
    }

    /// Begins an attempt: charges the rate, creates the attempt, and asks the queue for the batch (or sends
    /// it, if it was leased ahead).
    private mutating func begin(_ start: Start, at now: Moment) {
        turns.charge(1, at: now.boot)
        switch start {
        case .ready(let number):
            turns.begun(isPiece: false)
            guard var batch = attempts.look(number, { $0.batch }) else { return }
            send(&batch, number, at: now)
        case .again(let batchID, let isProbe):
            guard let batch = kept.remove(batchID) else { return }
            turns.begun(isPiece: batch.rejectedAt != nil || isProbe)
            let id = begin(
                Attempt(
                    .known(Boxed(batch)), priority: batch.header.priority, isProbe: isProbe,
                    isPushed: pushing.isActive))
            pushing.begun(batchID)
            if isProbe {
                pushing.usedProbe()
            }
            effects.append(.leaseAgain(id, batchID))
        case .next(let priority, let takesFree, let isProbe):
            turns.begun(isPiece: takesFree && suspectsFree)
            if isProbe {
                exchangeRejected()
            }
            let elsewhere = isProbe && !takesFree ? lookElsewhere() : nil
            let priority = elsewhere?.lane ?? priority
            let order = options.order
            var isNewest = false
            if isProbe, !takesFree, elsewhere == nil {
                standing.updateDoubt {
                    $0.noteProbe(in: priority)
                    isNewest = $0.looksAtNewest(order, at: now.boot)
                }
            }
            let id = begin(
                Attempt(
                    takesFree ? .free : .next, priority: priority, isProbe: isProbe,
                    isPushed: pushing.isActive))
            if takesFree {
                pushing.begunFree(priority)
            }
            if isProbe {
                pushing.usedProbe()
            }
            // With an order, a probe that passes the first of its lane takes a single event, so that as
            // little as possible arrives out of order. In a long doubt a single event is the most likely to
            // pass.
            let isPassing = options.order != .free && oldest(priority, where: isInOrder) != nil
            let isOne = hold?.doubt?.isAnnounced == true || isPassing
            let notOf = elsewhere?.notOf ?? []
            let most = isProbe && isOne && !takesFree && notOf.isEmpty || isNewest ? 1 : nil
            var request = request(priority, atMost: most, takesFree: takesFree, at: now)
            request.notOf.formUnion(notOf)
            request.isNewest = isNewest
            effects.append(.leaseNext(id, request))
            if !takesFree, turns.looks(at: now.boot) {
                turns.endLook()
            }
        }
    }

    /// The request for a lane's next batch. It excludes batches whose waits are known here; the queue would
    /// otherwise hand them out before their time.
    func request(
        _ priority: Priority, atMost most: Int? = nil, takesFree: Bool = false, at now: Moment
    ) -> LeaseRequest {
        var known = kept.ids()
        attempts.forEach { attempt in
            if let batch = attempt.wishedBatch {
                known.insert(batch.header.id)
            }
        }
        // Deadlines change the order of events, so they are ignored if an order is kept or promised.
        let urgent =
            options.order == .free ? options.deadlines.urgent(in: views[priority].summary, at: now.wall) : nil
        var request = LeaseRequest(
            destination: name, priority: priority, maxEvents: most ?? mostEvents, maxBytes: maxBytes)
        (request.urgentBefore, request.urgentFor) = (urgent?.before, urgent?.deadline)
        request.inOrder = options.order != .free
        request.except = known
        if suspectsFree {
            request.free = takesFree ? .newest : .none
        }
        if !takesFree, turns.looks(at: now.boot) {
            request.notOf = blame.asked
        }
        return request
    }

    /// When `advance` has to be called even if nothing happens; nil for never.
    ///
    /// Each time that `advance` compares with the clock must be added here. A forgotten one stalls the
    /// destination until something else happens.
    func wakeAt(_ gate: Gate, at now: Moment) -> BootInstant? {
        var next = NextPoint(after: now.boot)
        next.take(standing.retryAfterUntil)
        attempts.forEach { attempt in
            next.take(attempt.settleAgainAt)
            next.take(attempt.unproven?.until)
        }
        if case .until(let again) = standing.offline {
            next.take(again)
        }
        guard gate.block == nil,
            pushing.isActive || gate.automatic != nil && (lanes.events > 0 || !kept.isEmpty)
        else {
            return next.point
        }
        next.take(standing.storeRetryAt)
        next.take(turns.lookAt)
        next.take(planned(gate, at: now))
        guard !standing.isForProbesOnly else { return next.point }
        next.take(standing.startNotBefore)
        next.take(turns.rateRetryAt)
        for priority in Priority.inOrder {
            views[priority].addChanges(to: &next)
            guard gate.automatic != nil, let risk = atRisk(priority) else { continue }
            // At most an hour: the deadline follows the time of day, which may be set meanwhile.
            next.take(now.boot + min(risk - now.wall, .seconds(3600)))
        }
        return next.point
    }

    /// When the next attempt begins if nothing happens before; nil if none is planned or one could begin now.
    /// Shown by `status` as the next attempt.
    func planned(_ gate: Gate, at now: Moment) -> BootInstant? {
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
                if freeToTake(priority) > 0 {
                    next.take(barrier)
                }
                next.take(dueAt(priority, gate).map { max($0, barrier) })
            }
        }
        return next.point
    }

    /// When a lane's oldest event will have waited long enough; nil if nothing waits or sending is not
    /// automatic.
    func dueAt(_ priority: Priority, _ gate: Gate) -> BootInstant? {
        guard let automatic = gate.automatic, let oldest = views[priority].oldestAcceptedAt,
            available(priority) > 0
        else {
            return nil
        }
        return automatic.due(priority, since: oldest)
    }
}

/// What waits for the destination: the queue's summary, corrected by what was requested since.
extension DestinationMachine {
    /// Waiting events that no request to the queue has been made for. The queue was asked for batches, not
    /// events, so each request counts as a full batch.
    func available(_ priority: Priority) -> Int {
        guard !views[priority].isSaidEmpty else { return 0 }
        let waiting = waiting(priority)
        return waiting > 0 ? max(0, waiting - asked(priority) * largestBatch(priority)) : 0
    }

    /// Events that are in no batch, and those in batches that the queue has formed but not handed over.
    func waiting(_ priority: Priority) -> Int { views[priority].waiting }

    /// Batches of a lane that the queue is forming now.
    func asked(_ priority: Priority) -> Int { attempts.counts.askingForNew[priority] }

    /// Free batches of a lane that were not requested yet.
    func freeToTake(_ priority: Priority) -> Int {
        let unclaimed = views[priority].freeBatches
        guard unclaimed > 0 else { return 0 }
        // The queue counts the batches remembered here as free too, as well as those that a settlement is
        // just making.
        return max(0, unclaimed - kept.counts.batches[priority] - attempts.counts.known[priority])
    }

    /// Whether anything could be sent, now or later.
    var hasSomething: Bool {
        !kept.isEmpty || Priority.inOrder.contains { waiting($0) > 0 || freeToTake($0) > 0 }
    }

    /// Events that have not reached the destination, as far as is known; the figure that drain reports.
    var eventsLeft: Int {
        var left = kept.counts.events
        for attempt in attempts.values where !attempt.isForgotten { left += attempt.eventsLeft }
        let known = left
        for priority in Priority.inOrder { left += waiting(priority) }
        guard Priority.inOrder.contains(where: { freeToTake($0) > 0 }) else { return left }
        // For free batches only the queue's figure is known, which still counts what was acknowledged just
        // now. At least one event is left: otherwise a drain would end too early.
        let batched = views.critical.summary.batchedEvents + views.normal.summary.batchedEvents
        return left + max(1, batched - known)
    }

    /// Largest batch to form, in uncompressed bytes.
    var maxBytes: Int { min(options.batchBytes, ceiling?.bytes ?? .max) }

    /// Most events of a batch. Smaller if many events are refused, so that one cut makes pieces of the best
    /// size (see `Cut`).
    var mostEvents: Int { min(options.mostEvents, Cut.largestBatch(share: blame.shares.share(of: nil))) }

    /// Most events of a lane's batch, estimated from the mean size of those that wait.
    func largestBatch(_ priority: Priority) -> Int {
        let lane = views[priority].summary
        let mostEvents = mostEvents
        guard lane.waitingBytes > 0 else { return mostEvents }
        let fitting = maxBytes.multipliedReportingOverflow(by: lane.waitingEvents)
        return fitting.overflow
            ? mostEvents : min(mostEvents, max(1, fitting.partialValue / lane.waitingBytes))
    }

    /// When the earliest waiting event of a lane comes close to a deadline; nil without deadlines or events.
    func atRisk(_ priority: Priority) -> Timestamp? {
        guard !options.deadlines.isEmpty, available(priority) > 0 else { return nil }
        return options.deadlines.atRisk(views[priority].summary)
    }
}

// Small batches are requested ahead, several at a time, and wait here for a place.
//
// With batches of 50 events, the queue's thread and this one would wake each other for every batch, which
// costs as much as sending it. Batches leased ahead hold no place, never precede waiting critical events, and
// are given back as soon as anything but the lack of a place stops them.
extension DestinationMachine {
    /// Most batches that wait for a place. They hold at most 5 × 64 KiB of lines.
    private static let mostAhead = 5
    /// More are requested only when at most this many are left, so that several requests go to the queue
    /// together.
    private static let fewAhead = 1
    /// Largest batch requested ahead, in uncompressed bytes. Larger batches cost memory and cause few
    /// wake-ups anyway.
    private static let largestAhead = 64 << 10

    /// Creates an attempt and returns its name.
    mutating func begin(_ attempt: Attempt) -> AttemptID { attemptID(attempts.begin(attempt)) }

    /// Whether the queue is about to hand over a critical batch.
    ///
    /// Normal batches wait for that answer. The batch may hold fewer events than requested (a full chunk
    /// becomes a batch as it is stored), so that more critical events wait than the summary suggests.
    var isCriticalOnItsWay: Bool {
        attempts.counts.leasing.critical > 0
            && attempts.contains {
                $0.priority == .critical && $0.isLeasing && $0.wishedBatch?.rejectedAt == nil
            }
    }

    /// Gives back batches leased ahead that may not be sent any more.
    mutating func returnReady(_ gate: Gate) {
        guard attempts.counts.ready != PerPriority(both: 0) else { return }
        let permission = permission(gate)
        let isFull = PerPriority(critical: isFullOfRetries(.critical), normal: isFullOfRetries(.normal))
        let gone = attempts.numbers { $0.isReady && (!permission.allows($0) || isFull[$0.priority]) }
        for number in gone { returnReady(number) }
    }

    /// Gives back one batch that was leased ahead.
    mutating func returnReady(_ number: UInt64) {
        guard let batch = attempts.look(number, { $0.batch }) else { return }
        effects.append(.cut(attemptID(number)))
        giveBack(batch, number)
    }

    /// Requests full batches ahead of a free place, if nothing is wrong and many of them wait.
    mutating func askAhead(_ gate: Gate, at now: Moment) {
        guard options.order == .free, gate.block == nil, gate.automatic != nil, obstacle(gate) == nil,
            standing.storeRetryAt == nil, !pushing.isActive, !turns.isLimited, kept.isEmpty,
            blame.suspects.isEmpty, !pushing.isStopping, !hasPlace(.normal),
            attempts.counts.sending > 0
        else { return }
        guard attempts.counts.ahead <= DestinationMachine.fewAhead else { return }
        let priority: Priority = available(.critical) > 0 ? .critical : .normal
        guard isSmall(priority) else { return }
        while attempts.counts.ahead < DestinationMachine.mostAhead, available(priority) >= options.mostEvents,
            isDue(priority, gate)
        {
            let id = begin(Attempt(.nextAhead, priority: priority, isProbe: false, isPushed: false))
            effects.append(.leaseNext(id, request(priority, at: now)))
        }
    }

    /// Whether the lane's batches are small enough to be requested ahead.
    private func isSmall(_ priority: Priority) -> Bool {
        let lane = views[priority].summary
        guard lane.waitingEvents > 0 else { return false }
        let bytes = lane.waitingBytes / lane.waitingEvents * options.mostEvents
        return min(bytes, maxBytes) <= DestinationMachine.largestAhead
    }
}
