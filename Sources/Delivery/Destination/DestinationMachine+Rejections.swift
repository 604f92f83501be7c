internal import EventLoops
internal import Model

/// Answers about the events rather than about the destination: split, bisect, give up one by one.
extension DestinationMachine {
    /// 413: in halves until it fits; an event that alone is too large is a dead letter (fault 12).
    mutating func shrink(_ batch: TrackedBatch, _ answer: Answer, wireBytes: Int, _ failure: Failure) {
        // Where larger ones are taken it is not the size of the body, but an event in it.
        if batch.header.bytes > largestTaken {
            ceiling?.refuse(wireBytes: wireBytes, bytes: batch.header.bytes)
            ceiling = ceiling ?? SizeCeiling(refusedWireBytes: wireBytes, bytes: batch.header.bytes)
        }
        if batch.header.events > 1 {
            answered(isProbe: answer.isProbe && hold?.doubt == nil, at: answer.now)
            split(batch, answer, failure, isSuspect: false)
        } else {
            // A limit of a few bytes would turn the whole queue into dead letters (fault 11).
            giveUp(batch, answer, failure)
        }
    }

    /// 400, 422: bisected to the rejected events.
    mutating func reject(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        guard batch.header.events > 1, hold == nil || answer.isProbe || options.order != .free else {
            return giveUp(batch, answer, failure)
        }
        answered(isProbe: answer.isProbe && hold?.doubt == nil, at: answer.now)
        split(batch, answer, failure, isSuspect: batch.isSuspect)
    }

    /// A rejected batch that is not to be split: a dead letter if the destination is seen to take others; set aside if it takes
    /// them, but too many were rejected; else the destination is in doubt.
    private mutating func giveUp(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let (number, now) = (answer.number, answer.now)
        var batch = batch
        if batch.header.events == 1, hold == nil || answer.isProbe, mayGiveUp(batch) {
            answered(isProbe: answer.isProbe, at: now)
            return deadLetter(batch, number, failure)
        }
        if hasAcknowledgedWithSettings, hold == nil, batch.postponements < DestinationMachine.mostPostponements,
            attempts.contains(where: { $0.isSending && $0.batch?.header.id != batch.header.id })
        {
            // The answers that are on their way tell whether it is this event or all of them.
            batch.postponements += 1
            batch.notBefore = now.boot + .seconds(1)
            return giveBack(batch, number)
        }
        guard isProven(batch) else { return doubt(batch, answer, failure) }
        answered(isProbe: answer.isProbe, at: now)
        // Others go through, and there is no room to keep it beside them.
        if batch.header.events == 1, !batch.isSetAside, isFullOfSetAside { return deadLetter(batch, number, failure) }
        putRejectedAside(&batch, failure, at: now)
        giveBack(batch, number)
    }

    /// How often an event's end is postponed before the destination is held.
    private static let mostPostponements = 3

    /// Whether what is known of the destination tells that a rejection is the event's fault.
    ///
    /// Of a batch that was split, something must have been taken since its last rejection, of it or of another: a
    /// destination that says no to everything would turn piece after piece into dead letters.
    private func mayGiveUp(_ batch: TrackedBatch) -> Bool {
        guard hasAcknowledgedWithSettings, rejections.tolerates(batch.header.events, of: batch.header.app) else {
            return false
        }
        return batch.rejectedAt == nil ? rejections.toleratesAlone : isProven(batch)
    }

    /// The destination judged the events: it is there and it reads them.
    mutating func answered(isProbe: Bool, at now: Moment) {
        if isProbe { liftHold(at: now.boot) }
        closeBreaker(at: now)
    }

    mutating func deadLetter(_ batch: TrackedBatch, _ number: UInt64, _ failure: Failure) {
        rejections.note(
            rejected: true, events: batch.header.events, of: batch.header.events, by: batch.header.app)
        effects.append(.note(name, .deadLettered(batch.header.id, events: batch.header.events, failure)))
        let part = Settlement.Part(0..<batch.header.events, .deadLetter(failure))
        settle(number, Settlement(batch: batch.header.id, parts: [part]))
    }

    mutating func split(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure, isSuspect: Bool) {
        let events = batch.header.events
        let parts = [
            Settlement.Part(0..<events / 2, .again(group: 0)), Settlement.Part(events / 2..<events, .again(group: 1)),
        ]
        let children = (0..<2).map { number in
            var piece = batch.piece(number, notBefore: answer.now.boot)
            piece.isSuspect = isSuspect
            piece.rejectedAt = answer.now.boot
            return piece
        }
        effects.append(.note(name, .split(batch.header.id, events: events, into: 2, failure)))
        settle(answer.number, Settlement(batch: batch.header.id, parts: parts), children: children)
    }
}
