internal import EventLoops
internal import Model

// Dead letters and the quarantine: what a person should look at, bounded, the oldest purged first.
extension QueueStore {
    /// What a dead letter or a quarantined line counts for in its bound.
    static func keptCost(_ content: Int) -> Int { content + rowCost }

    /// Makes events dead letters, inside the running transaction. The ledger is the caller's.
    func bury(
        _ events: Range<Int>, _ lines: Lines, _ chunk: StoredChunk, _ row: DeliveryRow, _ batch: BatchID, _ lane: Int,
        _ failure: Failure
    ) throws(QueueError) {
        let insert = try opened().statement(
            "INSERT INTO dead_letter (destination, priority, batch, accepted_at, first_time, last_time, rejected_at, "
                + "kind, status, message, excerpt, event) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        let file = try opened()
        let text = failure.message.utf8.count + failure.excerpt.utf8.count
        for event in events {
            let line = Array(lines.slice(event..<event + 1))
            guard try makeRoom(forDeadLetter: QueueStore.keptCost(line.count + text), file) else {
                figures.totals.deadLettersPurged += 1
                continue
            }
            insert.bind(1, figures.lanes[lane].destination)
            insert.bind(2, Int64(figures.lanes[lane].priority.rawValue))
            insert.bind(3, batch.bytes)
            insert.bind(4, row.acceptedAt.nanoseconds)
            insert.bind(5, chunk.firstTime.nanoseconds)
            insert.bind(6, chunk.lastTime.nanoseconds)
            insert.bind(7, time.wallTime.nanoseconds)
            insert.bind(8, failure.kind.rawValue)
            if let status = failure.status { insert.bind(9, status) } else { insert.bindNull(9) }
            insert.bind(10, failure.message)
            insert.bind(11, failure.excerpt)
            try insert.run(line, at: 12)
            figures.totals.deadLetters += 1
            figures.lanes[lane].deadLetters += 1
            figures.lanes[lane].isDirty = true
            figures.totals.deadLetterBytes += QueueStore.keptCost(line.count + text)
        }
    }

    /// Purges the oldest dead letters until one more fits; false if it is larger than all of them may be.
    private func makeRoom(forDeadLetter cost: Int, _ file: QueueFile) throws(QueueError) -> Bool {
        guard cost <= deadLettersBound else { return false }
        try trimDeadLetters(file, to: deadLettersBound - cost)
        return true
    }

    /// What dead letters may hold: their bound, or less while the file is full before it.
    private var deadLettersBound: Int { min(options.deadLettersMaxSize, relief.deadLetters ?? .max) }

    /// Purges the oldest dead letters beyond the bound, inside the running transaction.
    func trimDeadLetters(_ file: QueueFile) throws(QueueError) {
        try trimDeadLetters(file, to: deadLettersBound)
    }

    private func trimDeadLetters(_ file: QueueFile, to bound: Int) throws(QueueError) {
        while figures.totals.deadLetterBytes > bound {
            let oldest = try file.statement(
                "DELETE FROM dead_letter WHERE id = (SELECT min(id) FROM dead_letter) RETURNING "
                    + "length(event) + length(CAST(message AS BLOB)) + length(CAST(excerpt AS BLOB)), destination, priority"
            )
            guard try oldest.step() else { break }
            figures.forgetDeadLetter(
                Int64(oldest.integer(1)), Priority(rawValue: UInt8(truncatingIfNeeded: oldest.integer(2))))
            figures.totals.deadLetterBytes -= QueueStore.keptCost(oldest.integer(0))
            figures.totals.deadLetters -= 1
            figures.totals.deadLettersPurged += 1
            while try oldest.step() {}
        }
    }

    /// Keeps what could not be read, inside the running transaction: the oldest makes room first, so that there is never
    /// more than the bound in the file.
    func keep(_ record: QuarantineRecord, _ file: QueueFile) throws(QueueError) {
        guard record.cost <= quarantineBound else {
            figures.totals.quarantinePurged += 1
            return
        }
        try trimQuarantine(file, to: quarantineBound - record.cost)
        let insert = try file.statement(
            "INSERT INTO quarantine (reason, detail, app, path, offset, length, time, content) "
                + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        insert.bind(1, record.reason.rawValue)
        insert.bind(2, record.detail)
        insert.bind(3, record.app)
        insert.bind(4, record.path)
        insert.bind(5, record.offset)
        insert.bind(6, record.length)
        insert.bind(7, record.time.nanoseconds)
        try insert.run(record.content, at: 8)
        figures.totals.quarantineRecords += 1
        figures.totals.quarantineBytes += record.cost
    }

    /// Keeps the newest of many, as far as they fit and their apps may have them written; the others are counted as purged
    /// without being written.
    func keep(newestOf records: [QuarantineRecord], _ file: QueueFile) throws(QueueError) {
        let now = time.bootTime
        var room = quarantineBound
        var free = max(0, room - figures.totals.quarantineBytes)
        var kept: [Int] = []
        var rest = records.count
        while rest > 0 {
            let record = records[rest - 1]
            let cost = record.cost
            let isTooLarge = cost > quarantineBound
            guard isTooLarge || cost <= room else { break }
            rest -= 1
            // One that is too large by itself goes by itself.
            // What is free is anybody's.
            let isFree = cost <= free
            if isFree { free -= cost }
            if isFree || !isTooLarge && figures.quarantineBudget.takes(record, bound: quarantineBound, at: now) {
                room -= cost
                kept.append(rest)
            } else {
                figures.totals.quarantinePurged += 1
            }
        }
        if rest > 0 {
            // Those in the file are older still.
            figures.totals.quarantinePurged += rest
            try trimQuarantine(file, to: 0)
        }
        for index in kept.reversed() { try keep(records[index], file) }
    }

    /// What the quarantine may hold: its bound, or less while the file is full before it.
    var quarantineBound: Int { min(options.quarantineMaxSize, relief.quarantine ?? .max) }

    /// Purges the oldest quarantined lines beyond the bound, inside the running transaction.
    func trimQuarantine(_ file: QueueFile) throws(QueueError) { try trimQuarantine(file, to: quarantineBound) }

    private func trimQuarantine(_ file: QueueFile, to bound: Int) throws(QueueError) {
        if bound == 0, figures.totals.quarantineRecords > 0 {
            let all = try file.statement("DELETE FROM quarantine")
            try all.run()
            figures.totals.quarantinePurged += figures.totals.quarantineRecords
            figures.totals.quarantineRecords = 0
            figures.totals.quarantineBytes = 0
            return
        }
        while figures.totals.quarantineBytes > bound {
            let oldest = try file.statement(
                "DELETE FROM quarantine WHERE id = (SELECT min(id) FROM quarantine) RETURNING "
                    + "length(content) + length(CAST(detail AS BLOB)) + length(CAST(app AS BLOB)) + length(CAST(path AS BLOB))"
            )
            guard try oldest.step() else { break }
            figures.totals.quarantineBytes -= QueueStore.keptCost(oldest.integer(0))
            figures.totals.quarantineRecords -= 1
            figures.totals.quarantinePurged += 1
            while try oldest.step() {}
        }
    }
}
