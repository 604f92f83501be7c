internal import EventLoops
internal import Model

/// Requests fail at a destination that has taken others, and nothing tells whether one app's events are the cause: a firewall before the
/// receiver may refuse what an app writes, or break the connection.
///
/// Then apps are asked one after another, an event each. Once anything is taken, the events of an app that failed are kept apart from the
/// others', halved until those are found that fail, and set aside.
extension DestinationMachine {
    /// An app with whose events a request failed.
    struct Suspect: Sendable {
        /// When one did first, of those that are remembered.
        let since: BootInstant
        /// When one did last.
        let at: BootInstant
        /// How many did in a row without anything being taken in between.
        let inARow: Int
        /// Whether it held nobody else's.
        let isAlone: Bool
        let failure: Failure
    }

    /// So many apps are asked beside the usual attempts: an outage costs few requests more than it would for one app.
    private static let mostAsked = 5

    private var isFailing: Bool { hold.map { $0.doubt == nil } ?? (breaker != nil || refusingSince != nil) }

    /// Whether it has to know whose a batch's events are before they are sent, and once they were taken.
    var asksApps: Bool {
        options.order == .free && hasAcknowledgedWithSettings && (!suspects.isEmpty || isFailing)
    }

    /// The apps of which a request failed since anything was taken.
    var asked: Set<String> { Set(suspects.filter { $1.isAlone && !hasTaken(since: $1.at) }.keys) }

    /// Apps whose events fail while others' are taken: what the destination says to them.
    var failingApps: [String: Failure] {
        let aside = Set(tracked.values.filter { $0.aside == .fails }.compactMap(\.app))
        return suspects.filter { $1.isAlone && aside.contains($0) }.mapValues(\.failure)
    }

    /// Whether another app may be asked.
    var asksMore: Bool { (1..<DestinationMachine.mostAsked).contains(asked.count) }

    /// Whether what waits is to be looked through now for events of another app than those that were asked.
    func looks(at now: Moment) -> Bool { lookAt.map { $0 <= now.boot } ?? false }

    /// A piece of another app than those that were asked.
    func unasked() -> Start? {
        let asked = asked
        let pieces = asked.isEmpty ? [] : tracked.values.filter { isUnasked($0, asked) }
        return pieces.min(by: TrackedBatch.isRested).map { .again($0.header.id, isProbe: true) }
    }

    /// What has come of another app than those that were asked, between the usual probes.
    func look(_ gate: Gate, at now: Moment) -> Start? {
        guard gate.automatic != nil, looks(at: now), begun < options.parallelBatches, hasRoomForRejected,
            !attempts.contains(where: \.isProbe)
        else { return nil }
        return Priority.inOrder.first { available($0) > 0 }.map { .next($0, takesFree: false, isProbe: true) }
    }

    private func isUnasked(_ batch: TrackedBatch, _ asked: Set<String>) -> Bool {
        batch.attemptedAt == nil && !batch.isSetAside && batch.app.map { !asked.contains($0) } ?? false
    }

    /// Another app is asked soon, if there is one; else the usual waits go on.
    mutating func askOthers(at now: Moment) {
        guard asksApps, isFailing else { return }
        let asked = asked
        guard asked.count < DestinationMachine.mostAsked else { return }
        let soon = now.boot + .seconds(1 << min(asked.count, 2))
        if hold != nil || breaker != nil, tracked.values.contains(where: { isUnasked($0, asked) }) {
            setProbes(to: soon)
        } else if !asked.isEmpty, lanes.critical.waitingEvents + lanes.normal.waitingEvents > 0 {
            lookAt = min(lookAt ?? soon, soon)
        }
    }

    /// Parts a batch between apps where that may tell whose events fail; unsent, if it was not answered. Whether it did.
    mutating func part(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure?) -> Bool {
        guard asksApps, answer.apps.count == batch.header.events, batch.maySplit(after: failure),
            let why = failure ?? lastFailure?.failure, !why.saysOverload
        else { return false }
        let asked = asked
        let most = DestinationMachine.mostAsked - (isFailing ? asked.count : 0)
        var numbers: [String: Int] = [:]
        let pieces = answer.apps.map { app in
            let isNew = numbers[app] == nil
            // One event of each app that was not asked, or all of one that is suspected; the others stay together.
            guard isFailing ? isNew && app != "" && !asked.contains(app) && numbers.count < most : suspects[app] != nil
            else { return most }
            numbers[app] = numbers[app] ?? min(numbers.count, most - 1)
            return numbers[app] ?? most
        }
        guard Set(pieces).count > 1 else { return false }
        if failure == nil { attempts.update(answer.number) { $0.send(batch) } }
        split(batch, answer, why, into: pieces)
        return true
    }

