internal import EventLoops
internal import Model

extension DestinationMachine {
    /// How many failed rounds a batch that was set aside may have before it is bisected.
    private static let roundsBeforeBisecting = 3
    /// How soon a sender that found no route looks again.
    private static let offlineRecheck = Duration.seconds(30)

    /// The destination has answered, or not.
    mutating func sent(
        _ number: UInt64, _ outcome: Outcome, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        guard let attempt = attempts[number], case .sending(let sent) = attempt.phase else { return }
        var batch = sent.content
        counters.note(outcome)
        note(outcome, at: now)
        if attempt.isForgotten {
            attempts[number] = nil
            effects.append(.release(batch.header.id))
            return
        }
        switch outcome {
        case .acknowledged:
            acknowledge(number, batch, isProbe: attempt.isProbe, at: now)
            return
        case .acknowledgedWithLoss(let rejected, let failure):
            counters.unnamedRejections += rejected
            effects.append(.note(name, .rejectedUnnamed(batch.header.id, events: rejected, failure)))
            acknowledge(number, batch, isProbe: attempt.isProbe, at: now)
            return
        case .partial(let rejected, let retry):
            settlePartly(number, attempt, batch, rejected: rejected, retry: retry, at: now, using: &random)
            return
        case _ where isStopping:
            giveBack(batch, number)
        case .retry(let failure):
            fail(&batch, number, isProbe: attempt.isProbe, failure, at: now, using: &random)
        case .retryAfter(let wait, let failure):
            waitAsTold(wait, failure, at: now, using: &random)
            giveBack(batch, number)
        case .tooLarge(let wireBytes, let failure):
            shrink(batch, number, wireBytes: wireBytes, failure, isProbe: attempt.isProbe, at: now, using: &random)
        case .rejected(let failure):
            reject(batch, number, failure, isProbe: attempt.isProbe, at: now, using: &random)
        case .held(let failure):
            becomeHeld(failure, by: &batch, isProbe: attempt.isProbe, at: now, using: &random)
            giveBack(batch, number)
        case .offline:
            if offline == nil { offline = .until(now.boot + DestinationMachine.offlineRecheck) }
            if attempt.isProbe { postponeProbes(at: now, using: &random) }
            giveBack(batch, number)
        }
        guard attempt.isPushed, !attempts.contains(number) else { return }
        endPush(afterFailure: outcome)
    }

    // MARK: Good answers

    private mutating func acknowledge(_ number: UInt64, _ batch: TrackedBatch, isProbe: Bool, at now: Moment) {
        noteTook(batch)
        if batch.isSetAside { retrySetAside(at: now.boot) }
        noteAcknowledged(events: batch.header.events, of: batch.header.events, isProbe: isProbe, at: now)
        noteLate(number, batch, acknowledged: batch.header.events, at: now)
        settle(number, .acknowledged(batch.header), end: .good)
    }

    private mutating func noteTook(_ batch: TrackedBatch) {
        largestTaken = acknowledgements % 100 == 99 ? 0 : max(largestTaken, batch.header.bytes)
        if let began = batch.attemptedAt, tookAt.map({ $0 < began }) ?? true { tookAt = began }
    }

    private mutating func noteAcknowledged(events: Int, of answer: Int, isProbe: Bool, at now: Moment) {
        acknowledgements += 1
        lastSuccess = now.wall
        rejections.note(rejected: false, events: events, of: answer)
        ceiling?.acknowledge()
        if !hasAcknowledgedWithSettings {
            hasAcknowledgedWithSettings = true
            effects.append(.persist(SwitchName.acknowledged(name), options.fingerprint))
        }
        // Only an attempt that was made since tells whether what held the destination is over; but where nothing had
        // been acknowledged yet, anything will do.
        if isProbe || hold?.awaitsFirstAcknowledgement == true { liftHold(at: now.boot) }
        if breaker == nil, failuresInARow > 0 { effects.append(.note(name, .recovered(failures: failuresInARow))) }
        failuresInARow = 0
        (isRefusing, startNotBefore) = (false, nil)
        closeBreaker(at: now)
    }

    /// Has those events counted that came after their view's deadline (ga08).
    private mutating func noteLate(_ number: UInt64, _ batch: TrackedBatch, acknowledged: Int, at now: Moment) {
        for deadline in options.deadlines {
            let before = deadline.lateBefore(at: now.wall)
            guard batch.header.firstEventTime < before else { continue }
            effects.append(
                .countLate(
                    AttemptID(destination: name, number: number), deadline, before: before, atMost: acknowledged))
        }
    }

