public import EventLoops
package import Model

/// A moment by two clocks: waits use `boot`, ages and dates use `wall`.
public struct ContainerMoment: Sendable {
    /// Time since the machine's boot, which is never set.
    package var boot: BootInstant
    /// Time of day.
    package var wall: Timestamp
    /// Whether the time of day can be trusted. While it cannot, nothing expires.
    public var isTrusted: Bool

    package init(boot: BootInstant, wall: Timestamp, isTrusted: Bool = true) {
        self.boot = boot
        self.wall = wall
        self.isTrusted = isTrusted
    }
}

/// Decides which document of a container is in force, and when it is fetched. A state machine: it has no I/O,
/// no clock and no random numbers of its own, so that tests can try every order of inputs.
///
/// There are three sources: the default file, the saved copy of the last good fetch, and the network. Opening
/// ends within `timeout` whatever the sources do, and a later document takes over. A bad document changes
/// nothing.
///
/// Opening, refreshing and default files follow Google Tag Manager for iOS, version 3.
public struct ContainerMachine: Sendable {
    /// The settings of a container.
    public struct Options: Sendable, Equatable {
        /// Which document opening waits for.
        package var opening = ContainerOpening.preferNonDefault
        /// Most time that opening takes.
        package var timeout = Duration.seconds(2)
        /// How old a confirmed copy may be to count as fresh.
        public var freshFor = Duration.seconds(12 * 3600)
        /// Time between fetches.
        public var refreshInterval = Duration.seconds(12 * 3600)
        /// This machine's share in rollouts of the container, from 0 to below 100.
        public var share = 0.0
        /// Whether there is a URL to fetch from. Without one the default file is used for ever.
        public var hasAddress = true

        package init() {}
    }

    /// Open the container, with the document of its default file if there is a good one.
    public enum Input: Sendable {
        /// The saved copy was read.
        case start(standard: ContainerCopy?)
        /// The saved copy was read.
        case saved(Saved)
        /// A fetch ended.
        case fetched(Fetched)
        /// The time that `wake` named is reached.
        case timer
        /// Saving the copy succeeded or failed.
        case kept(Bool)
        /// A person asks for a fetch now.
        case refresh
        /// The network is back.
        case networkChanged
        /// The default file was read again; nil if there is no good one.
        case standard(ContainerCopy?)
        /// Put a draft in force for a time.
        case preview(ContainerCopy, Duration)
        /// End the draft's time now.
        case endPreview
        /// The agent stops: end opening with the document that is there.
        case stopOpening
    }

    /// The result of reading the saved copy.
    public enum Saved: Sendable {
        /// A good copy, with the ETag of its fetch and the time at which it was last confirmed.
        case copy(ContainerCopy, etag: String?, confirmed: Timestamp)
        /// No copy was ever saved.
        case missing
        /// The copy could not be read, with the reason.
        case failed(String)
        /// The copy that was read is bad. Its version still is the least that is accepted: otherwise damaging
        /// the copy would let an older document in.
        case refused(ContainerError, version: Int)
    }

    /// The result of a fetch.
    public enum Fetched: Sendable {
        /// A document that is signed and well formed.
        case copy(ContainerCopy, etag: String?)
        /// The server answers 304: the known document is the newest.
        case notModified
        /// A document that is not signed, not well formed or of another container.
        case refused(ContainerError)
        /// No document was received. The server may have said how long to wait (Retry-After).
        case failed(RefreshResult, String, retryAfter: Duration? = nil)
    }

    /// An action for the shell.
    package enum Effect: Sendable, Equatable {
        /// Read the saved copy, and answer with `saved`.
        case loadSaved
        /// Fetch, conditionally if there is an ETag, and answer with `fetched`. There is one fetch at a time.
        case fetch(etag: String?)
        /// Save the copy, and answer with `kept`.
        case keep(ContainerCopy, etag: String?, confirmed: Timestamp)
        /// Save the time at which the saved copy was confirmed.
        case confirm(Timestamp)
        /// This container no longer prevents reading from beginning.
        case open
        /// Put a document in force; nil for no document.
        case apply(HeldContainer?)
        /// Log and count what happened.
        case tell(ContainerNote)
    }

