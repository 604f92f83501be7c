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
        /// Whether events that were not offered yet are next.
        var prefersFresh = true
    }

    /// How long attempts follow each other at once before the destination counts as held.
    private static let patience = Duration.seconds(30)
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
        batch.rejectedAt = now.boot
        batch.notBefore = now.boot
        giveBack(batch, answer.number)
        if hold == nil || answer.isProbe && hold?.doubt == nil {
            let isAnnounced = hold != nil
            hold = Hold(
                failure: failure, since: hold?.since ?? now.wall,
                awaitsFirstAcknowledgement: !hasAcknowledgedWithSettings, nextProbe: now.boot,
                doubt: Doubt(began: now.boot, isAnnounced: isAnnounced))
        }
        guard let doubt = hold?.doubt else { return }
        let isOver = doubt.began + DestinationMachine.patience <= now.boot
        guard isOver || !hasUntried(since: doubt.began) else {
            hold?.nextProbe = now.boot
            return
        }
        let wait = min(probeWait(), DestinationMachine.step)
        if answer.isProbe || hold?.nextProbe ?? now.boot <= now.boot { hold?.nextProbe = now.boot + wait }
        guard isOver, !doubt.isAnnounced else { return }
        hold?.doubt?.isAnnounced = true
        effects.append(.note(name, .held(failure, probeIn: wait)))
    }

    /// New events have come: a destination that is held in doubt is offered them soon.
    mutating func offerNew(at now: Moment) {
        guard let doubt = hold?.doubt, let next = hold?.nextProbe else { return }
        let isPatient = doubt.began + DestinationMachine.patience > now.boot
        hold?.nextProbe = min(next, isPatient ? now.boot : now.boot + DestinationMachine.step)
    }

    /// What tells most when it is tried now; nil when all has been tried.
    func untried(in doubt: Doubt) -> Start? {
        // In order, only the rejected event itself is passed by what comes after it.
        if options.order != .free { return firstInOrder(untriedSince: doubt.began) }
        let fresh = freshLane.map { Start.next($0, takesFree: freeToTake($0) > 0, isProbe: true) }
        if let fresh, doubt.prefersFresh { return fresh }
        let known = tracked.values.filter { isUntried($0, since: doubt.began) }.min(by: TrackedBatch.isRested)
        return known.map { Start.again($0.header.id, isProbe: true) } ?? fresh
    }

    /// Whether there is memory for the pieces of another batch, should it be rejected.
    var hasRoomForRejected: Bool {
        tracked.count < DestinationMachine.mostRejected
            || tracked.values.count { $0.rejectedAt != nil && !$0.isSetAside } < DestinationMachine.mostRejected
    }

    /// Whether no more batches may be set aside.
    var isFullOfSetAside: Bool { isFull { _ in true } }

    /// Whether as many batches as may be set aside are, of a kind.
    func isFull(of isMeant: (TrackedBatch) -> Bool) -> Bool {
        tracked.count >= DestinationMachine.mostSetAside
            && tracked.values.count { $0.isSetAside && isMeant($0) } >= DestinationMachine.mostSetAside
    }

    private var freshLane: Priority? {
        guard hasRoomForRejected else { return nil }
        return Priority.inOrder.first { freeToTake($0) > 0 || available($0) > 0 }
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
        freshLane != nil || attempts.contains { $0.batchesToCome > 0 }
            || tracked.values.contains { isUntried($0, since: began) }
    }

    /// Whether the destination took something that it was offered after the batch was last rejected: it is the events' fault then.
    /// What was on its way already proves nothing, the destination may have changed its mind.
    func isProven(_ batch: TrackedBatch) -> Bool {
        guard hasAcknowledgedWithSettings, let tookAt, let rejectedAt = batch.rejectedAt else { return false }
        return tookAt >= rejectedAt
    }

    /// Sets a rejected batch aside that may not be given up, because too many were: it is tried soon, then less and less often.
    mutating func putRejectedAside(_ batch: inout TrackedBatch, _ failure: Failure, at now: Moment) {
        let wait = min(probeWait(), DestinationMachine.step * Double(1 << min(batch.rounds, 10)))
        batch.rounds += 1
        guard batch.isSetAside || !isFullOfSetAside else { return batch.notBefore = now.boot + wait }
        putAside(&batch, failure, later: now.boot + wait, at: now)
    }

    /// The destination took one of the batches that were set aside: it may take the others too.
    mutating func retrySetAside(at now: BootInstant) {
        for (id, batch) in tracked where batch.isSetAside {
            if let last = batch.attemptedAt, last + DestinationMachine.step > now { continue }
            tracked[id]?.notBefore = now
        }
    }

    /// The doubt is over: what was rejected is tried again at once, to end as a dead letter.
    mutating func endDoubt(at now: BootInstant) {
        for (id, batch) in tracked where batch.rejectedAt != nil && !batch.isSetAside { tracked[id]?.notBefore = now }
    }
}
