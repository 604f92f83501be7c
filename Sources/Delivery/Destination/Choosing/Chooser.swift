internal import EventLoops
internal import Model

/// Which attempt begins next: a pure function of read-only views of a destination's parts.
///
/// It is asked until it says nil. It neither begins an attempt nor asks for the time or a random number, so
/// that a choice can be tested without a queue and a destination.
struct Chooser: Sendable {
    let backlog: Backlog
    let attempts: Attempts
    let kept: Kept
    let standing: Standing
    let blame: Blame
    let turns: Turns
    let pushing: Pushing
    let gate: Gate
    let now: Moment

    var options: DestinationOptions { backlog.options }

    /// What can be tried while rejected events or the destination may be at fault.
    var untried: Untried { Untried(backlog, kept, standing, turns) }

    /// The next attempt, by precedence, regardless of the rate; nil if nothing may start.
    func start() -> Start? {
        guard gate.block == nil, standing.storeRetryAt == nil, gate.automatic != nil || pushing.isActive
        else { return nil }
        guard standing.retryAfterUntil == nil, standing.offline == nil else { return nil }
        if standing.isForProbesOnly {
            let isDue = gate.automatic != nil && standing.nextProbe.map { $0 <= now.boot } ?? false
            return isDue || pushing.hasProbe ? probe() : look()
        }
        guard pushing.isActive || standing.startNotBefore == nil else { return nil }
        return regular()
    }

    /// The next attempt while neither a hold nor an open breaker limits sending to probes.
    private func regular() -> Start? {
        // Rejected batches and their pieces alternate with all else, whatever their lane: there may be
        // thousands of them, each a request of its own.
        let piece = hasPlace(.normal) ? rejected() : nil
        if turns.prefersPieces, let piece { return piece }
        return unrejected() ?? piece ?? setAside(.fails)
    }

    /// The next rejected batch, piece or, while events are being rejected, free batch.
    private func rejected() -> Start? {
        // While requests fail, a lane full of retries offers no new piece either: each would fail and be kept
        // too.
        let full = standing.trouble == nil ? [] : Priority.inOrder.filter(isFullOfRetries)
        return setAside(.rejected)
            ?? ready {
                $0.rejectedAt != nil && ($0.attemptedAt != nil || !full.contains($0.priority))
            } ?? (backlog.suspectsFree ? free(in: Priority.inOrder) : nil)
    }

    /// The next batch that was not rejected, critical before normal.
    private func unrejected() -> Start? {
        for priority in Priority.inOrder where hasPlace(priority) {
            guard let start = start(in: priority) else { continue }
            // Critical events that wait go first, whatever caused the sending, also if they are not due
            // themselves.
            if priority == .normal, hasPlace(.critical), !isFullOfRetries(.critical),
                backlog.available(.critical) > 0
            {
                return .next(.critical, takesFree: false, isProbe: false)
            }
            if priority == .normal, attempts.isCriticalOnItsWay { return nil }
            return start
        }
        return nil
    }

    /// The oldest batch that was given back and may be sent again now.
    private func ready(where isMeant: (Kept.Card) -> Bool) -> Start? {
        // With an order, a batch is sent only if it is the first of its lane and nothing of that lane is in
        // flight. A rejected batch is not bound by it, unless the order is promised.
        guard !kept.isEmpty else { return nil }
        let order = options.order
        let hasPlaces = PerPriority(critical: hasPlace(.critical), normal: hasPlace(.normal))
        let firsts = order == .free ? [] : Set(Priority.inOrder.compactMap { firstInLane($0)?.id })
        let ready = kept.first(by: Kept.Card.isOlder) { card in
            guard card.notBefore <= now.boot, !card.isSetAside, isMeant(card) else { return false }
            if order != .free,
                !hasPlaces[card.priority] || card.isInOrder(order) && !firsts.contains(card.id)
            {
                return false
            }
            return gate.automatic != nil || pushing.concerns(card.id)
        }
        return ready.map { .again($0.id, isProbe: false) }
    }

    /// The next attempt of a lane: a retry, a free batch, a batch leased ahead, or the next waiting events.
    private func start(in priority: Priority) -> Start? {
        if kept.counts.unrejected[priority] > 0,
            let again = ready(where: { $0.priority == priority && $0.rejectedAt == nil })
        {
            return again
        }
        guard !isFullOfRetries(priority) || turns.looks(at: now.boot), kept.hasRoomForRejected else {
            return nil
        }
        if !backlog.suspectsFree, let free = free(in: [priority]) { return free }
        if attempts.counts.ready[priority] > 0,
            let asked = attempts.first(where: { $0.isReady && $0.priority == priority })
        {
            return .ready(asked)
        }
        return isDue(priority) ? .next(priority, takesFree: false, isProbe: false) : nil
    }

    /// A free batch of the first lane that has one.
    private func free(in lanes: [Priority]) -> Start? {
        let lane = lanes.first {
            backlog.freeToTake($0) > 0 && !isFullOfRetries($0) && kept.hasRoomForRejected
                && (gate.automatic != nil || pushing.wantsFree($0))
        }
        return lane.map { .next($0, takesFree: true, isProbe: false) }
    }

    /// The set-aside batch whose wait ended first. Only one is tried at a time, none while a command runs,
    /// and batches that keep failing alone come after all else.
    private func setAside(_ aside: TrackedBatch.Aside) -> Start? {
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

    // MARK: Limits

    /// Whether waiting events of a lane are due; see `Backlog.isDue`.
    func isDue(_ priority: Priority) -> Bool { backlog.isDue(priority, gate, pushing) }

    /// Whether a request of a lane may begin; see `Backlog.hasPlace`.
    func hasPlace(_ priority: Priority) -> Bool {
        backlog.hasPlace(priority, isTroubled: standing.trouble != nil)
    }

    /// Whether twice `parallelBatches` batches of a lane wait for a retry. Then nothing new of it begins: it
    /// would probably fail too, and be kept in memory. With an order, one batch that waits stops its lane.
    func isFullOfRetries(_ priority: Priority) -> Bool {
        if options.order != .free { return firstInLane(priority) != nil }
        return kept.counts.retries[priority] >= 2 * options.parallelBatches
    }

    /// The oldest batch of a lane that nothing after it may pass.
    private func firstInLane(_ priority: Priority) -> Kept.Card? {
        kept.oldest(priority) { $0.isInOrder(options.order) }
    }
}
