internal import EventLoops
internal import Model

// Answers of the destination: good ones, failures that pass, and refusals of the whole request. Answers about
// single events are judged here, too: `Blame` says whose fault a refusal is.
extension DestinationMachine {
    /// When a destination is tried again after its sender found no route. Commands and, if it runs, the
    /// network monitor end the wait earlier.
    private static let offlineRecheck = Duration.seconds(30)

    /// The destination has answered an attempt.
    ///
    /// An answer to an attempt that was cut or is unknown is ignored: its batch is back in the queue.
    mutating func sent(_ number: UInt64, _ outcome: Outcome, _ apps: [String], at now: Moment) {
        guard let attempt = attempts[number], case .sending(let sent) = attempt.phase else { return }
        var batch = sent.content
        let whose = apps.count == batch.header.events ? apps : []
        let answer = Answer(number: number, isProbe: attempt.isProbe, apps: whose, now: now)
        if attempt.isBegunAgain {
            batch.failures = 0
        }
        counters.note(outcome)
        var failure = outcome.failure
        if let failure {
            standing.note(failure, at: now.wall)
            if failure.leavesOpen {
                batch.mayBeTaken = true
            }
        }
        // Also while the agent stops, and after collection was disabled: the next start must know of it.
        if case .retryAfter(let wait, let failure) = outcome {
            waitAsTold(wait, failure, at: now)
        }
        if attempt.isForgotten {
            attempts.end(number)
            emit(.release(batch.header.id))
            return
        }
        switch outcome {
        case .acknowledged:
            acknowledge(batch, answer)
            return judgeUnproven(at: now)
        case .acknowledgedWithLoss(let rejected, let failure):
            counters.unnamedRejections += rejected
            counters.lastUnnamedRejection = failure
            emit(.note(name, .rejectedUnnamed(batch.header.id, events: rejected, failure)))
            acknowledge(batch, answer)
            return judgeUnproven(at: now)
        case .partial(let rejected, let retry):
            let partial = PartialAnswer(events: batch.header.events, rejected: rejected, retry: retry)
            guard !pushing.isStopping || !partial.acknowledged.isEmpty else { fallthrough }
            failure = settlePartly(&batch, answer, partial)
        // During a stop only acknowledgements count: splits and waits would be forgotten with the process.
        case _ where pushing.isStopping:
            giveBack(batch, number)
        case .retry(let failure):
            fail(&batch, answer, failure)
        case .retryAfter(_, let failure):
            guard !blame.isTooMuch(batch, failure, options.order) else {
                halveLarge(batch, answer, failure)
                break
            }
            batch.note(failure, at: now.boot)
            batch.noteFailedTurn(isInDoubt: hold?.doubt != nil)
            giveBack(batch, number)
        case .tooLarge(let wireBytes, let failure):
            shrink(batch, answer, wireBytes: wireBytes, failure)
        case .rejected(let failure):
            giveUp(batch, answer, failure, .refused)
        case .held where attempt.isBegunAgain:
            // The request may have carried the credentials from before a change.
            batch.notBefore = now.boot
            giveBack(batch, number)
        case .held(let failure):
            batch.noteFailedTurn(isInDoubt: hold?.doubt != nil)
            guard !failsAlone(batch, answer, failure) else { break }
            becomeHeld(failure, by: &batch, isProbe: attempt.isProbe, at: now)
            if attempt.isProbe || !part(batch, answer, failure) {
                giveBack(batch, number)
            }
        case .offline:
            standing.noteNoRoute(until: now.boot + DestinationMachine.offlineRecheck)
            if attempt.isProbe {
                postponeProbes(at: now)
            }
            giveBack(batch, number)
        }
        judgeUnproven(at: now)
        // A person who says that the destination has recovered means the batches in flight too.
        if attempt.isBegunAgain {
            kept.updateAll(where: { $0.id == batch.header.id && $0.isSetAside }) { $0.notBefore = now.boot }
        }
        guard attempt.isPushed, !attempts.contains(number) else { return }
        endPush(after: failure)
    }

