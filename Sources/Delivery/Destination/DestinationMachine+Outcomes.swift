internal import EventLoops
internal import Model

extension DestinationMachine {
    /// How soon a sender that found no route looks again.
    private static let offlineRecheck = Duration.seconds(30)

    mutating func sent(_ number: UInt64, _ outcome: Outcome, _ apps: [String], at now: Moment) {
        guard let attempt = attempts[number], case .sending(let sent) = attempt.phase else { return }
        var batch = sent.content
        let whose = apps.count == batch.header.events ? apps : []
        let answer = Answer(number: number, isProbe: attempt.isProbe, apps: whose, now: now)
        if attempt.isBegunAgain { batch.failures = 0 }
        counters.note(outcome)
        var failure = outcome.failure
        if let failure {
            lastFailure = (failure, now.wall)
            if failure.leavesOpen { batch.mayBeTaken = true }
        }
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
            counters.lastUnnamedRejection = failure
            effects.append(.note(name, .rejectedUnnamed(batch.header.id, events: rejected, failure)))
            return acknowledge(batch, answer)
        case .partial(let rejected, let retry):
            let partial = PartialAnswer(events: batch.header.events, rejected: rejected, retry: retry)
            guard !isStopping || !partial.acknowledged.isEmpty else { fallthrough }
            failure = settlePartly(&batch, answer, partial)
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
        case .held where attempt.isBegunAgain:
            // It may have been sent with the credentials from before.
            batch.notBefore = now.boot
            giveBack(batch, number)
        case .held(let failure):
            guard !failsAlone(batch, answer, failure) else { break }
            becomeHeld(failure, by: &batch, isProbe: attempt.isProbe, at: now)
            if attempt.isProbe || !part(batch, answer, failure) { giveBack(batch, number) }
        case .offline:
            if offline == nil { offline = .until(now.boot + DestinationMachine.offlineRecheck) }
            if attempt.isProbe { postponeProbes(at: now) }
            giveBack(batch, number)
        }
        // A person who says that it has recovered means what is on its way, too.
        if attempt.isBegunAgain, tracked[batch.header.id]?.isSetAside == true {
            tracked[batch.header.id]?.notBefore = now.boot
        }
        guard attempt.isPushed, !attempts.contains(number) else { return }
        endPush(after: failure)
    }

    // MARK: Good answers

    private mutating func acknowledge(_ batch: TrackedBatch, _ answer: Answer) {
        noteTaken(Array(0..<batch.header.events), of: batch, answer)
        settle(answer.number, .acknowledged(batch.header))
    }

    /// The destination has the events at some places of a batch.
    private mutating func noteTaken(_ places: [Int], of batch: TrackedBatch, _ answer: Answer) {
        let (events, now) = (places.count, answer.now)
        let began = batch.attemptedAt ?? now.boot
        for app in Set(places.compactMap(answer.app(of:))) {
            // It was offered after others of the app were rejected: that may be over, they are tried once more.
            retrySetAside(of: app, after: DestinationMachine.step, at: now.boot) {
                !$0.isTriedAgain && $0.rejectedAt.map { $0 <= began } == true
            }
        }
        if batch.isSetAside { retrySetAside(of: batch.app, after: DestinationMachine.step, at: now.boot) }
        largestTaken = acknowledgements % 100 == 99 ? 0 : max(largestTaken, batch.header.bytes)
        if let began = batch.attemptedAt, tookAt.map({ $0 < began }) ?? true { tookAt = began }
        acknowledgements += 1
        lastSuccess = now.wall
        rejections.note(rejected: false, events: events, of: batch.header.events)
        ceiling?.acknowledge()
        let isFirst = !hasAcknowledgedWithSettings
        if isFirst {
            hasAcknowledgedWithSettings = true
            effects.append(.persist(SwitchName.acknowledged(name), options.fingerprint))
        }
        // Only an attempt that was made since tells whether what held the destination is over; but where events were
        // rejected before any had been taken, anything shows that it is set up well.
        if answer.isProbe || isFirst && hold?.doubt != nil { liftHold(at: now.boot) }
        if failuresInARow > 0 {
            if breaker == nil { effects.append(.note(name, .recovered(failures: failuresInARow))) }
            // Batches that waited for it to acknowledge again go now.
            for (id, batch) in tracked where batch.waitsForDestination && !batch.isSetAside {
                tracked[id]?.notBefore = now.boot
            }
        }
        clear(answer.app, at: now.boot)
        failuresInARow = 0
        (refusingSince, startNotBefore) = (nil, nil)
        closeBreaker(at: now)
        // Those events are counted that came after their view's deadline (ga08).
        for deadline in options.deadlines {
            let before = deadline.lateBefore(at: now.wall)
            guard batch.header.firstEventTime < before else { continue }
            effects.append(.countLate(attemptID(answer.number), deadline, before: before, atMost: events))
        }
    }

    /// What the answer takes is taken; of what it rejects, each app's events are judged by themselves. Gives why the batch stays, if so.
    private mutating func settlePartly(
        _ batch: inout TrackedBatch, _ answer: Answer, _ partial: PartialAnswer
    ) -> Failure? {
        var partial = partial
        let size = batch.header.events
        // What is known of the destination may overrule these.
        var judged = partial.rejected.filter { !$0.isFinal }
        let taken = partial.acknowledged
        if !taken.isEmpty {
            noteTaken(taken, of: batch, answer)
        } else if let first = judged.first?.failure {
            // An answer that takes nothing may be about the destination; and what is all one app's waits together.
            let isOneApp = judged.count == size && Set(answer.apps).count <= 1
            if size == 1 || !isProven(batch) || isOneApp && !mayGiveUp(size, of: answer.app, in: batch) {
                giveUp(batch, answer, first)
                return first
            }
        } else if partial.rejected.isEmpty {
            let failure = Failure(kind: .status, message: "the destination requests every event of the batch again")
            fail(&batch, answer, failure)
            return failure
        }
        if isStopping {
            partial.keep(judged, group: 0)
            judged = []
        }
        var children: [TrackedBatch] = []
        if partial.fates.contains(.again(group: 0)) {
            let failures = batch.failures + 1
            let wait = options.retry.wait(afterFailures: failures, using: &random) ?? probeWait()
            var child = batch.piece(0, notBefore: answer.now.boot + wait)
            child.failures = min(failures, options.retry.intervals.count)
            children.append(child)
        }
        let byApp = Dictionary(grouping: judged) { answer.app(of: $0.index) ?? "" }
        for (app, events) in byApp.sorted(by: { $0.key < $1.key }) {
            let app = app.isEmpty ? nil : app
            if mayGiveUp(events.count, of: app, in: batch) {
                rejections.note(rejected: true, events: events.count, of: size, by: app)
            } else {
                // Others go through, and more of this app's were rejected than may be given up.
                partial.keep(events, group: children.count)
                var child = batch.piece(children.count, notBefore: answer.now.boot)
                (child.app, child.aside) = (app, batch.aside)
                setAside(&child, events: events.count, events[0].failure, at: answer.now)
                children.append(child)
            }
        }
        let dead = partial.rejected.filter { partial.fates[$0.index] == .deadLetter($0.failure) }
        if let first = dead.first?.failure {
            if first.kind != .local { answered(isProbe: answer.isProbe, at: answer.now) }
            effects.append(.note(name, .deadLettered(batch.header.id, events: dead.count, first)))
        }
        settle(answer.number, Settlement(batch, partial.fates), children: children)
        return nil
    }

    /// Whether so many events of an app, of a batch, may be given up while others go through.
    private func mayGiveUp(_ events: Int, of app: String?, in batch: TrackedBatch) -> Bool {
        rejections.tolerates(RejectionWindow.share(events, of: batch.header.events), of: app) || isFull(of: .rejected)
    }

    // MARK: Failures that pass

    private mutating func fail(_ batch: inout TrackedBatch, _ answer: Answer, _ failure: Failure) {
        guard !failsAlone(batch, answer, failure) else { return }
        let (number, now) = (answer.number, answer.now)
        let othersWentThrough = acknowledgements > (batch.acknowledgedBefore ?? acknowledgements)
        // In order, what went through before an outage proves nothing: only what did since the last failure.
        if options.order != .free { batch.acknowledgedBefore = acknowledgements }
        let later = now.boot + probeWait()
        if answer.isProbe { postponeProbes(at: now) }
        // The destination's state decides when it is tried again, not the batch's own schedule.
        let isAlone = !answer.isProbe && breaker == nil
        if isAlone, batch.aside == .fails, othersWentThrough, batch.header.events > 1, batch.maySplit(after: failure) {
            let pieces = halves(of: answer.apps, batch.header.events)
            return split(batch, answer, failure, into: pieces, aside: .fails)
        }
        if batch.isSetAside { batch.notBefore = later }
        guard isAlone, !batch.isSetAside else { return giveBack(batch, number) }
        batch.failures += 1
        batch.waitsForDestination = batch.failedAt.map { !hasTaken(since: $0) } ?? false
        batch.note(failure, at: now.boot)
        if let wait = options.retry.wait(afterFailures: batch.failures, using: &random) {
            batch.notBefore = now.boot + wait
            counters.retries += 1
            failuresInARow += 1
            pauseStarts(at: now)
            effects.append(.note(name, .failed(batch.header.id, failure, attempt: batch.failures, retryIn: wait)))
        } else if othersWentThrough, options.order != .promised {
            // So many that fail are not the batches' fault; and each is kept in memory.
            if isFull(of: .fails) { becomeHeld(failure, by: &batch, isProbe: false, at: now) }
            (batch.aside, batch.failures, batch.notBefore) = (.fails, 0, later)
            effects.append(.note(name, .setAside(batch.header.id, events: batch.header.events, failure, app: nil)))
        } else {
            batch.failures = 0
            openBreaker(failure, at: now)
        }
        giveBack(batch, number)
        askOthers(at: now)
    }

    /// Nothing is begun for a moment: a second after the first failure, then two, then four. A receiver that is
    /// overloaded gets one request at a time of each agent; one that refuses a single batch gets the others a moment later.
    private mutating func pauseStarts(at now: Moment) {
        let wait = options.retry.shortened(.seconds(1 << min(failuresInARow - 1, 2)), using: &random)
        (refusingSince, startNotBefore) = (refusingSince ?? now.wall, max(startNotBefore ?? now.boot, now.boot + wait))
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
        askOthers(at: now)
    }

    mutating func setProbes(to next: BootInstant) {
        hold?.nextProbe = next
        if breaker?.nextProbe != nil { breaker?.nextProbe = next }
    }

    /// The destination said when to come back: from 1 s to a day, up to half as long again at random (ac13): a fleet
    /// that was told the same comes back spread out.
    private mutating func waitAsTold(_ wait: Duration, _ failure: Failure, at now: Moment) {
        let asked = min(max(wait, .seconds(1)), .seconds(86_400))
        let until = now.boot + asked * (1 + 0.5 * Double.random(in: 0...1, using: &random))
        guard until > retryAfterUntil ?? now.boot else { return }
        (retryAfterUntil, refusingSince) = (until, refusingSince ?? now.wall)
        setProbes(to: until)
        effects.append(.persist(SwitchName.retryAfter(name), KeptWait.value(of: until - now.boot, at: now)))
        effects.append(.note(name, .retryAfter(until - now.boot, failure)))
    }

    // MARK: Answers about the destination

    private mutating func becomeHeld(_ failure: Failure, by batch: inout TrackedBatch, isProbe: Bool, at now: Moment) {
        let wait = probeWait()
        batch.holds += 1
        batch.note(failure, at: now.boot)
        // Once more after the others went through: it may be this batch alone, and it must not hold them up again.
        batch.notBefore = batch.holds > 1 ? now.boot + wait : now.boot
        let before = hold
        guard before == nil || isProbe else { return }
        hold = Hold(failure: failure, since: before?.since ?? now.wall, nextProbe: now.boot + wait)
        askOthers(at: now)
        if before == nil { effects.append(.note(name, .held(failure, probeIn: wait))) }
    }
}
