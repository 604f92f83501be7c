internal import EventLoops
internal import Model

/// What can be tried in a doubt, when nothing shows whether rejected events or the destination are at fault:
/// events that were not offered yet, and pieces of rejected batches that were not tried since it began.
struct Untried: Sendable {
    let backlog: Backlog
    let kept: Kept
    /// Lane of the last new event; the other lane is next, since all events of one lane may be bad.
    let lane: Priority?
    /// Whether a rejected batch or a piece of one is next.
    let prefersPieces: Bool
    /// Whether requests fail, so that one is in flight at a time.
    let isTroubled: Bool

    init(_ backlog: Backlog, _ kept: Kept, _ standing: Standing, _ turns: Turns) {
        self.backlog = backlog
        self.kept = kept
        lane = standing.hold?.doubt?.lane
        prefersPieces = turns.prefersPieces
        isTroubled = standing.trouble != nil
    }

    /// The most informative attempt now; nil if everything was tried in this doubt.
    func next(in doubt: Doubt) -> Start? {
        // With a promised order, only the rejected event itself may be passed by what comes after it.
        if backlog.options.order == .promised { return firstInOrder(untriedSince: doubt.began) }
        if !prefersPieces, let new = fresh(isFree: false, exchanges: doubt.isAnnounced) { return new }
        // Take the apps in turn: all events of one app may be bad.
        let known = kept.nextInTurn(isSetAside: false) { $0.isUntried(since: doubt.began) }
        return known.map { .again($0.id, isProbe: true) } ?? fresh(isFree: true, exchanges: doubt.isAnnounced)
            ?? fresh(isFree: false, exchanges: doubt.isAnnounced)
    }

    /// Whether anything is left that was not tried since the doubt began.
    func isLeft(since began: BootInstant) -> Bool {
        (fresh(isFree: true) ?? fresh(isFree: false)) != nil || backlog.attempts.coming > 0
            || kept.contains { $0.isUntried(since: began) }
    }

    /// An attempt with events that were not offered yet: new ones, or a free batch.
    ///
    /// - Parameters:
    ///   - isFree: whether a free batch is wanted rather than new events.
    ///   - exchanges: whether a rejected batch that was tried in this doubt may give up its place in memory,
    ///     if memory is full of them.
    private func fresh(isFree: Bool, exchanges: Bool = false) -> Start? {
        guard exchanges || kept.hasRoomForRejected else { return nil }
        let lanes = isFree ? Priority.inOrder.filter { backlog.freeToTake($0) > 0 } : backlog.lanesWithNew
        return (lanes.first { isFree || $0 != lane } ?? lanes.first)
            .map { .next($0, takesFree: isFree, isProbe: true) }
    }

    /// A batch that is first in its lane, from the lane whose first batch was attempted longer ago.
    ///
    /// - Parameter untriedSince: beginning of a doubt; batches rejected since then are passed.
    func firstInOrder(untriedSince began: BootInstant? = nil) -> Start? {
        let firsts = Priority.inOrder.compactMap { priority -> (start: Start, at: Int64)? in
            guard backlog.hasPlace(priority, isTroubled: isTroubled) else { return nil }
            let first = kept.oldest(priority) { card in began.map { !card.mayBePassed(since: $0) } ?? true }
            if let first {
                return (.again(first.id, isProbe: true), first.attemptedAt?.nanoseconds ?? .min)
            }
            let takesFree = backlog.freeToTake(priority) > 0
            guard kept.hasRoomForRejected, takesFree || backlog.available(priority) > 0 else { return nil }
            return (.next(priority, takesFree: takesFree, isProbe: true), .min)
        }
        return firsts.min { $0.at < $1.at }?.start
    }
}