    private mutating func settlePartly(
        _ number: UInt64, _ attempt: Attempt, _ batch: TrackedBatch, rejected: [RejectedEvent], retry: [Int],
        at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        let fates = PartialAnswer(events: batch.header.events, rejected: rejected, retry: retry)
        let judged = fates.judged
        if fates.acknowledged > 0 {
            noteTook(batch)
            noteAcknowledged(
                events: fates.acknowledged, of: batch.header.events, isProbe: attempt.isProbe, at: now)
            noteLate(number, batch, acknowledged: fates.acknowledged, at: now)
        } else if fates.rejected == 0 {
            var batch = batch
            let failure = Failure(kind: .status, message: "the destination asks for every event of the batch again")
            if isStopping {
                giveBack(batch, number)
            } else {
                fail(&batch, number, isProbe: attempt.isProbe, failure, at: now, using: &random)
            }
            if attempt.isPushed, !attempts.contains(number) { endPush(afterFailure: .retry(failure)) }
            return
        }
        // An answer that takes nothing may be about the destination: others must have gone through since.
        let isTrusted =
            fates.acknowledged > 0 || batch.header.events == 1 && rejections.toleratesAlone
            || isProven(batch)
        let share = RejectionWindow.share(judged, of: batch.header.events)
        let mayGiveUp = rejections.tolerates(share) || isFullOfSetAside && (fates.acknowledged > 0 || isProven(batch))
        // What the answer takes is noted already.
        let mayReject =
            judged == 0 || !isStopping && hasAcknowledgedWithSettings && isTrusted && mayGiveUp
        var batch = batch
        var isSetAside = false
        if let first = fates.firstJudgement, !mayReject, !isStopping {
            if fates.acknowledged > 0 || isProven(batch) {
                // Others go through, and more were rejected than may be given up: these wait beside them.
                putRejectedAside(&batch, first, at: now, using: &random)
                isSetAside = true
                if fates.acknowledged == 0 { giveBack(batch, number) }
            } else {
                doubt(batch, number, first, isProbe: attempt.isProbe, at: now, using: &random)
            }
            if fates.acknowledged == 0 {
                if attempt.isPushed { endPush(afterFailure: .held(first)) }
                return
            }
        }
        if let first = fates.firstRejection, mayReject {
            if first.kind != .local { answered(isProbe: attempt.isProbe, at: now) }
            rejections.note(rejected: true, events: judged, of: batch.header.events)
            noteDeadLetters(batch, events: fates.rejected, first)
        }
        let failures = batch.failures + (fates.retry > 0 ? 1 : 0)
        let wait = options.retry.wait(afterFailures: failures, using: &random)
        var child = batch.piece(
            0,
            notBefore: isSetAside
                ? batch.notBefore
                : now.boot + (wait ?? options.retry.shortened(options.probeInterval, using: &random)))
        child.failures = min(failures, options.retry.intervals.count)
        child.isSetAside = isSetAside
        child.rounds = batch.rounds
        let settlement = Settlement(batch: batch.header.id, parts: fates.parts(deadLetters: mayReject))
        let goesAgain = settlement.parts.contains { $0.disposition == .again(group: 0) }
        settle(number, settlement, children: goesAgain ? [child] : [], end: .good)
    }

    // MARK: Failures that pass

    private mutating func fail(
        _ batch: inout TrackedBatch, _ number: UInt64, isProbe: Bool, _ failure: Failure, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        let othersWentThrough = acknowledgements > (batch.acknowledgedBefore ?? acknowledgements)
        // In order, what went through before an outage proves nothing: only what did since the last failure.
        if options.order != .free { batch.acknowledgedBefore = acknowledgements }
        let later = now.boot + options.retry.shortened(options.probeInterval, using: &random)
        if isProbe || breaker != nil {
            // The destination's state decides when it is tried again, not the batch's own schedule.
            if isProbe { postponeProbes(at: now, using: &random) }
            if batch.isSetAside { batch.notBefore = later }
            giveBack(batch, number)
            return
        }
        if batch.isSetAside || batch.isSuspect {
            failAlone(
                &batch, number, failure, othersWentThrough: othersWentThrough, later: later, at: now, using: &random)
            return
        }
        batch.failures += 1
        if let wait = options.retry.wait(afterFailures: batch.failures, using: &random) {
            batch.notBefore = now.boot + wait
            counters.retries += 1
            failuresInARow += 1
            pauseStarts(at: now, using: &random)
            effects.append(.note(name, .failed(batch.header.id, failure, attempt: batch.failures, retryIn: wait)))
        } else if othersWentThrough, options.order != .promised {
            putAside(&batch, failure, later: later, at: now, using: &random)
        } else {
            batch.failures = 0
            openBreaker(failure, at: now, using: &random)
        }
        giveBack(batch, number)
    }

    /// Nothing is begun for a moment: a second after the first failure, then two, then four. A receiver that is
    /// overloaded gets one request at a time of each agent; one that refuses a single batch gets the others a moment later.
    private mutating func pauseStarts(at now: Moment, using random: inout some RandomNumberGenerator) {
        let wait = options.retry.shortened(.seconds(1 << min(failuresInARow - 1, 2)), using: &random)
        (isRefusing, startNotBefore) = (true, max(startNotBefore ?? now.boot, now.boot + wait))
    }

