internal import EventLoops
internal import Model

/// Events are rejected, and nothing shows yet whether they or the destination are at fault: a doubt.
///
/// Then what is likely to pass is tried, one request at a time: events that were not offered yet, alternating
/// with untried pieces of rejected batches. One acknowledgement proves that the rejected events are at fault,
/// and they are given up. A destination that rejects everything is held, and its events are kept.
extension DestinationMachine {
    /// Most rejected batches and pieces that wait to be tried; each is kept in memory.
    private static let mostRejected = 1000
    /// Most set-aside batches of an app that are tried again at about the same time, after others of it were
    /// accepted.
    private static let mostSampled = 8
    /// Most batches that are set aside for one reason; each is kept in memory.
    private static let mostSetAside = 1000

    /// A batch was rejected without a sign of whose fault that is: it waits, and others are tried.
    mutating func doubt(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) {
        let now = answer.now
        var batch = batch
        (batch.rejectedAt, batch.notBefore) = (now.boot, now.boot)
        giveBack(batch, answer.number)
        if hold == nil || answer.isProbe && hold?.doubt == nil {
            standing.hold(
                Standing.Hold(
                    failure: failure, since: hold?.since ?? now.wall, nextProbe: now.boot,
                    doubt: Doubt(began: now.boot, isAnnounced: hold != nil), patience: nil))
        }
        goOnDoubting(answer, failure)
    }

    /// A rejection does not end the doubt: decides when the next attempt is, and whether the destination
    /// counts as held by now.
    mutating func goOnDoubting(_ answer: Answer, _ failure: Failure) {
        let now = answer.now
        guard let doubt = hold?.doubt else { return }
        let isOver = hasWaited(doubt, at: now.boot)
        let isPatient = !isOver && hasUntried(since: doubt.began)
        let wait = isPatient ? .zero : min(probeWait(), Doubt.step)
        if isPatient || answer.isProbe || hold?.nextProbe ?? now.boot <= now.boot {
            standing.setHoldProbe(to: now.boot + wait)
        }
        guard isOver, !doubt.isAnnounced else { return }
        standing.updateDoubt { $0.announce() }
        effects.append(.note(name, .held(failure, probeIn: wait)))
    }

    /// Whether a doubt has lasted long enough for the destination to count as held.
    ///
    /// With a promised order, rejected events are passed only one after the other, so the doubt also lasts
    /// until memory is full of them.
    private func hasWaited(_ doubt: Doubt, at now: BootInstant) -> Bool {
        doubt.began + Doubt.patience <= now && (options.order != .promised || !hasRoomForRejected)
    }

    /// New events have come: a destination in doubt is offered them at once, or within 10 s if it counts as
    /// held.
    mutating func offerNew(at now: Moment) {
        if blame.asksMore {
            turns.look(at: turns.lookAt ?? now.boot + Doubt.step)
        }
        standing.updateDoubt { $0.noteNew() }
        guard let doubt = hold?.doubt, let next = hold?.nextProbe else { return }
        let isPatient = !hasWaited(doubt, at: now.boot)
        standing.setHoldProbe(to: min(next, isPatient ? now.boot : now.boot + Doubt.step))
    }

    /// The most informative attempt now; nil if everything was tried in this doubt.
    func untried(in doubt: Doubt) -> Start? {
        // With a promised order, only the rejected event itself may be passed by what comes after it.
        if options.order == .promised { return firstInOrder(untriedSince: doubt.began) }
        if !turns.prefersPieces, let new = fresh(isFree: false, exchanges: doubt.isAnnounced) { return new }
        // Take the apps in turn: all events of one app may be bad.
        let last = kept.latest?.app ?? -1
        let known = kept.first { left, right in
            guard left.app != right.app else { return Kept.Card.isRested(left, right) }
            let (one, other) = (left.app ?? -1, right.app ?? -1)
            return (one <= last ? 1 : 0, one) < (other <= last ? 1 : 0, other)
        } where: {
            isUntried($0, since: doubt.began)
        }
        return known.map { .again($0.id, isProbe: true) } ?? fresh(isFree: true, exchanges: doubt.isAnnounced)
            ?? fresh(isFree: false, exchanges: doubt.isAnnounced)
    }

