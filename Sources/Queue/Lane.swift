internal import EventLoops
internal import Model

/// The key of a lane: destination and priority, the first two columns of table `delivery`.
struct LaneKey: Hashable {
    /// Id of the destination's row.
    let destination: Int64
    let priority: Priority
}

extension LaneKey {
    /// Reads two columns; nil if the priority is not a known one.
    init?(_ row: Statement, at column: Int32 = 0) {
        guard let priority = Priority(rawValue: UInt8(truncatingIfNeeded: row.integer(column + 1))) else {
            return nil
        }
        self.init(destination: Int64(row.integer(column)), priority: priority)
    }
}

/// The events of one priority on their way to one destination: counts and ledger, as changed by
/// transactions.
///
/// The counts are kept here because a query over a backlog of a million rows would take too long for
/// each batch. Invariants 1 to 4 (`QueueState+Invariants`) check them.
struct Lane {
    /// Identifies the lane's rows in the tables.
    let key: LaneKey
    let name: DestinationName

    var destination: Int64 { key.destination }
    var priority: Priority { key.priority }

    /// Largest limits under which a full chunk was ever leased for the destination. A full chunk within
    /// them may have been sent under its id by an earlier process and must not be cut.
    var leaseLimits = (events: 0, bytes: 0)

    /// Counts of all events that were accepted for the lane, by outcome.
    var ledger = Ledger() { didSet { revision += 1 } }
    /// Uncompressed bytes of the queued events.
    var queuedBytes = 0 { didSet { revision += 1 } }
    /// Rows of `dead_letter` that belong to the lane.
    var deadLetters = 0
    /// Whether `ledger`, `queuedBytes` or `deadLetters` differ from the database, so that the COMMIT
    /// writes the row of `ledger`.
    var isDirty = false

    /// What is in batches.
    var batches = BatchCounts() { didSet { revision += 1 } }
    /// Events that commands removed since the queue was opened. A change tells delivery that batches it
    /// gave back may be gone.
    var withdrawn = 0 { didSet { revision += 1 } }
    /// Number of changes of what `summary` shows, since the queue was opened. Delivery orders published
    /// summaries and answers to leases by it.
    var revision = 1

    /// Chunk to start a search from: every row of a lower chunk is in a batch that this process knows.
    /// Without it, each lease would walk over all batches in flight.
    var cursor: Int64 = 0
    /// Ages of the events that wait.
    var ages = WaitingAges() { didSet { revision += 1 } }

    /// Events that are in no batch yet.
    var waitingEvents: Int { ledger.queued - batches.events }
    /// Uncompressed bytes that are in no batch yet.
    var waitingBytes: Int { queuedBytes - batches.bytes }

    /// Summary of the lane for delivery.
    var summary: LaneSummary {
        var summary = LaneSummary()
        summary.waitingEvents = waitingEvents
        summary.waitingBytes = waitingBytes
        if waitingEvents > 0 {
            summary.oldestAcceptedAt = ages.oldestAcceptedAt
            summary.earliestEventTime = ages.earliestEventTime
            summary.earliestByDeadlines = ages.earliestByDeadlines
        }
        summary.freeBatches = batches.free
        summary.batchedEvents = batches.events
        summary.revision = revision
        summary.withdrawn = withdrawn
        return summary
    }

    /// Whether a full chunk of this size can be leased without a write; otherwise `allow` must first
    /// raise the stored limits.
    func allows(_ row: DeliveryRow) -> Bool {
        row.events <= leaseLimits.events && row.bytes <= leaseLimits.bytes
    }

    /// Counts events that were stored for the lane.
    mutating func add(
        events: Int, bytes: Int, acceptedAt: Timestamp, firstTime: Timestamp, deadlines: DeadlineNames?
    ) {
        ages.add(
            firstTime, acceptedAt: acceptedAt, deadlines: deadlines, isOnly: waitingEvents == 0)
        ledger.queued += events
        queuedBytes += bytes
        isDirty = true
    }

