internal import EventLoops
internal import Model

/// Events are rejected, and nothing tells yet whether it is they or the destination that is wrong.
///
/// Then what is likely to pass is tried, one at a time: events that were not offered yet, in turn with untried pieces of what was
/// rejected. One acknowledgement proves that the events are at fault, and they are given up; a destination that rejects all that it is
/// offered is held, and its events are kept.
extension DestinationMachine {
    /// What is being found out.
    struct Doubt: Sendable, Equatable {
        /// What was attempted before this point is tried again only when nothing else is left.
        let began: BootInstant
        /// Whether somebody was told that the destination is held.
        var isAnnounced = false
        /// Whether the new event that was asked for last was to be of an app of which none was rejected.
        var looksElsewhere = false
        /// The lane in which that was asked for last; nil once all lanes had their turn.
        var laneElsewhere: Priority?
        /// The lane of the last new event of whatever app.
        var lane: Priority?
    }

    /// How long attempts follow each other at once before the destination counts as held.
    static let patience = Duration.seconds(30)
    /// How long it waits at most between two attempts from then on.
    static let step = Duration.seconds(10)
    /// How many pieces of what was rejected may wait to be tried: each is kept in memory.
    private static let mostRejected = 1000
    /// How many batches may be set aside: each is kept in memory.
    private static let mostSetAside = 1000

    /// A batch was rejected, and nothing tells why: it waits, and others are tried.
    mutating func doubt(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let now = answer.now
        var batch = batch
        (batch.rejectedAt, batch.notBefore) = (now.boot, now.boot)
        giveBack(batch, answer.number)
        if hold == nil || answer.isProbe && hold?.doubt == nil {
            hold = Hold(
                failure: failure, since: hold?.since ?? now.wall, nextProbe: now.boot,
                doubt: Doubt(began: now.boot, isAnnounced: hold != nil))
        }
        goOnDoubting(answer, failure)
    }

    /// Something was rejected that does not end the doubt: when the next attempt is, and whether the destination counts as held by now.
    mutating func goOnDoubting(_ answer: Answer, _ failure: Failure) {
        let now = answer.now
        guard let doubt = hold?.doubt else { return }
        let isOver = doubt.began + DestinationMachine.patience <= now.boot
        let isPatient = !isOver && hasUntried(since: doubt.began)
        let wait = isPatient ? .zero : min(probeWait(), DestinationMachine.step)
        if isPatient || answer.isProbe || hold?.nextProbe ?? now.boot <= now.boot { hold?.nextProbe = now.boot + wait }
        guard isOver, !doubt.isAnnounced else { return }
        hold?.doubt?.isAnnounced = true
        effects.append(.note(name, .held(failure, probeIn: wait)))
    }

    /// New events have come: a destination that is held in doubt is offered them soon.
    mutating func offerNew(at now: Moment) {
        if asksMore { lookAt = lookAt ?? now.boot + DestinationMachine.step }
        guard let doubt = hold?.doubt, let next = hold?.nextProbe else { return }
        let isPatient = doubt.began + DestinationMachine.patience > now.boot
        hold?.nextProbe = min(next, isPatient ? now.boot : now.boot + DestinationMachine.step)
    }

    /// What tells most when it is tried now; nil when all has been tried.
    func untried(in doubt: Doubt) -> Start? {
        // In order, only the rejected event itself is passed by what comes after it.
        if options.order != .free { return firstInOrder(untriedSince: doubt.began) }
        if !prefersPieces, let new = fresh(isFree: false, exchanges: doubt.isAnnounced) { return new }
        // One app after another: of one, all may be bad.
        let last = tracked.values.max(by: TrackedBatch.isRested)?.app ?? ""
        let known = tracked.values.filter { isUntried($0, since: doubt.began) }.min {
            let (left, right) = ($0.app ?? "", $1.app ?? "")
            return left == right
                ? TrackedBatch.isRested($0, $1) : (left <= last ? 1 : 0, left) < (right <= last ? 1 : 0, right)
        }
        return known.map { .again($0.header.id, isProbe: true) } ?? fresh(isFree: true, exchanges: doubt.isAnnounced)
            ?? fresh(isFree: false, exchanges: doubt.isAnnounced)
    }

    /// What was not offered yet: new events, or a batch that is free since a restart.
    ///
    /// - Parameter exchanges: where as many were rejected as are kept in memory, one that was tried gives its place to it.
    private func fresh(isFree: Bool, exchanges: Bool = false) -> Start? {
        guard exchanges || hasRoomForRejected else { return nil }
        let lanes = Priority.inOrder.filter { isFree ? freeToTake($0) > 0 : available($0) > 0 }
        // The lanes take turns: of one, all may be bad.
        return (lanes.first { isFree || $0 != hold?.doubt?.lane } ?? lanes.first)
            .map { .next($0, takesFree: isFree, isProbe: true) }
    }

    /// Whether batches that are free since a restart take turns with what was not offered yet: they may be what was set aside before.
    var suspectsFree: Bool {
        options.order == .free && (hold?.doubt != nil || rejections.rejected > 0 || !suspects.isEmpty)
    }

    /// Whether there is memory for the pieces of another batch, should it be rejected.
    var hasRoomForRejected: Bool {
        tracked.count < DestinationMachine.mostRejected
            || tracked.values.count { $0.rejectedAt != nil && !$0.isSetAside } < DestinationMachine.mostRejected
    }