    // MARK: Good answers

    /// The destination has accepted the whole batch.
    private mutating func acknowledge(_ batch: TrackedBatch, _ answer: Answer) {
        noteTaken(Array(0..<batch.header.events), of: batch, answer)
        settle(answer.number, .acknowledged(batch.header))
    }

    /// The destination has accepted the events at some positions of a batch: what that proves, and what it
    /// ends.
    private mutating func noteTaken(_ places: [Int], of batch: TrackedBatch, _ answer: Answer) {
        let events = places.count
        let now = answer.now
        let began = batch.attemptedAt ?? now.boot
        if batch.history.timeouts > 0 {
            learn { $0.noteTooSlow(batch) }
        }
        for app in Set(places.compactMap(answer.app(of:))) {
            // The app was offered after others of its events were rejected; the cause may be gone.
            blame.forgive(app)
            kept.sampleAside(of: app, rejectedUntil: began, at: now.boot)
        }
        if batch.isSetAside {
            blame.forgive(batch.app)
            kept.retryAside(of: batch.app, after: Doubt.step, at: now.boot)
        }
        let app = batch.app ?? answer.app
        let isFirst = learn { $0.noteAccepted(events, of: batch, app: app, at: now) }
        if isFirst {
            emit(.persist(SwitchName.acknowledged(name), options.fingerprint))
        }
        // Only an attempt that began after the hold (a probe) proves that its cause is gone. Before the first
        // acknowledgement with these settings, any good answer proves that they are right.
        if answer.isProbe || isFirst && hold?.doubt != nil {
            liftHold(at: now.boot)
        }
        let failures = standing.recover()
        if failures > 0 {
            if breaker == nil {
                emit(.note(name, .recovered(failures: failures)))
            }
            // Batches that waited for the next acknowledgement are sent now. Otherwise the oldest events of
            // an outage would arrive up to 20 minutes after newer ones.
            kept.updateAll(where: { $0.waitsForDestination && !$0.isSetAside }) { $0.notBefore = now.boot }
        }
        clear(answer.app, at: now.boot)
        closeBreaker(at: now)
        // Count events that were acknowledged after their deadline. Reading the batch is worth it only if its
        // earliest event is late.
        for deadline in options.deadlines {
            let before = deadline.lateBefore(at: now.wall)
            guard batch.header.firstEventTime < before else { continue }
            emit(.countLate(attemptID(answer.number), deadline, before: before, atMost: events))
        }
    }

    /// The answer names events: accepted ones are settled, rejected ones are judged by app, the rest is sent
    /// again.
    ///
    /// - Returns: why the whole batch stays; nil if it was settled.
    private mutating func settlePartly(
        _ batch: inout TrackedBatch, _ answer: Answer, _ partial: PartialAnswer
    ) -> Failure? {
        var partial = partial
        let taken = partial.acknowledged
        if !taken.isEmpty {
            noteTaken(taken, of: batch, answer)
        }
        let isFull = kept.isFull(of: .rejected)
        switch blame.scope(of: partial, batch, apps: answer.apps, app: answer.app, isFull: isFull) {
        case .events: break
        case .rejectsBatch(let failure):
            giveUp(batch, answer, failure, .named)
            return failure
        case .wantsAllAgain(let failure):
            fail(&batch, answer, failure)
            return failure
        }
        // During a stop nothing is judged: what is rejected is sent again by the next run.
        let judged = pushing.isStopping ? [] : partial.open
        if pushing.isStopping {
            partial.keep(partial.open, group: 0)
        }
        let again = partial.piecesAgain(of: batch, options, using: &random, at: answer.now.boot)
        let children = again + keepRejected(judged, of: batch, answer, in: &partial, after: again.count)
        noteGivenUp(partial.givenUp, of: batch, answer)
        settle(answer.number, Settlement(batch, partial.fates), children: children)
        return nil
    }

