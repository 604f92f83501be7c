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
            split(batch, answer, failure, into: halves(of: answer.apps, batch.header.events))
        } else {
            // A limit of a few bytes would turn the whole queue into dead letters (fault 11).
            giveUp(batch, answer, failure)
        }
    }

    /// 400, 422: bisected to the rejected events. Of an app that has nothing taken, one event is tried and the rest waits beside the others.
    mutating func reject(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        guard batch.header.events > 1, hold == nil || answer.isProbe || options.order != .free else {
            return giveUp(batch, answer, failure)
        }
        answered(isProbe: answer.isProbe && hold?.doubt == nil, at: answer.now)
        let isSampled = options.order == .free && rejections.isHopeless(answer.app) && !isFull(of: .rejected)
        let pieces = halves(of: answer.apps, batch.header.events, isSampled: isSampled)
        split(batch, answer, failure, into: pieces, isSampled: isSampled)
    }

    /// A rejected batch that is not to be split: a dead letter if the destination is seen to take others; set aside if it takes
    /// them, but too many were rejected; else the destination is in doubt.
    mutating func giveUp(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let (number, now) = (answer.number, answer.now)
        var batch = batch
        batch.app = answer.app
        if batch.header.events == 1, hold == nil || answer.isProbe, mayGiveUp(batch) {
            judged(answer, failure)
            return deadLetter(batch, number, failure)
        }
        // What was set aside, and an app of which so many are rejected, says nothing new of the destination.
        let isOld = batch.isSetAside || rejections.isOwnMatter(of: batch.app) && !isFull(of: .rejected)
        guard isProven(batch) || hold == nil && isOld else {
            guard hasAcknowledgedWithSettings, hold == nil, batch.header.events == 1,
                batch.postponements < DestinationMachine.mostPostponements,
                attempts.contains(where: { $0.isSending && $0.batch?.header.id != batch.header.id })
            else { return doubt(batch, answer, failure) }
            // The answers that are on their way tell whether it is this event or all of them.
            batch.postponements += 1
            (batch.rejectedAt, batch.notBefore) = (batch.rejectedAt ?? now.boot, now.boot + .seconds(1))
            return giveBack(batch, number)
        }
        judged(answer, failure)
        // Others go through, and there is no room to keep it beside them.
        if batch.header.events == 1, !batch.isSetAside, isFull(of: .rejected) {
            return deadLetter(batch, number, failure)
        }
        setAside(&batch, events: batch.header.events, failure, at: now)
        giveBack(batch, number)
    }

    private mutating func judged(_ answer: Answer, _ failure: Failure) {
        answered(isProbe: answer.isProbe && endsDoubt(at: answer.now.boot), at: answer.now)
        goOnDoubting(answer, failure)
    }

    /// Whether an event that is rejected again, although others were taken since the first time, ends a doubt: for a while after the first
    /// doubt since anything was taken. After that doubts would begin anew for ever, and nobody would be told.
    private mutating func endsDoubt(at now: BootInstant) -> Bool {
        guard let doubt = hold?.doubt else { return true }
        let first = doubtedSince.flatMap { hasTaken(since: $0) ? nil : $0 } ?? doubt.began
        doubtedSince = first
        return now < first + DestinationMachine.patience
    }

    /// How often an event's end is postponed before the destination is held.
    private static let mostPostponements = 3

    /// Whether what is known of the destination tells that a rejection is the event's fault.
    ///
    /// Of a batch that was split, something must have been taken since its last rejection, of it or of another: a
    /// destination that says no to everything would turn piece after piece into dead letters.
    private func mayGiveUp(_ batch: TrackedBatch) -> Bool {
        guard hasAcknowledgedWithSettings, rejections.tolerates(batch.header.events, of: batch.app) else {
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
        rejections.note(rejected: true, events: batch.header.events, of: batch.header.events, by: batch.app)
        effects.append(.note(name, .deadLettered(batch.header.id, events: batch.header.events, failure)))
        settle(number, Settlement(batch, Array(repeating: .deadLetter(failure), count: batch.header.events)))
    }

    /// In which of two pieces each event goes: parted between apps, so that one's events soon cost the others no requests; one app's, and
    /// in order, in the middle, or behind the first.
    func halves(of apps: [String], _ events: Int, isSampled: Bool = false) -> [Int] {
        let names = Set(apps).sorted()
        let first = Set(options.order == .free ? names.prefix(names.count / 2) : [])
        return (0..<events).map { place in
            (first.isEmpty ? place < (isSampled ? 1 : events / 2) : first.contains(apps[place])) ? 0 : 1
        }
    }

    /// In pieces, by the number of each event's.
    ///
    /// - Parameters:
    ///   - isSampled: only the first piece is tried now.
    ///   - aside: why the pieces wait beside the others, as the batch did.
    mutating func split(
        _ batch: TrackedBatch, _ answer: Answer, _ failure: Failure, into pieces: [Int], isSampled: Bool = false,
        aside: TrackedBatch.Aside? = nil
    ) {
        let (events, now) = (batch.header.events, answer.now)
        let numbers = Set(pieces).sorted()
        let children = numbers.map { number in
            var piece = batch.piece(number, notBefore: now.boot)
            let mine = Set(zip(answer.apps, pieces).lazy.filter { $0.1 == number }.map(\.0))
            piece.app = mine.count == 1 && mine != [""] ? mine.first : nil
            piece.aside = aside
            piece.rejectedAt = now.boot
            if aside == .fails { piece.note(failure, at: now.boot) }
            if isSampled, number == numbers.last { setAside(&piece, events: events - 1, failure, at: now) }
            return piece
        }
        effects.append(.note(name, .split(batch.header.id, events: events, into: numbers.count, failure)))
        settle(answer.number, Settlement(batch, pieces.map { .again(group: $0) }), children: children)
    }
}
