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
        /// Halve the batch until the cause is alone.
        case halve
        /// Cut the batch into pieces of the best size until the refused events are alone.
        case cut
        /// Nothing of the app is accepted: try one event and set the others aside.
        case sample
        /// Answers in flight will show it soon: wait.
        case awaitProof
        /// Nothing shows whether the events or the destination are at fault: try others.
        case doubt
        /// Nothing suggests that the batch is at fault: treat it as after any failure.
        case none
    }

    /// What the destination answered to a batch.
    struct Evidence {
        enum Kind {
            /// The destination refuses the batch because of its events (400, 422).
            case refused
            /// The body is too large (413).
            case tooLarge
            /// The destination refuses events by name; the batch is not cut.
            case named
            /// The request has failed, or was refused for another reason than its events.
            case failed
        }

        let kind: Kind
        let batch: TrackedBatch
        let failure: Failure
        /// App of each event in the batch's order; empty if the apps are unknown.
        let apps: [String]
    }

    /// The parts of the destination's state that matter for a verdict.
    struct Facts {
        var order = DestinationOptions.Order.free
        var isProbe = false
        var isHeld = false
        /// Whether the destination is held because of rejected events.
        var isInDoubt = false
        var isBroken = false
        /// Whether other attempts are in flight.
        var hasOthersOnTheirWay = false
        /// Whether no more batches may be set aside for the same reason.
        var isFull = false
    }

    /// Most apps that are tried beside the usual attempts while everything fails. It bounds what an outage
    /// costs: five requests more than with one app.
    static let mostAsked = 5
    /// How often the verdict on an event is postponed before the destination is in doubt.
    private static let mostPostponements = 3
    /// Number of accepted events that an acknowledgement before a restart counts for.
    private static let trustKept = 10

    private(set) var acknowledged: Acknowledged
    /// Records of apps whose events were accepted or refused.
    private var apps = AppRecords()
    /// Fates of the last 1,000 events.
    private var rejections: RejectionWindow
    /// Largest body that the destination accepts; nil if no limit was met.
    private(set) var ceiling: SizeCeiling?
    /// Beginning of the first doubt that an event rejected again has ended; see `endsDoubt`.
    private var doubtedSince: BootInstant?

    /// - Parameters:
    ///   - isWithSettings: whether an earlier run got anything acknowledged with the present settings.
    ///   - ceiling: the body limit that an earlier run found with the present settings; nil if it found none.
    init(isWithSettings: Bool, ceiling: SizeCeiling? = nil) {
        self.ceiling = ceiling
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
        apps.note(refused: false, events: events, of: nil)
        if let app {
            apps.note(refused: false, events: events, of: app)
        }
        ceiling?.acknowledge()
        return acknowledged.note(bytes: batch.header.bytes, began: batch.attemptedAt, at: now)
    }

    /// Counts refused events that were given up, of an answer.
    mutating func noteGivenUp(_ events: Int, of answer: Int, app: String?) {
        rejections.note(rejected: true, events: events, of: answer, by: app)
    }

    /// Counts refused events whose batch was kept.
    mutating func noteKept(_ events: Int, app: String?) {
        rejections.noteKept(events)
        if let app {
            apps.noteKept(events, of: app)
        }
    }

    /// Counts refused events towards the share of their app and, if the app is known, of all.
    mutating func noteRefused(_ events: Int, app: String?) {
        apps.note(refused: true, events: events, of: app)
        // Lanes with an order are not cut by app, so they use the share of all apps together.
        if app != nil {
            apps.note(refused: true, events: events, of: nil)
        }
    }

    /// A batch was too large for one request (413). If larger ones are accepted, the cause is not the size of
    /// the body but an event in it.
    mutating func noteTooLarge(_ batch: TrackedBatch, wireBytes: Int) {
        guard batch.header.bytes > acknowledged.largestBytes else { return }
        lowerCeiling(wireBytes: wireBytes, bytes: batch.header.bytes)
    }

    /// A batch took longer than a request may, and is larger than any accepted lately: later batches are at
    /// most half its size.
    mutating func noteTooSlow(_ batch: TrackedBatch) {
        guard batch.header.events > 1, batch.header.bytes > acknowledged.largestBytes else { return }
        let bytes = max(1, batch.header.bytes / 2)
        lowerCeiling(wireBytes: bytes, bytes: bytes)
    }

    /// A batch exceeds the burst of the receiver's rate limiter (429): later batches are smaller.
    mutating func noteTooMuch(_ batch: TrackedBatch) {
        lowerCeiling(wireBytes: batch.header.bytes, bytes: batch.header.bytes)
    }

    private mutating func lowerCeiling(wireBytes: Int, bytes: Int) {
        ceiling?.refuse(wireBytes: wireBytes, bytes: bytes)
        ceiling = ceiling ?? SizeCeiling(refusedWireBytes: wireBytes, bytes: bytes)
    }

    mutating func forgetCeiling() { ceiling = nil }

    /// Events of an app, or of all (nil), are accepted: what was kept no longer speaks against it.
    mutating func forgive(_ app: String? = nil) { apps.forgive(app) }

    /// No event of an app fails any more.
    mutating func clear(_ app: String) { apps.clear(app) }

    /// A person says that everything has recovered.
    mutating func forgiveAll() {
        apps.forgive(nil)
        apps.clear(nil)
    }

    /// The settings have changed: nothing that was learned applies to them.
    mutating func forgetSettings() {
        acknowledged.forgetSettings()
        apps = AppRecords()
        rejections = RejectionWindow()
        ceiling = nil
    }

    /// The credentials have changed: earlier acknowledgements prove nothing about them.
    mutating func forgetCredentials() { acknowledged.forgetCredentials() }

    /// Ends old suspicions: an app is suspected for one probe interval while events of others are accepted.
    mutating func forgetSuspects(olderThan age: Duration, at now: BootInstant) {
        guard apps.hasSuspects, let latest = acknowledged.latestBeginning else { return }
        apps.clear { latest >= $0.at && now >= $0.at + age }
    }

    /// When the first old suspicion ends (see `forgetSuspects`); nil if none does.
    func suspicionEnds(after age: Duration) -> BootInstant? {
        guard apps.hasSuspects, let latest = acknowledged.latestBeginning else { return nil }
        return apps.suspects { latest >= $0.at }.values.map { $0.at + age }.min()
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

    /// Whether the app of any event is suspected because a request with it failed.
    var hasSuspects: Bool { apps.hasSuspects }

    /// The last failure of an app whose requests fail; nil if it is not suspected.
    func suspect(_ app: String) -> AppRecords.Suspect? { apps.suspect(app) }

    /// Whether any events were refused or failed lately.
    var hasRefusals: Bool { apps.hasSuspects || rejections.rejected > 0 }

    /// Whether the app of accepted events matters, because events of some app were kept.
    var asksAppsOfAccepted: Bool { apps.hasKept }

    /// Apps with a failed request of their own since anything was accepted.
    var asked: Set<String> { Set(apps.suspects { $0.isAlone && !hasAccepted(since: $0.at) }.keys) }

    /// Whether another app may be tried.
    var asksMore: Bool { apps.hasSuspects && (1..<Blame.mostAsked).contains(asked.count) }

    /// Whether fifty events of an app were refused and kept, and none accepted since.
    func isHopeless(_ app: String?) -> Bool { apps.isHopeless(app) }

    /// The share of an app's events, or of all (nil), that are refused; nil while too few are known.
    func share(of app: String?) -> Double? { apps.share(of: app) }

    /// Whether 429 to a batch for the second time is about the batch: it may exceed the burst of the
    /// receiver's rate limiter, and would be refused however long it waits.
    ///
    /// Only batches larger than any accepted lately are: for others, load is the cause. With an order no
    /// smaller batch can pass, so the first half is the test.
    func isTooMuch(_ batch: TrackedBatch, _ failure: Failure, _ order: DestinationOptions.Order) -> Bool {
        guard failure.status == 429, batch.header.events > 1, !batch.mayBeTaken, !batch.isSetAside,
            batch.failedAt != nil || !batch.place.isWhole
        else { return false }
        let isLarger = batch.header.bytes > acknowledged.largestBytes
        return order != .free || othersWentThrough(since: batch) && isLarger
    }

    /// Whether a number of an app's events, of one answer, may be given up while others go through.
    func mayGiveUp(_ events: Int, of answer: Int, app: String?) -> Bool {
        rejections.tolerates(RejectionWindow.share(events, of: answer), of: app)
    }

    // MARK: Pieces

    /// Number of the piece for each event of a refused batch. Pieces hold events of one app; with an order
    /// they are runs of neighbours.
    func pieces(of batch: TrackedBatch, apps: [String], isFree: Bool) -> [Int] {
        let events = batch.header.events
        // A small batch of an earlier run is most likely a piece: its events were refused together before.
        let isPiece = !batch.place.isWhole || batch.history.isOfEarlierRun && events <= Cut.smallPiece
        let app = Set(apps).count == 1 ? apps.first.flatMap { $0.isEmpty ? nil : $0 } : nil
        let pieces = Cut.pieces(
            of: events, apps: isFree ? apps : [], isPiece: isPiece,
            hopeless: Set(apps).filter { isHopeless($0) }
        ) { share(of: isFree ? $0 ?? app : nil) }
        // One piece with all events would be the same request again.
        return Set(pieces).count > 1 ? pieces : Cut.halves(of: events, apps: isFree ? apps : [])
    }

    /// Number of the piece for each event of a batch that is parted between apps, to see whose events fail;
    /// nil if that would show nothing.
    ///
    /// - Parameter isFailing: whether nothing is accepted now. Then one event of each app that was not tried
    ///   yet is parted off, otherwise all events of each suspected app; the rest stays together.
    func parted(_ apps: [String], isFailing: Bool) -> [Int]? {
        let asked = asked
        let most = Blame.mostAsked - (isFailing ? asked.count : 0)
        let pieces = Cut.parted(apps, atMost: most, isSampled: isFailing) { app in
            isFailing ? !asked.contains(app) : suspect(app) != nil
        }
        return Set(pieces).count > 1 ? pieces : nil
    }

    // MARK: Verdicts

    /// The verdict on a batch that was refused or has failed. Remembers the apps of failed requests.
    mutating func judge(_ answer: Evidence, of facts: Facts, at now: BootInstant) -> Verdict {
        let batch = answer.batch
        switch answer.kind {
        case .failed: return judgeFailed(answer, facts, at: now)
        case .tooLarge where batch.header.events > 1: return .halve
        case .refused where batch.header.events > 1:
            guard !facts.isHeld || facts.isProbe || facts.order == .promised else { break }
            let app = Set(answer.apps).count == 1 ? answer.apps.first : nil
            return facts.order == .free && apps.isHopeless(app) && !facts.isFull ? .sample : .cut
        case .refused, .tooLarge, .named: break
        }
        return judgeRefused(batch, facts)
    }

    /// The verdict on a refused batch that is not cut.
    ///
    /// A dead letter if the destination is seen to accept others; set aside if it accepts others, but too
    /// many events were rejected; otherwise a doubt, unless answers in flight will show it soon.
    private func judgeRefused(_ batch: TrackedBatch, _ facts: Facts) -> Verdict {
        let isOne = batch.header.events == 1
        let mayEnd = isOne && (!facts.isHeld || facts.isProbe)
        if mayEnd, mayGiveUp(batch, isInDoubt: facts.isInDoubt) { return .deadLetter }
        // A batch that was set aside, or an app with fifty rejected events, tells nothing new about the
        // destination.
        let isOld = batch.isSetAside || isOwnMatter(of: batch.app) && !facts.isFull
        if isProven(batch) || !facts.isHeld && isOld {
            // Others go through, and there is no room to keep the event.
            return isOne && !batch.isSetAside && facts.isFull ? .deadLetter : .setAside
        }
        let isSoonKnown =
            acknowledged.isWithSettings && !facts.isHeld && isOne
            && batch.history.postponements < Blame.mostPostponements && facts.hasOthersOnTheirWay
        return isSoonKnown ? .awaitProof : .doubt
    }

    /// Whether an app's rejections say nothing about the destination.
    private func isOwnMatter(of app: String?) -> Bool {
        apps.isHopeless(app) || rejections.isOwnMatter(of: app)
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

    /// The verdict on a failed batch: if others are accepted, its events are the cause.
    private mutating func judgeFailed(
        _ answer: Evidence, _ facts: Facts, at now: BootInstant
    ) -> Verdict {
        let batch = answer.batch
        let failure = answer.failure
        guard facts.order == .free, acknowledged.isWithSettings, !failure.saysOverload,
            answer.apps.contains(where: { !$0.isEmpty })
        else { return .none }
        let app = Set(answer.apps).count == 1 ? answer.apps[0] : nil
        let failedBefore = batch.failed(before: failure).map(hasAccepted) ?? false
        let known = app.flatMap { apps.suspect($0) }
        let suspect = known.flatMap { $0.isAlone && hasAccepted(since: $0.since) ? $0 : nil }
        // An outage begins with the same answers. So after five failures of an app in a row its batches are
        // not parted, and ten seconds after the last acceptance none is set aside.
        let isEvident = suspect.map { hasAccepted(since: $0.at) || $0.inARow < Blame.mostAsked } ?? false
        let isRecent = acknowledged.latestBeginning.map { now < $0 + Doubt.step } ?? false
        let isCause = failedBefore || isEvident || suspect != nil && isRecent
        noteSuspect(app, answer.apps, failure, at: now)
        guard !facts.isHeld, !facts.isBroken, isCause || batch.aside == .fails else { return .none }
        let isTellingAgain = failedBefore || isEvident && failure.isRefusal
        if isTellingAgain, batch.header.events > 1, batch.maySplit(after: failure), !apps.isHopeless(app) {
            return .halve
        }
        return !batch.isSetAside && facts.isFull ? .deadLetter : .setAside
    }

    /// Remembers the app of a failed request. After a failure without an answer, all apps of a mixed batch
    /// are remembered, though not as the only ones (`isAlone`).
    private mutating func noteSuspect(
        _ app: String?, _ names: [String], _ failure: Failure, at now: BootInstant
    ) {
        for name in app.map({ [$0] }) ?? (failure.leavesOpen ? Set(names).sorted() : []) where name != "" {
            let known = apps.suspect(name).flatMap { $0.isAlone || app == nil ? $0 : nil }
            let suspect = AppRecords.Suspect(
                since: known?.since ?? now, at: now,
                inARow: known.map { hasAccepted(since: $0.at) ? 1 : $0.inARow + 1 } ?? 1,
                isAlone: app != nil || known?.isAlone == true, failure: failure)
            apps.suspect(name, suspect)
        }
    }

    /// Whether an event that is rejected again, although others were accepted since the first time, ends a
    /// doubt.
    ///
    /// It does, within 30 s of the first doubt since anything was accepted. Without that bound, doubts would
    /// end and begin again for ever, and the hold would never be reported.
    mutating func endsDoubt(_ doubt: Doubt?, at now: BootInstant) -> Bool {
        guard let doubt else { return true }
        let first = doubtedSince.flatMap { hasAccepted(since: $0) ? nil : $0 } ?? doubt.began
        doubtedSince = first
        return now < first + Doubt.patience
    }
}

extension Failure {
    /// Whether the answer is about load and not about content (429, 503, RFC 6585 and 9110): further requests
    /// to find a culprit would add to the load.
    var saysOverload: Bool { status == 429 || status == 503 }
}