    /// Judges events that an answer rejects by name, app by app, and sets aside those that may not be given
    /// up.
    ///
    /// - Parameter first: number of the first piece that is made of them.
    /// - Returns: what is remembered of the pieces, one for each app.
    private mutating func keepRejected(
        _ judged: [RejectedEvent], of batch: TrackedBatch, _ answer: Answer, in partial: inout PartialAnswer,
        after first: Int
    ) -> [TrackedBatch] {
        let verdicts = blame.judgeNamed(
            judged, of: batch.header.events, isFull: kept.isFull(of: .rejected), app: answer.app(of:))
        var pieces: [TrackedBatch] = []
        for verdict in verdicts where !verdict.isGivenUp {
            let number = first + pieces.count
            partial.keep(verdict.events, group: number)
            var piece = batch.piece(number, notBefore: answer.now.boot)
            piece.app = verdict.app
            piece.aside = batch.aside
            setAside(&piece, events: verdict.events.count, verdict.events[0].failure, at: answer.now)
            pieces.append(piece)
        }
        return pieces
    }

    /// Events that an answer rejects become dead letters. An output that could not express an event has not
    /// asked the destination, so that says nothing about it.
    private mutating func noteGivenUp(_ events: [RejectedEvent], of batch: TrackedBatch, _ answer: Answer) {
        guard let first = events.first?.failure else { return }
        if first.kind != .local {
            answered(isProbe: answer.isProbe, at: answer.now)
        }
        emit(.note(name, .deadLettered(batch.header.id, events: events.count, first)))
    }

    // MARK: Failures that pass

    /// A failure that may pass (5xx, time-out, broken connection): the batch's own fault, or what `Aftermath`
    /// says.
    private mutating func fail(_ batch: inout TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let number = answer.number
        let now = answer.now
        batch.noteFailedTurn(isInDoubt: hold?.doubt != nil)
        let othersWentThrough = blame.othersWentThrough(since: batch)
        if failure.kind == .timeout, othersWentThrough || options.order != .free || answer.isProbe {
            batch.history.timeouts += 1
            if batch.history.timeouts > 1 {
                learn { [batch] in $0.noteTooSlow(batch) }
            }
        }
        guard !failsAlone(batch, answer, failure) else { return }
        // With an order, batches that went through before an outage prove nothing: only those since the last
        // failure.
        if options.order != .free {
            batch.acknowledgedBefore = blame.acknowledged.batches
        }
        let later = now.boot + probeWait()
        if answer.isProbe {
            if hold?.patience == nil {
                postponeProbes(at: now)
            } else {
                becomeHeld(failure, by: &batch, isProbe: true, at: now)
            }
        }
        let aftermath = Aftermath(
            order: options.order, recognisesRepeats: options.recognisesRepeats,
            retries: options.retry.intervals.count,
            isDecidedByState: answer.isProbe || breaker != nil, othersWentThrough: othersWentThrough,
            isTooMuch: blame.isTooMuch(batch, failure, options.order))
        let step = aftermath.step(for: batch, failure)
        switch step {
        case .halve: split(batch, answer, failure, into: halves(batch, answer), aside: .fails)
        case .halveSlow:
            let pieces = halves(batch, answer)
            split(batch, answer, failure, into: pieces, isRejected: false, aside: batch.aside)
        case .halveLarge:
            halveLarge(batch, answer, failure)
            standing.pause(options.retry, using: &random, at: now)
        case .wait:
            if batch.isSetAside {
                batch.notBefore = later
            }
            giveBack(batch, number)
        case .retry, .setAside, .openBreaker:
            countFailure(of: &batch, failure, step, later: later, at: now)
            giveBack(batch, number)
            askOthers(at: now)
        }
    }

