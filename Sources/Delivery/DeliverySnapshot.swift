public import EventLoops
public import Model

/// The state of delivery, for `status`, metrics and readiness: a copy that never waits for the delivery loop.
public struct DeliverySnapshot: Sendable {
    /// One destination's part.
    public struct Destination: Sendable {
        package let name: DestinationName
        /// Why nothing goes there; nil when it is active.
        public let obstacle: DestinationStateName?
        package let lanes: Lanes
        /// When its events go by themselves: its own interval, the one for all, or a command's.
        public let interval: DispatchInterval
        /// Batches that are being sent.
        public let inFlight: Int
        /// Batches that were asked for, leased ahead, are being sent or being settled.
        public let attempts: Int
        /// Batches that wait for a retry.
        public let waitingForRetry: Int
        /// Events that are set aside, by app; the empty name: of several, or nobody knows.
        public let setAside: [String: Int]
        /// What the destination says to requests with events of these apps alone, while it takes others'.
        public let failingApps: [String: Failure]
        /// When something is next tried by itself; nil when nothing is planned.
        public let nextAttempt: Timestamp?
        /// Since when it is held, its breaker is open, or it asks to be tried again later and takes nothing.
        public let since: Timestamp?
        /// When it last acknowledged a batch.
        public let lastSuccess: Timestamp?
        /// The last failure and when it was, whatever came after it.
        public let lastFailure: (failure: Failure, at: Timestamp)?
        /// Tokens that hold it back, its own and those for all, in alphabetical order.
        public let pauseTokens: [String]
        /// What it was asked and answered since the start.
        public let counters: DeliveryCounters
    }

    package var destinations: [Destination] = []
    /// The interval in force where a destination has none of its own.
    public var interval = DispatchInterval.standard
    /// Whether a command set it, rather than the configuration.
    public var isIntervalOverridden = false
    /// Whether connections may be made at all.
    public var isNetworkOn = true
    package var isEnabled = true
    /// Tokens that hold all destinations back, in alphabetical order.
    public var pauseTokens: [String] = []
    /// How many tokens are held, those for single destinations included.
    public var heldTokens = 0

    /// Nothing is known yet.
    public init() {}
}

extension DeliveryMachine {
    func snapshot(at now: Moment) -> DeliverySnapshot {
        var snapshot = DeliverySnapshot()
        snapshot.destinations = destinations.keys.compactMap { name in
            destinations[name]?.snapshot(
                gate(name), interval(of: name), pauseTokens: pauses.tokens(for: name), at: now)
        }
        snapshot.interval = interval
        snapshot.isIntervalOverridden = intervalOverride != nil
        snapshot.isNetworkOn = isNetworkOn
        snapshot.isEnabled = isEnabled
        snapshot.heldTokens = pauses.holds.count
        snapshot.pauseTokens = pauses.tokens(for: nil)
        return snapshot
    }
}

extension DestinationMachine {
    fileprivate func snapshot(
        _ gate: Gate, _ interval: DispatchInterval, pauseTokens: [String], at now: Moment
    ) -> DeliverySnapshot.Destination {
        let wake = hasSomething ? planned(gate, at: now) : nil
        return DeliverySnapshot.Destination(
            name: name, obstacle: obstacle(gate), lanes: lanes, interval: interval,
            inFlight: attempts.count { $0.isSending }, attempts: attempts.count,
            waitingForRetry: tracked.values.count { $0.waitsForRetry },
            setAside: tracked.values.reduce(into: [:]) {
                if $1.isSetAside { $0[$1.app ?? "", default: 0] += $1.header.events }
            },
            failingApps: failingApps, nextAttempt: wake.map { now.wall + ($0 - now.boot) },
            since: hold?.since ?? breaker?.since ?? (obstacle(gate) == .retryAfter ? refusingSince : nil),
            lastSuccess: lastSuccess, lastFailure: lastFailure, pauseTokens: pauseTokens, counters: counters)
    }
}
