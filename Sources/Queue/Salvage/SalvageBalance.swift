internal import EventLoops
internal import Model

/// Makes what was salvaged consistent: chunks and deliveries need each other, figures need both.
struct SalvageBalance {
    struct Loss {
        var events = 0
        /// Whether that is all of it: the ledger or its copy was there.
        var isKnown = true
    }

    private let target: QueueFile
    private let options: QueueOptions
    private let unpacker: FrameUnpacker

    init(_ target: QueueFile, _ options: QueueOptions) throws(QueueError) {
        self.target = target
        self.options = options
        unpacker = try FrameUnpacker()
    }

    /// - Parameters:
    ///   - hasLedger: whether rows of the ledger were found.
    ///   - doubtful: how many events have rows that may be older than what was committed. They go again, but in place of no other's: that
    ///     would be a loss.
    func settle(hasLedger: Bool, doubtful: [LaneKey: Int], _ tables: borrowing TableWriter) throws(QueueError) -> Loss {
        let database = target.database
        try database.execute("INSERT OR IGNORE INTO total (id) VALUES (1)")
        let copy = try target.ledgerCopy()
        for entry in copy?.entries ?? [] {
            try name(entry.lane.destination, entry.name, tables)
            // Of a name in which a bit has changed there are two: the configuration tells which is right.
            guard options.destinations.contains(where: { $0.text == entry.name }) else { continue }
            try tables.run("UPDATE OR IGNORE destination SET name = ? WHERE id = ?", entry.name, entry.lane.destination)
        }
        // With one destination in the configuration and one number in the rows there is no doubt whose they are.
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
        // With those whose chunks are gone: no others are to be made in their place.
        let found = try figuresByLane("SELECT destination, priority, sum(events) FROM delivery GROUP BY 1, 2")
        try database.execute(
            "DELETE FROM delivery WHERE EXISTS (SELECT 1 FROM chunk WHERE id = chunk AND (chunk.priority <> "
                + "delivery.priority OR delivery.first + delivery.events > chunk.events))")
        var figures = try target.load()
        try takeTotalsFromCopy(&figures.totals)
        var loss = Loss()
        let known = try figuresByLane("SELECT destination, priority, queued FROM ledger")
        for index in figures.lanes.indices {
            let lane = figures.lanes[index]
            let copied = copy?.entries.first { $0.lane == lane.key }?.ledger
            var expected = known[lane.key] != nil || hasLedger && copy == nil ? lane.ledger : nil
            // Both are exact at their time, and never fall: the greater one is the newer.
            if let known = expected, !known.balances { expected = nil }
            if let copied, copied.balances, (expected?.total ?? -1) < copied.total { expected = copied }
            if expected == nil { loss.isKnown = false }
            figures.lanes[index].ledger = expected ?? Ledger()
            try fill(
                figures.lanes[index], figures,
                missing: expected.map {
                    $0.queued - found[lane.key, default: 0] + doubtful[lane.key, default: 0]
                } ?? .max, tables)
            loss.events += try balance(&figures.lanes[index])
        }
        if figures.lanes.isEmpty { loss.isKnown = false }
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

    /// Rows that an older version stored carry no check. Where two claim the same events, the first is believed; a batch's id that two
    /// claim is dropped, and they go under another.
    private func believeOnce(_ database: Database) throws(QueueError) {
        try database.execute(
            "DELETE FROM delivery WHERE EXISTS (SELECT 1 FROM delivery AS other WHERE other.destination = delivery.destination "
                + "AND other.priority = delivery.priority AND other.chunk = delivery.chunk "
                + "AND other.first < delivery.first AND other.first + other.events > delivery.first)")
        try database.execute(
            "UPDATE delivery SET batch = NULL, row_check = NULL WHERE state = 0 AND batch IN "
                + "(SELECT batch FROM delivery WHERE batch IS NOT NULL GROUP BY batch HAVING count(*) > 1)")
    }

    private func name(_ number: Int64, _ name: String, _ tables: borrowing TableWriter) throws(QueueError) {
        try tables.run("INSERT OR IGNORE INTO destination (id, name) VALUES (?, ?)", number, name)
    }

    /// The totals from the ledger's page, where their own was lost.
    private func takeTotalsFromCopy(_ totals: inout Totals) throws(QueueError) {
        let row = try target.database.prepare("SELECT * FROM ledger WHERE destination = 0 AND priority = 0")
        guard try row.step() else { return }
        for (place, figure) in Totals.copied.enumerated() {
            totals[keyPath: figure] = max(totals[keyPath: figure], row.integer(Int32(place + 2)))
        }
    }

    /// The third column of rows whose first two are a lane, which has one row.
    private func figuresByLane(_ sql: String) throws(QueueError) -> [LaneKey: Int] {
        var found: [LaneKey: Int] = [:]
        for (lane, figure) in try target.statement(sql).all({ (LaneKey($0), $0.integer(2)) }) {
            if let lane { found[lane] = figure }
        }
        return found
    }

    /// Makes rows again for chunks whose rows were lost, the newest first: those before them have most likely been sent.
    ///
    /// Chunks that are lost, too, count among them: made for others in their place, rows would repeat what was sent.
    /// - Parameter events: how many events had rows that are lost; where nobody knows, what may have been sent goes again.
    private func fill(
        _ lane: Lane, _ figures: Figures, missing events: Int, _ tables: borrowing TableWriter
    ) throws(QueueError) {
        var missing = events
        var isWanted = true
        let all = Set(figures.lanes.map(\.destination)).count
        let chunks = try target.database.prepare(
            "SELECT id, destinations, wanted_by FROM chunk WHERE priority = \(lane.priority.rawValue) UNION ALL "
                + "SELECT chunk, 0, NULL FROM holding WHERE priority = \(lane.priority.rawValue) "
                + "AND chunk NOT IN (SELECT id FROM chunk) AND chunk <= \(figures.totals.lastChunk) ORDER BY 1 DESC")
        while missing > 0, try chunks.step() {
            // To nobody else than whom it was accepted for, whatever is lost. A lost one was for the same as the one after it.
            let wanted = chunks.origins(2)
            if chunks.integer(1) > 0 {
                isWanted = wanted.isEmpty ? chunks.integer(1) >= all : wanted[lane.destination] != nil
            }
            if isWanted { missing -= try fill(Int64(chunks.integer(0)), lane, tables) }
        }
        chunks.reset()
    }

    /// Makes rows for the events of a chunk that a lane has none for; returns how many, or how many it would be of a lost one.
    private func fill(_ id: Int64, _ lane: Lane, _ tables: borrowing TableWriter) throws(QueueError) -> Int {
        let rows = try target.rows(of: id, in: lane.key)
        guard let chunk = try target.readChunk(id) else {
            return rows.isEmpty ? try target.holding(of: id)?.holders.events ?? 0 : 0
        }
        var gaps: [Range<Int>] = []
        var next = 0
        for row in rows {
            if row.first > next { gaps.append(next..<row.first) }
            next = max(next, row.first + row.events)
        }
        if next < chunk.events { gaps.append(next..<chunk.events) }
        guard !gaps.isEmpty, let lines = unpacker.lines(of: chunk) else { return 0 }
        let accepted = try target.database.integer("SELECT accepted_at FROM chunk WHERE id = \(id)") ?? 0
        for gap in gaps {
            let row = DeliveryRow(
                chunk: id, first: gap.lowerBound, events: gap.count, bytes: lines.size(gap), firstTime: chunk.firstTime,
                acceptedAt: Timestamp(nanoseconds: Int64(accepted)), batch: nil, isFormed: false, deadlines: nil)
            try tables.insert(row, in: lane.key)
        }
        return gaps.reduce(0) { $0 + $1.count }
    }

    /// Counts queued events without rows as lost, and rows that the ledger does not know as accepted.
    private func balance(_ lane: inout Lane) throws(QueueError) -> Int {
        let mine = "WHERE destination = \(lane.destination) AND priority = \(lane.priority.rawValue)"
        try target.database.execute("DELETE FROM delivery \(mine) AND chunk NOT IN (SELECT id FROM chunk)")
        let queued = try target.sum("events", "delivery \(mine)")
        let missing = lane.ledger.queued - queued
        if missing > 0 {
            lane.ledger.lost += missing
        } else {
            lane.ledger.accepted -= missing
        }
        lane.ledger.queued = queued
        lane.queuedBytes = try target.sum("bytes", "delivery \(mine)")
        lane.deadLetters = try target.sum("1", "dead_letter \(mine)")
        lane.forgetBatches()
        lane.isDirty = true
        return max(0, missing)
    }

    private func count(_ figures: inout Figures) throws(QueueError) {
        figures.totals.deadLetters.count = figures.lanes.reduce(0) { $0 + $1.deadLetters }
        figures.totals.quarantine.count = try target.sum("1", "quarantine")
        for shelf in [Shelf.deadLetters, .quarantine] {
            figures.totals[keyPath: shelf.kept].bytes = try target.sum("\(rowCost) + \(shelf.length)", shelf.table)
        }
        figures.totals.stored = try target.sum(chunkCostColumn, "chunk")
        let last = try target.database.integer("SELECT coalesce(max(id), 0) FROM chunk") ?? 0
        figures.totals.lastChunk = max(figures.totals.lastChunk, last)
        let intake = figures.totals.intake
        figures.totals.intake.read = intake.accepted + intake.refused + intake.quarantined
    }
}

extension Ledger {
    /// All columns together: it never falls.
    fileprivate var total: Int {
        accepted + retried + acknowledged + deadLettered + evicted + expired + discarded + lost + queued
    }
}
