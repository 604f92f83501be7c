internal import EventLoops
internal import Model

/// Makes salvaged rows consistent: each delivery needs its chunk, each chunk needs a delivery, and the
/// counts must equal the rows. What the ledger counts and no row holds is counted as lost.
struct SalvageBalance {
    /// Number of lost events.
    struct Loss {
        var events = 0
        /// Whether `events` is the whole loss: true if the ledger or its copy was found.
        var isKnown = true
    }

    /// The new database.
    private let target: QueueFile
    private let options: QueueOptions
    private let unpacker = FrameUnpacker()

    init(_ target: QueueFile, _ options: QueueOptions) {
        self.target = target
        self.options = options
    }

    /// Balances all tables and returns the loss.
    ///
    /// - Parameters:
    ///   - hasLedger: whether rows of the ledger were found.
    ///   - doubtful: number of events in rows that may be older than the last COMMIT. They are sent
    ///     again, but do not count as found: otherwise rows that are really missing would not be
    ///     recreated, and be lost.
    func settle(hasLedger: Bool, doubtful: [LaneKey: Int], _ tables: borrowing TableWriter) throws(QueueError)
        -> Loss
    {
        let database = target.database
        // The steps build on each other: destinations first, then deliveries of known destinations,
        // then the counts.
        try database.execute("INSERT OR IGNORE INTO total (id) VALUES (1)")
        let copy = try FigureTables(target).ledgerCopy()
        for entry in copy?.entries ?? [] {
            try name(entry.lane.destination, entry.name, tables)
            // If a bit of a name has changed there are two versions of it. The configuration tells
            // which one is right.
            guard options.destinations.contains(where: { $0.text == entry.name }) else { continue }
            try tables.run(
                "UPDATE OR IGNORE destination SET name = ? WHERE id = ?", entry.name, entry.lane.destination)
        }
        // With a single destination in the configuration and a single number in the rows there is no
        // doubt that they belong together.
        if options.destinations.count == 1, try database.integer("SELECT count(*) FROM destination") == 0,
            try database.integer("SELECT count(DISTINCT destination) FROM delivery") == 1,
            let number = try database.integer("SELECT destination FROM delivery LIMIT 1")
        {
            try name(Int64(number), options.destinations[0].text, tables)
        }
        try database.execute(
            "DELETE FROM ledger WHERE destination NOT IN (SELECT id FROM destination) AND destination > 0")
        try database.execute("DELETE FROM delivery WHERE destination NOT IN (SELECT id FROM destination)")
        try database.execute("DELETE FROM dead_letter WHERE destination NOT IN (SELECT id FROM destination)")
        try believeOnce(database)
        // Deliveries whose chunks are lost count as found: nothing is recreated in their place.
        let found = try figuresByLane("SELECT destination, priority, sum(events) FROM delivery GROUP BY 1, 2")
        try database.execute(
            "DELETE FROM delivery WHERE EXISTS (SELECT 1 FROM chunk WHERE id = chunk AND (chunk.priority <> "
                + "delivery.priority OR delivery.first + delivery.events > chunk.events))")
        var figures = try FigureTables(target).load()
        try takeTotalsFromCopy(&figures.totals)
        var loss = Loss()
        // What should be queued, by the ledger or its copy, is compared with the rows that were found.
        let known = try figuresByLane("SELECT destination, priority, queued FROM ledger")
        for index in figures.lanes.indices {
            let lane = figures.lanes[index]
            let copied = copy?.entries.first { $0.lane == lane.key }?.ledger
            var expected = known[lane.key] != nil || hasLedger && copy == nil ? lane.ledger : nil
            // Both copies were exact when they were written, and the sum of their columns never falls:
            // the greater one is newer.
            if let known = expected, !known.balances {
                expected = nil
            }
            if let copied, copied.balances, (expected?.total ?? -1) < copied.total {
                expected = copied
            }
            if expected == nil {
                loss.isKnown = false
            }
            figures.lanes[index].ledger = expected ?? Ledger()
            try fill(
                figures.lanes[index], figures,
                missing: expected.map {
                    $0.queued - found[lane.key, default: 0] + doubtful[lane.key, default: 0]
                } ?? .max, tables)
            loss.events += try balance(&figures.lanes[index])
        }
        if figures.lanes.isEmpty {
            loss.isKnown = false
        }
        try database.execute("DELETE FROM chunk WHERE id NOT IN (SELECT chunk FROM delivery)")
        try database.execute("DELETE FROM holding WHERE chunk NOT IN (SELECT id FROM chunk)")
        try count(&figures)
        if !loss.isKnown {
            try database.execute(
                "INSERT INTO switch VALUES ('\(Salvage.unknownLosses)', '1') "
                    + "ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1")
        }
        try tables.write(&figures)
        return loss
    }

