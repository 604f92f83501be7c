internal import EventLoops
internal import Model

/// Whose fault a refusal or failure is: the event's, its app's, or the destination's.
///
/// This type remembers what the destination accepted, what it refused and of which apps, and judges single
/// batches by that. Only acceptances of attempts that began after a refusal prove anything about it. It sends
/// and keeps nothing: the destination's machine carries out the verdicts.
struct Blame: Sendable {
    /// What to do with a batch that was refused or has failed.
    enum Verdict: Equatable {
        /// The event is at fault: give it up.
        case deadLetter
        /// The app is at fault, or too many of its events were refused for more to be given up: set the batch
        /// aside.
        case setAside
        /// The app is at fault: halve the batch until the cause is alone.
        case halve
        /// Answers in flight will show it soon: wait.
        case awaitProof
        /// Nothing shows whether the events or the destination are at fault: try others.
        case doubt
        /// Nothing speaks against the batch: treat it as after any failure.
        case none
    }

    /// The parts of the destination's state that matter for a verdict.
    struct Facts {
        var isProbe = false
        var isHeld = false
        /// Whether it is held because of rejected events.
        var isInDoubt = false
        var isBroken = false
        /// Whether other attempts are in flight.
        var hasOthersOnTheirWay = false
        /// Whether no more batches may be set aside for the same reason.
        var isFull = false
    }

    /// An app whose events were in a failed request.
    struct Suspect: Sendable, Equatable {
        /// First failure that is remembered.
        let since: BootInstant
        /// Last failure.
        let at: BootInstant
        /// Failures in a row without anything accepted in between.
        let inARow: Int
        /// Whether a failed request held events of this app only.
        let isAlone: Bool
        /// What the destination answered last.
        let failure: Failure
    }

    /// Most apps that are tried beside the usual attempts while everything fails. It bounds what an outage
    /// costs: five requests more than with one app.
    static let mostAsked = 5
    /// How often the verdict on an event is postponed before the destination is in doubt.
    private static let mostPostponements = 3
    /// Number of accepted events that an acknowledgement before a restart counts for.
    private static let trustKept = 10
    /// Most suspected apps. Senders can invent any number of app names.
    private static let mostSuspects = 1000

    private(set) var acknowledged: Acknowledged
    /// Apps whose events were in failed requests.
    private(set) var suspects: [String: Suspect] = [:]
    /// Fates of the last 1,000 events.
    private(set) var rejections: RejectionWindow
    /// Shares of refused events by app; they decide into how many pieces a refused batch is cut.
    private(set) var shares = RefusalShare()
    /// Beginning of the first doubt that an event rejected again has ended; see `endsDoubt`.
    private var doubtedSince: BootInstant?

    /// - Parameter isWithSettings: whether an earlier run got anything acknowledged with the present
    ///   settings.
    init(isWithSettings: Bool) {
        acknowledged = Acknowledged(isWithSettings: isWithSettings)
        // With trust for ten events, a restart before a bad event does not hold the destination; one before
        // many of them does.
        rejections = RejectionWindow(trusted: isWithSettings ? Blame.trustKept : 0)
    }

    // MARK: Evidence

    /// Events of a batch were accepted.
    ///
    /// - Parameters:
    ///   - events: how many of the batch's events.
    ///   - app: their app; nil if there are several or it is unknown.
    /// - Returns: whether they are the first with the present settings.
    mutating func noteAccepted(_ events: Int, of batch: TrackedBatch, app: String?, at now: Moment) -> Bool {
        rejections.note(rejected: false, events: events, of: batch.header.events)
        shares.note(refused: false, events: events, of: nil)
        if let app {
            shares.note(refused: false, events: events, of: app)
        }
        return acknowledged.note(bytes: batch.header.bytes, began: batch.attemptedAt, at: now)
    }

    /// Refused events of an answer were given up.
    mutating func noteGivenUp(_ events: Int, of answer: Int, app: String?) {
        rejections.note(rejected: true, events: events, of: answer, by: app)
    }