    /// A failure that counts towards the batch's retries: plans the next one, or ends them.
    ///
    /// - Parameter later: when a batch that is set aside is tried again.
    private mutating func countFailure(
        of batch: inout TrackedBatch, _ failure: Failure, _ step: Aftermath.Step, later: BootInstant,
        at now: Moment
    ) {
        batch.failures += 1
        batch.history.waitsForDestination = batch.failedAt.map { !blame.hasAccepted(since: $0) } ?? false
        batch.note(failure, at: now.boot)
        if step == .retry, let wait = options.retry.wait(afterFailures: batch.failures, using: &random) {
            batch.notBefore = now.boot + wait
            counters.retries += 1
            standing.pause(options.retry, using: &random, at: now)
            emit(.note(name, .failed(batch.header.id, failure, attempt: batch.failures, retryIn: wait)))
            return
        }
        batch.failures = 0
        guard step == .setAside else { return openBreaker(failure, at: now) }
        // If 1,000 batches fail alone, the cause is not in the batches; and each of them is kept in memory.
        if kept.isFull(of: .fails) {
            becomeHeld(failure, by: &batch, isProbe: false, isPatient: false, at: now)
        }
        batch.aside = .fails
        batch.notBefore = later
        emit(.note(name, .setAside(batch.header.id, events: batch.header.events, failure, app: nil)))
    }

    /// A batch has used up its retries and is not at fault alone: only probes are sent from now on.
    private mutating func openBreaker(_ failure: Failure, at now: Moment) {
        let wait = options.whenExhausted == .probe ? probeWait() : nil
        standing.openBreaker(nextProbe: wait.map { now.boot + $0 }, at: now.wall)
        kept.updateAll { $0.reset(at: now.boot) }
        emit(.note(name, .breakerOpened(failure, probeIn: wait)))
    }

    /// A probe failed: the next one waits, and another app may be asked before it.
    private mutating func postponeProbes(at now: Moment) {
        standing.postponeProbes(by: probeWait(), at: now.boot)
        askOthers(at: now)
    }

    /// The destination asked for a wait, which is kept for the next start.
    private mutating func waitAsTold(_ asked: Duration, _ failure: Failure, at now: Moment) {
        guard let wait = standing.waitAsTold(asked, using: &random, at: now) else { return }
        emit(.persist(SwitchName.retryAfter(name), KeptWait.value(of: wait, at: now)))
        emit(.note(name, .retryAfter(wait, failure)))
    }

    // MARK: Answers about the destination

    /// The request itself was refused: holds the destination, or asks again soon if it has acknowledged
    /// lately.
    ///
    /// - Parameters:
    ///   - batch: the batch that was refused. The number of its refusals decides how long it waits.
    ///   - isPatient: whether the cause may be temporary.
    private mutating func becomeHeld(
        _ failure: Failure, by batch: inout TrackedBatch, isProbe: Bool, isPatient: Bool = true,
        at now: Moment
    ) {
        batch.history.holds += 1
        batch.note(failure, at: now.boot)
        let fresh = blame.acknowledged.patience(at: now.boot)
        let refusal = standing.refuse(
            failure, isAgain: batch.history.holds > 1, isProbe: isProbe, isPatient: isPatient, fresh: fresh,
            options, using: &random, at: now)
        batch.notBefore = refusal.batchNotBefore
        if refusal.isHold {
            askOthers(at: now)
        }
        switch refusal.news {
        case .retry(let number, let wait):
            counters.retries += 1
            emit(.note(name, .failed(batch.header.id, failure, attempt: number, retryIn: wait)))
        case .held(let wait): emit(.note(name, .held(failure, probeIn: wait)))
        case nil: break
        }
    }
}