    /// Removes contradictions between rows of older schemas, which carry no check. If two rows claim
    /// the same events, the first is kept. If two rows claim the same batch id, both lose it and get
    /// new ones.
    private func believeOnce(_ database: Database) throws(QueueError) {
        try database.execute(
            "DELETE FROM delivery WHERE EXISTS (SELECT 1 FROM delivery AS other WHERE other.destination = "
                + "delivery.destination AND other.priority = delivery.priority AND other.chunk = "
                + "delivery.chunk AND other.first < delivery.first AND other.first + other.events > "
                + "delivery.first)")
        try database.execute(
            "UPDATE delivery SET batch = NULL, row_check = NULL WHERE state = 0 AND batch IN "
                + "(SELECT batch FROM delivery WHERE batch IS NOT NULL GROUP BY batch HAVING count(*) > 1)")
    }

    /// Adds a destination under its old number, unless the number or the name is in use.
    private func name(_ number: Int64, _ name: String, _ tables: borrowing TableWriter) throws(QueueError) {
        try tables.run("INSERT OR IGNORE INTO destination (id, name) VALUES (?, ?)", number, name)
    }

    /// Raises each total to the value of its second copy, in case the row of `total` was lost.
    private func takeTotalsFromCopy(_ totals: inout Totals) throws(QueueError) {
        let row = try target.database.prepare("SELECT * FROM ledger WHERE destination = 0 AND priority = 0")
        guard try row.step() else { return }
        for (index, figure) in Totals.copied.enumerated() {
            totals[keyPath: figure] = max(totals[keyPath: figure], row.integer(Int32(index + 2)))
        }
    }

    /// A query's third column by the lane in its first two columns.
    private func figuresByLane(_ sql: String) throws(QueueError) -> [LaneKey: Int] {
        var found: [LaneKey: Int] = [:]
        for (lane, figure) in try target.statement(sql).all({ (LaneKey($0), $0.integer(2)) }) {
            if let lane {
                found[lane] = figure
            }
        }
        return found
    }

    /// Recreates deliveries for chunks whose deliveries were lost, newest chunk first, because older
    /// chunks have most likely been sent.
    ///
    /// Lost chunks count among the missing events. Otherwise deliveries would be recreated for other
    /// chunks in their place, which would send those chunks a second time.
    ///
    /// - Parameter events: number of events whose deliveries are missing. If it is unknown (`Int.max`),
    ///   all chunks are sent again.
    private func fill(
        _ lane: Lane, _ figures: Figures, missing events: Int, _ tables: borrowing TableWriter
    ) throws(QueueError) {
        var missing = events
        var isWanted = true
        let all = Set(figures.lanes.map(\.destination)).count
        let chunks = try target.database.prepare(
            "SELECT id, destinations, wanted_by FROM chunk WHERE priority = \(lane.priority.rawValue) UNION "
                + "ALL SELECT chunk, 0, NULL FROM holding WHERE priority = \(lane.priority.rawValue) "
                + "AND chunk NOT IN (SELECT id FROM chunk) AND chunk <= \(figures.totals.lastChunk) ORDER "
                + "BY 1 DESC"
        )
        while missing > 0, try chunks.step() {
            // A delivery is recreated only for destinations that the chunk was accepted for. A lost
            // chunk is assumed to have the destinations of the chunk after it.
            let wanted = chunks.origins(2)
            if chunks.integer(1) > 0 {
                isWanted = wanted.isEmpty ? chunks.integer(1) >= all : wanted[lane.destination] != nil
            }
            if isWanted {
                missing -= try fill(Int64(chunks.integer(0)), lane, tables)
            }
        }
        chunks.reset()
    }

