internal import EventLoops
internal import Model

/// What waits for one destination at one priority, and its ledger: the figures that a transaction changes.
struct Lane {
    /// The destination's row.
    let destination: Int64
    let name: DestinationName
    let priority: Priority

    /// The largest limits under which a full chunk of the destination was ever leased.
    var leaseEvents = 0
    var leaseBytes = 0

    var ledger = Ledger()
    /// The uncompressed bytes of the queued events.
    var queuedBytes = 0
    /// Dead letters that are kept.
    var deadLetters = 0
    /// Whether `ledger`, `queuedBytes` and `deadLetters` differ from the database.
    var isDirty = false

    /// Events and bytes in batches: formed ones, and full chunks that are or were leased.
    var batchedEvents = 0
    var batchedBytes = 0
    /// Batches that are not leased.
    var freeBatches = 0
    /// Events of all leases since the queue was opened.
    var handedOut = 0

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
        LaneSummary(
            waitingEvents: waitingEvents, waitingBytes: waitingBytes,
            oldestAcceptedAt: waitingEvents > 0 ? oldestAcceptedAt : nil,
            earliestEventTime: waitingEvents > 0 ? earliestEventTime : nil,
            earliestByDeadlines: waitingEvents > 0 ? earliestByDeadlines : [:], freeBatches: freeBatches,
            batchedEvents: batchedEvents, handedOut: handedOut)
    }

    /// Whether a full chunk of that size may be leased without noting it first.
    func allows(_ row: DeliveryRow) -> Bool { row.events <= leaseEvents && row.bytes <= leaseBytes }

    /// Takes events into the lane.
    mutating func add(
        events: Int, bytes: Int, acceptedAt: Timestamp, firstTime: Timestamp, deadlines: DeadlineNames?
    ) {
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
    /// What each app holds in the quarantine, in bytes; nil while nobody needed to know.
    var quarantineHeld: [String: Int]?

    /// Reasons that are told apart, each destination's and priority's counted; those beyond are `other`.
    static let mostReasons = 2000

    struct DiscardKey: Hashable {
        /// The destination's row; 0 for events that no destination wanted.
        let destination: Int64
        let priority: Priority
        let reason: String
    }

    mutating func countDiscarded(_ events: Int, destination: Int64, priority: Priority, reason: String) {
        var key = DiscardKey(destination: destination, priority: priority, reason: reason)
        // Names of rules come from documents, version after version: without a bound the table would only grow.
        if discards[key] == nil, discards.count >= Figures.mostReasons {
            key = DiscardKey(destination: destination, priority: priority, reason: "other")
        }
        discards[key, default: 0] += events
        dirtyDiscards.insert(key)
    }
}

/// The row of table `total`.
struct Totals: Equatable {
    var lastChunk: Int64 = 0
    var stored = 0
    var maxSize = 0
    var intake = IntakeLedger()
    var deadLetters = 0
    var deadLetterBytes = 0
    var deadLettersPurged = 0
    var quarantineRecords = 0
    var quarantineBytes = 0
    var quarantinePurged = 0
}

/// What a row counts for beside its content, in bytes: its own columns and its share of keys, in round figures.
let rowCost = 64

/// What a chunk counts for in `max_size`: its frame, its row and a row for each destination, until all have it.
func chunkCost(frame: Int, destinations: Int) -> Int { frame + rowCost * (1 + destinations) }
