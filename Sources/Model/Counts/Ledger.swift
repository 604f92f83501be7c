/// The counts of one destination and priority since the database was made, in deliveries (an event for
/// one destination).
///
/// At any moment, also after crashes: `accepted + retried = acknowledged + deadLettered + evicted +
/// expired + discarded + lost + queued`.
public struct Ledger: Sendable, Equatable {
    /// Accepted into the queue for this destination.
    public var accepted = 0
    /// Dead letters that a person sent again.
    public var retried = 0
    /// Confirmed by the destination.
    public var acknowledged = 0
    /// Ever rejected permanently by the destination; purging dead letters does not change it.
    public var deadLettered = 0
    /// Evicted because of the storage cap.
    public var evicted = 0
    /// Older than `queue.max_age`.
    public var expired = 0
    /// Removed by a rule, by disabled collection or by a command.
    public var discarded = 0
    /// Lost through damage to the database.
    public var lost = 0
    /// Waiting, in batches or not.
    public var queued = 0

    /// All counts with their names, in the order of the queue's columns, which is the order in which
    /// people read them.
    public static let figures: [(name: String, path: any WritableKeyPath<Ledger, Int> & Sendable)] = [
        ("accepted", \.accepted), ("retried", \.retried), ("acknowledged", \.acknowledged),
        ("dead_lettered", \.deadLettered), ("evicted", \.evicted), ("expired", \.expired),
        ("discarded", \.discarded), ("lost", \.lost), ("queued", \.queued),
    ]

    package init() {}

    /// Whether the counts add up.
    public var balances: Bool {
        accepted + retried == acknowledged + deadLettered + evicted + expired + discarded + lost + queued
    }
}

/// The counts of reading, in events: `read = accepted + refused + quarantined`.
public struct IntakeLedger: Sendable, Equatable {
    /// Lines and objects read. A line that leaves the quarantine because it is an event now counts a
    /// second time.
    public var read = 0
    package var accepted = 0
    /// Refused by a limit or a full queue.
    public var refused = 0
    /// Not readable as an event.
    public var quarantined = 0

    package init() {}

    /// Whether the counts add up.
    public var balances: Bool { read == accepted + refused + quarantined }
}

/// Number of deleted deliveries.
public struct DiscardedEvents: Sendable, Equatable {
    /// All deleted deliveries, including those in flight.
    package var all: Int
    /// How many of them were in flight: it is unknown whether they arrived.
    public var inFlight: Int

    package init(all: Int = 0, inFlight: Int = 0) {
        self.all = all
        self.inFlight = inFlight
    }
}
