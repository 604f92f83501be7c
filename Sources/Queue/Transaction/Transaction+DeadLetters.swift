internal import EventLoops
internal import Model

// Dead letters and the quarantine: what a person should look at, bounded, the oldest purged first.
extension Transaction {
    /// Makes events dead letters. The ledger is the caller's.
    mutating func bury(
        _ events: Range<Int>, _ lines: Lines, _ chunk: StoredChunk, _ row: DeliveryRow, _ batch: BatchID, _ lane: Int,
        _ failure: Failure
    ) throws(QueueError) {
        let insert = try tables.statement(
            "INSERT INTO dead_letter (destination, priority, batch, accepted_at, first_time, last_time, rejected_at, "
                + "kind, status, message, excerpt, event, app) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        let holders = try file.holding(of: row.chunk)?.holders ?? ChunkHolders()
        let text = failure.message.utf8.count + failure.excerpt.utf8.count
        for event in events {
            let line = Array(lines.slice(event..<event + 1))
            let app = holders.holders(of: event..<event + 1).first ?? ""
            let bound = state.deadLettersBound - keptCost(line.count + text)
            guard bound >= 0 else {
                state.figures.totals.deadLetters.purged += 1
                continue
            }
            try trimDeadLetters(to: bound)
            insert.take(
                state.figures.lanes[lane].destination, state.figures.lanes[lane].priority, batch.bytes, row.acceptedAt,
                chunk.firstTime, chunk.lastTime, time.wallTime, failure.kind.rawValue, failure.status, failure.message,
                failure.excerpt)
            insert.bind(13, app)
            try insert.run(line, at: 12)
            state.figures.deadLettersHeld?[app, default: 0] += keptCost(line.count + text)
            state.figures.totals.deadLetters.add(keptCost(line.count + text))
            state.figures.lanes[lane].deadLetters += 1
            state.figures.lanes[lane].isDirty = true
        }
    }

    /// Purges dead letters beyond the bound, or a lower one: the oldest of the app that has most.
    mutating func trimDeadLetters(to lower: Int? = nil) throws(QueueError) {
        let bound = lower ?? state.deadLettersBound
        while state.figures.totals.deadLetters.bytes > bound {
            let held = try deadLettersHeld()
            // Equal ones: by name, so that a model says the same.
            guard let (app, _) = held.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }) else { break }
            let oldest = try tables.statement(
                "DELETE FROM dead_letter WHERE id = (SELECT min(id) FROM dead_letter WHERE app = ?) RETURNING "
                    + "\(letterLength), destination, priority")
            oldest.bind(1, app)
            guard try oldest.step() else {
                state.figures.deadLettersHeld?[app] = nil
                continue
            }
            let cost = keptCost(oldest.integer(0))
            state.figures.forgetDeadLetter(LaneKey(oldest, at: 1))
            while try oldest.step() {}
            state.figures.deadLettersHeld?[app, default: 0] -= cost
            state.figures.totals.deadLetters.remove(cost)
            state.figures.totals.deadLetters.purged += 1
        }
    }

    /// What each app has of dead letters, in bytes; counted once, when there is too much.
    private mutating func deadLettersHeld() throws(QueueError) -> [String: Int] {
        if let held = state.figures.deadLettersHeld { return held }
        let held = try sizes("SELECT app, sum(\(letterLength)), count(*) FROM dead_letter GROUP BY app")
        state.figures.deadLettersHeld = held
        return held
    }

    /// What kept records count for, by app.
    private func sizes(_ sql: String) throws(QueueError) -> [String: Int] {
        let row = try tables.statement(sql)
        var sizes: [String: Int] = [:]
        while try row.step() { sizes[row.text(0)] = row.integer(1) + row.integer(2) * keptCost(0) }
        return sizes
    }

    /// Keeps what could not be read: others make room first, so that there is never more than the bound in the file.
    mutating func keep(_ record: QuarantineRecord) throws(QueueError) {
        guard record.cost <= state.quarantineBound else {
            state.figures.totals.quarantine.purged += 1
            return
        }
        _ = try trimQuarantine(to: state.quarantineBound - record.cost, before: Timestamp(nanoseconds: .max))
        let insert = try tables.statement(
            "INSERT INTO quarantine (reason, detail, app, path, offset, length, time, content) "
                + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        insert.take(
            record.reason.rawValue, record.detail, record.app, record.path, record.offset, record.length, record.time)
        try insert.run(record.content, at: 8)
        state.figures.totals.quarantine.add(record.cost)
        state.figures.quarantineHeld?[record.app, default: 0] += record.cost
    }

    /// For how long a line of the quarantine makes room for no other: what does not fit waits in its file meanwhile.
    private static var safeTime: Duration { .seconds(86_400) }

    /// Keeps many, as far as there is room. What there is none for is counted as purged, and its file has to stay.
    mutating func keep(_ records: [QuarantineRecord]) throws(QueueError) {
        let old = time.wallTime - Transaction.safeTime
        var hasOld = true
        var unkept: [[UInt8]: UnkeptLines] = [:]
        for record in records {
            let room = state.quarantineBound - record.cost
            if room >= 0, hasOld { hasOld = try trimQuarantine(to: room, before: old) }
            if state.figures.totals.quarantine.bytes <= room {
                try keep(record)
                continue
            }
            state.figures.totals.quarantine.purged += 1
            guard !record.file.isEmpty else { continue }
            unkept[record.file, default: UnkeptLines(app: record.app, path: record.path)].add(record)
        }
        for (file, lines) in unkept {
            try set([lines.name(of: file): lines.encoded])
            state.figures.unkept[Hexadecimal.text(file)] = lines.path
        }
    }

    /// Purges quarantined lines beyond the bound: the oldest of the app that holds most, so that no app's bad lines make room for
    /// another's that holds more.
    mutating func trimQuarantine() throws(QueueError) {
        _ = try trimQuarantine(to: state.quarantineBound, before: Timestamp(nanoseconds: .max))
    }

    /// - Returns: false if what is left is not that old.
    private mutating func trimQuarantine(to bound: Int, before time: Timestamp) throws(QueueError) -> Bool {
        guard state.figures.totals.quarantine.bytes > bound else { return true }
        try tables.overwrites(true)
        while state.figures.totals.quarantine.bytes > bound {
            // Equal ones: by name, so that a model says the same.
            let held = try quarantineHeld().sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            var cost: Int?
            for (app, _) in held where cost == nil {
                let oldest = try tables.statement(
                    "DELETE FROM quarantine WHERE id = (SELECT id FROM quarantine WHERE app = ? ORDER BY id LIMIT 1) "
                        + "AND time < ? RETURNING \(keptLength)")
                oldest.take(app, time)
                guard try oldest.step() else { continue }
                cost = keptCost(oldest.integer(0))
                while try oldest.step() {}
                state.figures.quarantineHeld?[app, default: 0] -= cost ?? 0
            }
            guard let cost else {
                try tables.overwrites(false)
                return false
            }
            state.figures.totals.quarantine.remove(cost)
            state.figures.totals.quarantine.purged += 1
        }
        try tables.overwrites(false)
        return true
    }

    /// What each app holds in the quarantine, in bytes; counted once, when there is too much.
    private mutating func quarantineHeld() throws(QueueError) -> [String: Int] {
        if let held = state.figures.quarantineHeld { return held }
        let held = try sizes("SELECT app, sum(\(keptLength)), count(*) FROM quarantine GROUP BY app")
        state.figures.quarantineHeld = held
        return held
    }
}

