internal import EventLoops
internal import Model

// Dead letters and the quarantine: records for a person, within bounds; the oldest are purged first.
extension Transaction {
    /// Stores events as dead letters. The caller changes the ledger.
    ///
    /// - Parameters:
    ///   - events: range in the chunk.
    ///   - row: the delivery in which the destination got them.
    mutating func addDeadLetters(
        _ events: Range<Int>, _ lines: Lines, _ chunk: StoredChunk, _ row: DeliveryRow, _ batch: BatchID,
        _ lane: Int,
        _ failure: Failure
    ) throws(QueueError) {
        let insert = try tables.statement(
            "INSERT INTO dead_letter (destination, priority, batch, accepted_at, first_time, last_time, "
                + "rejected_at, kind, status, message, excerpt, event, app, also_for) VALUES (?, ?, ?, ?, "
                + "?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        // Other destinations that the same events were stored for: a retry that is later moved must not
        // bring them the events a second time. A negative number means that a destination got the
        // events with another chunk.
        let destination = state.figures.lanes[lane].destination
        let origins = try file.origins(of: row.chunk)
        let others = origins.filter { $0.value != origins[destination] ?? destination }.map {
            ",\(-abs($0.key))"
        }
        .sorted().joined()
        let holders = try HolderTable(file).holding(of: row.chunk)?.holders ?? ChunkHolders()
        let apps = holders.names(of: events)
        let text = failure.message.utf8.count + failure.excerpt.utf8.count
        for (event, app) in zip(events, apps) {
            let line = Array(lines.slice(event..<event + 1))
            let bound = state.deadLettersBound - keptCost(line.count + text)
            guard bound >= 0 else {
                state.figures.totals.deadLetters.purged += 1
                continue
            }
            try trim(.deadLetters, to: bound)
            insert.with(
                destination, state.figures.lanes[lane].priority, batch.bytes, row.acceptedAt, chunk.firstTime,
                chunk.lastTime, time.wallTime, failure.kind.rawValue, failure.status, failure.message,
                failure.excerpt)
            insert.bind(13, app)
            insert.bind(14, others)
            try insert.run(line, at: 12)
            state.figures.deadLettersHeld?[app, default: 0] += keptCost(line.count + text)
            state.figures.totals.deadLetters.add(keptCost(line.count + text))
            state.figures.lanes[lane].deadLetters += 1
            state.figures.lanes[lane].isDirty = true
        }
    }

    /// Time for which a quarantined line is never purged to make room for another. What does not fit
    /// meanwhile stays in its file.
    private static var safeTime: Duration { .seconds(86_400) }

    /// Stores bad lines in the quarantine, as far as there is room. Lines older than a day are purged
    /// first, so that the table never exceeds its bound. A line that does not fit is counted as purged,
    /// and its file must stay in the spool (`Figures.unkept`).
    mutating func storeQuarantined(_ records: [QuarantineRecord]) throws(QueueError) {
        let old = time.wallTime - Transaction.safeTime
        // If the clock is wrong, no line counts as old.
        var hasOld = state.environment.isClockTrusted()
        var unkept: [[UInt8]: UnkeptLines] = [:]
        for record in records {
            let room = state.quarantineBound - record.cost
            if room >= 0, hasOld {
                hasOld = try trim(.quarantine, to: room, before: old)
            }
            guard state.figures.totals.quarantine.bytes <= room else {
                state.figures.totals.quarantine.purged += 1
                guard !record.file.isEmpty else { continue }
                unkept[record.file, default: UnkeptLines(app: record.app, path: record.path)].add(record)
                continue
            }
            let insert = try tables.statement(
                "INSERT INTO quarantine (reason, detail, app, path, offset, length, time, content) "
                    + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
            insert.with(
                record.reason.rawValue, record.detail, record.app, record.path, record.offset, record.length,
                record.time)
            try insert.run(record.content, at: 8)
            state.figures.totals.quarantine.add(record.cost)
            state.figures.quarantineHeld?[record.app, default: 0] += record.cost
        }
        for (file, lines) in unkept {
            try set([lines.name(of: file): lines.encoded])
            state.figures.unkept[Hexadecimal.text(file)] = lines.path
        }
    }

    /// Purges dead letters and quarantined lines beyond their bounds.
    mutating func trimKept() throws(QueueError) {
        try trim(.deadLetters, to: state.deadLettersBound)
        try trim(.quarantine, to: state.quarantineBound)
    }

    /// Purges records until at most `bound` bytes are left: each time the oldest record of the app with
    /// the most bytes, so that one app's records cannot push out those of others.
    ///
    /// - Parameter time: only records older than this are purged.
    /// - Returns: false if records that remain beyond the bound are not older than `time`.
    @discardableResult
    mutating func trim(
        _ shelf: Shelf, to bound: Int, before time: Timestamp = Timestamp(nanoseconds: .max)
    ) throws(QueueError) -> Bool {
        guard state.figures.totals[keyPath: shelf.kept].bytes > bound else { return true }
        if shelf.mayBeInClear {
            try tables.overwrites(true)
        }
        var isOld = true
        while isOld, state.figures.totals[keyPath: shelf.kept].bytes > bound {
            isOld = try purgeOldest(on: shelf, before: time)
        }
        if shelf.mayBeInClear {
            try tables.overwrites(false)
        }
        return isOld
    }

    /// Purges one record; false if no app has one that is old enough.
    private mutating func purgeOldest(on shelf: Shelf, before time: Timestamp) throws(QueueError) -> Bool {
        // Apps with equal bytes by name, so that the result does not depend on the dictionary's order;
        // the tests' model relies on that.
        for (app, _) in try bytesByApp(on: shelf).sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            let oldest = try tables.statement(
                "DELETE FROM \(shelf.table) WHERE id = (SELECT id FROM \(shelf.table) WHERE app = ? ORDER "
                    + "BY id LIMIT 1) AND \(shelf.time) < ? RETURNING \(shelf.length), \(shelf.lane)"
            ).with(app, time).all { (cost: keptCost($0.integer(0)), lane: LaneKey($0, at: 1)) }
            guard let oldest = oldest.first else { continue }
            state.figures.forgetDeadLetter(oldest.lane)
            state.figures[keyPath: shelf.bytesByApp]?[app, default: 0] -= oldest.cost
            state.figures.totals[keyPath: shelf.kept].remove(oldest.cost)
            state.figures.totals[keyPath: shelf.kept].purged += 1
            return true
        }
        return false
    }

    /// Bytes of each app, counted once when an app has to give up records.
    private mutating func bytesByApp(on shelf: Shelf) throws(QueueError) -> [String: Int] {
        if let bytes = state.figures[keyPath: shelf.bytesByApp] { return bytes }
        let sizes = try tables.statement(
            "SELECT app, sum(\(shelf.length) + \(keptCost(0))) FROM \(shelf.table) GROUP BY app"
        ).all { ($0.text(0), $0.integer(1)) }
        let bytes = Dictionary(sizes) { $0 + $1 }
        state.figures[keyPath: shelf.bytesByApp] = bytes
        return bytes
    }
}