    /// An attempt with events that were not offered yet: new ones, or a free batch.
    ///
    /// - Parameters:
    ///   - isFree: whether a free batch is wanted rather than new events.
    ///   - exchanges: whether a rejected batch that was tried in this doubt may give up its place in memory,
    ///     if memory is full of them.
    private func fresh(isFree: Bool, exchanges: Bool = false) -> Start? {
        guard exchanges || hasRoomForRejected else { return nil }
        let lanes = Priority.inOrder.filter { isFree ? freeToTake($0) > 0 : available($0) > 0 }
        // Take the lanes in turn: all events of one lane may be bad.
        return (lanes.first { isFree || $0 != hold?.doubt?.lane } ?? lanes.first)
            .map { .next($0, takesFree: isFree, isProbe: true) }
    }

    /// Whether free batches may have been rejected before a restart. Then they alternate with new events
    /// instead of preceding them: hundreds of rejected ones would delay good events by minutes.
    var suspectsFree: Bool {
        options.order == .free
            && (hold?.doubt != nil || blame.rejections.rejected > 0 || !blame.suspects.isEmpty)
    }

    /// Whether memory has room for the pieces of another rejected batch.
    var hasRoomForRejected: Bool {
        kept.counts.rejected < DestinationMachine.mostRejected
    }

    /// Makes room for one more rejected batch by forgetting one that was tried in this doubt and has rested
    /// longest. The queue keeps it as a free batch, which comes again after all else was offered.
    mutating func exchangeRejected() {
        guard options.order != .promised, let began = hold?.doubt?.began else { return }
        func isTried(_ card: Kept.Card) -> Bool {
            card.isOpenlyRejected && !card.mayBeTaken && !isUntried(card, since: began)
        }
        while !hasRoomForRejected, let tried = kept.first(by: Kept.Card.isRested, where: isTried) {
            kept.remove(tried.id)
        }
    }

    /// Decides whether the next new probe is to be of an app without rejected events: in which lane, and
    /// which apps the queue passes over. Nil: the next events in line are taken.
    mutating func lookElsewhere() -> (lane: Priority, notOf: Set<String>)? {
        guard options.order == .free else { return nil }
        guard let doubt = hold?.doubt else { return nil }
        let refused = Set(kept.all.filter { $0.rejectedAt != nil }.compactMap(\.app))
        guard doubt.isAnnounced || !refused.isEmpty else { return nil }
        let lanes = lanesWithNew
        var chosen: Priority?
        standing.updateDoubt { chosen = $0.laneOfOtherApp(lanes) }
        return chosen.map { ($0, refused) }
    }

    /// Lanes with events that were not requested yet.
    private var lanesWithNew: [Priority] { Priority.inOrder.filter { available($0) > 0 } }

    /// The lane had no event of another app. The probe's turn is given back, since nothing was tried.
    mutating func foundNoOther(at now: Moment) {
        let lanes = lanesWithNew
        standing.updateDoubt { $0.foundNoOther(lanes) }
        turns.giveTurnBack()
        standing.setHoldProbe(to: now.boot)
    }

    /// Whether no more batches may be set aside for a reason.
    func isFull(of aside: TrackedBatch.Aside) -> Bool {
        kept.count(of: aside) >= DestinationMachine.mostSetAside
    }

    /// Whether later events may pass a batch in a doubt although the order is promised: only if the batch was
    /// rejected in this doubt.
    func mayBePassed(_ batch: Kept.Card, since began: BootInstant) -> Bool {
        // A batch that stays whole was rejected event by event.
        guard let rejectedAt = batch.rejectedAt, let attemptedAt = batch.attemptedAt else { return false }
        return attemptedAt >= began && rejectedAt >= attemptedAt
    }

    /// Whether a batch was not attempted since the doubt began, and is not set aside.
    private func isUntried(_ batch: Kept.Card, since began: BootInstant) -> Bool {
        !batch.isSetAside && batch.attemptedAt.map { $0 < began } ?? true
    }

    /// Whether anything is left that was not tried in this doubt.
    private func hasUntried(since began: BootInstant) -> Bool {
        (fresh(isFree: true) ?? fresh(isFree: false)) != nil || attempts.counts.coming > 0
            || kept.contains { isUntried($0, since: began) }
    }

    /// Sets aside a rejected batch that may not be given up, because too many of its app's events were
    /// rejected.
    ///
    /// The batches of one app are tried again 10 s apart, each after a probe interval at the latest.
    mutating func setAside(_ batch: inout TrackedBatch, events: Int, _ failure: Failure, at now: Moment) {
        if !batch.isSetAside {
            noteSetAside(batch, events: events, failure)
        }
        // One of an app's every ten seconds, each after a probe interval at the latest.
        let app = batch.app.map { kept.number(of: $0) ?? -1 }
        let last = kept.first {
            $0.notBefore > $1.notBefore
        } where: {
            $0.aside == .rejected && $0.app == app
        }
        let turn = max(last?.notBefore ?? now.boot, now.boot) + Doubt.step
        (batch.aside, batch.rejectedAt) = (.rejected, now.boot)
        batch.notBefore = min(turn, now.boot + probeWait())
    }