/// Answers about events rather than about the destination: batches are split until the rejected events are
/// alone, and those are given up one by one.
extension DestinationMachine {
    /// 413: halves the batch until it fits. A single event that is too large is judged like a rejected one:
    /// a receiver with a limit of a few bytes would turn the whole queue into dead letters.
    private mutating func shrink(
        _ batch: TrackedBatch, _ answer: Answer, wireBytes: Int, _ failure: Failure
    ) {
        learn { $0.noteTooLarge(batch, wireBytes: wireBytes) }
        giveUp(batch, answer, failure, .tooLarge)
    }

    /// 429 for the second time: halves a batch that may exceed the burst of the receiver's rate limiter.
    private mutating func halveLarge(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        learn { $0.noteTooMuch(batch) }
        let pieces = Cut.halves(of: batch.header.events, apps: [])
        split(batch, answer, failure, into: pieces, isRejected: false)
    }

    /// Carries out the verdict on a batch whose events the destination refuses.
    private mutating func giveUp(
        _ refused: TrackedBatch, _ answer: Answer, _ failure: Failure, _ kind: Blame.Evidence.Kind
    ) {
        let number = answer.number
        let now = answer.now
        var batch = refused
        batch.app = answer.app
        batch.history.tries += 1
        switch judge(kind, batch, answer, failure) {
        case .halve:
            answered(isProbe: answer.isProbe && hold?.doubt == nil, at: now)
            split(batch, answer, failure, into: halves(batch, answer))
        case .cut:
            answered(isProbe: answer.isProbe && hold?.doubt == nil, at: now)
            split(batch, answer, failure, into: cut(batch, answer))
        case .sample:
            answered(isProbe: answer.isProbe && hold?.doubt == nil, at: now)
            let pieces = Cut.halves(of: batch.header.events, apps: answer.apps, isSampled: true)
            split(batch, answer, failure, into: pieces, isSampled: true)
        case .deadLetter:
            judged(answer, failure)
            deadLetter(batch, number, failure)
        case .awaitProof: awaitProof(of: batch, number, failure, at: now.boot)
        case .doubt: doubt(batch, answer, failure)
        case .setAside, .none:
            judged(answer, failure)
            setAside(&batch, events: batch.header.events, failure, at: now)
            giveBack(batch, number)
        }
    }

    /// The verdict of `Blame` on a batch, given the parts of this machine's state that matter.
    private mutating func judge(
        _ kind: Blame.Evidence.Kind, _ batch: TrackedBatch, _ answer: Answer, _ failure: Failure
    ) -> Blame.Verdict {
        let facts = Blame.Facts(
            order: options.order, isProbe: answer.isProbe, isHeld: hold != nil,
            isInDoubt: hold?.doubt != nil, isBroken: breaker != nil,
            // Other attempts than this one.
            hasOthersOnTheirWay: kind != .failed && attempts.counts.sending > 1,
            isFull: kept.isFull(of: kind == .failed ? .fails : .rejected))
        let evidence = Blame.Evidence(kind: kind, batch: batch, failure: failure, apps: answer.apps)
        return blame.judge(evidence, of: facts, at: answer.now.boot)
    }

