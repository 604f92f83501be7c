internal import EventLoops
internal import Model

/// Answers about events rather than about the destination: batches are split until the rejected events are
/// alone, and those are given up one by one.
extension DestinationMachine {
    /// 413: halves the batch until it fits. A single event that is too large is judged like a rejected one.
    mutating func shrink(_ batch: TrackedBatch, _ answer: Answer, wireBytes: Int, _ failure: Failure) {
        // If larger batches are accepted, the cause is not the size of the body but an event in it.
        if batch.header.bytes > blame.acknowledged.largestBytes {
            changeCeiling { ceiling in
                ceiling?.refuse(wireBytes: wireBytes, bytes: batch.header.bytes)
                ceiling = ceiling ?? SizeCeiling(refusedWireBytes: wireBytes, bytes: batch.header.bytes)
            }
        }
        if batch.header.events > 1 {
            answered(isProbe: answer.isProbe && hold?.doubt == nil, at: answer.now)
            split(batch, answer, failure, into: halves(of: answer.apps, batch.header.events))
        } else {
            // Judged, not given up at once: a receiver with a limit of a few bytes would turn the whole queue
            // into dead letters.
            giveUp(batch, answer, failure)
        }
    }

    /// 429 for the second time: the batch may exceed the burst of the receiver's rate limiter, and would be
    /// refused however long it waits. Halves it, and makes later batches smaller.
    ///
    /// Only batches larger than any accepted lately are halved: for others, load is the cause. With an order
    /// no smaller batch can pass, so the first half is the test.
    /// - Returns: whether the batch was halved.
    mutating func cutIfTooMuch(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) -> Bool {
        guard failure.status == 429, batch.header.events > 1, !batch.mayBeTaken, !batch.isSetAside,
            batch.failedAt != nil || !batch.place.isWhole
        else { return false }
        let othersWentThrough = blame.othersWentThrough(since: batch)
        let isLarger = batch.header.bytes > blame.acknowledged.largestBytes
        guard options.order != .free || othersWentThrough && isLarger else { return false }
        changeCeiling { ceiling in
            let bytes = batch.header.bytes
            ceiling?.refuse(wireBytes: bytes, bytes: bytes)
            ceiling = ceiling ?? SizeCeiling(refusedWireBytes: bytes, bytes: bytes)
        }
        split(batch, answer, failure, into: halves(of: [], batch.header.events), isRejected: false)
        return true
    }

    /// A batch took longer than a request may, and is larger than any accepted lately: later batches are at
    /// most half its size.
    mutating func learnSlow(_ batch: TrackedBatch) {
        guard batch.header.events > 1, batch.header.bytes > blame.acknowledged.largestBytes else { return }
        let bytes = max(1, batch.header.bytes / 2)
        changeCeiling { ceiling in
            ceiling?.refuse(wireBytes: bytes, bytes: bytes)
            ceiling = ceiling ?? SizeCeiling(refusedWireBytes: bytes, bytes: bytes)
        }
    }

    /// Halves a batch after its second own time-out, if the receiver does not recognise repeats: each further
    /// attempt could store it once more. Otherwise the batch keeps its id and gets more time (`timeFactor`).
    ///
    /// - Returns: whether the batch was halved.
    mutating func cutIfTooSlow(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) -> Bool {
        guard failure.kind == .timeout, !options.recognisesRepeats, batch.history.timeouts > 1,
            batch.header.events > 1
        else { return false }
        let pieces = halves(of: answer.apps, batch.header.events)
        split(batch, answer, failure, into: pieces, isRejected: false, aside: batch.aside)
        return true
    }

    /// 400, 422: cuts the batch until the rejected events are alone. If nothing of an app is accepted, one
    /// event is tried and the rest is set aside.
    mutating func reject(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        guard batch.header.events > 1, hold == nil || answer.isProbe || options.order == .promised else {
            return giveUp(batch, answer, failure)
        }
        answered(isProbe: answer.isProbe && hold?.doubt == nil, at: answer.now)
        let isHopeless = blame.rejections.isHopeless(answer.app)
        let isSampled = options.order == .free && isHopeless && !isFull(of: .rejected)
        let pieces =
            isSampled ? halves(of: answer.apps, batch.header.events, isSampled: true) : cut(batch, answer)
        split(batch, answer, failure, into: pieces, isSampled: isSampled)
    }