    /// Counts and logs events that were set aside. Only single events count towards the app's share of
    /// refused ones: in a larger batch some may be good.
    mutating func noteSetAside(_ batch: TrackedBatch, events: Int, _ failure: Failure) {
        blame.noteKept(events, app: batch.app)
        if events == 1 {
            blame.noteRefused(events, app: batch.app)
        }
        effects.append(.note(name, .setAside(batch.header.id, events: events, failure, app: batch.app)))
    }

    /// The destination accepts events of an app: retries up to eight of its set-aside batches, the most
    /// recently set aside first. If one is accepted, all are retried.
    ///
    /// Retrying all at once would ask a receiver that refuses a fifth of the events for each refused event
    /// once more.
    mutating func sampleSetAside(of app: String, rejectedUntil end: BootInstant, at now: BootInstant) {
        blame.forgive(app)
        guard let number = kept.number(of: app) else { return }
        let soon = now + Doubt.step
        func isOfApp(_ card: Kept.Card) -> Bool { card.app == number && card.isSetAside }
        var coming = kept.count { isOfApp($0) && $0.isTriedAgain && $0.notBefore <= soon }
        while coming < DestinationMachine.mostSampled,
            let last = kept.first(
                by: { $0.notBefore > $1.notBefore },
                where: { isOfApp($0) && !$0.isTriedAgain && $0.rejectedAt.map { $0 <= end } == true })
        {
            kept.update(last.id) { batch in
                let rested = batch.attemptedAt.map { $0 + Doubt.step } ?? now
                batch.notBefore = min(batch.notBefore, max(rested, now))
                batch.isTriedAgain = true
            }
            coming += 1
        }
    }

    /// Retries set-aside batches of an app or of all (nil), because an answer or a person says that the cause
    /// is gone.
    ///
    /// - Parameter rest: shortest time since a batch's last attempt.
    mutating func retrySetAside(
        of app: String?, after rest: Duration = .zero, at now: BootInstant
    ) {
        blame.forgive(app)
        let number = app.map { kept.number(of: $0) ?? -1 }
        kept.updateAll {
            $0.isSetAside && (number == nil || number == $0.app)
        } _: { batch in
            let rested = batch.attemptedAt.map { $0 + rest } ?? now
            batch.notBefore = min(batch.notBefore, max(rested, now))
            batch.isTriedAgain = rest > .zero
        }
    }
}

/// Requests fail at a destination that has accepted others, and nothing shows whether one app's events are
/// the cause: a firewall before the receiver may refuse what an app writes, or break the connection.
///
/// Then apps are tried one after another with one event each. As soon as anything is accepted, the events of
/// an app that failed are parted from the others', halved until the failing ones are alone, and set aside.
extension DestinationMachine {
    /// Whether requests fail as a whole: held, breaker open or in trouble, but not because of rejected
    /// events.
    private var isFailing: Bool {
        hold.map { $0.doubt == nil } ?? (breaker != nil || standing.trouble != nil)
    }

    /// Whether the app of each event must be known before a batch is sent and after it was accepted. The
    /// look-up reads the batch, so it is done only while an app may be at fault.
    var asksApps: Bool {
        options.order == .free && hasAcknowledgedWithSettings && (!blame.suspects.isEmpty || isFailing)
    }

    /// Apps whose requests fail while those of others succeed, with the last failure of each; for `status`.
    var failingApps: [String: Failure] {
        guard kept.counts.failing > 0 else { return [:] }
        let aside = Set(kept.all.filter { $0.aside == .fails }.compactMap(\.app))
        return blame.suspects.filter { $1.isAlone && aside.contains($0) }.mapValues(\.failure)
    }

    /// An attempt with a kept piece of an app that was not tried since the failures began.
    func unasked() -> Start? {
        let asked = blame.asked
        guard !asked.isEmpty else { return nil }
        let numbers = Set(asked.compactMap { kept.number(of: $0) })
        let piece = kept.first(by: Kept.Card.isRested) { isUnasked($0, numbers) }
        return piece.map { .again($0.id, isProbe: true) }
    }