    /// Least time between two fetches without a person's request.
    public static let leastPause = Duration.seconds(60)
    /// Pauses before a copy is saved again, after the first failure and at most.
    static let savePauses = (first: Duration.seconds(5), longest: Duration.seconds(300))
    /// Longest pause between fetches that fail.
    static let longestBackoff = Duration.seconds(3600)

    /// The settings.
    package private(set) var options: Options

    /// How far opening is.
    private enum Opening: Sendable {
        /// Not begun.
        case notStarted
        /// Under way, until a time at the latest.
        case underWay(until: BootInstant)
        /// Over. Documents may still change.
        case over
    }

    /// A draft in force, with the end of its time.
    private struct Draft: Sendable {
        var container: HeldContainer
        var end: BootInstant
    }

    /// A copy in force that is not saved yet.
    struct Unsaved: Sendable {
        var container: HeldContainer
        /// How often saving failed.
        var failures = 0
        /// When saving is tried again; nil while it is under way.
        var next: BootInstant?
    }

    /// How far opening is.
    private var opening = Opening.notStarted
    /// Why the last fetch or its document was bad; nil if it was good.
    public internal(set) var problem: String?
    /// The draft; nil without one.
    private var draft: Draft?

    /// The document of the default file.
    private(set) var standard: ContainerCopy?
    /// The copies of good fetches.
    var published = PublishedCopies()
    /// The document in force, unless there is a draft.
    private(set) var held: HeldContainer?
    /// When the next fetch is.
    var fetches = FetchPlan()
    /// Whether the saved copy was read. Before that no fetch may decide.
    var isSavedKnown = false
    /// The copy in force that is not saved yet.
    var unsaved: Unsaved?
    /// Actions for the shell after this input, in order.
    var effects: [Effect] = []

    /// A container that was not started yet.
    package init(_ options: Options) { self.options = options }

    /// The document in force; nil for none. A draft takes precedence over all others.
    public var inForce: HeldContainer? { draft?.container ?? held }

    /// Whether opening is over. Documents may still change.
    public var isOpen: Bool {
        if case .over = opening { return true }
        return false
    }

    /// Whether a fetch is under way.
    public var isFetching: Bool { fetches.isFetching }

    /// End of the draft's time; nil without a draft.
    public var previewEnd: BootInstant? { draft?.end }

    /// Whether there is a default file.
    public var hasStandard: Bool { standard != nil }

    /// The published version that is not for this machine yet; nil if there is no such version.
    public var heldBack: Int? { published.waiting?.version }

    /// Where the document in force comes from.
    package var source: ContainerSource { inForce?.source ?? .none }

    /// Whether the document was confirmed at most `freshFor` ago. A default file is fresh only if there is no
    /// URL.
    public func isFresh(at moment: ContainerMoment) -> Bool {
        guard options.hasAddress else { return held != nil }
        return held.map { isFresh($0, at: moment) } ?? false
    }

    /// All documents that may come into force again. What is compiled or stored for others may be forgotten.
    public var known: [ContainerCopy] {
        [
            standard, published.latest?.copy, held?.copy, draft?.container.copy, unsaved?.container.copy,
        ].compactMap { $0 }
    }

    /// Changes the settings. Whether there is a URL must stay.
    public mutating func configure(
        _ options: Options, at moment: ContainerMoment, using random: inout some RandomNumberGenerator
    ) {
        let old = self.options
        let isOther = old.freshFor != options.freshFor || old.refreshInterval != options.refreshInterval
        self.options = options
        guard isOther, fetches.next != nil, fetches.failures == 0,
            let confirmed = published.latest?.confirmed
        else { return }
        schedule(after: moment.wall - confirmed, moment, &random)
    }

    /// Time at which the machine wants a `timer`; nil for never.
    public func wake(at moment: ContainerMoment) -> BootInstant? {
        let fetch = isFetching || !options.hasAddress ? nil : fetches.next
        var wanted = [draft?.end, unsaved?.next, fetch].compactMap { $0 }
        if case .underWay(let end) = opening {
            wanted.append(end)
        }
        if let end = held?.copy.expires, held?.source != .standard {
            // The time of day may be set, so look each hour at least, and each minute while it is not
            // trusted.
            let least: Duration = moment.isTrusted ? .milliseconds(1) : .seconds(60)
            wanted.append(moment.boot + max(least, min(end - moment.wall, .seconds(3600))))
        }
        return wanted.min()
    }