    /// Subtracts events that leave the queue and counts them by their departure.
    mutating func remove(_ departure: Departure, events: Int, bytes: Int) {
        ledger.queued -= events
        ledger.count(departure, events)
        queuedBytes -= bytes
        isDirty = true
    }
}

/// How deliveries leave the queue. The ledger has a count for each.
enum Departure {
    case acknowledged
    case deadLettered
    case evicted
    case expired
    case discarded
    case lost
}

extension Ledger {
    /// Counts events that leave the queue.
    fileprivate mutating func count(_ departure: Departure, _ events: Int) {
        switch departure {
        case .acknowledged: acknowledged += events
        case .deadLettered: deadLettered += events
        case .evicted: evicted += events
        case .expired: expired += events
        case .discarded: discarded += events
        case .lost: lost += events
        }
    }
}

/// Batches of a lane: formed batches, and full chunks that are or were leased.
struct BatchCounts {
    var events = 0
    var bytes = 0
    /// Batches that can be leased by id: given back, made by a settlement, or formed before this start.
    var free = 0
}

/// Ages of the events that wait in a lane.
struct WaitingAges {
    /// When the oldest waiting event was accepted.
    private(set) var oldestAcceptedAt: Timestamp?
    /// Least event time among the oldest waiting events and all that arrived since.
    private(set) var earliestEventTime: Timestamp?
    /// Least event time for each set of deadlines that apply to some apps only; empty if no deadline names
    /// apps.
    private(set) var earliestByDeadlines: [DeadlineNames: Timestamp] = [:]
    /// Whether the times must be read again, because the oldest waiting events have changed.
    private(set) var isStale = true

    /// Adds events that were stored.
    ///
    /// - Parameter isOnly: whether no others wait.
    mutating func add(
        _ firstTime: Timestamp, acceptedAt: Timestamp, deadlines: DeadlineNames?, isOnly: Bool
    ) {
        if isOnly {
            oldestAcceptedAt = acceptedAt
            earliestEventTime = firstTime
            earliestByDeadlines = [:]
            isStale = false
        } else {
            earliestEventTime = min(earliestEventTime ?? firstTime, firstTime)
        }
        if let deadlines {
            earliestByDeadlines[deadlines] = min(earliestByDeadlines[deadlines] ?? firstTime, firstTime)
        }
    }

    /// The oldest waiting events have changed.
    mutating func markStale() { isStale = true }

    /// Sets the times that were read again.
    mutating func set(
        oldestAcceptedAt: Timestamp?, earliest: Timestamp?, byDeadlines: [DeadlineNames: Timestamp]
    ) {
        self.oldestAcceptedAt = oldestAcceptedAt
        earliestEventTime = earliest
        earliestByDeadlines = byDeadlines
        isStale = false
    }
}

/// All counts that a transaction changes. A transaction works on a copy, which takes effect with the
/// COMMIT.
struct Figures {
    /// Two lanes for each destination, in the order of the rows of `destination`. Held batches refer to
    /// them by index, so lanes are only appended, except by a salvage.
    var lanes: [Lane] = []
    var totals = Totals()
    /// Last state of `totals` in the database: `TableWriter.write` skips the row if nothing differs.
    var writtenTotals = Totals()
    /// Discarded events by destination, priority and reason, since the database was made.
    var discards: [DiscardKey: Int] = [:]
    /// Keys of `discards` that the COMMIT must write.
    var dirtyDiscards: Set<DiscardKey> = []
    /// Files that must stay in the spool, because the quarantine could not hold all of their bad lines:
    /// path by file handle in hexadecimal.
    var unkept: [String: String] = [:]
    /// Number of salvages after which the number of lost events was unknown, since the first database
    /// was made.
    var unknownLosses = 0
    /// Bytes of each app in the quarantine; nil until an app has to give up records.
    var quarantineHeld: [String: Int]?
    /// Bytes of each app's dead letters; nil until an app has to give up records.
    var deadLettersHeld: [String: Int]?
    /// Bytes of each holder in the queue; nil until the queue is full.
    var holdings: Holdings?

