internal import EventLoops
internal import Model

extension DestinationMachine {
    /// How many failed rounds a batch that was set aside may have before it is bisected.
    private static let roundsBeforeBisecting = 3
    /// How soon a sender that found no route looks again.
    private static let offlineRecheck = Duration.seconds(30)

    /// The destination has answered, or not.
    mutating func sent(_ number: UInt64, _ outcome: Outcome, at now: Moment) {
        guard let attempt = attempts[number], case .sending(let sent) = attempt.phase else { return }
        let answer = Answer(number: number, isProbe: attempt.isProbe, now: now)
        var batch = sent.content
        counters.note(outcome)
        if let failure = outcome.failure { lastFailure = (failure, now.wall) }
        if attempt.isForgotten {
            attempts[number] = nil
            effects.append(.release(batch.header.id))
            return
        }
        switch outcome {
        case .acknowledged:
            return acknowledge(batch, answer)
        case .acknowledgedWithLoss(let rejected, let failure):
            counters.unnamedRejections += rejected
            effects.append(.note(name, .rejectedUnnamed(batch.header.id, events: rejected, failure)))
            return acknowledge(batch, answer)
        case .partial(let rejected, let retry):
            let fates = PartialAnswer(events: batch.header.events, rejected: rejected, retry: retry)
            return settlePartly(batch, answer, isPushed: attempt.isPushed, fates)
        case _ where isStopping:
            giveBack(batch, number)
        case .retry(let failure):
            fail(&batch, answer, failure)
        case .retryAfter(let wait, let failure):
            waitAsTold(wait, failure, at: now)
            giveBack(batch, number)
        case .tooLarge(let wireBytes, let failure):
            shrink(batch, answer, wireBytes: wireBytes, failure)
        case .rejected(let failure):
            reject(batch, answer, failure)
        case .held(let failure):
            becomeHeld(failure, by: &batch, isProbe: attempt.isProbe, at: now)
            giveBack(batch, number)
        case .offline:
            if offline == nil { offline = .until(now.boot + DestinationMachine.offlineRecheck) }
            if attempt.isProbe { postponeProbes(at: now) }
            giveBack(batch, number)
        }
        guard attempt.isPushed, !attempts.contains(number) else { return }
        endPush(after: outcome.failure)
    }

    // MARK: Good answers

    private mutating func acknowledge(_ batch: TrackedBatch, _ answer: Answer) {
        if batch.isSetAside { retrySetAside(at: answer.now.boot) }
        noteTaken(batch.header.events, of: batch, answer)
        settle(answer.number, .acknowledged(batch.header))
    }

    /// The destination has so many events of a batch.
    private mutating func noteTaken(_ events: Int, of batch: TrackedBatch, _ answer: Answer) {
        let now = answer.now
        largestTaken = acknowledgements % 100 == 99 ? 0 : max(largestTaken, batch.header.bytes)
        if let began = batch.attemptedAt, tookAt.map({ $0 < began }) ?? true { tookAt = began }
        acknowledgements += 1
        lastSuccess = now.wall
        rejections.note(rejected: false, events: events, of: batch.header.events)
        ceiling?.acknowledge()
        if !hasAcknowledgedWithSettings {
            hasAcknowledgedWithSettings = true
            effects.append(.persist(SwitchName.acknowledged(name), options.fingerprint))
        }
        // Only an attempt that was made since tells whether what held the destination is over; but where nothing had
        // been acknowledged yet, anything will do.
        if answer.isProbe || hold?.awaitsFirstAcknowledgement == true { liftHold(at: now.boot) }
        if breaker == nil, failuresInARow > 0 { effects.append(.note(name, .recovered(failures: failuresInARow))) }
        if failuresInARow > 0 { endWaits(at: now.boot) }
        failuresInARow = 0
        (isRefusing, startNotBefore) = (false, nil)
        closeBreaker(at: now)
        // Those events are counted that came after their view's deadline (ga08).
        for deadline in options.deadlines {
            let before = deadline.lateBefore(at: now.wall)
            guard batch.header.firstEventTime < before else { continue }
            effects.append(.countLate(attemptID(answer.number), deadline, before: before, atMost: events))
        }
    }

    /// The destination acknowledges again: batches that waited for that go now.
    private mutating func endWaits(at now: BootInstant) {
        for (id, batch) in tracked where batch.waitsForDestination && !batch.isSetAside { tracked[id]?.notBefore = now }
    }

