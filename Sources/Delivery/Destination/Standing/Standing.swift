internal import EventLoops
internal import Model

/// Whether anything may be sent to a destination, and if not, why and until when.
///
/// Reasons in their order: a hold, a wait that the destination asked for, no route, an open breaker, a pause
/// after a failure. This type knows neither batches nor the queue: the destination's machine reports answers
/// to it and acts on what it returns.
struct Standing: Sendable {
    /// The destination or its settings are wrong: only probes are sent.
    struct Hold: Sendable, Equatable {
        /// The refusal that caused it.
        let failure: Failure
        /// Time of day when it began, for `status`.
        let since: Timestamp
        /// When the next probe may be sent.
        fileprivate(set) var nextProbe: BootInstant
        /// Present if the hold is about rejected events, which may be at fault themselves.
        var doubt: Doubt?
        /// Present while the refusals may pass; no person has to act yet.
        let patience: Patience?

        /// The state that commands, `status` and metrics show.
        var state: DestinationStateName { patience == nil ? .held : .waitingForRetry }

        /// Whether the log says that the destination is held; only then its end is logged.
        fileprivate var isAnnounced: Bool { doubt?.isAnnounced ?? (patience == nil) }
    }

    /// Retries of a batch were used up, and the destination is at fault: only probes are sent.
    struct Breaker: Sendable, Equatable {
        let since: Timestamp
        /// When the next probe may be sent; nil if none is sent without a command.
        fileprivate(set) var nextProbe: BootInstant?
    }

    /// Why no route leads to the destination.
    enum Offline: Sendable, Equatable {
        /// The network monitor says so; it also says when that ends.
        case noRoute
        /// A sender found no route, and the destination is tried again at that time.
        case until(BootInstant)
    }

    /// Failures since the last acknowledgement. Meanwhile one request at a time is in flight, so that an
    /// overloaded receiver is not hit by three at once.
    struct Trouble: Sendable, Equatable {
        /// Time of day of the first failure.
        let since: Timestamp
        /// End of the pause after the last failure.
        fileprivate(set) var pauseUntil: BootInstant?
    }

    /// Present while the destination or its settings are wrong.
    private(set) var hold: Hold?
    /// Present while the destination has failed too often.
    private(set) var breaker: Breaker?
    /// End of the wait that the destination asked for.
    private(set) var retryAfterUntil: BootInstant?
    /// Present while no route leads to the destination.
    private(set) var offline: Offline?
    /// Present after failures until something is acknowledged.
    private(set) var trouble: Trouble?
    /// Failures of the queue.
    private var store = StoreTrouble()
    /// When the first request may begin. Spreads the first connections of a fleet that starts together.
    private var firstStart: BootInstant?
    /// Logged failures since the last acknowledgement.
    private(set) var failuresInARow = 0
    /// Last failure and its time of day, whatever followed.
    private(set) var lastFailure: (failure: Failure, at: Timestamp)?

    /// A destination that may be sent to, unless an earlier run left a wait.
    init(firstStart: BootInstant? = nil, retryAfterUntil: BootInstant? = nil) {
        self.firstStart = firstStart
        self.retryAfterUntil = retryAfterUntil
    }

    // MARK: Questions

    /// Whether only probes may be sent.
    var isForProbesOnly: Bool { hold != nil || breaker != nil }

    /// When the next probe may be sent; that of a hold counts before that of the breaker.
    var nextProbe: BootInstant? { hold.map(\.nextProbe) ?? breaker?.nextProbe }

    /// When a queue that failed may be asked again; nil if it may be asked now.
    var storeRetryAt: BootInstant? { store.retryAt }

    /// When the next request may begin after a start or a failure; nil for now.
    var startNotBefore: BootInstant? {
        guard let pause = trouble?.pauseUntil else { return firstStart }
        return max(pause, firstStart ?? pause)
    }

