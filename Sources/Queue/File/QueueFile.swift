internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

/// The tables as values: each method is one or two statements. They are written by `TableWriter`.
final class QueueFile {
    let database: Database
    let pageSize: Int

    private let readChunkStatement: Statement
    private let chunkFactsStatement: Statement
    private let findDeliveryStatement: Statement
    private let walkStatement: Statement
    let writing: WriteStatements
    private var others: [String: Statement] = [:]

    /// Opens the database, makes or upgrades its tables.
    init(path: String, options: QueueOptions) throws(QueueError) {
        let database = try Database(path: path, vfs: options.vfs)
        do {
            try Schema.prepare(database, options)
            self.database = database
            pageSize = try database.integer("PRAGMA page_size") ?? 4096
            writing = try WriteStatements(database)
            readChunkStatement = try database.prepare(
                "SELECT destinations, events, bytes, first_time, last_time, compression, checksum, frame, row_check "
                    + "FROM chunk WHERE id = ?")
            chunkFactsStatement = try database.prepare(
                "SELECT destinations, length(frame), max(first_time, last_time) FROM chunk WHERE id = ?")
            findDeliveryStatement = try database.prepare(
                "SELECT 1 FROM delivery WHERE destination = ? AND priority = ? AND chunk = ? LIMIT 1")
            walkStatement = try database.prepare(
                "SELECT \(DeliveryRow.columns) FROM delivery WHERE destination = ? AND priority = ? AND chunk >= ? "
                    + "ORDER BY chunk, first")
            measure()
        } catch {
            // Statements that were made keep the connection until they are gone: close_v2 waits for them.
            database.close()
            throw error
        }
    }

    /// The database file's size in bytes, as of the last WAL checkpoint: it changes with those.
    private(set) var fileBytes = 0

    /// Looks how large the database file is.
    func measure() {
        if let status = FileStatus(database.path) { fileBytes = Int(status.size) }
    }

    /// The pages that nothing uses, in bytes.
    func freeBytes() throws(QueueError) -> Int {
        try statement("PRAGMA freelist_count").first { $0.integer(0) * pageSize } ?? 0
    }

    /// What the WAL holds that is not in the database file yet, in bytes.
    var walBytes: Int { database.walPages * pageSize }

    /// A statement that is used now and then, prepared once.
    func statement(_ sql: String) throws(QueueError) -> Statement {
        if let known = others[sql] { return known }
        let made = try database.prepare(sql)
        others[sql] = made
        return made
    }

    /// What is paid for beyond the configured bounds, in bytes: places of the spool's files, and what else has no bound.
    private(set) var paid = 0

    /// Lets the database file grow to its bound and no further.
    func limit(to bounds: FileBounds) throws(QueueError) {
        try database.execute("PRAGMA max_page_count = \((bounds.file + paid) / pageSize)")
    }

    /// Pays for what has no bound of its own: twice its size, because its keys come in no order.
    ///
    /// - Parameter coming: what the next transaction adds to it.
    /// - Returns: false if it was paid for already.
    func payForPlaces(_ coming: Int, _ bounds: FileBounds) throws(QueueError) -> Bool {
        let needed = 2 * (try placesCost() + coming) + (1 << 20)
        guard needed > paid else { return false }
        // A step is worth its while: looking reads all of them.
        paid = needed + needed / 4
        try limit(to: bounds)
        return true
    }

    /// Lets one transaction through that makes room, or that must not wait.
    func grant(_ bytes: Int) throws(QueueError) {
        let used = try database.integer("PRAGMA page_count") ?? 0
        try database.execute("PRAGMA max_page_count = \(used + bytes / pageSize + 16)")
    }

    private func placesCost() throws(QueueError) -> Int {
        var sum = 0
        for (table, columns) in [
            ("checkpoint", ["key", "path", "state"]), ("done_record", ["claim", "handle"]),
            ("memory", ["name", "value"]), ("switch", ["name", "value"]), ("container", ["id", "file"]),
            ("discard", ["reason"]), ("ledger", []),
        ] {
            let content = columns.isEmpty ? "0" : columns.map { "length(CAST(\($0) AS BLOB))" }.joined(separator: " + ")
            sum +=
                try database.integer(
                    "SELECT coalesce(sum(n + \(rowCost) + (n > \(largePlace)) * 4096), 0) "
                        + "FROM (SELECT \(content) AS n FROM \(table))") ?? 0
        }
        return sum
    }

    // MARK: Chunks