    /// A batch that fails while others go through: it is tried now and then, and bisected after some rounds.
    private mutating func failAlone(
        _ batch: inout TrackedBatch, _ number: UInt64, _ failure: Failure, othersWentThrough: Bool,
        later: BootInstant, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        if batch.isSetAside { batch.rounds += 1 }
        let isRipe = batch.isSuspect || batch.rounds >= DestinationMachine.roundsBeforeBisecting
        if isRipe, othersWentThrough, batch.header.events > 1 {
            split(batch, number, failure, isSuspect: true, at: now)
            return
        }
        if !batch.isSetAside { putAside(&batch, failure, later: later, at: now, using: &random) }
        batch.notBefore = later
        giveBack(batch, number)
    }

    mutating func putAside(
        _ batch: inout TrackedBatch, _ failure: Failure, later: BootInstant, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        guard !batch.isSetAside else { return batch.notBefore = later }
        // So many bad ones are not the batches' fault; and each is kept in memory.
        if isFullOfSetAside {
            becomeHeld(failure, by: &batch, isProbe: false, at: now, using: &random)
        }
        batch.isSetAside = true
        batch.failures = 0
        batch.notBefore = later
        counters.setAside += 1
        effects.append(.note(name, .setAside(batch.header.id, events: batch.header.events, failure)))
    }

    private mutating func openBreaker(
        _ failure: Failure, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        let wait =
            options.whenExhausted == .probe ? options.retry.shortened(options.probeInterval, using: &random) : nil
        breaker = Breaker(since: now.wall, nextProbe: wait.map { now.boot + $0 })
        for id in tracked.keys { tracked[id]?.reset(at: now.boot) }
        counters.alerts += 1
        effects.append(.note(name, .breakerOpened(failure, probeIn: wait)))
    }

    private mutating func postponeProbes(at now: Moment, using random: inout some RandomNumberGenerator) {
        let interval = options.retry.shortened(options.probeInterval, using: &random)
        // What fails during a doubt must not make it last.
        let next = now.boot + (hold?.doubt == nil ? interval : min(interval, DestinationMachine.step))
        hold?.nextProbe = next
        if breaker?.nextProbe != nil { breaker?.nextProbe = next }
    }

    /// The destination said when to come back: from 1 s to a day, up to half as long again at random (ac13): a fleet
    /// that was told the same comes back spread out.
    private mutating func waitAsTold(
        _ wait: Duration, _ failure: Failure, at now: Moment, using random: inout some RandomNumberGenerator
    ) {
        let asked = min(max(wait, .seconds(1)), .seconds(86_400))
        let until = now.boot + asked * (1 + 0.5 * Double.random(in: 0...1, using: &random))
        guard until > retryAfterUntil ?? now.boot else { return }
        (retryAfterUntil, isRefusing) = (until, true)
        hold?.nextProbe = until
        if breaker?.nextProbe != nil { breaker?.nextProbe = until }
        effects.append(
            .persist(SwitchName.retryAfter(name), KeptWait.value(of: until - now.boot, at: now)))
        effects.append(.note(name, .retryAfter(until - now.boot, failure)))
    }

    // MARK: Answers about the destination

    private mutating func becomeHeld(
        _ failure: Failure, by batch: inout TrackedBatch, isProbe: Bool, at now: Moment,
        using random: inout some RandomNumberGenerator
    ) {
        let wait = options.retry.shortened(options.probeInterval, using: &random)
        batch.holds += 1
        // Once more after the others went through: it may be this batch alone, and it must not hold them up again.
        batch.notBefore = batch.holds > 1 ? now.boot + wait : now.boot
        if hold == nil {
            hold = Hold(
                failure: failure, since: now.wall, awaitsFirstAcknowledgement: false, nextProbe: now.boot + wait)
            counters.alerts += 1
            effects.append(.note(name, .held(failure, probeIn: wait)))
        } else if isProbe {
            hold = Hold(
                failure: failure, since: hold?.since ?? now.wall, awaitsFirstAcknowledgement: false,
                nextProbe: now.boot + wait)
        }
    }

    private mutating func note(_ outcome: Outcome, at now: Moment) {
        switch outcome {
        case .acknowledged, .offline: break
        case .partial(let rejected, _):
            if let first = rejected.first { lastFailure = (first.failure, now.wall) }
        case .acknowledgedWithLoss(_, let failure), .retry(let failure), .retryAfter(_, let failure),
            .tooLarge(_, let failure), .rejected(let failure),
            .held(let failure):
            lastFailure = (failure, now.wall)
        }
    }
}
