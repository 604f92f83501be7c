internal import EventLoops
internal import Model

// Which attempt begins next. `nextStart` is asked until it says nil, and changes nothing but the time at
// which the rate allows another request.
extension DestinationMachine {
    /// The next attempt, by precedence; nil if nothing may start.
    ///
    /// Probes do not wait for the rate of `requestsPerSecond`, but are charged to it.
    mutating func nextStart(_ gate: Gate, at now: Moment) -> Start? {
        guard let start = possibleStart(gate, at: now) else { return nil }
        return standing.isForProbesOnly || turns.allowsRequest(at: now.boot) ? start : nil
    }

    /// The next attempt regardless of the rate.
    private func possibleStart(_ gate: Gate, at now: Moment) -> Start? {
        guard gate.block == nil, standing.storeRetryAt == nil, gate.automatic != nil || pushing.isActive
        else { return nil }
        guard standing.retryAfterUntil == nil, standing.offline == nil else { return nil }
        if standing.isForProbesOnly {
            let isDue = gate.automatic != nil && standing.nextProbe.map { $0 <= now.boot } ?? false
            return isDue || pushing.hasProbe ? probe() : look(gate, at: now)
        }
        guard pushing.isActive || standing.startNotBefore == nil else { return nil }
        return regular(gate, at: now)
    }

    /// The next attempt while neither a hold nor an open breaker limits sending to probes.
    private func regular(_ gate: Gate, at now: Moment) -> Start? {
        // Rejected batches and their pieces alternate with all else, whatever their lane: there may be
        // thousands of them, each a request of its own.
        let piece = hasPlace(.normal) ? rejected(gate, at: now) : nil
        if turns.prefersPieces, let piece { return piece }
        return unrejected(gate, at: now) ?? piece ?? setAside(.fails, gate, at: now)
    }

    /// The next rejected batch, piece or, while events are being rejected, free batch.
    private func rejected(_ gate: Gate, at now: Moment) -> Start? {
        // While requests fail, a lane full of retries offers no new piece either: each would fail and be kept
        // too.
        let full = standing.trouble == nil ? [] : Priority.inOrder.filter(isFullOfRetries)
        return setAside(.rejected, gate, at: now)
            ?? ready(gate, at: now) {
                $0.rejectedAt != nil && ($0.attemptedAt != nil || !full.contains($0.priority))
            } ?? (suspectsFree ? free(in: Priority.inOrder, gate) : nil)
    }

    /// The next batch that was not rejected, critical before normal.
    private func unrejected(_ gate: Gate, at now: Moment) -> Start? {
        for priority in Priority.inOrder where hasPlace(priority) {
            guard let start = start(in: priority, gate, at: now) else { continue }
            // Critical events that wait go first, whatever caused the sending, also if they are not due
            // themselves.
            if priority == .normal, hasPlace(.critical), !isFullOfRetries(.critical), available(.critical) > 0
            {
                return .next(.critical, takesFree: false, isProbe: false)
            }
            if priority == .normal, isCriticalOnItsWay { return nil }
            return start
        }
        return nil
    }

    /// The oldest batch that was given back and may be sent again now.
    private func ready(_ gate: Gate, at now: Moment, where isMeant: (Kept.Card) -> Bool) -> Start? {
        // With an order, a batch is sent only if it is the first of its lane and nothing of that lane is in
        // flight. A rejected batch is not bound by it, unless the order is promised.
        guard !kept.isEmpty else { return nil }
        let isOrdered = options.order != .free
        let hasPlaces = PerPriority(critical: hasPlace(.critical), normal: hasPlace(.normal))
        let firsts = isOrdered ? Set(Priority.inOrder.compactMap { oldest($0, where: isInOrder)?.id }) : []
        let ready = kept.first(by: Kept.Card.isOlder) { card in
            guard card.notBefore <= now.boot, !card.isSetAside, isMeant(card) else { return false }
            if isOrdered, !hasPlaces[card.priority] || isInOrder(card) && !firsts.contains(card.id) {
                return false
            }
            return gate.automatic != nil || pushing.concerns(card.id)
        }
        return ready.map { .again($0.id, isProbe: false) }
    }

    /// The next attempt of a lane: a retry, a free batch, a batch leased ahead, or the next waiting events.
    private func start(in priority: Priority, _ gate: Gate, at now: Moment) -> Start? {
        if kept.counts.unrejected[priority] > 0,
            let again = ready(gate, at: now, where: { $0.priority == priority && $0.rejectedAt == nil })
        {
            return again
        }
        guard !isFullOfRetries(priority) || turns.looks(at: now.boot), hasRoomForRejected else { return nil }
        if !suspectsFree, let free = free(in: [priority], gate) { return free }
        if attempts.counts.ready[priority] > 0,
            let asked = attempts.first(where: { $0.isReady && $0.priority == priority })
        {
            return .ready(asked)
        }
        return isDue(priority, gate) ? .next(priority, takesFree: false, isProbe: false) : nil
    }

    /// A free batch of the first lane that has one.
    private func free(in lanes: [Priority], _ gate: Gate) -> Start? {
        let lane = lanes.first {
            freeToTake($0) > 0 && !isFullOfRetries($0) && hasRoomForRejected
                && (gate.automatic != nil || pushing.wantsFree($0))
        }
        return lane.map { .next($0, takesFree: true, isProbe: false) }
    }