    /// A chunk with its frame, verified; nil when it is missing or its bytes are not what was stored.
    func readChunk(_ id: Int64) throws(QueueError) -> StoredChunk? {
        let statement = readChunkStatement
        statement.bind(1, id)
        guard try statement.step() else { return nil }
        defer { statement.reset() }
        let raw = statement.raw(7)
        let checksum = Int64(statement.integer(6))
        guard Int64(crc32(raw)) == checksum,
            statement.isNull(8) || Int64(statement.integer(8)) == RowCheck.of(id, checksum),
            let compression = Compression(rawValue: UInt8(truncatingIfNeeded: statement.integer(5)))
        else { return nil }
        let chunk = StoredChunk(
            destinations: statement.integer(0), events: statement.integer(1), bytes: statement.integer(2),
            firstTime: statement.time(3), lastTime: max(statement.time(3), statement.time(4)),
            compression: compression, frame: Array(raw))
        let isPlausible =
            (1...1 << 20).contains(chunk.destinations) && (0...1 << 32).contains(chunk.events)
            && (0...1 << 32).contains(chunk.bytes)
        return isPlausible ? chunk : nil
    }

    /// What a chunk's row says without its frame; nil when it is missing.
    func chunkFacts(_ id: Int64) throws(QueueError) -> (cost: Int, lastTime: Timestamp)? {
        let statement = chunkFactsStatement
        statement.bind(1, id)
        guard try statement.step() else { return nil }
        defer { statement.reset() }
        guard (1...1 << 20).contains(statement.integer(0)) else { throw database.damage("a chunk's row") }
        return (chunkCost(frame: statement.integer(1), destinations: statement.integer(0)), statement.time(2))
    }

    /// By destination that gets events of a chunk, or got them: for whom they were stored. Empty where nobody knows.
    func origins(of chunk: Int64) throws(QueueError) -> [Int64: Int64] {
        try statement("SELECT wanted_by FROM chunk WHERE id = ?").take(chunk).first { $0.origins(0) } ?? [:]
    }

    // MARK: Deliveries

    /// Whether a destination still waits for any of a chunk.
    func waits(_ lane: LaneKey, for chunk: Int64) throws(QueueError) -> Bool {
        let statement = findDeliveryStatement
        statement.take(lane.destination, lane.priority, chunk)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Goes through a lane in order of acceptance, from a chunk on, until `body` returns false.
    ///
    /// - Throws: `QueueError` with code `corrupt` where rows are out of their order, as on a page that is torn.
    func walk(_ lane: LaneKey, from chunk: Int64, _ body: (DeliveryRow) throws(QueueError) -> Bool) throws(QueueError) {
        let statement = walkStatement
        statement.take(lane.destination, lane.priority, chunk)
        defer { statement.reset() }
        var end = (chunk: Int64.min, event: 0)
        while try statement.step() {
            let row = try readRow(statement).row
            guard (row.chunk, row.first) >= end else { throw database.damage("the order of deliveries") }
            end = (row.chunk, row.first + row.events)
            guard try body(row) else { return }
        }
    }

    func readRow(_ statement: Statement) throws(QueueError) -> (lane: LaneKey, row: DeliveryRow) {
        let row = DeliveryRow(statement)
        guard row.isPlausible, let lane = LaneKey(statement),
            statement.isNull(11) || Int64(statement.integer(11)) == row.check(in: lane)
        else { throw database.damage("a delivery's row") }
        return (lane, row)
    }

    /// Reads again when the oldest waiting event of a lane was accepted, and the earliest event time among the oldest
    /// ones; moves the lane's cursor over what this process holds.
    func refreshOldest(
        of lane: inout Lane, lookahead: Int, isHeld: (BatchID) -> Bool = { _ in false }
    ) throws(QueueError) {
        guard lane.oldestIsStale, lane.waitingEvents > 0 else { return }
        var oldest: (acceptedAt: Timestamp, earliest: Timestamp)?
        var byDeadlines: [DeadlineNames: Timestamp] = [:]
        var cursor: Int64?
        var budget = lookahead
        try walk(lane.key, from: lane.cursor) { row in
            if let id = row.batch, isHeld(id) { return true }
            if cursor == nil { cursor = row.chunk }
            if row.isFormed { return true }
            let known = oldest ?? (row.acceptedAt, row.firstTime)
            oldest = (known.acceptedAt, min(known.earliest, row.firstTime))
            if let names = row.deadlines {
                byDeadlines[names] = min(byDeadlines[names] ?? row.firstTime, row.firstTime)
            }
            budget -= 1
            return budget > 0
        }
        if let cursor { lane.cursor = cursor }
        lane.oldestAcceptedAt = oldest?.acceptedAt
        lane.earliestEventTime = oldest?.earliest
        // Beyond the look-ahead nobody knows: what was known of other deadlines stays.
        if budget <= 0 { byDeadlines.merge(lane.earliestByDeadlines) { found, _ in found } }
        lane.earliestByDeadlines = byDeadlines
        lane.oldestIsStale = false
    }

    /// The rows of a batch, in order, and whose they are; nil if there is no such batch.
    ///
    /// Reads the whole table for a full chunk that was never leased: for people, who name batches that way.
    func lookUp(_ batch: BatchID) throws(QueueError) -> (lane: LaneKey, rows: [DeliveryRow])? {
        for condition in ["state = 1 AND batch = ?", "batch = ?"] {
            let rows = try statement(
                "SELECT \(DeliveryRow.columns) FROM delivery WHERE \(condition) ORDER BY chunk, first"
            ).take(batch).all { row throws(QueueError) in try readRow(row) }
            if let lane = rows.last?.lane { return (lane, rows.map(\.row)) }
        }
        return nil
    }

    /// The rows of the formed batch that a row is in, in order; the row alone if it is in none; empty if the batch has gone.
    func members(with row: DeliveryRow) throws(QueueError) -> [DeliveryRow] {
        guard row.isFormed, let id = row.batch else { return [row] }
        return try lookUp(id)?.rows ?? []
    }

    /// Some rows of a lane, from a chunk on and up to the end of another; and the chunk to go on from, nil at the end.
    func part(of lane: LaneKey, from chunk: Int64) throws(QueueError) -> (rows: [DeliveryRow], next: Int64?) {
        var part: (rows: [DeliveryRow], next: Int64?) = ([], nil)
        try walk(lane, from: chunk) { row in
            guard part.rows.count < 1_000 || row.chunk == part.rows.last?.chunk else {
                part.next = row.chunk
                return false
            }
            part.rows.append(row)
            return true
        }
        return part
    }

    func rows(of chunk: Int64, in lane: LaneKey) throws(QueueError) -> [DeliveryRow] {
        var rows: [DeliveryRow] = []
        try walk(lane, from: chunk) { row in
            guard row.chunk == chunk else { return false }
            rows.append(row)
            return true
        }
        return rows
    }
}

/// A chunk as it was read back.
struct StoredChunk {
    let destinations: Int
    let events: Int
    let bytes: Int
    let firstTime: Timestamp
    let lastTime: Timestamp
    let compression: Compression
    let frame: [UInt8]