    /// Why nothing at all is sent, the highest reason first; nil if something may be sent.
    var obstacle: DestinationStateName? {
        if let hold { return hold.state }
        if retryAfterUntil != nil { return .retryAfter }
        if offline != nil { return .offline }
        return breaker == nil ? nil : .breakerOpen
    }

    // MARK: Time

    /// Ends what is over by now.
    ///
    /// - Returns: whether a wait has ended that the destination had asked for.
    mutating func passTime(at now: BootInstant) -> Bool {
        if case .until(let again) = offline, again <= now {
            offline = nil
        }
        store.passTime(at: now)
        if let at = firstStart, at <= now {
            firstStart = nil
        }
        if let at = trouble?.pauseUntil, at <= now {
            trouble?.pauseUntil = nil
        }
        guard let until = retryAfterUntil, until <= now else { return false }
        retryAfterUntil = nil
        return true
    }

    // MARK: Answers

    /// Remembers a failure for `status`.
    mutating func note(_ failure: Failure, at now: Timestamp) { lastFailure = (failure, now) }

    /// Something was acknowledged; returns the number of logged failures before it.
    mutating func recover() -> Int {
        defer { (failuresInARow, trouble, firstStart) = (0, nil, nil) }
        return failuresInARow
    }

    /// Counts a failure that is logged; returns the number in a row.
    mutating func countFailure() -> Int {
        failuresInARow += 1
        return failuresInARow
    }

    /// Postpones the next request to `until` at the earliest.
    mutating func pause(until: BootInstant, at now: Moment) {
        let pause = max(startNotBefore ?? now.boot, until)
        trouble = Trouble(since: trouble?.since ?? now.wall, pauseUntil: pause)
    }

    /// The destination asked for a wait.
    ///
    /// - Returns: false if the wait does not end later than the one in force.
    mutating func waitAsTold(until: BootInstant, at now: Moment) -> Bool {
        guard until > retryAfterUntil ?? now.boot else { return false }
        retryAfterUntil = until
        trouble = trouble ?? Trouble(since: now.wall)
        setProbes(to: until)
        return true
    }

    /// Ends the wait that the destination asked for; returns whether there was one.
    mutating func endRetryAfter() -> Bool {
        defer { retryAfterUntil = nil }
        return retryAfterUntil != nil
    }

    // MARK: The queue

    /// The queue has answered.
    mutating func noteStoreAnswer() { store.recover() }

    /// A call of the queue failed.
    ///
    /// - Returns: when it may be asked again, and the wait if it has to be logged.
    mutating func noteStoreFailure(at now: BootInstant) -> (again: BootInstant, wait: Duration?) {
        store.fail(at: now)
    }

    // MARK: Hold and breaker

    /// What follows from a refusal of the request itself.
    struct Refusal: Equatable {
        /// What the log says.
        enum News: Equatable {
            /// The refusal may pass, and the destination is asked again soon.
            case retry(number: Int, wait: Duration)
            /// The destination counts as held from now on.
            case held(probeIn: Duration)
        }

        /// When the refused batch may be sent again.
        let batchNotBefore: BootInstant
        /// Whether the refusal has begun or prolonged a hold.
        let isHold: Bool
        /// Nil if there is nothing new.
        let news: News?
    }

    /// The destination has refused the request itself: begins or prolongs a hold.
    ///
    /// - Parameters:
    ///   - isAgain: whether the same batch was refused before. Then it may be this batch alone, and the
    ///     others go first, so that it does not hold them up again.
    ///   - isProbe: otherwise the request was in flight when a hold began, and changes nothing.
    ///   - isPatient: whether the refusal may be one that passes.
    ///   - fresh: patience to begin a hold with; nil if the destination has not acknowledged lately.
    ///   - probeWait: wait before the next probe of a destination that counts as held.
    mutating func refuse(
        _ failure: Failure, isAgain: Bool, isProbe: Bool, isPatient: Bool, fresh: Patience?,
        probeWait: () -> Duration, at now: Moment
    ) -> Refusal {
        let before = hold
        guard before == nil || isProbe else {
            let next = isAgain ? before?.nextProbe ?? now.boot : now.boot
            return Refusal(batchNotBefore: next, isHold: false, news: nil)
        }
        var patience = isPatient ? before.map(\.patience) ?? fresh : nil
        let isSoon = patience?.refuse(at: now.boot)
        let wait = isSoon.map { $0 - now.boot } ?? probeWait()
        hold = Hold(
            failure: failure, since: before?.since ?? now.wall, nextProbe: now.boot + wait,
            patience: isSoon == nil ? nil : patience)
        var news: Refusal.News?
        if let patience, isSoon != nil {
            _ = countFailure()
            news = .retry(number: patience.refusals, wait: wait)
        } else if before == nil || before?.patience != nil {
            news = .held(probeIn: wait)
        }
        return Refusal(batchNotBefore: isAgain ? now.boot + wait : now.boot, isHold: true, news: news)
    }