    /// Makes room for one more rejected batch: one that was tried in this doubt, and rested longest, is free again, as after a restart. It
    /// comes when all else was offered.
    mutating func exchangeRejected() {
        guard options.order == .free, let began = hold?.doubt?.began else { return }
        func isTried(_ batch: TrackedBatch) -> Bool {
            batch.rejectedAt != nil && !batch.isSetAside && !batch.mayBeTaken && !isUntried(batch, since: began)
        }
        while !hasRoomForRejected, let tried = tracked.values.filter(isTried).min(by: TrackedBatch.isRested) {
            tracked[tried.header.id] = nil
        }
    }

    /// Where a new probe is of another app, every other time, the lanes in turn: the lane, and the apps that it passes over because some of
    /// their events were rejected.
    mutating func lookElsewhere() -> (lane: Priority, notOf: Set<String>)? {
        guard options.order == .free, let doubt = hold?.doubt, doubt.isAnnounced else { return nil }
        hold?.doubt?.looksElsewhere = !doubt.looksElsewhere
        guard !doubt.looksElsewhere, let lane = nextLane ?? Priority.inOrder.first(where: { available($0) > 0 })
        else { return nil }
        hold?.doubt?.laneElsewhere = lane
        return (lane, Set(tracked.values.filter { $0.rejectedAt != nil }.compactMap(\.app)))
    }

    /// The lane with new events after the one in which another app's was asked for last.
    private var nextLane: Priority? {
        let last = hold?.doubt?.laneElsewhere
        return Priority.inOrder.first { priority in available(priority) > 0 && last.map { priority < $0 } ?? true }
    }

    /// There was no other app's new event in the lane: the next one is asked in, or, after the last, for what is next in line.
    mutating func foundNoOther(at now: Moment) {
        let isLast = nextLane == nil
        hold?.doubt?.looksElsewhere = isLast
        if isLast { hold?.doubt?.laneElsewhere = nil }
        prefersPieces = false
        hold?.nextProbe = now.boot
    }

    /// Whether as many batches as may be set aside for a reason are.
    func isFull(of aside: TrackedBatch.Aside) -> Bool {
        tracked.values.count { $0.aside == aside } >= DestinationMachine.mostSetAside
    }

    /// Whether what comes after a batch may go before it in a doubt: where the order is promised, only if it is an event that was rejected.
    func mayBePassed(_ batch: TrackedBatch, since began: BootInstant) -> Bool {
        if options.order == .kept { return !isUntried(batch, since: began) }
        guard batch.header.events == 1, let rejectedAt = batch.rejectedAt, let attemptedAt = batch.attemptedAt
        else { return false }
        return attemptedAt >= began && rejectedAt >= attemptedAt
    }

    private func isUntried(_ batch: TrackedBatch, since began: BootInstant) -> Bool {
        !batch.isSetAside && batch.attemptedAt.map { $0 < began } ?? true
    }

    private func hasUntried(since began: BootInstant) -> Bool {
        (fresh(isFree: true) ?? fresh(isFree: false)) != nil || attempts.contains { $0.batchesToCome > 0 }
            || tracked.values.contains { isUntried($0, since: began) }
    }

    /// Whether the destination took something that it was offered after the batch was last rejected: it is the events' fault then.
    /// What was on its way already proves nothing, the destination may have changed its mind.
    func isProven(_ batch: TrackedBatch) -> Bool {
        batch.rejectedAt.map(hasTaken) ?? false
    }

    /// Whether it took something that it was offered since.
    func hasTaken(since point: BootInstant) -> Bool { tookAt.map { $0 >= point } ?? false }

    /// Sets events of a rejected batch aside that may not be given up, because too many were.
    mutating func setAside(_ batch: inout TrackedBatch, events: Int, _ failure: Failure, at now: Moment) {
        if !batch.isSetAside { noteSetAside(batch, events: events, failure) }
        // One of an app's every ten seconds, each after a probe interval at the latest.
        let waiting = tracked.values.filter { [app = batch.app] in $0.aside == .rejected && $0.app == app }
        let turn = max(waiting.map(\.notBefore).max() ?? now.boot, now.boot) + DestinationMachine.step
        (batch.aside, batch.rejectedAt) = (.rejected, now.boot)
        batch.notBefore = min(turn, now.boot + probeWait())
    }

    mutating func noteSetAside(_ batch: TrackedBatch, events: Int, _ failure: Failure) {
        rejections.noteKept(events, of: batch.app)
        effects.append(.note(name, .setAside(batch.header.id, events: events, failure, app: batch.app)))
    }

    /// The destination takes what is set aside, of an app or all, as an answer or a person says: it is tried now, after a rest.
    mutating func retrySetAside(
        of app: String?, after rest: Duration = .zero, at now: BootInstant,
        where isMeant: (TrackedBatch) -> Bool = { _ in true }
    ) {
        rejections.forgive(app)
        for (id, batch) in tracked where batch.isSetAside && (app == nil || app == batch.app) && isMeant(batch) {
            let rested = batch.attemptedAt.map { $0 + rest } ?? now
            tracked[id]?.notBefore = min(batch.notBefore, max(rested, now))
            tracked[id]?.isTriedAgain = rest > .zero
        }
    }
}