    /// Treats a rejected batch that is not split, by the verdict of `Blame`.
    mutating func giveUp(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let (number, now) = (answer.number, answer.now)
        var batch = batch
        batch.app = answer.app
        // Other attempts than this one.
        let hasOthers = attempts.counts.sending > 1
        let facts = facts(isProbe: answer.isProbe, hasOthersOnTheirWay: hasOthers, aside: .rejected)
        switch blame.judgeRefused(batch, facts) {
        case .deadLetter:
            judged(answer, failure)
            deadLetter(batch, number, failure)
        case .awaitProof:
            awaitProof(of: batch, number, failure, at: now.boot)
        case .doubt:
            doubt(batch, answer, failure)
        case .setAside, .halve, .none:
            judged(answer, failure)
            setAside(&batch, events: batch.header.events, failure, at: now)
            giveBack(batch, number)
        }
    }

    /// The parts of this machine's state that matter for a verdict.
    func facts(isProbe: Bool, hasOthersOnTheirWay: Bool, aside: TrackedBatch.Aside) -> Blame.Facts {
        Blame.Facts(
            isProbe: isProbe, isHeld: hold != nil, isInDoubt: hold?.doubt != nil, isBroken: breaker != nil,
            hasOthersOnTheirWay: hasOthersOnTheirWay, isFull: isFull(of: aside))
    }

    /// Keeps a rejected event until answers in flight show whether it or the destination is at fault.
    /// Otherwise it would be sent once more to be judged.
    private mutating func awaitProof(
        of batch: TrackedBatch, _ number: UInt64, _ failure: Failure, at now: BootInstant
    ) {
        var batch = batch
        batch.postponements += 1
        let until = now + DestinationMachine.proofWait
        batch.rejectedAt = batch.rejectedAt ?? now
        batch.notBefore = until
        // With a promised order nothing may pass the event meanwhile, so no proof can come: give the batch
        // back.
        guard options.order != .promised, attempts.counts.unproven < DestinationMachine.mostUnproven
        else { return giveBack(batch, number) }
        let unproven = Attempt.Unproven(batch: batch, failure: failure, until: until)
        attempts.update(number) { $0.awaitProof(unproven) }
    }

    /// Something was acknowledged: judges the events that were rejected before it was sent.
    mutating func judgeUnproven(at now: Moment) {
        guard hold == nil, !pushing.isStopping else { return }
        for number in attempts.numbers(where: { $0.isUnproven && !$0.isForgotten }) {
            guard let attempt = attempts[number], let unproven = attempt.unproven,
                blame.isProven(unproven.batch)
            else { continue }
            let apps = unproven.batch.app.map { [$0] } ?? []
            let answer = Answer(number: number, isProbe: attempt.isProbe, apps: apps, now: now)
            giveUp(unproven.batch, answer, unproven.failure)
            if attempt.isPushed, !attempts.contains(number) {
                endPush(after: unproven.failure)
            }
        }
    }

    /// Gives back rejected events for which no proof came in time; they are sent once more.
    mutating func returnUnproven(at now: BootInstant) {
        for number in attempts.numbers(where: { $0.isUnproven }) {
            guard let attempt = attempts[number], let unproven = attempt.unproven,
                pushing.isStopping || attempt.isForgotten || unproven.until <= now
            else { continue }
            guard !attempt.isForgotten else {
                attempts.end(number)
                effects.append(.release(unproven.batch.header.id))
                continue
            }
            giveBack(unproven.batch, number)
            if attempt.isPushed {
                endPush(after: unproven.failure)
            }
        }
    }

    /// The destination has judged events: its breaker closes, and a doubt ends or goes on.
    private mutating func judged(_ answer: Answer, _ failure: Failure) {
        let isOver = answer.isProbe && blame.endsDoubt(hold?.doubt, at: answer.now.boot)
        answered(isProbe: isOver, at: answer.now)
        goOnDoubting(answer, failure)
    }