    private mutating func settlePartly(
        _ batch: TrackedBatch, _ answer: Answer, isPushed: Bool, _ fates: PartialAnswer
    ) {
        let number = answer.number
        let rejected = fates.rejected
        // What is known of the destination may overrule these.
        let judged = rejected.filter { !$0.isFinal }
        if fates.acknowledged > 0 {
            noteTaken(fates.acknowledged, of: batch, answer)
        } else if rejected.isEmpty {
            var batch = batch
            let failure = Failure(kind: .status, message: "the destination requests every event of the batch again")
            if isStopping {
                giveBack(batch, number)
            } else {
                fail(&batch, answer, failure)
            }
            if isPushed, !attempts.contains(number) { endPush(after: failure) }
            return
        }
        // An answer that takes nothing may be about the destination: others must have gone through since.
        let isTrusted =
            fates.acknowledged > 0 || batch.header.events == 1 && rejections.toleratesAlone || isProven(batch)
        let share = RejectionWindow.share(judged.count, of: batch.header.events)
        let mayGiveUp =
            rejections.tolerates(share, of: batch.header.app)
            || isFullOfSetAside && (fates.acknowledged > 0 || isProven(batch))
        // What the answer takes is noted already.
        let mayReject = judged.isEmpty || !isStopping && hasAcknowledgedWithSettings && isTrusted && mayGiveUp
        var batch = batch
        var isSetAside = false
        if let first = judged.first?.failure, !mayReject, !isStopping {
            if fates.acknowledged > 0 || isProven(batch) {
                // Others go through, and more were rejected than may be given up: these wait beside them.
                putRejectedAside(&batch, first, at: answer.now)
                isSetAside = true
                if fates.acknowledged == 0 { giveBack(batch, number) }
            } else {
                doubt(batch, answer, first)
            }
            if fates.acknowledged == 0 {
                if isPushed { endPush(after: first) }
                return
            }
        }
        if let first = rejected.first?.failure, mayReject {
            if first.kind != .local { answered(isProbe: answer.isProbe, at: answer.now) }
            rejections.note(
                rejected: true, events: judged.count, of: batch.header.events, by: batch.header.app)
            effects.append(.note(name, .deadLettered(batch.header.id, events: rejected.count, first)))
        }
        let failures = batch.failures + (fates.retry > 0 ? 1 : 0)
        let wait = options.retry.wait(afterFailures: failures, using: &random) ?? probeWait()
        var child = batch.piece(0, notBefore: isSetAside ? batch.notBefore : answer.now.boot + wait)
        child.failures = min(failures, options.retry.intervals.count)
        child.isSetAside = isSetAside
        if isSetAside { child.rejectedAt = answer.now.boot }
        child.rounds = batch.rounds
        let settlement = Settlement(batch: batch.header.id, parts: fates.parts(deadLetters: mayReject))
        let goesAgain = settlement.parts.contains { $0.disposition == .again(group: 0) }
        settle(number, settlement, children: goesAgain ? [child] : [])
    }

    // MARK: Failures that pass

    private mutating func fail(_ batch: inout TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let (number, now) = (answer.number, answer.now)
        let othersWentThrough = acknowledgements > (batch.acknowledgedBefore ?? acknowledgements)
        // In order, what went through before an outage proves nothing: only what did since the last failure.
        if options.order != .free { batch.acknowledgedBefore = acknowledgements }
        let later = now.boot + probeWait()
        if answer.isProbe || breaker != nil {
            // The destination's state decides when it is tried again, not the batch's own schedule.
            if answer.isProbe { postponeProbes(at: now) }
            return giveBack(batch, number)
        }
        if batch.isSetAside || batch.isSuspect {
            return failAlone(&batch, answer, failure, othersWentThrough: othersWentThrough, later: later)
        }
        batch.failures += 1
        batch.waitsForDestination = batch.acknowledgedAtFailure == acknowledgements
        batch.acknowledgedAtFailure = acknowledgements
        if let wait = options.retry.wait(afterFailures: batch.failures, using: &random) {
            batch.notBefore = now.boot + wait
            counters.retries += 1
            failuresInARow += 1
            pauseStarts(at: now)
            effects.append(.note(name, .failed(batch.header.id, failure, attempt: batch.failures, retryIn: wait)))
        } else if othersWentThrough, options.order != .promised {
            putAside(&batch, failure, later: later, at: now)
        } else {
            batch.failures = 0
            openBreaker(failure, at: now)
        }
        giveBack(batch, number)
    }

