public import Model

/// When and how events are sent: the settings of `[dispatch]`, `[retry]` and `[[destination]]` that delivery
/// uses.
public struct DeliveryOptions: Sendable, Equatable {
    /// How long normal events wait at most for company. Default 6 s.
    public var interval = DispatchInterval.standard
    /// How long critical events wait at most for company; the interval if that is shorter. Default 3 s.
    public var criticalDelay = Duration.seconds(3)
    /// Whether a full batch is sent before the interval ends. Default yes; otherwise only the interval
    /// counts.
    public var batchOnSize = true
    /// Upper bound of the random delay before a destination's first request after the start, so that a fleet
    /// that starts together does not connect together. Default 2 s.
    public var startSpread = Duration.seconds(2)
    /// This machine's point in the part of a wait that `jitter` leaves open, from 0 to 1, so that a fleet
    /// does not send at the same moment. Nil, the default: at the end of the wait.
    public var phase: Double?
    /// The destinations with their own settings.
    package var destinations: [DestinationOptions]
}

extension DeliveryOptions {
    /// The jitter of an interval that nobody has set.
    static let standardJitter = 0.5

    package init(to destinations: [DestinationOptions]) { self.destinations = destinations }

    /// Deadlines by destination; destinations without one are left out.
    public var deadlines: [DestinationName: [Deadline]] {
        let found = destinations.filter { !$0.deadlines.isEmpty }
        return Dictionary(found.map { ($0.name, $0.deadlines) }) { $1 }
    }
}

/// How one destination is treated.
public struct DestinationOptions: Sendable, Equatable {
    /// Which of a lane's batches may be sent beside or before an older one.
    public enum Order: Sendable, Equatable {
        /// Any batch, as soon as it may.
        case free
        /// One at a time, the oldest first; a newer one passes only to learn whether a failing destination
        /// has recovered, or beside an event that was rejected.
        case kept
        /// One at a time, the oldest first, whatever happens.
        case promised
    }

    package var name: DestinationName
    /// Number of waiting events that are sent without waiting for the interval. Default 50.
    public var batchEvents = 50
    /// Most events of a batch. Nil, the default: `batchEvents`.
    public var batchMostEvents: Int?
    /// Most uncompressed bytes of a batch; a single larger event is still a batch. Default 1 MiB.
    public var batchBytes = 1 << 20
    /// Most batches in flight; one critical batch may exceed it. Default 3.
    public var parallelBatches = 3
    /// Order of a lane's batches. Default free.
    public var order = Order.free
    /// The destination's own interval; nil, the default: `DeliveryOptions.interval`.
    public var interval: DispatchInterval?
    /// Whether a person or a container has set the interval in force for the destination.
    public var isIntervalSet = false
    /// Largest share of a wait that is left out, from 0 to 1. Nil, the default: half of an interval that
    /// nobody has set, nothing of one that was set, which its author expects to be kept.
    public var jitter: Double?
    /// The destination's own delay of critical events; nil, the default: `DeliveryOptions.criticalDelay`.
    public var criticalDelay: Duration?
    /// Waits before the retries of a batch.
    public var retry = RetrySchedule()
    /// What happens when the retries are used up. Default `probe`: a server must recover without a person.
    public var whenExhausted = WhenExhausted.probe
    /// Wait between two probes while the breaker is open or the destination is held. Default 20 min.
    public var probeInterval = Duration.seconds(1200)
    /// Most requests a second on average; may be a fraction. Nil, the default: no limit.
    public var requestsPerSecond: Double?
    /// Events that the destination's format puts into one request; nil: a whole batch. A batch of several
    /// requests is charged for each of them against `requestsPerSecond`.
    public var eventsPerRequest: Int?
    /// Whether the receiver recognises a batch that arrives twice by its id, and stores it once. Default yes.
    /// If not, a batch that times out is halved rather than sent with a longer time-out.
    public var recognisesRepeats = true
    /// Local times by which events must have arrived. Default none.
    public var deadlines: [Deadline] = []
    /// Hash of the destination's settings. When it changes, what was learned (holds, ceilings, trust) is
    /// void.
    public var fingerprint = ""
}

extension DestinationOptions {
    package init(to name: DestinationName) { self.name = name }

    /// Most events of a batch.
    var mostEvents: Int { batchMostEvents ?? batchEvents }
    /// Number of waiting events that make a batch full, so that it does not wait for the interval.
    var dueEvents: Int { min(batchEvents, mostEvents) }

    /// Wait before the next probe, with jitter.
    func probeWait(using random: inout some RandomNumberGenerator) -> Duration {
        retry.shortened(probeInterval, using: &random)
    }

    /// Wait before a batch is sent again that has failed this often; that of a probe if the retries are used
    /// up.
    func retryWait(afterFailures failures: Int, using random: inout some RandomNumberGenerator) -> Duration {
        retry.wait(afterFailures: failures, using: &random) ?? probeWait(using: &random)
    }
}