    /// Recreates deliveries for those events of a chunk that a lane has none for. Returns how many
    /// events they have; for a lost chunk, how many they would have had.
    private func fill(_ id: Int64, _ lane: Lane, _ tables: borrowing TableWriter) throws(QueueError) -> Int {
        let rows = try target.rows(of: id, in: lane.key)
        guard let chunk = try target.readChunk(id) else {
            return rows.isEmpty ? try HolderTable(target).holding(of: id)?.holders.events ?? 0 : 0
        }
        var gaps: [Range<Int>] = []
        var next = 0
        for row in rows {
            if row.first > next {
                gaps.append(next..<row.first)
            }
            next = max(next, row.first + row.events)
        }
        if next < chunk.events {
            gaps.append(next..<chunk.events)
        }
        guard !gaps.isEmpty, let lines = unpacker.lines(of: chunk) else { return 0 }
        let accepted = try target.database.integer("SELECT accepted_at FROM chunk WHERE id = \(id)") ?? 0
        for gap in gaps {
            let row = DeliveryRow(
                chunk: id, first: gap.lowerBound, events: gap.count, bytes: lines.size(gap),
                firstTime: chunk.firstTime,
                acceptedAt: Timestamp(nanoseconds: Int64(accepted)), batch: nil, isFormed: false,
                deadlines: nil)
            try tables.insert(row, in: lane.key)
        }
        return gaps.reduce(0) { $0 + $1.count }
    }

    /// Makes a lane's ledger agree with its rows: queued events without rows count as lost, rows that
    /// the ledger does not know as accepted.
    private func balance(_ lane: inout Lane) throws(QueueError) -> Int {
        let mine = "WHERE destination = \(lane.destination) AND priority = \(lane.priority.rawValue)"
        try target.database.execute("DELETE FROM delivery \(mine) AND chunk NOT IN (SELECT id FROM chunk)")
        let queued = try FigureTables(target).sum("events", "delivery \(mine)")
        let missing = lane.ledger.queued - queued
        if missing > 0 {
            lane.ledger.lost += missing
        } else {
            lane.ledger.accepted -= missing
        }
        lane.ledger.queued = queued
        lane.queuedBytes = try FigureTables(target).sum("bytes", "delivery \(mine)")
        lane.deadLetters = try FigureTables(target).sum("1", "dead_letter \(mine)")
        lane.batches = BatchCounts()
        lane.isDirty = true
        return max(0, missing)
    }

    /// Counts the rows of the tables that have totals.
    private func count(_ figures: inout Figures) throws(QueueError) {
        figures.totals.deadLetters.count = figures.lanes.reduce(0) { $0 + $1.deadLetters }
        figures.totals.quarantine.count = try FigureTables(target).sum("1", "quarantine")
        for shelf in [Shelf.deadLetters, .quarantine] {
            figures.totals[keyPath: shelf.kept].bytes = try FigureTables(target).sum(
                "\(rowCost) + \(shelf.length)", shelf.table)
        }
        figures.totals.stored = try FigureTables(target).sum(chunkCostColumn, "chunk")
        let last = try target.database.integer("SELECT coalesce(max(id), 0) FROM chunk") ?? 0
        figures.totals.lastChunk = max(figures.totals.lastChunk, last)
        let intake = figures.totals.intake
        figures.totals.intake.read = intake.accepted + intake.refused + intake.quarantined
    }
}

extension Ledger {
    /// Sum of all columns. It never falls, so of two copies the greater one is newer.
    fileprivate var total: Int {
        accepted + retried + acknowledged + deadLettered + evicted + expired + discarded + lost + queued
    }
}