    /// Whether waiting events of a lane are to be sent now: a command wants them, their wait is over, or they
    /// fill a batch. Events that the queue is forming into batches already are not counted.
    func isDue(_ priority: Priority, _ gate: Gate) -> Bool {
        guard waiting(priority) > 0 else { return false }
        let asked = asked(priority)
        let events = available(priority)
        guard events > 0 else { return false }
        let coming = asked * largestBatch(priority)
        if pushing.wants(more: coming, priority) { return true }
        guard let automatic = gate.automatic else { return false }
        if views[priority].dueEvents > coming { return true }
        return automatic.batchOnSize
            && (events >= options.dueEvents
                || views[priority].summary.waitingBytes - asked * maxBytes >= maxBytes)
    }

    /// Whether a request may begin: at most `parallelBatches` are in flight, and one critical batch more if
    /// normal ones hold all places. After a failure one at a time; with an order one per lane.
    func hasPlace(_ priority: Priority) -> Bool {
        let places = attempts.counts.places
        let taken = places.critical + places.normal
        if standing.trouble != nil, taken > 0 { return false }
        if options.order != .free, places[priority] > 0 { return false }
        if taken < options.parallelBatches { return true }
        return priority == .critical && taken == options.parallelBatches && places.critical == 0
    }

    /// Whether twice `parallelBatches` batches of a lane wait for a retry. Then nothing new of it begins: it
    /// would probably fail too, and be kept in memory. With an order, one batch that waits stops its lane.
    func isFullOfRetries(_ priority: Priority) -> Bool {
        if options.order != .free { return oldest(priority, where: isInOrder) != nil }
        return kept.counts.retries[priority] >= 2 * options.parallelBatches
    }

    /// Whether a batch must be sent before what came after it in its lane.
    ///
    /// A rejected batch may be passed unless the order is promised. Otherwise each new event would wait until
    /// every rejected event before it was found.
    func isInOrder(_ batch: Kept.Card) -> Bool { options.order == .promised || batch.rejectedAt == nil }

    /// The batch that comes first in its lane, among those given back and not set aside.
    func oldest(_ priority: Priority, where isMeant: (Kept.Card) -> Bool = { _ in true }) -> Kept.Card? {
        guard kept.counts.batches[priority] > 0 else { return nil }
        return kept.first(by: Kept.Card.isOlder) { $0.priority == priority && !$0.isSetAside && isMeant($0) }
    }

    /// The set-aside batch whose wait ended first. Only one is tried at a time, none while a command runs,
    /// and batches that keep failing alone come after all else.
    private func setAside(_ aside: TrackedBatch.Aside, _ gate: Gate, at now: Moment) -> Start? {
        guard gate.automatic != nil, kept.count(of: aside) > 0, attempts.begun < options.parallelBatches,
            attempts.counts.setAside == 0
        else { return nil }
        let due = kept.first {
            $0.notBefore < $1.notBefore
        } where: {
            $0.aside == aside && $0.notBefore <= now.boot
        }
        return due.map { .again($0.id, isProbe: false) }
    }

    /// The attempt that finds out whether the destination has recovered.
    ///
    /// Each time a different batch if possible, since the last one may be at fault itself. Batches that are
    /// set aside are tried only if there is nothing else, except in a doubt: one that is accepted now would
    /// end it.
    private func probe() -> Start? {
        guard attempts.begun < options.parallelBatches, attempts.counts.probes == 0 else { return nil }
        if let doubt = hold?.doubt, let start = untried(in: doubt) { return start }
        if let start = unasked() { return start }
        if options.order == .promised, let first = firstInOrder() { return first }
        // A set-aside batch may be accepted by now, and would end a doubt.
        let takesAside = hold?.doubt != nil
        let asideCount = kept.counts.failing + kept.counts.refused
        let known = takesAside ? kept.count : kept.count - asideCount
        let fresh = Priority.inOrder.first { freeToTake($0) > 0 || available($0) > 0 }
        let isCriticalNew =
            fresh == .critical
            && !kept.contains { (takesAside || !$0.isSetAside) && $0.priority == .critical }
        if let fresh, known < 2 || isCriticalNew {
            return .next(fresh, takesFree: freeToTake(fresh) > 0, isProbe: true)
        }
        // Prefer another app than that of the last attempt, batches that were not sampled yet, and those of a
        // known app.
        func isKnown(_ card: Kept.Card) -> Bool { takesAside || !card.isSetAside }
        let last = kept.first(by: { Kept.Card.isRested($1, $0) }, where: isKnown)?.app
        func isOther(_ card: Kept.Card) -> Bool { isKnown(card) && card.app != last }
        let next =
            kept.first(by: Kept.Card.isRested) { isOther($0) && !$0.isTriedAgain && $0.app != nil }
            ?? kept.first(by: Kept.Card.isRested) { isOther($0) && !$0.isTriedAgain }
            ?? kept.first(by: Kept.Card.isRested, where: isOther)
            ?? kept.first(by: Kept.Card.isRested, where: isKnown) ?? kept.first(by: Kept.Card.isRested)
        return next.map { .again($0.id, isProbe: true) }
    }

    /// A batch that is first in its lane, from the lane whose first batch was attempted longer ago.
    ///
    /// - Parameter untriedSince: beginning of a doubt; batches rejected since then are passed.
    func firstInOrder(untriedSince began: BootInstant? = nil) -> Start? {
        let firsts = Priority.inOrder.compactMap { priority -> (start: Start, at: Int64)? in
            guard hasPlace(priority) else { return nil }
            let first = oldest(priority) { batch in began.map { !mayBePassed(batch, since: $0) } ?? true }
            if let first {
                return (.again(first.id, isProbe: true), first.attemptedAt?.nanoseconds ?? .min)
            }
            let takesFree = freeToTake(priority) > 0
            guard hasRoomForRejected, takesFree || available(priority) > 0 else { return nil }
            return (.next(priority, takesFree: takesFree, isProbe: true), .min)
        }
        return firsts.min { $0.at < $1.at }?.start
    }
}
