public import EventLoops
public import Model

/// The state of delivery for `status`, metrics and readiness. A copy: reading it never waits for the delivery
/// loop.
public struct DeliverySnapshot: Sendable {
    /// The state of one destination.
    public struct Destination: Sendable {
        package let name: DestinationName
        /// Why nothing is sent to the destination; nil if it is active.
        public let obstacle: DestinationStateName?
        /// The waits that `resume` ends, also if `obstacle` is a command: a pause does not end a hold.
        let waits: [DestinationStateName]
        /// Whether no route leads to the destination, also if `obstacle` is a command.
        let hasNoRoute: Bool
        /// What waits in both lanes, by the queue's last summary.
        package let lanes: Lanes
        /// The interval in force: a command's, else the destination's own, else the one for all.
        public let interval: DispatchInterval
        /// Batches being sent.
        public let inFlight: Int
        /// Batches from the request to the queue to the settlement, including those in flight.
        public let attempts: Int
        /// Largest time-out factor of these batches; more than 1 if one timed out before.
        public internal(set) var timeFactor = 1
        /// Batches waiting for a retry.
        public let waitingForRetry: Int
        /// Events that are set aside, by app; the empty name counts batches of several or unknown apps.
        public let setAside: [String: Int]
        /// Apps whose requests fail while those of others succeed, with the last failure of each.
        public let failingApps: [String: Failure]
        /// When something is next sent without a command; nil if nothing is planned.
        public let nextAttempt: Timestamp?
        /// Since when the destination has been held, or all its requests have failed.
        public let since: Timestamp?
        /// Last acknowledgement of a batch.
        public let lastSuccess: Timestamp?
        /// Failure that explains the state, and its time: that of a hold, or of a wait that the destination
        /// asked for; otherwise the last failure, even if batches were acknowledged since.
        public let lastFailure: (failure: Failure, at: Timestamp)?
        /// Tokens that hold the destination back, including those for all, in alphabetical order.
        public let pauseTokens: [String]
        /// Requests and answers since the start of the agent.
        public let counters: DeliveryCounters
    }

    package var destinations: [Destination] = []
    /// The interval of destinations without one of their own.
    public var interval = DispatchInterval.standard
    /// Whether a command set `interval`.
    public var isIntervalOverridden = false
    /// Whether connections may be made.
    public var isNetworkOn = true
    package var isEnabled = true
    /// Tokens that hold all destinations back, in alphabetical order.
    public var pauseTokens: [String] = []
    /// Number of held tokens, including those for single destinations.
    public var heldTokens = 0

    /// An empty state, from before the driver has published one.
    public init() {}
}

extension DeliverySnapshot {
    /// The state of a machine now.
    init(of machine: DeliveryMachine, at now: Moment) {
        destinations = machine.destinations.names.compactMap { name in
            machine.destinations.look(name) {
                Destination(
                    of: $0, machine.gate(name), machine.interval(of: name),
                    pauseTokens: machine.pauses.tokens(for: name), at: now)
            }
        }
        interval = machine.interval
        isIntervalOverridden = machine.intervalOverride != nil
        isNetworkOn = machine.isNetworkOn
        isEnabled = machine.isEnabled
        heldTokens = machine.pauses.holds.count
        pauseTokens = machine.pauses.tokens(for: nil)
    }
}

extension DeliverySnapshot.Destination {
    fileprivate init(
        of machine: DestinationMachine, _ gate: Gate, _ interval: DispatchInterval, pauseTokens: [String],
        at now: Moment
    ) {
        let wake = machine.hasSomething ? machine.chooser(gate, at: now).planned() : nil
        let standing = machine.standing
        let obstacle = machine.obstacle(gate)
        let retries = machine.kept.counts.retries.critical + machine.kept.counts.retries.normal
        let isFailing =
            standing.breaker != nil || obstacle == .retryAfter || obstacle == nil && retries > 0
        self.init(
            name: machine.name, obstacle: obstacle, waits: standing.waits, hasNoRoute: standing.hasNoRoute,
            lanes: machine.lanes, interval: interval,
            inFlight: machine.attempts.counts.sending, attempts: machine.attempts.count,
            timeFactor: machine.attempts.values.map { $0.batch?.timeFactor ?? 1 }.max() ?? 1,
            waitingForRetry: retries,
            setAside: machine.kept.eventsAside, failingApps: machine.failingApps,
            nextAttempt: wake.map { now.wall + ($0 - now.boot) },
            since: standing.hold?.since ?? (isFailing ? standing.trouble?.since : nil)
                ?? standing.breaker?.since,
            lastSuccess: machine.blame.acknowledged.last, lastFailure: standing.reason,
            pauseTokens: pauseTokens, counters: machine.counters)
    }
}