    /// If others are taken, the events of a batch that failed are the cause: they are halved, or set aside. Whether that was so.
    mutating func failsAlone(_ batch: TrackedBatch, _ answer: Answer, _ failure: Failure) -> Bool {
        let (app, now) = (answer.app, answer.now)
        guard options.order == .free, hasAcknowledgedWithSettings, answer.apps.contains(where: { !$0.isEmpty }),
            !failure.saysOverload
        else { return false }
        let failedBefore = batch.failed(before: failure).map(hasTaken) ?? false
        let suspect = app.flatMap { suspects[$0] }.flatMap { $0.isAlone && hasTaken(since: $0.since) ? $0 : nil }
        // An outage begins with the same answers: so many in a row part no more, and a moment after what was taken last none is set aside.
        let isTold = suspect.map { hasTaken(since: $0.at) || $0.inARow < DestinationMachine.mostAsked } ?? false
        let isCause =
            failedBefore || isTold || suspect != nil && tookAt.map { now.boot < $0 + DestinationMachine.step } ?? false
        // Names may be many, memory is not.
        if suspects.count >= 1000 { suspects = [:] }
        for name in app.map({ [$0] }) ?? (failure.leavesOpen ? Set(answer.apps).sorted() : []) where name != "" {
            let known = suspects[name].flatMap { $0.isAlone || app == nil ? $0 : nil }
            suspects[name] = Suspect(
                since: known?.since ?? now.boot, at: now.boot,
                inARow: known.map { hasTaken(since: $0.at) ? 1 : $0.inARow + 1 } ?? 1,
                isAlone: app != nil || known?.isAlone == true,
                failure: failure)
        }
        guard hold == nil, breaker == nil, isCause || batch.aside == .fails else { return false }
        var batch = batch
        batch.app = app
        batch.note(failure, at: now.boot)
        if failedBefore || isTold && failure.isRefusal, batch.header.events > 1, batch.maySplit(after: failure),
            app == nil || !rejections.isHopeless(app)
        {
            let pieces = halves(of: answer.apps, batch.header.events)
            split(batch, answer, failure, into: pieces, aside: app == nil ? batch.aside : .fails)
        } else if !batch.isSetAside, isFull(of: .fails) {
            deadLetter(batch, answer.number, failure)
        } else {
            setApart(&batch, failure)
            batch.failures += 1
            batch.notBefore =
                now.boot + (options.retry.wait(afterFailures: batch.failures, using: &random) ?? probeWait())
            giveBack(batch, answer.number)
        }
        return true
    }

    private mutating func setApart(_ batch: inout TrackedBatch, _ failure: Failure) {
        guard !batch.isSetAside else { return }
        batch.aside = .fails
        noteSetAside(batch, events: batch.header.events, failure)
    }

    /// Something was taken: what failed before waits beside the others now, and an app of which nothing does is suspected no more.
    mutating func clear(_ app: String?, at now: BootInstant) {
        guard !suspects.isEmpty else { return }
        lookAt = nil
        for (id, batch) in tracked where batch.failedAt.map(hasTaken) ?? false && !batch.isSetAside {
            guard let suspect = batch.app.flatMap({ suspects[$0] }), suspect.isAlone else { continue }
            var batch = batch
            setApart(&batch, suspect.failure)
            batch.notBefore = min(batch.notBefore, now + DestinationMachine.step)
            tracked[id] = batch
        }
        if let app, !tracked.values.contains(where: { $0.aside == .fails && ($0.app ?? app) == app }) {
            suspects[app] = nil
        }
    }

    /// An app is suspected for as long as a probe waits, while others' events are taken.
    mutating func forgetSuspects(at now: BootInstant) {
        guard !suspects.isEmpty else { return }
        suspects = suspects.filter { !hasTaken(since: $1.at) || now < $1.at + options.probeInterval }
    }
}

extension Failure {
    /// Whether it is about how much is sent, and not what: more requests would be the wrong answer.
    fileprivate var saysOverload: Bool { status == 429 || status == 503 }
}
