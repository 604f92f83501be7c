internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Replaces a database that SQLite calls damaged: what can be read goes into a new file, the old one is moved aside.
///
/// A crash in the middle repeats it or ends it: the new file gets a name of its own when it is complete, and takes the
/// database's place when the old one has left.
struct Salvage {
    let file: QueueFile
    let figures: Figures

    static func run(
        _ options: QueueOptions, _ directory: StateDirectory, now: Timestamp, _ log: Log
    ) throws(QueueError) -> Salvage {
        let building = "\(directory.database).salvage"
        for suffix in ["", "-wal", "-shm"] { unlink(building + suffix) }
        let lost = try build(building, from: directory.database, options)
        guard rename(building, directory.salvaged) == 0 else {
            throw QueueError(.io, "cannot rename \(building) (\(SystemError("rename")))")
        }
        let aside = try directory.finishSalvage(now: now) ?? directory.database
        let file = try QueueFile(path: directory.database, options: options)
        let figures = try file.load()
        log.error(
            "queue database replaced",
            ["kept_as": aside, "salvaged": figures.lanes.reduce(0) { $0 + $1.ledger.queued }, "lost": lost])
        return Salvage(file: file, figures: figures)
    }

    /// Fills a new database with what an old one lets us read; tells how many deliveries are lost.
    private static func build(_ path: String, from damaged: String, _ options: QueueOptions) throws(QueueError) -> Int {
        var plain = options
        plain.durability = .crash
        let target = try QueueFile(path: path, options: plain)
        defer { target.database.close() }
        guard let source = try? Database(path: damaged, vfs: options.vfs) else { return 0 }
        defer { source.close() }
        var copy = SalvageCopy(source: source, target: target)
        try copy.copyAll()
        return copy.lost
    }
}

/// Reads table by table, from both ends where the middle is damaged.
private struct SalvageCopy {
    let source: Database
    let target: QueueFile
    var lost = 0

