internal import EventLoops
internal import Model

/// Whose deliveries, and of which priority: what tells a lane's rows from those of others.
struct LaneKey: Hashable {
    /// The destination's row.
    let destination: Int64
    let priority: Priority
}

extension LaneKey {
    /// Reads both columns; nil for a priority that there is none of.
    init?(_ row: Statement, at column: Int32 = 0) {
        guard let priority = Priority(rawValue: UInt8(truncatingIfNeeded: row.integer(column + 1))) else { return nil }
        self.init(destination: Int64(row.integer(column)), priority: priority)
    }
}

/// What waits for one destination at one priority, and its ledger: the figures that a transaction changes.
struct Lane {
    let key: LaneKey
    let name: DestinationName

    var destination: Int64 { key.destination }
    var priority: Priority { key.priority }

    /// The largest limits under which a full chunk of the destination was ever leased.
    var leaseEvents = 0
    var leaseBytes = 0

    var ledger = Ledger()
    /// The uncompressed bytes of the queued events.
    var queuedBytes = 0
    var deadLetters = 0
    /// Whether `ledger`, `queuedBytes` and `deadLetters` differ from the database.
    var isDirty = false

    /// Events and bytes in batches: formed ones, and full chunks that are or were leased.
    var batchedEvents = 0
    var batchedBytes = 0
    var freeBatches = 0
    /// Events of all leases since the queue was opened.
    var handedOut = 0
    /// Events that commands took out since the queue was opened.
    var withdrawn = 0

    /// Every row of a lower chunk is held by this process, in a batch known to it.
    var cursor: Int64 = 0
    /// When the oldest waiting event was accepted; read again when it is stale.
    var oldestAcceptedAt: Timestamp?
    /// The least event time among the oldest waiting ones and all that came since.
    var earliestEventTime: Timestamp?
    /// The same by the deadlines that concern events because of their app; empty where no deadline names apps.
    var earliestByDeadlines: [DeadlineNames: Timestamp] = [:]
    var oldestIsStale = true

    var waitingEvents: Int { ledger.queued - batchedEvents }
    var waitingBytes: Int { queuedBytes - batchedBytes }

    var summary: LaneSummary {
        var summary = LaneSummary()
        (summary.waitingEvents, summary.waitingBytes) = (waitingEvents, waitingBytes)
        if waitingEvents > 0 {
            summary.oldestAcceptedAt = oldestAcceptedAt
            summary.earliestEventTime = earliestEventTime
            summary.earliestByDeadlines = earliestByDeadlines
        }
        (summary.freeBatches, summary.batchedEvents) = (freeBatches, batchedEvents)
        (summary.handedOut, summary.withdrawn) = (handedOut, withdrawn)
        return summary
    }

    /// Whether a full chunk of that size may be leased without noting it first.
    func allows(_ row: DeliveryRow) -> Bool { row.events <= leaseEvents && row.bytes <= leaseBytes }

    /// Takes events into the lane.
    mutating func add(events: Int, bytes: Int, acceptedAt: Timestamp, firstTime: Timestamp, deadlines: DeadlineNames?) {
        if waitingEvents == 0 {
            oldestAcceptedAt = acceptedAt
            earliestEventTime = firstTime
            earliestByDeadlines = [:]
            oldestIsStale = false
        } else {
            earliestEventTime = min(earliestEventTime ?? firstTime, firstTime)
        }
        if let deadlines {
            earliestByDeadlines[deadlines] = min(earliestByDeadlines[deadlines] ?? firstTime, firstTime)
        }
        ledger.queued += events
        queuedBytes += bytes
        isDirty = true
    }

    /// There are no batches any more.
    mutating func forgetBatches() { (batchedEvents, batchedBytes, freeBatches) = (0, 0, 0) }

    /// Takes events out of the lane, whatever became of them.
    mutating func remove(_ fate: WritableKeyPath<Ledger, Int>, events: Int, bytes: Int) {
        ledger.queued -= events
        ledger[keyPath: fate] += events
        queuedBytes -= bytes
        isDirty = true
    }
}

/// All figures that a transaction changes: saved when it begins, put back when it fails.
struct Figures {
    var lanes: [Lane] = []
    var totals = Totals()
    /// What table `total` holds.
    var writtenTotals = Totals()
    /// Discarded events by destination, priority and reason, since the database was made.
    var discards: [DiscardKey: Int] = [:]
    var dirtyDiscards: Set<DiscardKey> = []
    /// Files that have to stay, because the quarantine could not hold all of their bad lines: their paths by what names them.
    var unkept: [String: String] = [:]
    /// How often nobody knows what was lost, since the first database was made.
    var unknownLosses = 0
    /// What each app holds in the quarantine, in bytes; nil while nobody needed to know.
    var quarantineHeld: [String: Int]?
    /// What each app has of dead letters, in bytes; nil while nobody needed to know.
    var deadLettersHeld: [String: Int]?
    /// What each app holds in the queue; nil while nobody needed to know.
    var holdings: Holdings?

    /// Distinct reasons, each destination's and priority's counted; those beyond are `other`.
    static let mostReasons = 2000

    struct DiscardKey: Hashable {
        /// Of destination 0 for events that no destination wanted.
        let lane: LaneKey
        let reason: String
    }

    mutating func countDiscarded(_ events: Int, of lane: LaneKey, reason: String) {
        var key = DiscardKey(lane: lane, reason: reason)
        // Names of rules come from documents, version after version: without a bound the table would only grow.
        if discards[key] == nil, discards.count >= Figures.mostReasons {
            key = DiscardKey(lane: lane, reason: "other")
        }
        discards[key, default: 0] += events
        dirtyDiscards.insert(key)
    }
}

struct Totals: Equatable {
    var lastChunk = 0
    var stored = 0
    var maxSize = 0
    var intake = IntakeLedger()
    var deadLetters = QueueSnapshot.Kept()
    var quarantine = QueueSnapshot.Kept()

    /// In the order of the columns, behind the id.
    static var figures: [WritableKeyPath<Totals, Int>] {
        [
            \.lastChunk, \.stored, \.maxSize, \.intake.read, \.intake.accepted, \.intake.refused, \.intake.quarantined,
            \.deadLetters.count, \.deadLetters.bytes, \.deadLetters.purged, \.quarantine.count, \.quarantine.bytes,
            \.quarantine.purged,
        ]
    }

    /// Those that cannot be counted again, in the order in which their second copy has them.
    static var copied: [WritableKeyPath<Totals, Int>] {
        [
            \.lastChunk, \.maxSize, \.intake.read, \.intake.accepted, \.intake.refused, \.intake.quarantined,
            \.deadLetters.purged, \.quarantine.purged,
        ]
    }
}

extension QueueSnapshot.Kept {
    mutating func add(_ cost: Int) {
        count += 1
        bytes += cost
    }

    mutating func remove(_ cost: Int) {
        count -= 1
        bytes -= cost
    }
}

/// What a row counts for beside its content, in bytes: its own columns and its share of keys, in round figures.
let rowCost = 64

/// What a chunk counts for in `max_size`: its frame, its row and a row for each destination, until all have it.
func chunkCost(frame: Int, destinations: Int) -> Int { frame + rowCost * (1 + destinations) }

/// The same, of a row of table `chunk`.
let chunkCostColumn = "length(frame) + \(rowCost) * (1 + destinations)"
