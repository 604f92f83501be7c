internal import EventLoops
internal import Model

// Answers of the destination: good ones, failures that pass, and refusals of the whole request. Answers about
// single events are in +Rejections.
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
        if attempt.isForgotten {
            attempts.end(number)
            effects.append(.release(batch.header.id))
            return
        }
        switch outcome {
        case .acknowledged:
            acknowledge(batch, answer)
            return judgeUnproven(at: now)
        case .acknowledgedWithLoss(let rejected, let failure):
            counters.unnamedRejections += rejected
            counters.lastUnnamedRejection = failure
            effects.append(.note(name, .rejectedUnnamed(batch.header.id, events: rejected, failure)))
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
        case .retryAfter(let wait, let failure):
            waitAsTold(wait, failure, at: now)
            guard !cutIfTooMuch(batch, answer, failure) else { break }
            batch.note(failure, at: now.boot)
            giveBack(batch, number)
        case .tooLarge(let wireBytes, let failure):
            shrink(batch, answer, wireBytes: wireBytes, failure)
        case .rejected(let failure):
            reject(batch, answer, failure)
        case .held where attempt.isBegunAgain:
            // The request may have carried the credentials from before a change.
            batch.notBefore = now.boot
            giveBack(batch, number)
        case .held(let failure):
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
        let (events, now) = (places.count, answer.now)
        let began = batch.attemptedAt ?? now.boot
        if batch.history.timeouts > 0 {
            learnSlow(batch)
        }
        for app in Set(places.compactMap(answer.app(of:))) {
            // The app was offered after others of its events were rejected; the cause may be gone.
            sampleSetAside(of: app, rejectedUntil: began, at: now.boot)
        }
        if batch.isSetAside {
            retrySetAside(of: batch.app, after: Doubt.step, at: now.boot)
        }
        let isFirst = blame.noteAccepted(events, of: batch, app: batch.app ?? answer.app, at: now)
        if ceiling != nil {
            changeCeiling { $0?.acknowledge() }
        }
        if isFirst {
            effects.append(.persist(SwitchName.acknowledged(name), options.fingerprint))
        }
        // Only an attempt that began after the hold (a probe) proves that its cause is gone. Before the first
        // acknowledgement with these settings, any good answer proves that they are right.
        if answer.isProbe || isFirst && hold?.doubt != nil {
            liftHold(at: now.boot)
        }
        let failures = standing.recover()
        if failures > 0 {
            if breaker == nil {
                effects.append(.note(name, .recovered(failures: failures)))
            }
            // Batches that waited for the next acknowledgement are sent now. Otherwise the oldest events of
            // an outage would arrive up to 20 minutes after newer ones.
            kept.updateAll(where: { $0.waitsForDestination && !$0.isSetAside }) { $0.notBefore = now.boot }
        }
        clear(answer.app, at: now.boot)
        closeBreaker(at: now)
        // Count events that came after their deadline. Reading the batch is worth it only if its earliest
        // event is late.
        for deadline in options.deadlines {
            let before = deadline.lateBefore(at: now.wall)
            guard batch.header.firstEventTime < before else { continue }
            effects.append(.countLate(attemptID(answer.number), deadline, before: before, atMost: events))
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
        let size = batch.header.events
        // Final rejections (for example of an event that the format cannot express) need no judgement; all
        // others may be overruled by what is known of the destination.
        var judged = partial.rejected.filter { !$0.isFinal }
        let taken = partial.acknowledged
        if !taken.isEmpty {
            noteTaken(taken, of: batch, answer)
        } else if let first = judged.first?.failure {
            // An answer that accepts nothing may be about the destination. And if all events are of one app
            // and may not be given up, the batch stays whole.
            let isOneApp = judged.count == size && Set(answer.apps).count <= 1
            if size == 1 || !blame.isProven(batch) || isOneApp && !mayGiveUp(size, of: answer.app, in: batch)
            {
                giveUp(batch, answer, first)
                return first
            }
        } else if partial.rejected.isEmpty {
            let failure = Failure(
                kind: .status, message: "the destination requests every event of the batch again")
            fail(&batch, answer, failure)
            return failure
        }
        if pushing.isStopping {
            partial.keep(judged, group: 0)
            judged = []
        }
        var children: [TrackedBatch] = []
        if partial.fates.contains(.again(group: 0)) {
            // If the answer rejects events for good and asks for the others again, the others are sent
            // without them at once. That ends, since there are fewer each time.
            let isSmaller = taken.isEmpty && partial.rejected.contains(where: \.isFinal)
            let failures = isSmaller ? batch.failures : batch.failures + 1
            let later = options.retry.wait(afterFailures: failures, using: &random) ?? probeWait()
            let wait = isSmaller ? .zero : later
            var child = batch.piece(0, notBefore: answer.now.boot + wait)
            child.failures = min(failures, options.retry.intervals.count)
            children.append(child)
        }
        let byApp = Dictionary(grouping: judged) { answer.app(of: $0.index) ?? "" }
        for (app, events) in byApp.sorted(by: { $0.key < $1.key }) {
            let app = app.isEmpty ? nil : app
            if mayGiveUp(events.count, of: app, in: batch) {
                blame.noteGivenUp(events.count, of: size, app: app)
            } else {
                // Others go through, but too many events of this app were rejected for more to be given up:
                // keep them.
                partial.keep(events, group: children.count)
                var child = batch.piece(children.count, notBefore: answer.now.boot)
                (child.app, child.aside) = (app, batch.aside)
                setAside(&child, events: events.count, events[0].failure, at: answer.now)
                children.append(child)
            }
        }
        let dead = partial.rejected.filter { partial.fates[$0.index] == .deadLetter($0.failure) }
        if let first = dead.first?.failure {
            if first.kind != .local {
                answered(isProbe: answer.isProbe, at: answer.now)
            }
            effects.append(.note(name, .deadLettered(batch.header.id, events: dead.count, first)))
        }
        settle(answer.number, Settlement(batch, partial.fates), children: children)
        return nil
    }

    /// Whether a number of an app's rejected events may be given up, or has to be because no more can be
    /// kept.
    private func mayGiveUp(_ events: Int, of app: String?, in batch: TrackedBatch) -> Bool {
        blame.mayGiveUp(events, of: batch.header.events, app: app) || isFull(of: .rejected)
    }

    // MARK: Failures that pass

    /// A failure that may pass (5xx, time-out, broken connection). In this order: is it the batch's own
    /// fault, is it a probe, is a smaller batch better, are there retries left.
    private mutating func fail(_ batch: inout TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let (number, now) = (answer.number, answer.now)
        let othersWentThrough = blame.othersWentThrough(since: batch)
        if failure.kind == .timeout, othersWentThrough || options.order != .free || answer.isProbe {
            batch.noteOwnTimeout()
            if batch.history.timeouts > 1 {
                learnSlow(batch)
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
        // For a probe, and while the breaker is open, the destination's state decides when the batch is tried
        // again, not the batch's own schedule.
        let isAlone = !answer.isProbe && breaker == nil
        if isAlone, batch.aside == .fails, othersWentThrough, batch.header.events > 1,
            batch.maySplit(after: failure)
        {
            let pieces = halves(of: answer.apps, batch.header.events)
            return split(batch, answer, failure, into: pieces, aside: .fails)
        }
        if isAlone, cutIfTooSlow(batch, answer, failure) { return }
        if isAlone, cutIfTooMuch(batch, answer, failure) {
            return pauseStarts(at: now)
        }
        if batch.isSetAside {
            batch.notBefore = later
        }
        guard isAlone, !batch.isSetAside else { return giveBack(batch, number) }
        batch.failures += 1
        batch.waitsForDestination = batch.failedAt.map { !blame.hasAccepted(since: $0) } ?? false
        batch.note(failure, at: now.boot)
        if let wait = options.retry.wait(afterFailures: batch.failures, using: &random) {
            batch.notBefore = now.boot + wait
            counters.retries += 1
            pauseStarts(at: now)
            effects.append(
                .note(name, .failed(batch.header.id, failure, attempt: batch.failures, retryIn: wait)))
        } else if othersWentThrough, options.order != .promised {
            // If 1,000 batches fail alone, the cause is not in the batches; and each of them is kept in
            // memory.
            if isFull(of: .fails) {
                becomeHeld(failure, by: &batch, isProbe: false, isPatient: false, at: now)
            }
            batch.aside = .fails
            batch.failures = 0
            batch.notBefore = later
            effects.append(
                .note(name, .setAside(batch.header.id, events: batch.header.events, failure, app: nil)))
        } else {
            batch.failures = 0
            openBreaker(failure, at: now)
        }
        giveBack(batch, number)
        askOthers(at: now)
    }

    /// Begins nothing for 1 s after the first failure in a row, then 2 s, then 4 s, less jitter.
    ///
    /// An overloaded receiver then gets one request at a time from each agent instead of three at once. A
    /// receiver that refuses a single batch gets the others a moment later.
    private mutating func pauseStarts(at now: Moment) {
        let failures = standing.countFailure()
        let wait = options.retry.shortened(.seconds(1 << min(failures - 1, 2)), using: &random)
        standing.pause(until: now.boot + wait, at: now)
    }

    /// A batch has used up its retries and is not at fault alone: only probes are sent from now on.
    private mutating func openBreaker(_ failure: Failure, at now: Moment) {
        let wait = options.whenExhausted == .probe ? probeWait() : nil
        standing.openBreaker(nextProbe: wait.map { now.boot + $0 }, at: now.wall)
        kept.updateAll { $0.reset(at: now.boot) }
        effects.append(.note(name, .breakerOpened(failure, probeIn: wait)))
    }

    /// A probe failed: the next one is sent after the probe interval, or sooner while the failure may be
    /// about events.
    private mutating func postponeProbes(at now: Moment) {
        let interval = probeWait()
        // In a doubt, or while refusals may pass, a failure must not prolong the wait to a probe interval.
        let longest = hold?.doubt != nil ? Doubt.step : hold?.patience != nil ? .seconds(60) : interval
        standing.setProbes(to: now.boot + min(interval, longest))
        askOthers(at: now)
    }

    /// The destination asked for a wait (Retry-After, RFC 9110, section 10.2.3). It is bounded to 1 s … 1
    /// day, then prolonged by up to half at random, so that a fleet that got the same answer comes back
    /// spread out.
    private mutating func waitAsTold(_ wait: Duration, _ failure: Failure, at now: Moment) {
        let asked = min(max(wait, .seconds(1)), .seconds(86_400))
        let until = now.boot + asked * (1 + 0.5 * Double.random(in: 0...1, using: &random))
        guard standing.waitAsTold(until: until, at: now) else { return }
        effects.append(.persist(SwitchName.retryAfter(name), KeptWait.value(of: until - now.boot, at: now)))
        effects.append(.note(name, .retryAfter(until - now.boot, failure)))
    }

    // MARK: Answers about the destination

    /// The request itself was refused: holds the destination, or asks again soon if it has acknowledged
    /// lately.
    ///
    /// - Parameters:
    ///   - batch: whose answer it was; how often that happened decides its own wait.
    ///   - isPatient: whether the refusal may be one that passes.
    private mutating func becomeHeld(
        _ failure: Failure, by batch: inout TrackedBatch, isProbe: Bool, isPatient: Bool = true,
        at now: Moment
    ) {
        batch.holds += 1
        batch.note(failure, at: now.boot)
        let before = hold
        guard before == nil || isProbe else {
            batch.notBefore = batch.holds > 1 ? before?.nextProbe ?? now.boot : now.boot
            return
        }
        var patience = isPatient ? before.map(\.patience) ?? freshPatience(at: now.boot) : nil
        let isSoon = patience?.refuse(at: now.boot)
        let wait = isSoon.map { $0 - now.boot } ?? probeWait()
        // The second refusal of the same batch: it may be this batch alone. Let the others go first, so that
        // it does not hold them up again.
        batch.notBefore = batch.holds > 1 ? now.boot + wait : now.boot
        standing.hold(
            Standing.Hold(
                failure: failure, since: before?.since ?? now.wall, nextProbe: now.boot + wait,
                patience: isSoon == nil ? nil : patience))
        askOthers(at: now)
        if let patience, isSoon != nil {
            counters.retries += 1
            _ = standing.countFailure()
            effects.append(
                .note(name, .failed(batch.header.id, failure, attempt: patience.refusals, retryIn: wait)))
        } else if before == nil || before?.patience != nil {
            effects.append(.note(name, .held(failure, probeIn: wait)))
        }
    }

    /// Patience with refusals, if the destination has acknowledged something within the last ten minutes.
    private func freshPatience(at now: BootInstant) -> Patience? {
        guard let last = blame.acknowledged.trustedAt, now < last + Patience.trusted else { return nil }
        return Patience(at: now)
    }
}
