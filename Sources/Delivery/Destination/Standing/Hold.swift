internal import EventLoops
internal import Model

/// The destination or its settings are wrong, or rejected events may be: only probes are sent.
///
/// A hold is about one of three things: refusals that may pass (`patience`), rejected events that may be at
/// fault themselves (`doubt`), or, without both, something that a person has to repair.
struct Hold: Sendable, Equatable {
    /// The last refusal: it caused the hold, or prolonged it.
    private(set) var failure: Failure
    /// Time of day of that refusal.
    private(set) var refusedAt: Timestamp
    /// Time of day when it began, for `status`.
    let since: Timestamp
    /// When the next probe may be sent.
    var nextProbe: BootInstant
    /// Present if the hold is about rejected events, which may be at fault themselves.
    private(set) var doubt: Doubt?
    /// Present while the refusals may pass; no person has to act yet.
    let patience: Patience?

    /// Longest wait after a failed probe while the refusals may pass.
    private static let longestPatientWait = Duration.seconds(60)

    init(
        failure: Failure, since: Timestamp, nextProbe: BootInstant, doubt: Doubt? = nil,
        patience: Patience? = nil
    ) {
        self.failure = failure
        self.refusedAt = since
        self.since = since
        self.nextProbe = nextProbe
        self.doubt = doubt
        self.patience = patience
    }

    // MARK: Questions

    /// The state that commands, `status` and metrics show.
    var state: DestinationStateName { patience == nil ? .held : .waitingForRetry }

    /// Whether the log says that the destination is held; only then its end is logged.
    var isAnnounced: Bool { doubt?.isAnnounced ?? (patience == nil) }

    /// Longest wait after a failed probe; nil for no bound but the probe interval. In a doubt, and while
    /// refusals may pass, the failure may be about something else than the hold, and must not prolong it.
    var longestWait: Duration? {
        if doubt != nil { return Doubt.step }
        return patience == nil ? nil : Hold.longestPatientWait
    }

    // MARK: Refusals

    /// Remembers the refusal that began or prolonged the hold.
    mutating func note(_ refusal: Failure, at now: Timestamp) {
        failure = refusal
        refusedAt = now
    }

    // MARK: The doubt

    mutating func updateDoubt(_ change: (inout Doubt) -> Void) {
        if var changed = doubt {
            change(&changed)
            doubt = changed
        }
    }

    /// New events arrived. A destination in doubt gets them at once, or within 10 s if it counts as held.
    ///
    /// - Parameter hasRoom: whether another rejected batch can be kept.
    mutating func noteNewEvents(
        _ order: DestinationOptions.Order, hasRoom: Bool, at now: BootInstant
    ) {
        guard var doubt else { return }
        doubt.noteNew()
        self.doubt = doubt
        let isHeld = doubt.hasWaited(order, hasRoom: hasRoom, at: now)
        nextProbe = min(nextProbe, isHeld ? now + Doubt.step : now)
    }

    /// The destination has rejected events once more: plans the next attempt of the doubt.
    ///
    /// - Parameters:
    ///   - rejection: what was rejected, and what is left to try.
    ///   - options: those with the order, and the longest wait before a probe.
    /// - Returns: the wait, if the destination counts as held from now on.
    mutating func goOnDoubting(
        _ rejection: Rejection, _ options: DestinationOptions,
        using random: inout some RandomNumberGenerator, at now: BootInstant
    ) -> Duration? {
        guard let doubt else { return nil }
        let isOver = doubt.hasWaited(options.order, hasRoom: rejection.hasRoom, at: now)
        let isPatient = !isOver && rejection.hasUntried(doubt.began)
        let step = doubt.step(hasRefused: doubt.isAnnounced && rejection.hasRefused)
        let wait = isPatient ? .zero : min(options.probeWait(using: &random), step)
        if isPatient || rejection.isProbe || nextProbe <= now {
            nextProbe = now + wait
        }
        guard isOver, !doubt.isAnnounced else { return nil }
        updateDoubt { $0.announce() }
        return wait
    }

    /// A rejection in a doubt, with what decides when the next attempt is.
    struct Rejection {
        /// Whether the attempt was a probe.
        var isProbe = true
        /// Whether another rejected batch can be kept.
        var hasRoom = true
        /// Whether batches are set aside because too many events of their app were rejected.
        var hasRefused = false
        /// Whether anything is left that was not tried since a time.
        var hasUntried: (BootInstant) -> Bool = { _ in false }
    }
}
