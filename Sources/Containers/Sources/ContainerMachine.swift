public import EventLoops
package import Model

/// A moment on two clocks: waits use one, ages and dates the other.
public struct ContainerMoment: Sendable {
    package var boot: BootInstant
    package var wall: Timestamp
    /// Whether the time of day can be trusted: nothing expires while it cannot.
    public var isTrusted: Bool

    package init(boot: BootInstant, wall: Timestamp, isTrusted: Bool = true) {
        self.boot = boot
        self.wall = wall
        self.isTrusted = isTrusted
    }
}

/// Decides which document of a container is in force, and when it is fetched: no I/O, no clock, no randomness of its own.
///
/// There are three sources (tm01): the default file, the saved copy of the last good fetch, the network. Opening (tm03,
/// tm04) ends within the timeout whatever they do; a later document takes over. A bad document changes nothing.
///
/// Source: Google Tag Manager for iOS v3 (tm01 to tm08, tm16).
public struct ContainerMachine: Sendable {
    /// The settings of a container.
    public struct Options: Sendable, Equatable {
        package var opening = ContainerOpening.preferNonDefault
        package var timeout = Duration.seconds(2)
        /// How old a confirmed copy may be to count as fresh.
        public var freshFor = Duration.seconds(12 * 3600)
        /// How often it is fetched.
        public var refreshInterval = Duration.seconds(12 * 3600)
        /// This machine's place in rollouts of the container, from 0 to below 100.
        public var share = 0.0
        /// Whether it has an address; without one the default file serves for ever.
        public var hasAddress = true

        package init() {}
    }

    /// What happens to a container.
    public enum Input: Sendable {
        /// It is to be opened; with the document of its default file, if there is a good one.
        case start(standard: ContainerCopy?)
        /// The saved copy was read.
        case saved(Saved)
        case fetched(Fetched)
        case timer
        /// The copy that was to be saved is saved, or could not be.
        case kept(Bool)
        /// A person wants it fetched now.
        case refresh
        /// The network is back.
        case networkChanged
        /// The default file was read again; nil for none.
        case standard(ContainerCopy?)
        /// A draft is to rule for so long.
        case preview(ContainerCopy, Duration)
        case endPreview
        /// Opening ends now with what there is: the agent stops.
        case stopOpening
    }

    /// The result of reading the saved copy.
    public enum Saved: Sendable {
        /// A good one, with the tag of its fetch, and when it was last confirmed.
        case copy(ContainerCopy, etag: String?, confirmed: Timestamp)
        /// None was ever saved.
        case missing
        case failed(String)
        /// What was read is not good; its version still is the least that is taken.
        case refused(ContainerError, version: Int)
    }

    /// The result of a fetch.
    public enum Fetched: Sendable {
        /// A document that is signed and well formed.
        case copy(ContainerCopy, etag: String?)
        /// The server says that ours is the newest.
        case notModified
        case refused(ContainerError)
        /// Nothing came; the server may have said when it wants to be asked again.
        case failed(RefreshResult, String, retryAfter: Duration? = nil)
    }

    package enum Effect: Sendable, Equatable {
        /// Read the saved copy; answer with `saved`.
        case loadSaved
        /// Fetch, conditionally where there is a tag; answer with `fetched`. One at a time.
        case fetch(etag: String?)
        case keep(ContainerCopy, etag: String?, confirmed: Timestamp)
        case confirm(Timestamp)
        /// Reading of the spool may begin, as far as this container goes.
        case open
        /// This is in force from now on; nil for nothing.
        case apply(HeldContainer?)
        case tell(ContainerNote)
    }

    /// The least time between two fetches that nobody asked for.
    public static let leastPause = Duration.seconds(60)
    /// How long a copy waits that could not be saved, at first and at most.
    static let savePauses = (first: Duration.seconds(5), longest: Duration.seconds(300))
    static let longestBackoff = Duration.seconds(3600)

    package private(set) var options: Options

    /// Whether it is open: its documents may still change.
    public private(set) var isOpen = false
    /// Whether a fetch is under way.
    public internal(set) var isFetching = false
    /// Why the last fetch, or the document, was no good; nil when it was.
    public internal(set) var problem: String?
    /// When the draft's time is over; nil without a draft.
    public private(set) var previewEnd: BootInstant?

    var standard: ContainerCopy?
    var saved: HeldContainer?
    var held: HeldContainer?
    var draft: HeldContainer?
    var etag: String?
    /// What is published and rolls out to a share that this machine is not in, and the tag of its fetch.
    var waiting: (version: Int, etag: String?)?
    /// No document of a lower version is taken, and of this version only the same.
    var least: Int?
    var openBy: BootInstant?
    var nextFetch: BootInstant?
    var lastOwnFetch: BootInstant?
    /// The last fetch because the network was back.
    var lastReturn: BootInstant?
    /// The server wants no fetch before then.
    var notBefore: BootInstant?
    var failures = 0
    var isSavedKnown = false
    /// The copy that is not saved yet, though it rules; how often that failed, and when it is tried again.
    var unsaved: (container: HeldContainer, failures: Int, next: BootInstant?)?
    var effects: [Effect] = []

    package init(_ options: Options) { self.options = options }

    /// What is in force; nil for nothing.
    public var inForce: HeldContainer? { draft ?? held }

