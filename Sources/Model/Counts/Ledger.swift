/// The figures of one destination and priority since the database was made, in deliveries (an event for a destination).
///
/// At any moment, across crashes: `accepted + retried = acknowledged + deadLettered + evicted + expired + discarded +
/// lost + queued`.
public struct Ledger: Sendable, Equatable {
    /// Taken into the queue for this destination.
    public var accepted = 0
    /// Dead letters sent back by a person.
    public var retried = 0
    /// Confirmed by the destination.
    public var acknowledged = 0
    /// Rejected by the destination for good, ever; purging does not change it.
    public var deadLettered = 0
    /// Forced out by the storage cap.
    public var evicted = 0
    /// Older than `queue.max_age`.
    public var expired = 0
    /// Taken out by a rule, by disabled collection or by a person.
    public var discarded = 0
    /// Taken by corruption, beyond salvage.
    public var lost = 0
    /// Waiting, in batches or not.
    public var queued = 0

    /// All figures by their names, in the order of the queue's columns, which is that in which people read them.
    public static let figures: [(name: String, path: any WritableKeyPath<Ledger, Int> & Sendable)] = [
        ("accepted", \.accepted), ("retried", \.retried), ("acknowledged", \.acknowledged),
        ("dead_lettered", \.deadLettered), ("evicted", \.evicted), ("expired", \.expired),
        ("discarded", \.discarded), ("lost", \.lost), ("queued", \.queued),
    ]

    package init() {}

    /// Whether the figures add up.
    public var balances: Bool {
        accepted + retried == acknowledged + deadLettered + evicted + expired + discarded + lost + queued
    }
}

/// The figures of reading, for events: `read = accepted + refused + quarantined`.
public struct IntakeLedger: Sendable, Equatable {
    /// Lines and objects read; one that leaves the quarantine because it is an event now counts once more.
    public var read = 0
    package var accepted = 0
    /// Of them, not taken: a limit, a full queue.
    public var refused = 0
    /// Of them, not readable as an event.
    public var quarantined = 0

    package init() {}

    /// Whether the figures add up.
    public var balances: Bool { read == accepted + refused + quarantined }
}

/// How many deliveries were deleted.
public struct DiscardedEvents: Sendable, Equatable {
    package var all: Int
    /// Those of them that were in flight: whether they arrived is not known.
    public var inFlight: Int

    package init(all: Int = 0, inFlight: Int = 0) {
        self.all = all
        self.inFlight = inFlight
    }
}
