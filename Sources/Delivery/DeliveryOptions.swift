public import Model

/// How events are sent: the `[dispatch]`, `[retry]` and `[[destination]]` settings that concern when and what.
public struct DeliveryOptions: Sendable, Equatable {
    /// How long normal events wait at most. Default 6 s.
    public var interval: DispatchInterval
    /// How long critical events wait at most, or the interval if that is shorter. Default 3 s.
    public var criticalDelay: Duration
    /// Whether a full batch goes before its time. Default yes; without it the interval alone is in charge.
    public var batchOnSize: Bool
    /// The first sending of a destination after the start is delayed at random, up to this. Default 2 s.
    ///
    /// Without it, a fleet that is restarted together connects together.
    public var startSpread: Duration
    /// Where in the second half of a wait this machine sends, from 0 to 1; nil, the default: at its end.
    ///
    /// Agents that are given events at the same moment, and wait equally long, would send at the same moment.
    public var phase: Double?
    /// Where events go.
    public var destinations: [DestinationOptions]

    /// Options with their defaults.
    public init(
        interval: DispatchInterval = .standard, criticalDelay: Duration = .seconds(3), batchOnSize: Bool = true,
        startSpread: Duration = .seconds(2), phase: Double? = nil, destinations: [DestinationOptions]
    ) {
        self.interval = interval
        self.criticalDelay = criticalDelay
        self.batchOnSize = batchOnSize
        self.startSpread = startSpread
        self.phase = phase
        self.destinations = destinations
    }
}

extension DeliveryOptions {
    /// By when events must have arrived, for the destinations where any deadline holds.
    public var deadlines: [DestinationName: [Deadline]] {
        var found: [DestinationName: [Deadline]] = [:]
        for destination in destinations where !destination.deadlines.isEmpty {
            found[destination.name] = destination.deadlines
        }
        return found
    }
}

/// How one destination is treated.
public struct DestinationOptions: Sendable, Equatable {
    /// Which of a lane's batches may go beside or before an older one.
    public enum Order: Sendable, Equatable {
        /// Any: each goes as soon as it may.
        case free
        /// One at a time, the oldest first; another one only to learn whether a failing destination is well again.
        case kept
        /// One at a time, the oldest first, whatever happens.
        case promised
    }

    /// Its name.
    public var name: DestinationName
    /// So many waiting events go at once. Default 50.
    public var batchEvents: Int
    /// At most so many events a batch; nil: as many as go at once.
    public var batchMostEvents: Int?
    /// At most so many uncompressed bytes a batch, one event excepted. Default 1 MiB.
    public var batchBytes: Int
    /// At most so many batches in flight. Default 3.
    public var parallelBatches: Int
    /// In which order they go. Default free.
    public var order: Order
    /// When its events go by themselves; nil: as `DeliveryOptions.interval` says.
    public var interval: DispatchInterval?
    /// How long its critical events wait for company; nil: as `DeliveryOptions.criticalDelay` says.
    public var criticalDelay: Duration?
    /// The waits of a request's retries.
    public var retry: RetrySchedule
    /// What happens when they are used up. Default `probe`: a server must heal alone.
    public var whenExhausted: WhenExhausted
    /// How often one batch is tried while the breaker is open or the destination is held. Default 20 min.
    public var probeInterval: Duration
    /// At most so many requests a second, in the long run; may be a fraction. Default no limit.
    public var requestsPerSecond: Double?
    /// How many events its format puts into one request; nil: a whole batch. For `requestsPerSecond`.
    public var eventsPerRequest: Int?
    /// By when events must have arrived. Default none.
    public var deadlines: [Deadline]
    /// Changes when any setting of the destination does: what was learned with other settings counts no more.
    public var fingerprint: String

    /// Options with their defaults.
    public init(
        name: DestinationName, batchEvents: Int = 50, batchMostEvents: Int? = nil, batchBytes: Int = 1 << 20,
        parallelBatches: Int = 3, order: Order = .free, interval: DispatchInterval? = nil,
        criticalDelay: Duration? = nil,
        retry: RetrySchedule = .standard,
        whenExhausted: WhenExhausted = .probe,
        probeInterval: Duration = .seconds(1200), requestsPerSecond: Double? = nil, eventsPerRequest: Int? = nil,
        deadlines: [Deadline] = [],
        fingerprint: String = ""
    ) {
        self.name = name
        self.batchEvents = batchEvents
        self.batchMostEvents = batchMostEvents
        self.batchBytes = batchBytes
        self.parallelBatches = parallelBatches
        self.order = order
        self.interval = interval
        self.criticalDelay = criticalDelay
        self.retry = retry
        self.whenExhausted = whenExhausted
        self.probeInterval = probeInterval
        self.requestsPerSecond = requestsPerSecond
        self.eventsPerRequest = eventsPerRequest
        self.deadlines = deadlines
        self.fingerprint = fingerprint
    }
}

extension DestinationOptions {
    /// At most so many events a batch.
    var mostEvents: Int { batchMostEvents ?? batchEvents }
    /// So many waiting events go at once: a batch that is full waits for nothing.
    var dueEvents: Int { min(batchEvents, mostEvents) }
}
