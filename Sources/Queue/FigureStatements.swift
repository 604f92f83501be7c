internal import Model

/// Reads and writes the figures: tables `destination`, `ledger`, `discard`, `total`.
final class FigureStatements {
    private let database: Database
    private let updateTotal: Statement
    private let updateLedger: Statement
    private let updateDiscard: Statement

    init(_ database: Database) throws(QueueError) {
        self.database = database
        updateTotal = try database.prepare(
            """
            UPDATE total SET last_chunk = ?, stored_bytes = ?, max_size = ?, read = ?, accepted = ?, refused = ?,
            quarantined = ?, dead_letters = ?, dead_letter_bytes = ?, dead_letters_purged = ?, quarantine_records = ?,
            quarantine_bytes = ?, quarantine_purged = ?, copy = ? WHERE id = 1
            """)
        updateLedger = try database.prepare("REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        updateDiscard = try database.prepare("REPLACE INTO discard VALUES (?, ?, ?, ?)")
    }

    /// All figures. Reads a row for each lane and each formed batch's part, not the backlog.
    func load() throws(QueueError) -> Figures {
        var figures = Figures()
        figures.totals = try loadTotals()
        figures.writtenTotals = figures.totals
        figures.lanes = try loadLanes()
        for index in figures.lanes.indices {
            try countFormed(&figures.lanes[index])
        }
        let discards = try database.prepare("SELECT destination, priority, reason, events FROM discard")
        while try discards.step() {
            guard let priority = Priority(rawValue: UInt8(truncatingIfNeeded: discards.integer(1))) else { continue }
            let key = Figures.DiscardKey(
                destination: Int64(discards.integer(0)), priority: priority, reason: discards.text(2))
            figures.discards[key] = discards.integer(3)
        }
        figures.unkept = try database.filesToStay()
        return figures
    }

    private func loadTotals() throws(QueueError) -> Totals {
        let row = try database.prepare(
            """
            SELECT last_chunk, stored_bytes, max_size, read, accepted, refused, quarantined, dead_letters,
            dead_letter_bytes, dead_letters_purged, quarantine_records, quarantine_bytes, quarantine_purged FROM total
            """)
        var totals = Totals()
        guard try row.step() else {
            throw QueueError(.corrupt, "\(database.path) is damaged (table total is empty)")
        }
        totals.lastChunk = Int64(row.integer(0))
        totals.stored = row.integer(1)
        totals.maxSize = row.integer(2)
        totals.intake.read = row.integer(3)
        totals.intake.accepted = row.integer(4)
        totals.intake.refused = row.integer(5)
        totals.intake.quarantined = row.integer(6)
        totals.deadLetters = row.integer(7)
        totals.deadLetterBytes = row.integer(8)
        totals.deadLettersPurged = row.integer(9)
        totals.quarantineRecords = row.integer(10)
        totals.quarantineBytes = row.integer(11)
        totals.quarantinePurged = row.integer(12)
        guard (0..<13).allSatisfy({ (0...1 << 53).contains(row.integer(Int32($0))) }) else {
            throw database.damage("the totals")
        }
        return totals
    }

    private func loadLanes() throws(QueueError) -> [Lane] {
        let row = try database.prepare(
            """
            SELECT d.id, d.name, l.priority, l.accepted, l.retried, l.acknowledged, l.dead_lettered, l.evicted,
            l.expired, l.discarded, l.lost, l.queued, l.queued_bytes, d.lease_events, d.lease_bytes, l.dead_letters
            FROM destination d LEFT JOIN ledger l ON l.destination = d.id ORDER BY d.id, l.priority
            """)
        var lanes: [Lane] = []
        while try row.step() {
            let destination = Int64(row.integer(0))
            if lanes.last?.destination != destination {
                let name = DestinationName(row.text(1))
                for priority in Priority.allCases {
                    var lane = Lane(destination: destination, name: name, priority: priority)
                    lane.leaseEvents = row.integer(13)
                    lane.leaseBytes = row.integer(14)
                    lanes.append(lane)
                }
            }
            let place = row.integer(2)
            guard let priority = Priority(rawValue: UInt8(truncatingIfNeeded: place)),
                let index = lanes.lastIndex(where: { $0.destination == destination && $0.priority == priority })
            else { continue }
            var ledger = Ledger()
            for (column, figure) in Ledger.figures.enumerated() {
                ledger[keyPath: figure.path] = row.integer(Int32(column + 3))
            }
            guard (3..<12).allSatisfy({ (0...1 << 53).contains(row.integer(Int32($0))) }) else {
                throw database.damage("the ledger")
            }
            if !ledger.balances {
                guard try isAsWritten(ledger, destination, priority) else { throw database.damage("the ledger") }
            }
            lanes[index].ledger = ledger
            lanes[index].queuedBytes = row.integer(12)
            lanes[index].deadLetters = row.integer(15)
        }
        return lanes
    }

    /// Whether the second copy says the same: then no page was damaged. We have counted wrongly, and say so as long as it is so.
    private func isAsWritten(_ ledger: Ledger, _ destination: Int64, _ priority: Priority) throws(QueueError) -> Bool {
        let row = try database.prepare("SELECT copy FROM total")
        guard try row.step(), let copy = LedgerCopy(row.text(0)) else { return false }
        return copy.entries.contains {
            $0.destination == destination && $0.priority == priority && $0.ledger == ledger
        }
    }

    private func countFormed(_ lane: inout Lane) throws(QueueError) {
        let row = try database.prepare(
            """
            SELECT count(DISTINCT batch), coalesce(sum(events), 0), coalesce(sum(bytes), 0) FROM delivery
            INDEXED BY delivery_formed WHERE state = 1 AND destination = ? AND priority = ?
            """)
        row.take(lane.destination, lane.priority)
        guard try row.step() else { return }
        lane.freeBatches = row.integer(0)
        lane.batchedEvents = row.integer(1)
        lane.batchedBytes = row.integer(2)
    }

    /// Writes what changed; for `TableWriter`.
    func write(_ figures: inout Figures) throws(QueueError) {
        var isCopyOld = false
        for index in figures.lanes.indices where figures.lanes[index].isDirty {
            try write(figures.lanes[index])
            figures.lanes[index].isDirty = false
            isCopyOld = true
        }
        for key in figures.dirtyDiscards {
            try updateDiscard.run(key.destination, key.priority, key.reason, figures.discards[key] ?? 0)
        }
        figures.dirtyDiscards.removeAll()
        guard isCopyOld || figures.totals != figures.writtenTotals else { return }
        try write(figures.totals, copy: LedgerCopy.text(of: figures.lanes))
        figures.writtenTotals = figures.totals
    }

    private func write(_ lane: Lane) throws(QueueError) {
        let row = updateLedger
        try row.run(
            lane.destination, lane.priority, lane.ledger.accepted, lane.ledger.retried, lane.ledger.acknowledged,
            lane.ledger.deadLettered, lane.ledger.evicted, lane.ledger.expired, lane.ledger.discarded, lane.ledger.lost,
            lane.ledger.queued, lane.queuedBytes, lane.deadLetters)
    }

    private func write(_ totals: Totals, copy: String) throws(QueueError) {
        let row = updateTotal
        try row.run(
            totals.lastChunk, totals.stored, totals.maxSize, totals.intake.read, totals.intake.accepted,
            totals.intake.refused, totals.intake.quarantined, totals.deadLetters, totals.deadLetterBytes,
            totals.deadLettersPurged, totals.quarantineRecords, totals.quarantineBytes, totals.quarantinePurged, copy)
        try writeCopy(of: totals)
    }

    /// The second copy of the totals, in the row of the ledger that is no destination's.
    private func writeCopy(of totals: Totals) throws(QueueError) {
        let row = updateLedger
        let figures = [
            0, 0, Int(totals.lastChunk), totals.maxSize, totals.intake.read, totals.intake.accepted,
            totals.intake.refused, totals.intake.quarantined, totals.deadLettersPurged, totals.quarantinePurged, 0, 0,
            0,
        ]
        for (place, figure) in figures.enumerated() { row.bind(Int32(place + 1), figure) }
        try row.run()
    }
}