    var cost: Int { chunkCost(frame: frame.count, destinations: destinations) }
}

/// A row of table `delivery`, without its lane.
struct DeliveryRow {
    var chunk: Int64
    var first: Int
    var events: Int
    var bytes: Int
    var firstTime: Timestamp
    var acceptedAt: Timestamp
    var batch: BatchID?
    var isFormed: Bool
    /// The deadlines that concern its events because of their app.
    var deadlines: DeadlineNames?
}

extension Database {
    /// The error for a value that no transaction of ours has written.
    func damage(_ what: String) -> QueueError { QueueError(.corrupt, "\(path) is damaged (\(what))") }
}

extension DeliveryRow {
    /// Whether it can be a row of ours: figures that are added up without a second look.
    var isPlausible: Bool {
        first >= 0 && first <= 1 << 32 && events > 0 && events <= 1 << 32 && bytes >= 0 && bytes <= 1 << 40
    }

    static let columns =
        "destination, priority, chunk, first, events, bytes, first_time, accepted_at, batch, state, deadlines, row_check"

    /// Reads the columns, those of the lane before them.
    init(_ statement: Statement) {
        chunk = Int64(statement.integer(2))
        first = statement.integer(3)
        events = statement.integer(4)
        bytes = statement.integer(5)
        firstTime = statement.time(6)
        acceptedAt = statement.time(7)
        batch = BatchID(raw: statement.raw(8))
        isFormed = statement.integer(9) != 0
        deadlines = statement.isNull(10) ? nil : DeadlineNames(text: statement.text(10))
    }
}

extension Statement {
    /// Column `wanted_by`: `1,3`, and `1,3,4/3` once what was stored for 3 has moved to 4. What is damaged of it says nothing.
    func origins(_ column: Int32) -> [Int64: Int64] {
        let entries = text(column).split(separator: ",").compactMap { entry -> (Int64, Int64)? in
            let numbers = entry.split(separator: "/").map { Int64($0) }
            guard let destination = numbers.first ?? nil, let origin = numbers.last ?? nil else { return nil }
            return (destination, origin)
        }
        return Dictionary(entries) { first, _ in first }
    }
}

extension UUIDv7 {
    /// An id from its sixteen bytes where SQLite keeps them, without an array between; nil for any other number.
    init?(raw: UnsafeRawBufferPointer) {
        guard raw.count == 16 else { return nil }
        self.init(
            high: UInt64(bigEndian: raw.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
}