    /// Nothing is begun for a moment: a second after the first failure, then two, then four. A receiver that is
    /// overloaded gets one request at a time of each agent; one that refuses a single batch gets the others a moment later.
    private mutating func pauseStarts(at now: Moment) {
        let wait = options.retry.shortened(.seconds(1 << min(failuresInARow - 1, 2)), using: &random)
        (isRefusing, startNotBefore) = (true, max(startNotBefore ?? now.boot, now.boot + wait))
    }

    /// A batch that fails while others go through: it is tried now and then, and bisected after some rounds.
    private mutating func failAlone(
        _ batch: inout TrackedBatch, _ answer: Answer, _ failure: Failure, othersWentThrough: Bool, later: BootInstant
    ) {
        if batch.isSetAside { batch.rounds += 1 }
        let isRipe = batch.isSuspect || batch.rounds >= DestinationMachine.roundsBeforeBisecting
        if isRipe, othersWentThrough, batch.header.events > 1 {
            return split(batch, answer, failure, isSuspect: true)
        }
        putAside(&batch, failure, later: later, at: answer.now)
        giveBack(batch, answer.number)
    }

    mutating func putAside(_ batch: inout TrackedBatch, _ failure: Failure, later: BootInstant, at now: Moment) {
        guard !batch.isSetAside else { return batch.notBefore = later }
        // So many that fail are not the batches' fault; and each is kept in memory. What was rejected is not among them.
        if isFull(of: { $0.rejectedAt == nil }) { becomeHeld(failure, by: &batch, isProbe: false, at: now) }
        batch.isSetAside = true
        batch.failures = 0
        batch.notBefore = later
        effects.append(.note(name, .setAside(batch.header.id, events: batch.header.events, failure)))
    }

    private mutating func openBreaker(_ failure: Failure, at now: Moment) {
        let wait = options.whenExhausted == .probe ? probeWait() : nil
        breaker = Breaker(since: now.wall, nextProbe: wait.map { now.boot + $0 })
        for id in tracked.keys { tracked[id]?.reset(at: now.boot) }
        effects.append(.note(name, .breakerOpened(failure, probeIn: wait)))
    }

    private mutating func postponeProbes(at now: Moment) {
        let interval = probeWait()
        // What fails during a doubt must not make it last.
        setProbes(to: now.boot + (hold?.doubt == nil ? interval : min(interval, DestinationMachine.step)))
    }

    private mutating func setProbes(to next: BootInstant) {
        hold?.nextProbe = next
        if breaker?.nextProbe != nil { breaker?.nextProbe = next }
    }

    /// The destination said when to come back: from 1 s to a day, up to half as long again at random (ac13): a fleet
    /// that was told the same comes back spread out.
    private mutating func waitAsTold(_ wait: Duration, _ failure: Failure, at now: Moment) {
        let asked = min(max(wait, .seconds(1)), .seconds(86_400))
        let until = now.boot + asked * (1 + 0.5 * Double.random(in: 0...1, using: &random))
        guard until > retryAfterUntil ?? now.boot else { return }
        (retryAfterUntil, isRefusing) = (until, true)
        setProbes(to: until)
        effects.append(.persist(SwitchName.retryAfter(name), KeptWait.value(of: until - now.boot, at: now)))
        effects.append(.note(name, .retryAfter(until - now.boot, failure)))
    }

    // MARK: Answers about the destination

    private mutating func becomeHeld(_ failure: Failure, by batch: inout TrackedBatch, isProbe: Bool, at now: Moment) {
        let wait = probeWait()
        batch.holds += 1
        // Once more after the others went through: it may be this batch alone, and it must not hold them up again.
        batch.notBefore = batch.holds > 1 ? now.boot + wait : now.boot
        let before = hold
        guard before == nil || isProbe else { return }
        hold = Hold(
            failure: failure, since: before?.since ?? now.wall, awaitsFirstAcknowledgement: false,
            nextProbe: now.boot + wait)
        guard before == nil else { return }
        effects.append(.note(name, .held(failure, probeIn: wait)))
    }
}