    /// Keeps a rejected event until answers in flight show whether it or the destination is at fault.
    /// Otherwise it would be sent once more to be judged.
    private mutating func awaitProof(
        of batch: TrackedBatch, _ number: UInt64, _ failure: Failure, at now: BootInstant
    ) {
        let unproven = Attempt.Unproven(batch, failure, at: now)
        // With a promised order nothing may pass the event meanwhile, so no proof can come: give the batch
        // back.
        guard options.order != .promised, attempts.hasRoomForUnproven else {
            return giveBack(unproven.batch, number)
        }
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
            giveUp(unproven.batch, answer, unproven.failure, .named)
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
                emit(.release(unproven.batch.header.id))
                continue
            }
            giveBack(unproven.batch, number)
            if attempt.isPushed {
                endPush(after: unproven.failure)
            }
        }
    }

    /// The destination has judged events: its breaker closes, and a doubt ends or continues.
    private mutating func judged(_ answer: Answer, _ failure: Failure) {
        let isOver = answer.isProbe && blame.endsDoubt(hold?.doubt, at: answer.now.boot)
        answered(isProbe: isOver, at: answer.now)
        goOnDoubting(answer, failure)
    }

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
        emit(.note(name, .deadLettered(batch.header.id, events: batch.header.events, failure)))
        settle(number, Settlement(batch, Array(repeating: .deadLetter(failure), count: batch.header.events)))
    }

    /// Number of the piece for each event of a rejected batch; see `Blame.pieces`.
    private func cut(_ batch: TrackedBatch, _ answer: Answer) -> [Int] {
        blame.pieces(of: batch, apps: answer.apps, isFree: options.order == .free)
    }

    /// Number of the half, 0 or 1, for each event of a batch; see `Cut.halves`.
    private func halves(_ batch: TrackedBatch, _ answer: Answer) -> [Int] {
        Cut.halves(of: batch.header.events, apps: options.order == .free ? answer.apps : [])
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
        let events = batch.header.events
        let now = answer.now
        var children = batch.pieces(
            pieces, apps: answer.apps, after: failure, isRejected: isRejected, aside: aside, at: now.boot)
        if isSampled, let last = children.indices.last {
            setAside(&children[last], events: events - 1, failure, at: now)
        }
        emit(.note(name, .split(batch.header.id, events: events, into: children.count, failure)))
        settle(answer.number, Settlement(batch, pieces.map { .again(group: $0) }), children: children)
    }
}

/// Events are rejected, and nothing shows yet whether they or the destination are at fault: a doubt.
///
/// Then what is likely to pass is tried, one request at a time: events that were not offered yet, alternating
/// with untried pieces of rejected batches. One acknowledgement proves that the rejected events are at fault,
/// and they are given up. A destination that rejects everything is held, and its events are kept.
extension DestinationMachine {
    /// A batch was rejected without a sign of whose fault that is: it waits, and others are tried.
    mutating func doubt(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let now = answer.now
        var batch = batch
        batch.rejectedAt = now.boot
        batch.notBefore = now.boot
        giveBack(batch, answer.number)
        standing.beginDoubt(failure, isProbe: answer.isProbe, at: now)
        goOnDoubting(answer, failure)
    }

    /// A rejection does not end the doubt: the next attempt is planned.
    private mutating func goOnDoubting(_ answer: Answer, _ failure: Failure) {
        guard hold?.doubt != nil else { return }
        standing.noteRefusal(failure, at: answer.now.wall)
        let untried = Untried(backlog, kept, standing, turns)
        let rejection = Hold.Rejection(
            isProbe: answer.isProbe, hasRoom: kept.hasRoomForRejected, hasRefused: kept.counts.refused > 0,
            hasUntried: untried.isLeft)
        let now = answer.now.boot
        if let wait = standing.goOnDoubting(rejection, options, using: &random, at: now) {
            emit(.note(name, .held(failure, probeIn: wait)))
        }
    }

    /// Sets aside a rejected batch that may not be given up, because too many of its app's events were
    /// rejected.
    ///
    /// The batches of one app are tried again 10 s apart, each after a probe interval at the latest.
    mutating func setAside(_ batch: inout TrackedBatch, events: Int, _ failure: Failure, at now: Moment) {
        if !batch.isSetAside {
            noteSetAside(batch, events: events, failure)
        }
        let turn = kept.nextTurn(of: batch.app, at: now.boot)
        batch.aside = .rejected
        batch.rejectedAt = now.boot
        batch.notBefore = min(turn, now.boot + probeWait())
    }

    /// Counts and logs events that were set aside. Only single events count towards the app's share of
    /// refused ones: in a larger batch some may be good.
    mutating func noteSetAside(_ batch: TrackedBatch, events: Int, _ failure: Failure) {
        blame.noteKept(events, app: batch.app)
        if events == 1 {
            blame.noteRefused(events, app: batch.app)
        }
        emit(.note(name, .setAside(batch.header.id, events: events, failure, app: batch.app)))
    }
}