    /// Handles an input; returns the shell's actions, in order. `random` spreads fetches, so that a fleet
    /// does not fetch at one moment.
    package mutating func handle(
        _ input: Input, at moment: ContainerMoment, using random: inout some RandomNumberGenerator
    ) -> [Effect] {
        switch input {
        case .start(let copy): start(copy, moment)
        case .saved(let result): takeSaved(result, moment, &random)
        case .fetched(let result): takeFetched(result, moment, &random)
        case .timer: timerFired(moment, &random)
        case .kept(let isSaved): noteKept(isSaved, moment)
        case .refresh: fetch(moment, isOwn: false)
        case .networkChanged: networkReturned(moment)
        case .standard(let copy):
            standard = copy
            if isOpen, held == nil || held?.source == .standard {
                putInForce(standardHeld)
            }
        case .preview(let copy, let time):
            draft = Draft(
                container: HeldContainer(source: .preview, copy: copy), end: moment.boot + time)
            effects += [.apply(inForce), .tell(.previewBegan(version: copy.version))]
        case .endPreview: endPreview(byTime: false)
        case .stopOpening: if !isOpen { open(with: published.latest ?? standardHeld) }
        }
        defer { effects = [] }
        return effects
    }

    // MARK: Opening

    /// The document of the default file, to be held.
    var standardHeld: HeldContainer? { standard.map { HeldContainer(source: .standard, copy: $0) } }

    /// Begins opening.
    mutating func start(_ copy: ContainerCopy?, _ moment: ContainerMoment) {
        standard = copy
        guard options.hasAddress else {
            isSavedKnown = true
            return open(with: standardHeld)
        }
        opening = .underWay(until: moment.boot + options.timeout)
        if options.opening == .immediate {
            open(with: standardHeld)
        }
        effects += [.tell(.began(.saved)), .loadSaved]
    }

    /// Ends opening with a document, or with none.
    mutating func open(with container: HeldContainer?) {
        opening = .over
        held = container
        effects += [
            .apply(inForce), .open,
            .tell(.opened(container?.source ?? .none, version: container?.copy.version)),
        ]
    }

    /// Puts a document in force; if opening is not over, by ending it.
    mutating func putInForce(_ container: HeldContainer?) {
        guard isOpen else { return open(with: container) }
        let isOther = held?.copy != container?.copy || held?.source != container?.source
        held = container
        guard isOther else { return }
        if draft == nil {
            effects.append(.apply(inForce))
        }
        effects.append(.tell(.tookOver(container?.source ?? .none, version: container?.copy.version)))
    }

    // MARK: Time

    /// Does what is due: the end of opening, of a draft, of a document; saving; fetching.
    mutating func timerFired(_ moment: ContainerMoment, _ random: inout some RandomNumberGenerator) {
        if case .underWay(let end) = opening, end <= moment.boot {
            open(with: published.latest ?? standardHeld)
        }
        if let end = draft?.end, end <= moment.boot {
            endPreview(byTime: true)
        }
        if let container = held, container.source != .standard, isOver(container.copy, at: moment) {
            problem = "version \(container.copy.version) has expired; publish a newer one"
            published.forget()
            unsaved = nil
            effects.append(.tell(.expired(version: container.copy.version)))
            putInForce(standardHeld)
            fetchSoon(moment)
        }
        if let due = unsaved?.next, due <= moment.boot {
            unsaved?.next = nil
            save()
        }
        if let due = fetches.next, due <= moment.boot {
            fetch(moment, isOwn: true)
        }
    }

    /// Ends a draft; the document before it is in force again.
    mutating func endPreview(byTime: Bool) {
        guard draft != nil else { return }
        draft = nil
        effects += [.apply(inForce), .tell(.previewEnded(byTime: byTime))]
    }

    /// Whether a document has expired. Never while the clock is not trusted.
    func isOver(_ copy: ContainerCopy, at moment: ContainerMoment) -> Bool {
        guard let end = copy.expires, moment.isTrusted else { return false }
        return end <= moment.wall
    }

    /// Whether a document was confirmed recently.
    func isFresh(_ container: HeldContainer, at moment: ContainerMoment) -> Bool {
        guard let confirmed = container.confirmed else { return false }
        // Confirmed in the future: the clock was wrong then, or is wrong now.
        return (Duration.zero...options.freshFor).contains(moment.wall - confirmed)
    }
}