    /// Deliveries that have expired since the queue was opened, by app.
    var expiredByApp: [String: AppCounts] = [:]

    /// Number of distinct reasons that are counted separately; further reasons count as `other`.
    static let mostReasons = 2000

    /// A lane and a reason: the key of table `discard`.
    struct DiscardKey: Hashable {
        /// Destination 0 for events that no destination wanted.
        let lane: LaneKey
        let reason: String
    }

    /// Counts expired deliveries, each by its app.
    mutating func noteExpired(_ apps: [String]) {
        for (app, events) in Dictionary(grouping: apps, by: { $0 }).sorted(by: { $0.key < $1.key }) {
            expiredByApp.noteExpired(events.count, of: app)
        }
    }

    /// Counts discarded events under their reason.
    mutating func countDiscarded(_ events: Int, of lane: LaneKey, reason: String) {
        var key = DiscardKey(lane: lane, reason: reason)
        // Reasons include names of rules, which come from documents, version after version: without a
        // bound the table would only grow. What consent withheld must stay apart from what rules discarded.
        if discards[key] == nil, reason != NotStored.withheldReason, discards.count >= Figures.mostReasons {
            key = DiscardKey(lane: lane, reason: "other")
        }
        discards[key, default: 0] += events
        dirtyDiscards.insert(key)
    }
}

/// Counts that belong to no lane: the row of table `total`.
struct Totals: Equatable {
    /// Highest chunk id that was ever given. Ids must not repeat after their chunks are gone: they are
    /// the order of acceptance.
    var lastChunk = 0
    /// Bytes that count toward `queue.max_size`.
    var stored = 0
    /// The cap in force, in bytes. It may differ from the configured one, which cannot be below what is
    /// stored.
    var maxSize = 0
    var intake = IntakeLedger()
    var deadLetters = QueueSnapshot.Kept()
    var quarantine = QueueSnapshot.Kept()

    /// The counts in the order of the columns behind `id`.
    static var figures: [WritableKeyPath<Totals, Int>] {
        [
            \.lastChunk, \.stored, \.maxSize, \.intake.read, \.intake.accepted, \.intake.refused,
            \.intake.quarantined,
            \.deadLetters.count, \.deadLetters.bytes, \.deadLetters.purged, \.quarantine.count,
            \.quarantine.bytes,
            \.quarantine.purged,
        ]
    }

    /// The counts that a salvage cannot recompute from rows, in the order in which their second copy
    /// stores them (`LedgerCopy`).
    static var copied: [WritableKeyPath<Totals, Int>] {
        [
            \.lastChunk, \.maxSize, \.intake.read, \.intake.accepted, \.intake.refused, \.intake.quarantined,
            \.deadLetters.purged, \.quarantine.purged,
        ]
    }
}

extension QueueSnapshot.Kept {
    /// Counts one more record.
    mutating func add(_ cost: Int) {
        count += 1
        bytes += cost
    }

    /// Subtracts one record.
    mutating func remove(_ cost: Int) {
        count -= 1
        bytes -= cost
    }
}

/// Bytes that a row counts for in addition to its content: other columns and its part of index pages,
/// rounded.
let rowCost = 64

/// Bytes that a chunk counts toward `max_size`: its frame, its row, and a row for each destination. The
/// number of destinations does not fall while some of them already have the events, so that a chunk
/// costs the same from its storing to its deletion.
func chunkCost(frame: Int, destinations: Int) -> Int { frame + rowCost * (1 + destinations) }

/// `chunkCost` as SQL, for a row of table `chunk`.
let chunkCostColumn = "length(frame) + \(rowCost) * (1 + destinations)"
