public import Model

/// How events are sent: the `[dispatch]`, `[retry]` and `[[destination]]` settings that concern when and what.
public struct DeliveryOptions: Sendable, Equatable {
    /// How long normal events wait at most. Default 6 s.
    public var interval = DispatchInterval.standard
    /// How long critical events wait at most, or the interval if that is shorter. Default 3 s.
    public var criticalDelay = Duration.seconds(3)
    /// Whether a full batch goes before its time. Default yes; without it the interval alone is in charge.
    public var batchOnSize = true
    /// How long, at random, a destination's first sending after the start waits at most: for fleets that start together. Default 2 s.
    public var startSpread = Duration.seconds(2)
    /// Where in the second half of a wait this machine sends, from 0 to 1, so that not all send at once; nil, the default: at its end.
    public var phase: Double?
    package var destinations: [DestinationOptions]
}

extension DeliveryOptions {
    package init(to destinations: [DestinationOptions]) { self.destinations = destinations }

    /// When events must have arrived, for destinations with a deadline.
    public var deadlines: [DestinationName: [Deadline]] {
        let found = destinations.filter { !$0.deadlines.isEmpty }
        return Dictionary(found.map { ($0.name, $0.deadlines) }) { $1 }
    }
}

/// How one destination is treated.
public struct DestinationOptions: Sendable, Equatable {
    /// Which of a lane's batches may go beside or before an older one.
    public enum Order: Sendable, Equatable {
        /// Any: each goes as soon as it may.
        case free
        /// One at a time, the oldest first; another one only to learn whether a failing destination has recovered.
        case kept
        /// One at a time, the oldest first, whatever happens.
        case promised
    }

    package var name: DestinationName
    /// So many waiting events go at once. Default 50.
    public var batchEvents = 50
    /// At most so many events a batch; nil: as many as go at once.
    public var batchMostEvents: Int?
    /// At most so many uncompressed bytes a batch, one event excepted. Default 1 MiB.
    public var batchBytes = 1 << 20
    /// At most so many batches in flight. Default 3.
    public var parallelBatches = 3
    /// In which order they go. Default free.
    public var order = Order.free
    /// When its events go by themselves; nil: as `DeliveryOptions.interval` says.
    public var interval: DispatchInterval?
    /// How long its critical events wait for company; nil: as `DeliveryOptions.criticalDelay` says.
    public var criticalDelay: Duration?
    /// The waits of a request's retries.
    public var retry = RetrySchedule()
    /// What happens when they are used up. Default `probe`: a server must heal alone.
    public var whenExhausted = WhenExhausted.probe
    /// How often one batch is tried while the breaker is open or the destination is held. Default 20 min.
    public var probeInterval = Duration.seconds(1200)
    /// At most so many requests a second, in the long run; may be a fraction. Default no limit.
    public var requestsPerSecond: Double?
    /// How many events its format puts into one request; nil: a whole batch. For `requestsPerSecond`.
    public var eventsPerRequest: Int?
    /// When events must have arrived. Default none.
    public var deadlines: [Deadline] = []
    /// Changes when any setting of the destination does: what was learned with other settings counts no more.
    public var fingerprint = ""
}

extension DestinationOptions {
    package init(to name: DestinationName) { self.name = name }

    var mostEvents: Int { batchMostEvents ?? batchEvents }
    /// So many waiting events go at once: a batch that is full waits for nothing.
    var dueEvents: Int { min(batchEvents, mostEvents) }
}
