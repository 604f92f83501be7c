public import EventLoops
public import Model

/// What the queue holds at one moment. Published after each change, so that metrics, health and
/// delivery never wait for the store's loop, which may be in an fsync.
public struct QueueSnapshot: Sendable, Equatable {
    /// The state of one destination at one priority.
    public struct LaneState: Sendable, Equatable {
        package var destination: DestinationName
        package var priority: Priority
        /// Whether the destination is in the configuration; false for an orphan.
        public var isConfigured: Bool
        /// What delivery needs to decide when to lease.
        package var summary: LaneSummary
        /// Counts of all events that were accepted, by outcome.
        public var ledger: Ledger
        /// When the oldest queued event was accepted; nil if no event is queued, or only batches of an
        /// earlier process are left.
        public var oldestQueuedAt: Timestamp?
        /// Kept dead letters of the lane: neither purged nor sent again.
        public var deadLetters = 0
    }

    /// Whether the queue would store a new event.
    public enum Accepting: Sendable, Equatable {
        /// An event of any priority would be stored.
        case all
        /// The queue is full of critical events: only critical events are stored, and evict older ones.
        case critical
        /// Nothing is stored until there is room again or the stated problem is solved.
        case nothing(WaitReason)
    }

    /// Lanes: configured destinations in the order of the configuration, then orphans; normal before
    /// critical.
    public var lanes: [LaneState] = []
    /// Counts of the events that were read, by outcome.
    package var intake = IntakeLedger()
    /// Discarded events by destination (nil if no destination wanted them), priority and reason.
    public var discarded: [Discarded] = []
    /// Deliveries that have expired since the queue was opened, by app.
    public var expiredByApp: [String: AppCounts] = [:]
    /// Bytes that count toward the cap; at most `maxSize`.
    public var storedBytes = 0
    /// The cap in force, in bytes.
    public var maxSize = 0
    /// Size of the database file in bytes, free pages included.
    public var fileBytes = 0
    /// Bytes in the WAL that are not in the database file yet.
    package var walBytes = 0
    /// Count and bytes of the kept dead letters.
    public var deadLetters = Kept()
    /// Count and bytes of the kept quarantined lines.
    public var quarantine = Kept()
    /// Files that must stay in the spool, because the quarantine could not hold all of their bad lines:
    /// path by file handle in hexadecimal.
    public var unkept: [String: String] = [:]
    /// Whether the queue would store a new event.
    package var accepting = Accepting.all
    /// What commands have set about consent.
    public package(set) var consent = ConsentStates()
    /// The process that reads the database and keeps its WAL from being written back, such as `sqlite3
    /// (pid 4711)`, while storing waits for it; nil otherwise, or if it cannot be determined.
    public var walReader: String?
    /// How the store fares since its start.
    public var health = QueueHealth()
    /// Databases that were damaged and moved aside without the number of lost events being known, since
    /// the first database was made.
    public var unknownLosses = 0

    /// Count and size of a table with a bound of its own.
    public struct Kept: Sendable, Equatable {
        package var count = 0
        package var bytes = 0
        /// Records purged by the bound or by a command, since the database was made.
        public var purged = 0
    }

    /// Events removed by a rule, disabled collection or a command, as one row of table `discard`.
    public struct Discarded: Sendable, Equatable {
        /// The destination that would have received the events; nil if no destination wanted them.
        public var destination: DestinationName?
        package var priority: Priority
        /// Reason, a metric label.
        public var reason: String
        /// Number of events since the database was made.
        public var events: Int
    }

    package init() {}

    /// The state of one lane; nil if the destination is unknown.
    public func lane(_ destination: DestinationName, _ priority: Priority) -> LaneState? {
        lanes.first { $0.destination == destination && $0.priority == priority }
    }
}

/// How a queue's store fares since its start: what fails now, and what was done.
public struct QueueHealth: Sendable, Equatable {
    /// The last failure to write, while it persists; nil when writing works. The agent is not ready
    /// while it is set.
    public internal(set) var failure: QueueError?
    /// Why the last commit failed for a reason that concerns this commit only, until another commit
    /// succeeds; nil otherwise. The agent is not ready while it is set.
    public package(set) var commitFailure: QueueError?
    /// The configured cap while it is below what is stored and therefore not in force; nil otherwise.
    public internal(set) var refusedMaxSize: Int?
    /// Commits stored.
    package var commits = 0
    /// Transactions.
    package var transactions = 0
    /// Failures to write, by code.
    public private(set) var failures: [QueueError.Code: Int] = [:]
    /// Databases that were damaged and moved aside.
    public internal(set) var recoveries = 0

    /// Counts a failure by its code.
    mutating func count(_ error: QueueError) { failures[error.code, default: 0] += 1 }
}

/// State from which the agent continues after a start.
public struct RestoredState: Sendable {
    /// How far each file of the spool was read.
    package var checkpoints: [Checkpoint] = []
    /// Drop files whose events are stored and whose unlink may not be durable. The spool unlinks them
    /// instead of reading them again.
    public var done: [DoneRecord] = []
    /// What passes over the spool remember, by name: sessions, data layers, counters of limits.
    package var memory: [String: [UInt8]] = [:]
}