    /// Refused events were kept.
    mutating func noteKept(_ events: Int, app: String?) { rejections.noteKept(events, of: app) }

    /// Counts refused events towards the share of their app and, if the app is known, of all.
    mutating func noteRefused(_ events: Int, app: String?) {
        shares.note(refused: true, events: events, of: app)
        // Pieces of a lane with an order are not parted between apps, so the share of all decides there.
        if app != nil {
            shares.note(refused: true, events: events, of: nil)
        }
    }

    /// Events of an app, or of all (nil), are accepted: what was kept no longer speaks against it.
    mutating func forgive(_ app: String? = nil) { rejections.forgive(app) }

    /// No event of an app fails any more.
    mutating func clear(_ app: String) { suspects[app] = nil }

    /// A person says that everything has recovered.
    mutating func forgiveAll() {
        rejections.forgive()
        suspects = [:]
    }

    /// The settings have changed: nothing that was learned applies to them.
    mutating func forgetSettings() {
        acknowledged.forgetSettings()
        suspects = [:]
        rejections = RejectionWindow()
        shares = RefusalShare()
    }

    mutating func forgetCredentials() { acknowledged.forgetCredentials() }

    /// Ends old suspicions: an app is suspected for one probe interval while events of others are accepted.
    mutating func forgetSuspects(olderThan age: Duration, at now: BootInstant) {
        guard !suspects.isEmpty else { return }
        suspects = suspects.filter { !hasAccepted(since: $1.at) || now < $1.at + age }
    }

    // MARK: Questions

    /// Whether the destination accepted an attempt that began at or after a time. Attempts in flight at that
    /// time prove nothing, because the destination may have changed its mind.
    func hasAccepted(since point: BootInstant) -> Bool {
        acknowledged.latestBeginning.map { $0 >= point } ?? false
    }

    /// Whether the destination accepted an attempt that began after the batch's last rejection: its events
    /// are at fault then.
    func isProven(_ batch: TrackedBatch) -> Bool { batch.rejectedAt.map(hasAccepted) ?? false }

    /// Whether other batches were acknowledged since the first attempt of this one.
    func othersWentThrough(since batch: TrackedBatch) -> Bool {
        acknowledged.batches > (batch.acknowledgedBefore ?? acknowledged.batches)
    }

    /// Apps with a failed request of their own since anything was accepted.
    var asked: Set<String> { Set(suspects.filter { $1.isAlone && !hasAccepted(since: $1.at) }.keys) }

    /// Whether another app may be tried.
    var asksMore: Bool { (1..<Blame.mostAsked).contains(asked.count) }

    /// Whether a number of an app's events, of one answer, may be given up while others go through.
    func mayGiveUp(_ events: Int, of answer: Int, app: String?) -> Bool {
        rejections.tolerates(RejectionWindow.share(events, of: answer), of: app)
    }

    // MARK: Verdicts

    /// The verdict on a refused batch that is not split.
    ///
    /// A dead letter if the destination is seen to accept others; set aside if it accepts others, but too
    /// many events were rejected; otherwise a doubt, unless answers in flight will show it soon.
    func judgeRefused(_ batch: TrackedBatch, _ facts: Facts) -> Verdict {
        let isOne = batch.header.events == 1
        let mayEnd = isOne && (!facts.isHeld || facts.isProbe)
        if mayEnd, mayGiveUp(batch, isInDoubt: facts.isInDoubt) { return .deadLetter }
        // A batch that was set aside, or an app with fifty rejected events, tells nothing new about the
        // destination.
        let isOld = batch.isSetAside || rejections.isOwnMatter(of: batch.app) && !facts.isFull
        if isProven(batch) || !facts.isHeld && isOld {
            // Others go through, and there is no room to keep the event.
            return isOne && !batch.isSetAside && facts.isFull ? .deadLetter : .setAside
        }
        let isSoonKnown =
            acknowledged.isWithSettings && !facts.isHeld && isOne
            && batch.postponements < Blame.mostPostponements && facts.hasOthersOnTheirWay
        return isSoonKnown ? .awaitProof : .doubt
    }