/// Requests fail at a destination that has accepted others, and nothing shows whether one app's events are
/// the cause: a firewall before the receiver may refuse what an app writes, or break the connection.
///
/// Then apps are tried one after another with one event each. As soon as anything is accepted, the events of
/// an app that failed are parted from the others', halved until the failing ones are alone, and set aside.
extension DestinationMachine {
    /// Whether an app may be at fault, and which is asked next.
    private var asking: Asking { Asking(options.order, blame, standing) }

    /// Whether the app of each event must be looked up; see `Asking`.
    var asksApps: Bool { asking.needsApps(blame) }

    /// Plans an attempt with another app, if there is one; otherwise the usual waits continue.
    mutating func askOthers(at now: Moment) {
        let plan = asking.plan(
            blame, kept, isForProbesOnly: standing.isForProbesOnly,
            waitingEvents: lanes.critical.waitingEvents + lanes.normal.waitingEvents, at: now.boot)
        switch plan {
        case .probe(let then): standing.setProbes(to: then)
        case .search(let then): turns.look(at: then)
        case nil: break
        }
    }

    /// Parts a batch between apps, if that may show whose events fail.
    ///
    /// - Parameter failure: the answer to the batch; nil for a batch that was not sent yet.
    /// - Returns: whether the batch was parted.
    mutating func part(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure?) -> Bool {
        guard asksApps, answer.apps.count == batch.header.events, batch.maySplit(after: failure),
            let why = failure ?? standing.lastFailure?.failure, !why.saysOverload,
            let pieces = blame.parted(answer.apps, isFailing: asking.isFailing)
        else { return false }
        if failure == nil {
            attempts.update(answer.number) { $0.send(batch) }
        }
        split(batch, answer, why, into: pieces)
        return true
    }

    /// If others are accepted, the events of a failed batch are the cause: halves it or sets it aside.
    ///
    /// - Returns: whether that was the case; if not, the failure counts as the destination's.
    mutating func failsAlone(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) -> Bool {
        let app = answer.app
        let now = answer.now
        let verdict = judge(.failed, batch, answer, failure)
        guard [.halve, .deadLetter, .setAside].contains(verdict) else { return false }
        var batch = batch
        batch.app = app
        batch.note(failure, at: now.boot)
        switch verdict {
        case .halve:
            let pieces = halves(batch, answer)
            split(batch, answer, failure, into: pieces, aside: app == nil ? batch.aside : .fails)
        case .deadLetter: deadLetter(batch, answer.number, failure)
        default:
            setApart(&batch, failure)
            batch.failures += 1
            let wait = options.retryWait(afterFailures: batch.failures, using: &random)
            batch.notBefore = now.boot + wait
            giveBack(batch, answer.number)
        }
        return true
    }

    /// Sets aside a batch that fails while others succeed.
    private mutating func setApart(_ batch: inout TrackedBatch, _ failure: Failure) {
        guard !batch.isSetAside else { return }
        batch.aside = .fails
        noteSetAside(batch, events: batch.header.events, failure)
    }

    /// Something was accepted: batches of suspected apps that failed before are set aside, and an app of
    /// which nothing is set aside is no longer suspected.
    mutating func clear(_ app: String?, at now: BootInstant) {
        guard blame.hasSuspects else { return }
        turns.endLook()
        for batch in kept.all where batch.failedAt.map(blame.hasAccepted) ?? false && !batch.isSetAside {
            guard let suspect = batch.app.flatMap({ blame.suspect($0) }), suspect.isAlone else { continue }
            var batch = batch
            setApart(&batch, suspect.failure)
            batch.notBefore = min(batch.notBefore, now + Doubt.step)
            kept.keep(batch)
        }
        if let app, !kept.hasFailing(of: app) {
            blame.clear(app)
        }
    }
}