    /// Whether there is a default file.
    public var hasStandard: Bool { standard != nil }

    /// The version that is published and not for this machine yet; nil for none.
    public var heldBack: Int? { waiting?.version }

    package var source: ContainerSource { inForce?.source ?? .none }

    /// Whether the copy was confirmed at most `freshFor` ago; a default file is fresh only if nothing else is to come.
    public func isFresh(at moment: ContainerMoment) -> Bool {
        guard options.hasAddress else { return held != nil }
        return held.map { isFresh($0, at: moment) } ?? false
    }

    /// All documents that may come into force again.
    public var known: [ContainerCopy] {
        [standard, saved?.copy, held?.copy, draft?.copy, unsaved?.container.copy].compactMap { $0 }
    }

    /// Takes other settings; whether there is an address must stay.
    public mutating func configure(
        _ options: Options, at moment: ContainerMoment, using random: inout some RandomNumberGenerator
    ) {
        let old = self.options
        let isOther = old.freshFor != options.freshFor || old.refreshInterval != options.refreshInterval
        self.options = options
        guard isOther, nextFetch != nil, failures == 0, let confirmed = saved?.confirmed else { return }
        schedule(after: moment.wall - confirmed, moment, &random)
    }

    /// When the machine wants its timer.
    public func wake(at moment: ContainerMoment) -> BootInstant? {
        let fetch = isFetching || !options.hasAddress ? nil : nextFetch
        var wanted = [openBy, previewEnd, unsaved?.next, fetch].compactMap { $0 }
        if let end = held?.copy.expires, held?.source != .standard {
            // The time of day may be set: looked at each hour at least, each minute while the clock is not trusted.
            let least: Duration = moment.isTrusted ? .milliseconds(1) : .seconds(60)
            wanted.append(moment.boot + max(least, min(end - moment.wall, .seconds(3600))))
        }
        return wanted.min()
    }

    /// Takes what happened, says what is to be done, in order; `random` jitters fetches: no fleet fetches in step.
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
            if isOpen, held == nil || held?.source == .standard { take(standardHeld) }
        case .preview(let copy, let time):
            draft = HeldContainer(source: .preview, copy: copy)
            previewEnd = moment.boot + time
            effects += [.apply(inForce), .tell(.previewBegan(version: copy.version))]
        case .endPreview: endPreview(byTime: false)
        case .stopOpening: if !isOpen { open(with: saved ?? standardHeld) }
        }
        defer { effects = [] }
        return effects
    }

    // MARK: Opening

    var standardHeld: HeldContainer? { standard.map { HeldContainer(source: .standard, copy: $0) } }

    mutating func start(_ copy: ContainerCopy?, _ moment: ContainerMoment) {
        standard = copy
        guard options.hasAddress else {
            isSavedKnown = true
            return open(with: standardHeld)
        }
        openBy = moment.boot + options.timeout
        if options.opening == .immediate { open(with: standardHeld) }
        effects += [.tell(.began(.saved)), .loadSaved]
    }

    mutating func open(with container: HeldContainer?) {
        isOpen = true
        openBy = nil
        held = container
        effects += [
            .apply(inForce), .open,
            .tell(.opened(container?.source ?? .none, version: container?.copy.version)),
        ]
    }

    /// Brings a document into force, now or by opening with it.
    mutating func take(_ container: HeldContainer?) {
        guard isOpen else { return open(with: container) }
        let isOther = held?.copy != container?.copy || held?.source != container?.source
        held = container
        guard isOther else { return }
        if draft == nil { effects.append(.apply(inForce)) }
        effects.append(.tell(.tookOver(container?.source ?? .none, version: container?.copy.version)))
    }

    // MARK: Time

    mutating func timerFired(_ moment: ContainerMoment, _ random: inout some RandomNumberGenerator) {
        if let openBy, openBy <= moment.boot {
            if isOpen { self.openBy = nil } else { open(with: saved ?? standardHeld) }
        }
        if let end = previewEnd, end <= moment.boot { endPreview(byTime: true) }
        if let container = held, container.source != .standard, isOver(container.copy, at: moment) {
            problem = "version \(container.copy.version) has expired; publish a newer one"
            saved = nil
            etag = nil
            waiting = nil
            unsaved = nil
            effects.append(.tell(.expired(version: container.copy.version)))
            take(standardHeld)
            fetchSoon(moment)
        }
        if let due = unsaved?.next, due <= moment.boot {
            unsaved?.next = nil
            save()
        }
        if let due = nextFetch, due <= moment.boot { fetch(moment, isOwn: true) }
    }

    mutating func endPreview(byTime: Bool) {
        guard draft != nil else { return }
        draft = nil
        previewEnd = nil
        effects += [.apply(inForce), .tell(.previewEnded(byTime: byTime))]
    }

    func isOver(_ copy: ContainerCopy, at moment: ContainerMoment) -> Bool {
        guard let end = copy.expires, moment.isTrusted else { return false }
        return end <= moment.wall
    }

    func isFresh(_ container: HeldContainer, at moment: ContainerMoment) -> Bool {
        guard let confirmed = container.confirmed else { return false }
        // Confirmed in the future: the clock was wrong then, or is now.
        return (Duration.zero...options.freshFor).contains(moment.wall - confirmed)
    }
}