    /// Whether what is known of the destination shows that a rejection is the event's fault.
    ///
    /// For a batch that was rejected before, something must have been accepted since. Otherwise a destination
    /// that refuses everything would turn piece after piece into dead letters.
    private func mayGiveUp(_ batch: TrackedBatch, isInDoubt: Bool) -> Bool {
        guard acknowledged.isWithSettings, rejections.tolerates(batch.header.events, of: batch.app) else {
            return false
        }
        // In a doubt, events offered for the first time are probes of a destination that may refuse
        // everything, and wait for proof as pieces do. Otherwise the first ten good events of an outage would
        // become dead letters.
        return batch.rejectedAt == nil ? rejections.toleratesAlone && !isInDoubt : isProven(batch)
    }

    /// The verdict on a failed batch: if others are accepted, its events are the cause. Remembers their apps
    /// as suspects.
    ///
    /// - Parameter apps: app of each event in the batch's order.
    mutating func judgeFailed(
        _ batch: TrackedBatch, _ failure: Failure, apps: [String], _ facts: Facts, at now: BootInstant
    ) -> Verdict {
        let app = Set(apps).count == 1 ? apps[0] : nil
        let failedBefore = batch.failed(before: failure).map(hasAccepted) ?? false
        let known = app.flatMap { suspects[$0] }
        let suspect = known.flatMap { $0.isAlone && hasAccepted(since: $0.since) ? $0 : nil }
        // An outage begins with the same answers. So after five failures of an app in a row its batches are
        // not parted, and ten seconds after the last acceptance none is set aside.
        let isEvident = suspect.map { hasAccepted(since: $0.at) || $0.inARow < Blame.mostAsked } ?? false
        let isRecent = acknowledged.latestBeginning.map { now < $0 + Doubt.step } ?? false
        let isCause = failedBefore || isEvident || suspect != nil && isRecent
        noteSuspect(app, apps, failure, at: now)
        guard !facts.isHeld, !facts.isBroken, isCause || batch.aside == .fails else { return .none }
        let isTellingAgain = failedBefore || isEvident && failure.isRefusal
        if isTellingAgain, batch.header.events > 1, batch.maySplit(after: failure),
            app == nil || !rejections.isHopeless(app)
        {
            return .halve
        }
        return !batch.isSetAside && facts.isFull ? .deadLetter : .setAside
    }

    /// Remembers the app of a failed request. After a failure without an answer, all apps of a mixed batch
    /// are remembered, though not as the only ones (`isAlone`).
    private mutating func noteSuspect(
        _ app: String?, _ apps: [String], _ failure: Failure, at now: BootInstant
    ) {
        if suspects.count >= Blame.mostSuspects {
            suspects = [:]
        }
        for name in app.map({ [$0] }) ?? (failure.leavesOpen ? Set(apps).sorted() : []) where name != "" {
            let known = suspects[name].flatMap { $0.isAlone || app == nil ? $0 : nil }
            suspects[name] = Suspect(
                since: known?.since ?? now, at: now,
                inARow: known.map { hasAccepted(since: $0.at) ? 1 : $0.inARow + 1 } ?? 1,
                isAlone: app != nil || known?.isAlone == true,
                failure: failure)
        }
    }

    /// Whether an event that is rejected again, although others were accepted since the first time, ends a
    /// doubt.
    ///
    /// So it is for 30 s after the first doubt since anything was accepted. Without that bound, doubts would
    /// end and begin anew for ever, and the hold would never be reported.
    mutating func endsDoubt(_ doubt: Doubt?, at now: BootInstant) -> Bool {
        guard let doubt else { return true }
        let first = doubtedSince.flatMap { hasAccepted(since: $0) ? nil : $0 } ?? doubt.began
        doubtedSince = first
        return now < first + Doubt.patience
    }
}