    /// Begins a hold, or replaces it.
    mutating func hold(_ new: Hold) { hold = new }

    /// Ends the hold, if there is one; returns it, and whether its beginning was logged.
    mutating func liftHold() -> (hold: Hold, isAnnounced: Bool)? {
        guard let lifted = hold else { return nil }
        hold = nil
        return (lifted, lifted.isAnnounced)
    }

    /// Opens the breaker; without a probe time it stays open until a resume or a network change.
    mutating func openBreaker(nextProbe: BootInstant?, at now: Timestamp) {
        breaker = Breaker(since: now, nextProbe: nextProbe)
    }

    /// Closes the breaker; returns whether it was open.
    mutating func closeBreaker() -> Bool {
        defer { breaker = nil }
        return breaker != nil
    }

    /// Sets the time of the next probe. A breaker without probes stays without.
    mutating func setProbes(to next: BootInstant) {
        hold?.nextProbe = next
        if breaker?.nextProbe != nil {
            breaker?.nextProbe = next
        }
    }

    mutating func setHoldProbe(to next: BootInstant) { hold?.nextProbe = next }

    mutating func updateDoubt(_ change: (inout Doubt) -> Void) {
        if var doubt = hold?.doubt {
            change(&doubt)
            hold?.doubt = doubt
        }
    }

    // MARK: Network, people

    /// A sender found no route. What the network monitor said stays.
    mutating func noteNoRoute(until: BootInstant) { offline = offline ?? .until(until) }

    /// Forgets that a sender found no route: the network has changed, or a command wants an attempt.
    mutating func forgetNoRoute() { if case .until = offline { offline = nil } }

    /// The network monitor's report; returns whether it is news.
    mutating func setRoute(_ isPresent: Bool) -> Bool {
        guard isPresent == (offline == .noRoute) else { return false }
        offline = isPresent ? nil : .noRoute
        return true
    }

    /// Ends waits after failures.
    mutating func endTrouble() { if trouble != nil { (trouble, firstStart) = (nil, nil) } }

    /// Collection was disabled: hold and breaker end.
    mutating func forget() { (hold, breaker) = (nil, nil) }
}

/// Failures of the queue: it is not asked for 1, 2, 4 … 30 s.
private struct StoreTrouble: Sendable {
    /// Longest wait in seconds.
    private static let longest = 30

    /// When the queue may be asked again.
    private(set) var retryAt: BootInstant?
    /// Failures in a row.
    private var failures = 0

    /// The queue has answered.
    mutating func recover() { failures = 0 }

    mutating func passTime(at now: BootInstant) { if let at = retryAt, at <= now { retryAt = nil } }

    /// A call failed. Calls that fail during the wait count as the same failure: they were under way when the
    /// first one failed.
    ///
    /// - Returns: when the queue may be asked again, and the wait if it has to be logged.
    mutating func fail(at now: BootInstant) -> (again: BootInstant, wait: Duration?) {
        if let again = retryAt, again > now { return (again, nil) }
        failures += 1
        let wait = Duration.seconds(min(StoreTrouble.longest, 1 << min(5, failures - 1)))
        retryAt = now + wait
        return (now + wait, wait)
    }
}
