public import EventLoops
public import Model

/// What the queue holds, at one moment: published after each change, and read without waiting for the store.
public struct QueueSnapshot: Sendable, Equatable {
    /// One destination at one priority.
    public struct LaneState: Sendable, Equatable {
        package var destination: DestinationName
        package var priority: Priority
        /// Whether the configuration still names the destination.
        public var isConfigured: Bool
        package var summary: LaneSummary
        /// What happened to all that was accepted.
        public var ledger: Ledger
        /// When the oldest queued event was accepted; nil if none is queued, or only batches of an earlier process are left.
        public var oldestQueuedAt: Timestamp?
        /// Dead letters of it that are kept: neither purged nor sent again.
        public var deadLetters = 0
    }

    /// What would happen to a new event.
    public enum Accepting: Sendable, Equatable {
        /// Everything is stored.
        case all
        /// The cap is reached by critical events: only such are stored, and evict older ones.
        case critical
        /// Nothing is stored until there is room again, or until what is wrong is fixed.
        case nothing(WaitReason)
    }

    /// The lanes: destinations in the order of the configuration, orphans after them; normal before critical.
    public var lanes: [LaneState] = []
    package var intake = IntakeLedger()
    /// Discarded events by destination (nil: no destination wanted them), priority and reason.
    public var discarded: [Discarded] = []
    /// What the queued rows hold, in bytes; never above `maxSize`.
    public var storedBytes = 0
    /// The cap in force, in bytes.
    public var maxSize = 0
    /// The cap that the configuration asks for, while it is below what is stored and not in force; nil otherwise.
    public var refusedMaxSize: Int?
    /// The pages of the database file, in bytes, free ones included.
    public var fileBytes = 0
    package var walBytes = 0
    /// Dead letters that are kept, and their bytes.
    public var deadLetters = Kept()
    /// Quarantined lines that are kept, and their bytes.
    public var quarantine = Kept()
    /// Files that have to stay, because the quarantine could not hold all of their bad lines: their paths, by what names them.
    public var unkept: [String: String] = [:]
    package var accepting = Accepting.all
    /// Another process that reads the database and keeps its WAL from being written back, as `sqlite3 (pid 4711)`, while storing
    /// waits for that; nil otherwise, or if it cannot be told.
    public var walReader: String?
    /// The last failure to persist that still stands; nil when writing works. The agent is not ready while it stands.
    public var failure: QueueError?
    /// Why the last commit failed by itself, for another reason than want of room, until one succeeds; nil when none has.
    /// The agent is not ready while it stands.
    public var commitFailure: QueueError?
    package var commits = 0
    /// Failures to persist since the start, by code.
    public var failures: [QueueError.Code: Int] = [:]
    /// Databases moved aside since the start because they were damaged.
    public var recoveries = 0
    /// Databases moved aside, ever, of which nobody knows how many events were lost.
    public var unknownLosses = 0
    package var transactions = 0

    /// Rows with their own bound.
    public struct Kept: Sendable, Equatable {
        package var count = 0
        package var bytes = 0
        /// How many the bound or a person has purged, since the database was made.
        public var purged = 0
    }

    /// Events that a rule, disabled collection or a person removed.
    public struct Discarded: Sendable, Equatable {
        /// The destination that would have got them; nil if none wanted them.
        public var destination: DestinationName?
        package var priority: Priority
        /// Why: a metric label.
        public var reason: String
        /// How many, since the database was made.
        public var events: Int
    }

    package init() {}

    mutating func count(_ error: QueueError) { failures[error.code, default: 0] += 1 }

    /// Takes into account that a batch of these events is not settled.
    mutating func note(_ batch: BatchHeader) {
        for index in lanes.indices
        where lanes[index].destination == batch.destination && lanes[index].priority == batch.priority {
            lanes[index].oldestQueuedAt = min(lanes[index].oldestQueuedAt ?? batch.acceptedAt, batch.acceptedAt)
        }
    }

    /// One lane's state; nil for an unknown destination.
    public func lane(_ destination: DestinationName, _ priority: Priority) -> LaneState? {
        lanes.first { $0.destination == destination && $0.priority == priority }
    }
}

/// The state from which the agent continues after a start.
public struct RestoredState: Sendable {
    package var checkpoints: [Checkpoint] = []
    /// Drop files whose unlink may not be durable.
    public var done: [DoneRecord] = []
    package var memory: [String: [UInt8]] = [:]
}