    /// How long a rejected event waits for proof. After that it is sent once more.
    private static let proofWait = Duration.seconds(1)
    /// Most events that wait for proof. All attempts are scanned for each request, so more of them would slow
    /// every request down.
    private static let mostUnproven = 16

    /// The destination has judged events, so it is reachable and reads requests: closes the breaker; a probe
    /// also lifts the hold.
    mutating func answered(isProbe: Bool, at now: Moment) {
        if isProbe {
            liftHold(at: now.boot)
        }
        closeBreaker(at: now)
    }

    /// Gives all events of a batch up as dead letters.
    mutating func deadLetter(_ batch: TrackedBatch, _ number: UInt64, _ failure: Failure) {
        blame.noteGivenUp(batch.header.events, of: batch.header.events, app: batch.app)
        if !batch.isSetAside, failure.kind != .local {
            blame.noteRefused(batch.header.events, app: batch.app)
        }
        effects.append(.note(name, .deadLettered(batch.header.id, events: batch.header.events, failure)))
        settle(number, Settlement(batch, Array(repeating: .deadLetter(failure), count: batch.header.events)))
    }

    /// Number of the piece for each event of a rejected batch. Pieces hold events of one app; with an order
    /// they are runs of neighbours.
    private func cut(_ batch: TrackedBatch, _ answer: Answer) -> [Int] {
        let isFree = options.order == .free
        let pieces = Cut.pieces(
            of: batch.header.events, apps: isFree ? answer.apps : [], isPiece: !batch.place.isWhole,
            hopeless: Set(answer.apps).filter { blame.rejections.isHopeless($0) }
        ) { blame.shares.share(of: isFree ? $0 ?? answer.app : nil) }
        // One piece with all events would be the same request again.
        return Set(pieces).count > 1 ? pieces : halves(of: answer.apps, batch.header.events)
    }

    /// Number of the half, 0 or 1, for each event. Halves are parted between apps, so that one app's events
    /// soon cost the others no requests. A single app, or a lane with an order, is cut in the middle.
    ///
    /// - Parameter isSampled: whether the first half is a single event.
    func halves(of apps: [String], _ events: Int, isSampled: Bool = false) -> [Int] {
        let names = Set(apps).sorted()
        let first = Set(options.order == .free ? names.prefix(names.count / 2) : [])
        return (0..<events).map { place in
            (first.isEmpty ? place < (isSampled ? 1 : events / 2) : first.contains(apps[place])) ? 0 : 1
        }
    }

    /// Replaces a batch by pieces, which get ids of their own.
    ///
    /// - Parameters:
    ///   - pieces: the number of the piece for each event.
    ///   - isSampled: whether only the first piece is tried now; the last one is set aside.
    ///   - isRejected: whether the answer was about the events, so that the pieces count as rejected.
    ///   - aside: why the pieces wait beside the others, as the batch did.
    mutating func split(
        _ batch: TrackedBatch, _ answer: Answer, _ failure: Failure, into pieces: [Int],
        isSampled: Bool = false,
        isRejected: Bool = true, aside: TrackedBatch.Aside? = nil
    ) {
        let (events, now) = (batch.header.events, answer.now)
        let numbers = Set(pieces).sorted()
        let children = numbers.map { number in
            var piece = batch.piece(number, notBefore: now.boot)
            let mine = Set(zip(answer.apps, pieces).lazy.filter { $0.1 == number }.map(\.0))
            piece.app = mine.count == 1 && mine != [""] ? mine.first : nil
            piece.aside = aside
            if isRejected {
                piece.rejectedAt = now.boot
            }
            if aside == .fails {
                piece.note(failure, at: now.boot)
            }
            if isSampled, number == numbers.last {
                setAside(&piece, events: events - 1, failure, at: now)
            }
            return piece
        }
        effects.append(.note(name, .split(batch.header.id, events: events, into: numbers.count, failure)))
        settle(answer.number, Settlement(batch, pieces.map { .again(group: $0) }), children: children)
    }
}