private let letterLength = "length(event) + length(CAST(message AS BLOB)) + length(CAST(excerpt AS BLOB))"

private let keptLength =
    "length(content) + length(CAST(detail AS BLOB)) + length(CAST(app AS BLOB)) + length(CAST(path AS BLOB))"

extension Database {
    /// The bad lines that could not be kept, by the names of their rows: of all files, or of one.
    func unkept(of file: String = "") throws(QueueError) -> [(name: String, lines: UnkeptLines)] {
        let rows = try prepare("SELECT name, value FROM memory WHERE name > ? AND name < ? ORDER BY name")
        // The byte after "/" is "0".
        rows.take(
            UnkeptLines.prefix + (file.isEmpty ? "" : file + "/"),
            file.isEmpty ? "unkept0" : UnkeptLines.prefix + file + "0")
        var found: [(name: String, lines: UnkeptLines)] = []
        while try rows.step() {
            if let lines = UnkeptLines(rows.bytes(1)) { found.append((rows.text(0), lines)) }
        }
        return found
    }

    /// The files that have to stay, with a path each.
    func filesToStay() throws(QueueError) -> [String: String] {
        var files: [String: String] = [:]
        for row in try unkept() { files[UnkeptLines.file(ofRow: row.name)] = row.lines.path }
        return files
    }
}
