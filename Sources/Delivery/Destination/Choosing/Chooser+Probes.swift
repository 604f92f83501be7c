internal import EventLoops
internal import Model

// Attempts that find out whether a destination has recovered, or whose events it accepts.
extension Chooser {
    /// The attempt that finds out whether the destination has recovered.
    ///
    /// Each time a different batch if possible, since the last one may be at fault itself. Batches that are
    /// set aside are tried only if there is nothing else, except in a doubt: one that is accepted now would
    /// end it.
    func probe() -> Start? {
        guard attempts.begun < options.parallelBatches, attempts.counts.probes == 0 else { return nil }
        if let start = refused() { return start }
        if let doubt = standing.hold?.doubt, let start = untried.next(in: doubt) { return start }
        if let start = pieceOfUntriedApp() { return start }
        if options.order == .promised, let first = untried.firstInOrder() { return first }
        // A set-aside batch may be accepted by now, and would end a doubt.
        let takesAside = standing.hold?.doubt != nil
        let asideCount = kept.counts.failing + kept.counts.refused
        let usable = takesAside ? kept.count : kept.count - asideCount
        let fresh = Priority.inOrder.first { backlog.freeToTake($0) > 0 || backlog.available($0) > 0 }
        let isCriticalNew =
            fresh == .critical
            && !kept.contains { (takesAside || !$0.isSetAside) && $0.priority == .critical }
        if let fresh, usable < 2 || isCriticalNew {
            return .next(fresh, takesFree: backlog.freeToTake(fresh) > 0, isProbe: true)
        }
        return known(takesAside: takesAside).map { .again($0.id, isProbe: true) }
    }

    /// The set-aside batch whose turn it is while the destination counts as held because of refused events:
    /// every other attempt is one, if there are any.
    ///
    /// Otherwise hundreds of events that will never be accepted could be tried first: an app whose schema was
    /// repaired at a quiet time waited for hours behind them.
    private func refused() -> Start? {
        guard options.order != .promised, standing.hold?.doubt?.prefersRefused == true,
            kept.counts.refused > 0
        else { return nil }
        let next = kept.nextInTurn(
            isSetAside: true, where: { $0.aside == .rejected }, by: Kept.Card.isLessTried)
        return next.map { .again($0.id, isProbe: true) }
    }

    /// The kept batch that is the next probe. Apps take turns, since the last one may be at fault itself.
    ///
    /// In a doubt, set-aside batches and others alternate. Set-aside ones were refused while others were
    /// accepted, so they are the least likely to pass: hundreds of them one after the other would keep a
    /// destination held for an hour after it has recovered.
    private func known(takesAside: Bool) -> Kept.Card? {
        // Batches that were not sampled yet come first.
        func next(isSetAside: Bool) -> Kept.Card? {
            kept.nextInTurn(isSetAside: isSetAside) { !$0.isTriedAgain }
                ?? kept.nextInTurn(isSetAside: isSetAside)
        }
        let prefersAside = takesAside && kept.lastTried?.wasSetAside == false
        return next(isSetAside: prefersAside) ?? next(isSetAside: !prefersAside)
    }

    /// An attempt with a kept piece of an app that was not tried since the failures began.
    private func pieceOfUntriedApp() -> Start? {
        let asked = blame.asked
        guard !asked.isEmpty else { return nil }
        let numbers = kept.numbers(of: asked)
        let piece = kept.first(by: Kept.Card.isRested) { $0.isOfUntriedApp(numbers) }
        return piece.map { .again($0.id, isProbe: true) }
    }

    /// A probe with new events of an app that was not tried yet, between the usual probes.
    func look() -> Start? {
        guard gate.automatic != nil, turns.looks(at: now.boot), attempts.begun < options.parallelBatches,
            kept.hasRoomForRejected, attempts.counts.probes == 0
        else { return nil }
        return backlog.lanesWithNew.first.map { .next($0, takesFree: false, isProbe: true) }
    }

    /// The request for a probe with new events.
    ///
    /// With an order, a probe that passes the first of its lane takes a single event, so that as little as
    /// possible arrives out of order. In a long doubt a single event is the most likely to pass.
    func request(_ probe: Doubt.NewProbe) -> LeaseRequest {
        let order = options.order
        let isPassing = order != .free && kept.oldest(probe.lane) { $0.isInOrder(order) } != nil
        let isInLongDoubt = standing.hold?.doubt?.isAnnounced == true
        let isOne = probe.isNewest || probe.notOf.isEmpty && (isInLongDoubt || isPassing)
        var request = request(probe.lane, atMost: isOne ? 1 : nil)
        request.notOf.formUnion(probe.notOf)
        request.isNewest = probe.isNewest
        return request
    }

    /// The request for a lane's next batch. It excludes batches whose waits are known here; the queue would
    /// otherwise hand them out before their time.
    func request(_ priority: Priority, atMost most: Int? = nil, takesFree: Bool = false) -> LeaseRequest {
        var known = kept.ids()
        attempts.forEach { attempt in
            if let batch = attempt.wishedBatch {
                known.insert(batch.header.id)
            }
        }
        // Deadlines change the order of events, so they are ignored if an order is kept or promised.
        let urgent =
            options.order == .free
            ? options.deadlines.urgent(in: backlog.views[priority].summary, at: now.wall) : nil
        var request = LeaseRequest(
            destination: options.name, priority: priority, maxEvents: most ?? backlog.mostEvents,
            maxBytes: backlog.maxBytes)
        request.urgentBefore = urgent?.before
        request.urgentFor = urgent?.deadline
        request.inOrder = options.order != .free
        request.except = known
        if backlog.suspectsFree {
            request.free = takesFree ? .newest : .none
        }
        if !takesFree, turns.looks(at: now.boot) {
            request.notOf = blame.asked
        }
        return request
    }
}
