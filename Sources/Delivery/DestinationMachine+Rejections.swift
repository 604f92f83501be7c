internal import EventLoops
internal import Model

/// Answers about the events rather than about the destination: split, bisect, give up one by one.
extension DestinationMachine {
    /// 413: in halves until it fits; an event that alone is too large is a dead letter (fault 12).
    mutating func shrink(
        _ batch: TrackedBatch, _ number: UInt64, wireBytes: Int, _ failure: Failure, isProbe: Bool, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        if ceiling == nil {
            ceiling = SizeCeiling(refusedWireBytes: wireBytes, bytes: batch.header.bytes)
        } else {
            ceiling?.refuse(wireBytes: wireBytes, bytes: batch.header.bytes)
        }
        if batch.header.events > 1 {
            answered(isProbe: isProbe, at: now)
            split(batch, number, failure, isSuspect: false, at: now)
        } else if rejections.isTolerable {
            answered(isProbe: isProbe, at: now)
            deadLetter(batch, number, failure)
        } else {
            // A limit of a few bytes would turn the whole queue into dead letters (fault 11).
            var copy = batch
            becomeHeld(failure, by: &copy, isProbe: isProbe, at: now, using: &random)
            giveBack(copy, number)
        }
    }

    /// 400, 422: bisected to the rejected events, but only while the destination takes most of what it gets (fault 11).
    mutating func reject(
        _ batch: TrackedBatch, _ number: UInt64, _ failure: Failure, isProbe: Bool, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        guard hasAcknowledgedWithSettings, rejections.isTolerable, hold == nil || isProbe else {
            var copy = batch
            becomeHeld(
                failure, by: &copy, isProbe: isProbe, awaitsFirst: !hasAcknowledgedWithSettings, at: now, using: &random
            )
            giveBack(copy, number)
            return
        }
        answered(isProbe: isProbe, at: now)
        if batch.header.events > 1 {
            split(batch, number, failure, isSuspect: batch.isSuspect, at: now)
        } else {
            deadLetter(batch, number, failure)
        }
    }

    /// The destination judged the events: it is there and it reads them.
    mutating func answered(isProbe: Bool, at now: Moment) {
        if isProbe { liftHold() }
        closeBreaker(at: now)
    }

    mutating func deadLetter(_ batch: TrackedBatch, _ number: UInt64, _ failure: Failure) {
        rejections.note(rejected: true, events: batch.header.events)
        noteDeadLetters(batch, events: batch.header.events, failure)
        let part = Settlement.Part(0..<batch.header.events, .deadLetter(failure))
        settle(number, Settlement(batch: batch.header.id, parts: [part]), end: .good)
    }

    mutating func noteDeadLetters(_ batch: TrackedBatch, events: Int, _ failure: Failure) {
        counters.deadLettered += events
        effects.append(.note(name, .deadLettered(batch.header.id, events: events, failure)))
    }

    mutating func split(
        _ batch: TrackedBatch, _ number: UInt64, _ failure: Failure, isSuspect: Bool, at now: Moment
    ) {
        let events = batch.header.events
        let parts = [
            Settlement.Part(0..<events / 2, .again(group: 0)), Settlement.Part(events / 2..<events, .again(group: 1)),
        ]
        let child = Attempt.Child(notBefore: now.boot, isSuspect: isSuspect, holds: batch.holds)
        counters.splits += 1
        effects.append(.note(name, .split(batch.header.id, events: events, into: 2, failure)))
        settle(
            number, Settlement(batch: batch.header.id, parts: parts), children: [child, child], end: .good)
    }
}
