internal import EventLoops
internal import Model

/// Whether anything may be sent to a destination, and if not, why and until when.
///
/// Reasons in their order: a hold, a wait that the destination asked for, no route, an open breaker, a pause
/// after a failure. This type knows neither batches nor the queue: the destination's machine reports answers
/// to it and acts on what it returns.
struct Standing: Sendable {
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

    /// Present while the destination or its settings are wrong.
    private(set) var hold: Hold?
    /// Present while the destination has failed too often.
    private(set) var breaker: Breaker?
    /// End of the wait that the destination asked for.
    private(set) var retryAfterUntil: BootInstant?
    /// The answer that asked for that wait; nil if an earlier run got it.
    private var retryAfter: (failure: Failure, at: Timestamp)?
    /// Present while no route leads to the destination.
    private(set) var offline: Offline?
    /// How soon requests follow each other.
    private var pacing: Pacing
    /// Failures of the queue.
    private var store = StoreTrouble()
    /// Last failure and its time of day, whatever followed.
    private(set) var lastFailure: (failure: Failure, at: Timestamp)?

    /// A destination that may be sent to, unless an earlier run left a wait.
    init(firstStart: BootInstant? = nil, retryAfterUntil: BootInstant? = nil) {
        pacing = Pacing(firstStart: firstStart)
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
    var startNotBefore: BootInstant? { pacing.startNotBefore }

    /// Present after failures until something is acknowledged.
    var trouble: Pacing.Trouble? { pacing.trouble }

    /// Logged failures since the last acknowledgement.
    var failuresInARow: Int { pacing.failuresInARow }

    /// Why nothing at all is sent, the highest reason first; nil if something may be sent.
    var obstacle: DestinationStateName? {
        if let hold { return hold.state }
        if retryAfterUntil != nil { return .retryAfter }
        if offline != nil { return .offline }
        return breaker == nil ? nil : .breakerOpen
    }

    /// The failure that explains `obstacle`. Without an obstacle with a failure of its own it is the last
    /// one.
    ///
    /// Requests that were in flight when a hold began may fail in another way. A person who reads why the
    /// destination is held must not be led to these failures.
    var reason: (failure: Failure, at: Timestamp)? {
        if let hold { return (hold.failure, hold.refusedAt) }
        if retryAfterUntil != nil, let retryAfter { return retryAfter }
        return lastFailure
    }

    /// Why what is left of a command is not sent after one of its requests has failed.
    var reasonAfterFailure: DestinationStateName {
        hold?.state ?? (retryAfterUntil == nil ? .waitingForRetry : .retryAfter)
    }

    /// The waits that `resume` ends, in the order of `obstacle`. Commands may hold the destination back as
    /// well.
    var waits: [DestinationStateName] {
        var waits: [DestinationStateName] = []
        if let hold {
            waits.append(hold.state)
        }
        if retryAfterUntil != nil {
            waits.append(.retryAfter)
        }
        if case .until = offline {
            waits.append(.offline)
        }
        if breaker != nil {
            waits.append(.breakerOpen)
        }
        return waits
    }

    /// Whether the network monitor knows no route, which no command changes.
    var hasNoRoute: Bool { offline == .noRoute }

    // MARK: Time

    /// Ends what is over by now.
    ///
    /// - Returns: whether a wait has ended that the destination had asked for.
    mutating func passTime(at now: BootInstant) -> Bool {
        if case .until(let again) = offline, again <= now {
            offline = nil
        }
        store.passTime(at: now)
        pacing.passTime(at: now)
        guard let until = retryAfterUntil, until <= now else { return false }
        retryAfterUntil = nil
        return true
    }

    // MARK: Answers

    /// Remembers a failure for `status`.
    mutating func note(_ failure: Failure, at now: Timestamp) { lastFailure = (failure, now) }

    /// Something was acknowledged; returns the number of logged failures before it.
    mutating func recover() -> Int { pacing.recover() }

    /// A batch has failed and is tried again later; see `Pacing.pause`.
    mutating func pause(
        _ retry: RetrySchedule, using random: inout some RandomNumberGenerator, at now: Moment
    ) {
        pacing.pause(retry, using: &random, at: now)
    }

    /// The destination asked for a wait (Retry-After, RFC 9110, section 10.2.3). It is bounded to 1 s … 1
    /// day here; the outputs give an hour at most of what an HTTP header asks for. Then it is prolonged by up
    /// to half at random, so that a fleet that got the same answer comes back spread out.
    ///
    /// The answer was noted before (`note`).
    ///
    /// - Returns: the wait; nil if it does not end later than the one in force.
    mutating func waitAsTold(
        _ wait: Duration, using random: inout some RandomNumberGenerator, at now: Moment
    ) -> Duration? {
        let asked = min(max(wait, .seconds(1)), .seconds(86_400))
        let until = now.boot + asked * (1 + 0.5 * Double.random(in: 0...1, using: &random))
        guard until > retryAfterUntil ?? now.boot else { return nil }
        retryAfterUntil = until
        retryAfter = lastFailure
        pacing.noteTrouble(at: now.wall)
        setProbes(to: until)
        return until - now.boot
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
    ///   - options: those with the wait before a probe of a destination that counts as held.
    mutating func refuse(
        _ failure: Failure, isAgain: Bool, isProbe: Bool, isPatient: Bool, fresh: Patience?,
        _ options: DestinationOptions, using random: inout some RandomNumberGenerator, at now: Moment
    ) -> Refusal {
        let before = hold
        guard before == nil || isProbe else {
            let next = isAgain ? before?.nextProbe ?? now.boot : now.boot
            return Refusal(batchNotBefore: next, isHold: false, news: nil)
        }
        var patience = isPatient ? before.map(\.patience) ?? fresh : nil
        let isSoon = patience?.refuse(at: now.boot)
        let wait = isSoon.map { $0 - now.boot } ?? options.probeWait(using: &random)
        hold = Hold(
            failure: failure, since: before?.since ?? now.wall, nextProbe: now.boot + wait,
            patience: isSoon == nil ? nil : patience)
        noteRefusal(failure, at: now.wall)
        var news: Refusal.News?
        if let patience, isSoon != nil {
            pacing.countFailure()
            news = .retry(number: patience.refusals, wait: wait)
        } else if before == nil || before?.patience != nil {
            news = .held(probeIn: wait)
        }
        return Refusal(batchNotBefore: isAgain ? now.boot + wait : now.boot, isHold: true, news: news)
    }

    /// Remembers the refusal that began or prolonged the hold.
    mutating func noteRefusal(_ failure: Failure, at now: Timestamp) { hold?.note(failure, at: now) }

    /// Events were rejected, and nothing shows whether they or the destination are at fault.
    ///
    /// - Parameter isProbe: whether a probe showed that. Only then the doubt takes the place of a hold for
    ///   another reason, and counts as announced, as that hold was.
    mutating func beginDoubt(_ failure: Failure, isProbe: Bool, at now: Moment) {
        guard hold == nil || isProbe && hold?.doubt == nil else { return }
        let doubt = Doubt(began: now.boot, isAnnounced: hold != nil)
        hold = Hold(failure: failure, since: hold?.since ?? now.wall, nextProbe: now.boot, doubt: doubt)
    }

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

    /// A probe failed: the next one is sent after the probe interval, or sooner while the failure may be
    /// about events.
    mutating func postponeProbes(by interval: Duration, at now: BootInstant) {
        setProbes(to: now + min(interval, hold?.longestWait ?? interval))
    }

    mutating func setHoldProbe(to next: BootInstant) { hold?.nextProbe = next }

    mutating func updateDoubt(_ change: (inout Doubt) -> Void) { hold?.updateDoubt(change) }

    /// New events arrived; see `Hold.noteNewEvents`.
    mutating func noteNewEvents(_ order: DestinationOptions.Order, hasRoom: Bool, at now: BootInstant) {
        hold?.noteNewEvents(order, hasRoom: hasRoom, at: now)
    }

    /// A rejection does not end the doubt; see `Hold.goOnDoubting`.
    mutating func goOnDoubting(
        _ rejection: Hold.Rejection, _ options: DestinationOptions,
        using random: inout some RandomNumberGenerator, at now: BootInstant
    ) -> Duration? {
        hold?.goOnDoubting(rejection, options, using: &random, at: now)
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
    mutating func endTrouble() { pacing.endTrouble() }

    /// Collection was disabled: hold and breaker end.
    mutating func forget() { (hold, breaker) = (nil, nil) }
}
