internal import Model

/// The counts as they are stored: tables `destination`, `ledger`, `discard` and `total`.
struct FigureTables {
    private let file: QueueFile

    init(_ file: QueueFile) { self.file = file }

    /// Reads all counts. It reads a row for each lane and each formed batch, not the backlog, so a
    /// start with a million queued events is fast.
    ///
    /// - Throws: `corrupt` if the counts cannot have been written by us; the caller then salvages.
    func load() throws(QueueError) -> Figures {
        var figures = Figures()
        figures.totals = try loadTotals()
        figures.writtenTotals = figures.totals
        figures.lanes = try loadLanes()
        for index in figures.lanes.indices {
            try countFormed(&figures.lanes[index])
        }
        let discards = try file.database.prepare("SELECT destination, priority, reason, events FROM discard")
        while try discards.step() {
            guard let lane = LaneKey(discards) else { continue }
            figures.discards[Figures.DiscardKey(lane: lane, reason: discards.text(2))] = discards.integer(3)
        }
        figures.unkept = try UnkeptTable(file).filesToStay()
        figures.unknownLosses =
            try file.database.integer(
                "SELECT CAST(value AS INTEGER) FROM switch WHERE name = '\(Salvage.unknownLosses)'")
            ?? 0
        return figures
    }

    /// Reads the only row of `total`.
    private func loadTotals() throws(QueueError) -> Totals {
        let row = try file.database.prepare("SELECT * FROM total")
        guard try row.step() else { throw file.database.damage("table total is empty") }
        var totals = Totals()
        for (column, figure) in Totals.figures.enumerated() {
            totals[keyPath: figure] = row.integer(Int32(column + 1))
            // Larger counts cannot occur, and sums of counts in this range cannot overflow.
            guard (0...1 << 53).contains(totals[keyPath: figure]) else {
                throw file.database.damage("the totals")
            }
        }
        return totals
    }

    /// Reads destinations and ledgers, and makes lanes for both priorities of each destination.
    private func loadLanes() throws(QueueError) -> [Lane] {
        let row = try file.database.prepare(
            """
            SELECT d.id, l.priority, d.name, l.accepted, l.retried, l.acknowledged, l.dead_lettered, \
            l.evicted,
            l.expired, l.discarded, l.lost, l.queued, l.queued_bytes, d.lease_events, d.lease_bytes, \
            l.dead_letters
            FROM destination d LEFT JOIN ledger l ON l.destination = d.id ORDER BY d.id, l.priority
            """)
        var lanes: [Lane] = []
        while try row.step() {
            let destination = Int64(row.integer(0))
            if lanes.last?.destination != destination {
                let name = DestinationName(row.text(2))
                for priority in Priority.allCases {
                    var lane = Lane(key: LaneKey(destination: destination, priority: priority), name: name)
                    lane.leaseLimits = (row.integer(13), row.integer(14))
                    lanes.append(lane)
                }
            }
            guard let key = LaneKey(row), let index = lanes.lastIndex(where: { $0.key == key }) else {
                continue
            }
            var ledger = Ledger()
            for (column, figure) in Ledger.figures.enumerated() {
                ledger[keyPath: figure.path] = row.integer(Int32(column + 3))
            }
            guard (3..<12).allSatisfy({ (0...1 << 53).contains(row.integer(Int32($0))) }) else {
                throw file.database.damage("the ledger")
            }
            if !ledger.balances {
                // If the second copy has the same imbalance, no page was damaged: an earlier version
                // counted wrongly. A salvage would not repair that, so the start continues and reports
                // the imbalance.
                let copied = try ledgerCopy()?.entries.contains { $0.lane == key && $0.ledger == ledger }
                guard copied ?? false else { throw file.database.damage("the ledger") }
            }
            lanes[index].ledger = ledger
            lanes[index].queuedBytes = row.integer(12)
            lanes[index].deadLetters = row.integer(15)
        }
        return lanes
    }

    /// The second copy of the ledger; nil if it is missing or unreadable.
    func ledgerCopy() throws(QueueError) -> LedgerCopy? {
        try file.statement("SELECT copy FROM total").first { $0.text(0) }.flatMap { LedgerCopy($0) }
    }

    /// Sum of an SQL expression over a table; `table` may end with a WHERE clause.
    func sum(_ expression: String, _ table: String) throws(QueueError) -> Int {
        try file.database.integer("SELECT coalesce(sum(\(expression)), 0) FROM \(table)") ?? 0
    }

    /// Whether the counts equal those of the rows. Reads all rows.
    func agree(with figures: Figures) -> Bool {
        do throws(QueueError) {
            for lane in figures.lanes {
                let mine = "WHERE destination = \(lane.destination) AND priority = \(lane.priority.rawValue)"
                guard try sum("events", "delivery \(mine)") == lane.ledger.queued,
                    try sum("bytes", "delivery \(mine)") == lane.queuedBytes,
                    try sum("1", "dead_letter \(mine)") == lane.deadLetters
                else { return false }
            }
            let stored = try sum(chunkCostColumn, "chunk")
            let deadLetters = try sum("1", "dead_letter")
            let quarantined = try sum("1", "quarantine")
            return stored == figures.totals.stored && deadLetters == figures.totals.deadLetters.count
                && quarantined == figures.totals.quarantine.count
        } catch {
            return false
        }
    }

    /// Counts the formed batches of a lane. At a start all of them are free, because leases are only in
    /// memory.
    private func countFormed(_ lane: inout Lane) throws(QueueError) {
        let row = try file.statement(
            """
            SELECT count(DISTINCT batch), coalesce(sum(events), 0), coalesce(sum(bytes), 0) FROM delivery
            INDEXED BY delivery_formed WHERE state = 1 AND destination = ? AND priority = ?
            """
        ).with(lane.destination, lane.priority)
        defer { row.reset() }
        guard try row.step() else { return }
        lane.batches = BatchCounts(events: row.integer(1), bytes: row.integer(2), free: row.integer(0))
    }
}

extension TableWriter {
    /// Writes the counts that changed, and the second copy of each, in the running transaction.
    func write(_ figures: inout Figures) throws(QueueError) {
        var isCopyOld = false
        for index in figures.lanes.indices where figures.lanes[index].isDirty {
            let lane = figures.lanes[index]
            let ledger = Ledger.figures.map { lane.ledger[keyPath: $0.path] }
            try write(
                ledger: lane.destination, Int(lane.priority.rawValue),
                ledger + [lane.queuedBytes, lane.deadLetters])
            figures.lanes[index].isDirty = false
            isCopyOld = true
        }
        for key in figures.dirtyDiscards {
            try run(
                "REPLACE INTO discard VALUES (?, ?, ?, ?)", key.lane.destination, key.lane.priority,
                key.reason,
                figures.discards[key] ?? 0)
        }
        figures.dirtyDiscards.removeAll()
        let totals = figures.totals
        guard isCopyOld || totals != figures.writtenTotals else { return }
        let total = try statement("REPLACE INTO total VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        total.with(Totals.figures.map { totals[keyPath: $0] })
        total.bind(Int32(Totals.figures.count + 1), LedgerCopy.text(of: figures.lanes))
        try total.run()
        // The second copy of the totals goes in the row of `ledger` that belongs to no destination.
        try write(ledger: 0, 0, Totals.copied.map { totals[keyPath: $0] } + [0, 0, 0])
        figures.writtenTotals = totals
    }

    /// Replaces one row of `ledger`.
    private func write(ledger destination: Int64, _ priority: Int, _ figures: [Int]) throws(QueueError) {
        let row = try statement("REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        row.with([Int(destination), priority] + figures)
        try row.run()
    }
}