    /// A probe with new events of an app that was not tried yet, between the usual probes.
    func look(_ gate: Gate, at now: Moment) -> Start? {
        guard gate.automatic != nil, turns.looks(at: now.boot), attempts.begun < options.parallelBatches,
            hasRoomForRejected,
            attempts.counts.probes == 0
        else { return nil }
        return Priority.inOrder.first { available($0) > 0 }.map { .next($0, takesFree: false, isProbe: true) }
    }

    /// Whether a batch is an untried piece of an app that was not tried yet.
    private func isUnasked(_ batch: Kept.Card, _ asked: Set<Int>) -> Bool {
        batch.attemptedAt == nil && !batch.isSetAside && batch.app.map { !asked.contains($0) } ?? false
    }

    /// Plans an attempt with another app after 1, 2 or 4 s, if there is one; otherwise the usual waits go on.
    /// At most five apps are tried, so that an outage costs only a few more requests.
    mutating func askOthers(at now: Moment) {
        guard asksApps, isFailing else { return }
        let asked = blame.asked
        guard asked.count < Blame.mostAsked else { return }
        let soon = now.boot + .seconds(1 << min(asked.count, 2))
        let numbers = Set(asked.compactMap { kept.number(of: $0) })
        if standing.isForProbesOnly, kept.contains(where: { isUnasked($0, numbers) }) {
            standing.setProbes(to: soon)
        } else if !asked.isEmpty, lanes.critical.waitingEvents + lanes.normal.waitingEvents > 0 {
            turns.look(at: soon)
        }
    }

    /// Parts a batch between apps, if that may show whose events fail.
    ///
    /// - Parameter failure: the answer to the batch; nil for a batch that was not sent yet.
    /// - Returns: whether the batch was parted.
    mutating func part(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure?) -> Bool {
        guard asksApps, answer.apps.count == batch.header.events, batch.maySplit(after: failure),
            let why = failure ?? standing.lastFailure?.failure, !why.saysOverload
        else { return false }
        let asked = blame.asked
        let most = Blame.mostAsked - (isFailing ? asked.count : 0)
        var numbers: [String: Int] = [:]
        let pieces = answer.apps.map { app in
            let isNew = numbers[app] == nil
            // One event of each app not tried yet or, if others are accepted, all events of each suspected
            // app; the rest stays together.
            guard
                isFailing
                    ? isNew && app != "" && !asked.contains(app) && numbers.count < most
                    : blame.suspects[app] != nil
            else { return most }
            numbers[app] = numbers[app] ?? min(numbers.count, most - 1)
            return numbers[app] ?? most
        }
        guard Set(pieces).count > 1 else { return false }
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
        let (app, now) = (answer.app, answer.now)
        guard options.order == .free, hasAcknowledgedWithSettings,
            answer.apps.contains(where: { !$0.isEmpty }),
            !failure.saysOverload
        else { return false }
        let facts = facts(isProbe: answer.isProbe, hasOthersOnTheirWay: false, aside: .fails)
        let verdict = blame.judgeFailed(batch, failure, apps: answer.apps, facts, at: now.boot)
        var batch = batch
        batch.app = app
        batch.note(failure, at: now.boot)
        switch verdict {
        case .none, .doubt, .awaitProof: return false
        case .halve:
            let pieces = halves(of: answer.apps, batch.header.events)
            split(batch, answer, failure, into: pieces, aside: app == nil ? batch.aside : .fails)
        case .deadLetter: deadLetter(batch, answer.number, failure)
        case .setAside:
            setApart(&batch, failure)
            batch.failures += 1
            batch.notBefore =
                now.boot + (options.retry.wait(afterFailures: batch.failures, using: &random) ?? probeWait())
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
        guard !blame.suspects.isEmpty else { return }
        turns.endLook()
        for batch in kept.all where batch.failedAt.map(blame.hasAccepted) ?? false && !batch.isSetAside {
            guard let suspect = batch.app.flatMap({ blame.suspects[$0] }), suspect.isAlone else { continue }
            var batch = batch
            setApart(&batch, suspect.failure)
            batch.notBefore = min(batch.notBefore, now + Doubt.step)
            kept.keep(batch)
        }
        let number = app.map { kept.number(of: $0) ?? -1 }
        let isStillAside = kept.contains { $0.aside == .fails && ($0.app ?? number) == number }
        if let app, !isStillAside {
            blame.clear(app)
        }
    }
}

extension Failure {
    /// Whether the answer is about load and not about content (429, 503, RFC 6585 and 9110): further requests
    /// to find a culprit would add to the load.
    fileprivate var saysOverload: Bool { status == 429 || status == 503 }
}