    mutating func copyAll() throws(QueueError) {
        try target.database.begin()
        for table in ["destination", "total", "ledger", "discard", "checkpoint", "done_record", "memory", "switch"] {
            try copy(table)
        }
        for table in ["container", "dead_letter", "quarantine", "chunk", "delivery"] { try copy(table) }
        try settle()
        try target.database.commit()
        try target.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Copies a table's rows; damaged pages end a pass, and another comes from the other end.
    private func copy(_ table: String) throws(QueueError) {
        let key =
            switch table {
            case "delivery": "destination DESC, priority DESC, chunk DESC, first DESC"
            case "ledger", "discard": "destination DESC, priority DESC"
            case "checkpoint": "key DESC"
            case "done_record": "claim DESC, handle DESC"
            case "memory", "switch": "name DESC"
            default: "id DESC"
            }
        guard try !pass(table, "SELECT * FROM \(table)") else { return }
        _ = try pass(table, "SELECT * FROM \(table) ORDER BY \(key)")
    }

    /// One pass over a table; false if damage ended it.
    private func pass(_ table: String, _ select: String) throws(QueueError) -> Bool {
        let reading: Statement
        do { reading = try source.prepare(select) } catch { return false }
        // By name: a table of an older schema lacks columns, which have defaults.
        let columns = reading.columns
        let names = (0..<Int32(columns)).map { reading.name($0) }.joined(separator: ", ")
        let marks = Array(repeating: "?", count: columns).joined(separator: ", ")
        // A newer row of the same key is the same row: the second pass meets what the first has copied.
        // A table of another shape is left behind.
        guard let writing = try? target.statement("INSERT OR REPLACE INTO \(table) (\(names)) VALUES (\(marks))") else {
            return false
        }
        var rows = 0
        while true {
            rows += 1
            if rows % 1_000 == 0 { try flush() }
            do { guard try reading.step() else { return true } } catch { return false }
            for column in 0..<Int32(columns) { writing.bind(column + 1, copying: reading, column) }
            do {
                try writing.run()
            } catch {
                // A row that breaks a rule of the table is damaged.
                guard error.code == .io else { throw error }
            }
        }
    }

    /// Keeps the WAL short; what is half done has a name of its own.
    private func flush() throws(QueueError) {
        try target.database.commit()
        try target.database.checkpointWAL()
        try target.database.begin()
    }

    /// Makes the copy consistent: chunks and deliveries need each other, figures need both.
    private mutating func settle() throws(QueueError) {
        try removeDamagedChunks()
        let database = target.database
        try database.execute("DELETE FROM delivery WHERE chunk NOT IN (SELECT id FROM chunk)")
        try database.execute("DELETE FROM delivery WHERE destination NOT IN (SELECT id FROM destination)")
        try database.execute("DELETE FROM dead_letter WHERE destination NOT IN (SELECT id FROM destination)")
        try database.execute("DELETE FROM chunk WHERE id NOT IN (SELECT chunk FROM delivery)")
        var figures = try ledgers()
        for index in figures.lanes.indices { try balance(&figures.lanes[index]) }
        figures.totals.deadLetters = figures.lanes.reduce(0) { $0 + $1.deadLetters }
        figures.totals.deadLetterBytes =
            try database.integer(
                "SELECT coalesce(sum(\(rowCost) + length(event) + length(CAST(message AS BLOB)) "
                    + "+ length(CAST(excerpt AS BLOB))), 0) FROM dead_letter") ?? 0
        figures.totals.quarantineRecords = try database.integer("SELECT count(*) FROM quarantine") ?? 0
        figures.totals.quarantineBytes =
            try database.integer(
                "SELECT coalesce(sum(\(rowCost) + length(content) + length(CAST(detail AS BLOB)) "
                    + "+ length(CAST(app AS BLOB)) + length(CAST(path AS BLOB))), 0) FROM quarantine") ?? 0
        figures.totals.stored =
            try database.integer(
                "SELECT coalesce(sum(length(frame) + \(rowCost) * (1 + destinations)), 0) FROM chunk") ?? 0
        let last = try database.integer("SELECT coalesce(max(id), 0) FROM chunk") ?? 0
        figures.totals.lastChunk = max(figures.totals.lastChunk, Int64(last))
        try target.write(&figures)
    }

    private func ledgers() throws(QueueError) -> Figures {
        try target.database.execute("INSERT OR IGNORE INTO total (id) VALUES (1)")
        return try target.load()
    }

    /// Removes chunks whose frames are not what was stored.
    private func removeDamagedChunks() throws(QueueError) {
        let ids = try target.database.prepare("SELECT id FROM chunk ORDER BY id")
        var damaged: [Int64] = []
        while try ids.step() {
            let id = Int64(ids.integer(0))
            if try target.readChunk(id) == nil { damaged.append(id) }
        }
        for id in damaged { try target.deleteChunk(id) }
    }

    /// Counts as lost what the ledger says was queued and is not there; what is there and unknown was accepted.
    private mutating func balance(_ lane: inout Queue.Lane) throws(QueueError) {
        let row = try target.statement(
            "SELECT coalesce(sum(events), 0), coalesce(sum(bytes), 0) FROM delivery "
                + "WHERE destination = ? AND priority = ?")
        row.bind(1, lane.destination)
        row.bind(2, Int64(lane.priority.rawValue))
        guard try row.step() else { return }
        let there = (events: row.integer(0), bytes: row.integer(1))
        row.reset()
        let letters = try target.statement(
            "SELECT count(*) FROM dead_letter WHERE destination = ? AND priority = ?")
        letters.bind(1, lane.destination)
        letters.bind(2, Int64(lane.priority.rawValue))
        if try letters.step() { lane.deadLetters = letters.integer(0) }
        letters.reset()
        let missing = lane.ledger.queued - there.events
        if missing > 0 {
            lane.ledger.lost += missing
            lost += missing
        } else {
            lane.ledger.accepted -= missing
        }
        lane.ledger.queued = there.events
        lane.queuedBytes = there.bytes
        lane.isDirty = true
    }
}
