internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

/// The tables as values: each method runs one or two statements. `TableWriter` writes the tables.
///
/// Statements of the hot path are prepared when the file is opened, others when they are first used.
final class QueueFile {
    let database: Database
    /// Page size of the database in bytes.
    let pageSize: Int

    private let readChunkStatement: Statement
    private let chunkFactsStatement: Statement
    private let findDeliveryStatement: Statement
    private let walkStatement: Statement
    /// Statements that only `TableWriter` may run.
    let writing: WriteStatements
    /// Statements that were prepared on first use, by their SQL. The SQL texts are literals or built
    /// from few values, so their number is bounded.
    private var others: [String: Statement] = [:]

    /// Opens the database, and creates or upgrades its tables.
    init(path: String, options: QueueOptions) throws(QueueError) {
        let database = try Database(path: path, vfs: options.vfs)
        do {
            try Schema.prepare(database, options)
            self.database = database
            pageSize = try database.integer("PRAGMA page_size") ?? 4096
            writing = try WriteStatements(database)
            readChunkStatement = try database.prepare(
                "SELECT destinations, events, bytes, first_time, last_time, compression, checksum, frame, "
                    + "row_check FROM chunk WHERE id = ?")
            chunkFactsStatement = try database.prepare(
                "SELECT destinations, length(frame), max(first_time, last_time) FROM chunk WHERE id = ?")
            findDeliveryStatement = try database.prepare(
                "SELECT 1 FROM delivery WHERE destination = ? AND priority = ? AND chunk = ? LIMIT 1")
            walkStatement = try database.prepare(
                "SELECT \(DeliveryRow.columns) FROM delivery WHERE destination = ? AND priority = ? AND "
                    + "chunk >= ? ORDER BY chunk, first")
            measure()
        } catch {
            // The statements prepared so far keep the connection open until they are freed:
            // `sqlite3_close_v2` waits.
            database.close()
            throw error
        }
    }

    /// Size of the database file in bytes after the last WAL checkpoint, which is when the file
    /// changes.
    private(set) var fileBytes = 0

    /// Reads the size of the database file.
    func measure() {
        if let status = FileStatus(database.path) {
            fileBytes = Int(status.size)
        }
    }

    /// Bytes in pages that hold no rows.
    func freeBytes() throws(QueueError) -> Int {
        try statement("PRAGMA freelist_count").first { $0.integer(0) * pageSize } ?? 0
    }

    /// Bytes in the WAL that are not in the database file yet.
    var walBytes: Int { database.walPages * pageSize }

    /// A statement, prepared at its first use.
    func statement(_ sql: String) throws(QueueError) -> Statement {
        if let known = others[sql] { return known }
        let made = try database.prepare(sql)
        others[sql] = made
        return made
    }

    /// Frees what the next transaction can make again: cached pages, and statements that were prepared at
    /// their first use, most of them for the start.
    func releaseMemory() throws(QueueError) {
        others.removeAll()
        try database.releasePages()
    }

    /// Bytes beyond the configured bounds, granted for rows without a bound of their own: positions in
    /// the spool's files, memory, switches.
    private(set) var paid = 0

    /// Lets the database file grow to its bound and no further.
    func limit(to bounds: FileBounds) throws(QueueError) {
        try database.execute("PRAGMA max_page_count = \((bounds.file + paid) / pageSize)")
    }

    /// Raises the file's bound for rows without a bound of their own. It grants twice their size,
    /// because their keys are in random order and leave pages half empty.
    ///
    /// - Parameter coming: bytes that the next transaction adds to such rows.
    /// - Returns: false if they fit into what was granted before.
    func payForPlaces(_ coming: Int, _ bounds: FileBounds) throws(QueueError) -> Bool {
        let needed = 2 * (try placesCost() + coming) + (1 << 20)
        guard needed > paid else { return false }
        // A quarter more, so that the tables are not summed again at the next small commit.
        paid = needed + needed / 4
        try limit(to: bounds)
        return true
    }

    /// Lets one transaction exceed the bound, because it makes room or must not wait.
    func grant(_ bytes: Int) throws(QueueError) {
        let used = try database.integer("PRAGMA page_count") ?? 0
        try database.execute("PRAGMA max_page_count = \(used + bytes / pageSize + 16)")
    }

    /// Sum of `placeCost` over all rows without a bound of their own. Reads these tables completely.
    private func placesCost() throws(QueueError) -> Int {
        var sum = 0
        for (table, columns) in [
            ("checkpoint", ["key", "path", "state"]), ("done_record", ["claim", "handle"]),
            ("memory", ["name", "value"]), ("switch", ["name", "value"]), ("container", ["id", "file"]),
            ("discard", ["reason"]), ("ledger", []),
        ] {
            let content =
                columns.isEmpty ? "0" : columns.map { "length(CAST(\($0) AS BLOB))" }.joined(separator: " + ")
            sum +=
                try database.integer(
                    "SELECT coalesce(sum(n + \(rowCost) + (n > \(largePlace)) * 4096), 0) "
                        + "FROM (SELECT \(content) AS n FROM \(table))") ?? 0
        }
        return sum
    }

    /// Reads a chunk with its frame and verifies it; nil if the chunk is missing or its bytes differ
    /// from what was stored.
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
        // No checksum covers these numbers, and callers add them up without a check for overflow.
        let isPlausible =
            (1...1 << 20).contains(chunk.destinations) && (0...1 << 32).contains(chunk.events)
            && (0...1 << 32).contains(chunk.bytes)
        return isPlausible ? chunk : nil
    }

    /// Reads a chunk's cost and greatest event time, without its frame; nil if the chunk is missing.
    func chunkFacts(_ id: Int64) throws(QueueError) -> (cost: Int, lastTime: Timestamp)? {
        let statement = chunkFactsStatement
        statement.bind(1, id)
        guard try statement.step() else { return nil }
        defer { statement.reset() }
        guard (1...1 << 20).contains(statement.integer(0)) else { throw database.damage("a chunk's row") }
        return (chunkCost(frame: statement.integer(1), destinations: statement.integer(0)), statement.time(2))
    }

    /// The destination for which events of a chunk were stored, by the destination that gets or got them: the
    /// two differ if events were moved. Empty if unknown.
    func origins(of chunk: Int64) throws(QueueError) -> [Int64: Int64] {
        try statement("SELECT wanted_by FROM chunk WHERE id = ?").with(chunk).first { $0.origins(0) } ?? [:]
    }

    /// Whether a destination still waits for any event of a chunk.
    func waits(_ lane: LaneKey, for chunk: Int64) throws(QueueError) -> Bool {
        let statement = findDeliveryStatement
        statement.with(lane.destination, lane.priority, chunk)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Passes the rows of a lane to `body`, in order of acceptance from a chunk on, until it returns
    /// false.
    ///
    /// - Throws: `corrupt` if rows are out of order, as on a torn page: searches by key would miss some
    ///   of them.
    func walk(_ lane: LaneKey, from chunk: Int64, _ body: (DeliveryRow) throws(QueueError) -> Bool)
        throws(QueueError)
    {
        let statement = walkStatement
        statement.with(lane.destination, lane.priority, chunk)
        defer { statement.reset() }
        var end = (chunk: Int64.min, event: 0)
        while try statement.step() {
            let row = try readRow(statement).row
            // Rows must neither overlap nor go back: a page at the wrong place would repeat events.
            guard (row.chunk, row.first) >= end else { throw database.damage("the order of deliveries") }
            end = (row.chunk, row.first + row.events)
            guard try body(row) else { return }
        }
    }

    /// Passes the rows of a lane to `body`, newest chunk first, until it returns false.
    func walkBack(_ lane: LaneKey, _ body: (DeliveryRow) throws(QueueError) -> Bool) throws(QueueError) {
        let statement = try statement(
            "SELECT \(DeliveryRow.columns) FROM delivery WHERE destination = ? AND priority = ? "
                + "ORDER BY chunk DESC, first DESC")
        statement.with(lane.destination, lane.priority)
        defer { statement.reset() }
        while try statement.step() {
            guard try body(try readRow(statement).row) else { return }
        }
    }

    /// Reads the current row of a statement that selects `DeliveryRow.columns`, and verifies its check.
    func readRow(_ statement: Statement) throws(QueueError) -> (lane: LaneKey, row: DeliveryRow) {
        let row = DeliveryRow(statement)
        guard row.isPlausible, let lane = LaneKey(statement),
            statement.isNull(11) || Int64(statement.integer(11)) == row.check(in: lane)
        else { throw database.damage("a delivery's row") }
        return (lane, row)
    }

    /// Reads when the oldest waiting event of a lane was accepted and the least event time among the
    /// oldest ones, and moves the lane's cursor past the rows that this process holds.
    ///
    /// - Parameter lookahead: number of waiting rows to read for the least event time.
    func refreshOldest(
        of lane: inout Lane, lookahead: Int, isHeld: (BatchID) -> Bool = { _ in false }
    ) throws(QueueError) {
        guard lane.ages.isStale, lane.waitingEvents > 0 else { return }
        var oldest: (acceptedAt: Timestamp, earliest: Timestamp)?
        var byDeadlines: [DeadlineNames: Timestamp] = [:]
        var cursor: Int64?
        var budget = lookahead
        try walk(lane.key, from: lane.cursor) { row in
            // Rows of known batches do not wait. The first other row is where later searches can start.
            if let id = row.batch, isHeld(id) { return true }
            if cursor == nil {
                cursor = row.chunk
            }
            if row.isFormed { return true }
            let known = oldest ?? (row.acceptedAt, row.firstTime)
            oldest = (known.acceptedAt, min(known.earliest, row.firstTime))
            if let names = row.deadlines {
                byDeadlines[names] = min(byDeadlines[names] ?? row.firstTime, row.firstTime)
            }
            budget -= 1
            return budget > 0
        }
        if let cursor {
            lane.cursor = cursor
        }
        // Rows beyond the look-ahead were not read: times already known for other deadlines stay.
        if budget <= 0 {
            byDeadlines.merge(lane.ages.earliestByDeadlines) { found, _ in found }
        }
        lane.ages.set(
            oldestAcceptedAt: oldest?.acceptedAt, earliest: oldest?.earliest, byDeadlines: byDeadlines)
    }

    /// The rows of a batch in order, and their lane; nil if there is no such batch.
    ///
    /// A formed batch is found by its index. A full chunk that was never leased is found by a scan of
    /// the table, which is acceptable because only commands name a batch that way.
    func lookUp(_ batch: BatchID) throws(QueueError) -> (lane: LaneKey, rows: [DeliveryRow])? {
        for condition in ["state = 1 AND batch = ?", "batch = ?"] {
            let rows = try statement(
                "SELECT \(DeliveryRow.columns) FROM delivery WHERE \(condition) ORDER BY chunk, first"
            ).with(batch).all { row throws(QueueError) in try readRow(row) }
            if let lane = rows.last?.lane { return (lane, rows.map(\.row)) }
        }
        return nil
    }

    /// The rows of the formed batch that a row belongs to, in order; the row alone if it is in no
    /// batch; empty if the batch is gone.
    func members(with row: DeliveryRow) throws(QueueError) -> [DeliveryRow] {
        guard row.isFormed, let id = row.batch else { return [row] }
        return try lookUp(id)?.rows ?? []
    }

    /// About 1,000 rows of a lane from a chunk on, and the chunk to continue with; nil at the end. The
    /// rows of a chunk are never separated, because `from` names a chunk.
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

    /// The rows of a chunk in one lane, in order.
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

/// A chunk as it was read back, verified.
struct StoredChunk {
    /// Number of destinations that the chunk was accepted for.
    let destinations: Int
    let events: Int
    /// Uncompressed size of the lines in bytes.
    let bytes: Int
    /// Least event time.
    let firstTime: Timestamp
    /// Greatest event time; `Timestamp(nanoseconds: .max)` for a chunk of an old file, which never
    /// expires.
    let lastTime: Timestamp
    let compression: Compression
    let frame: [UInt8]

    /// Bytes that count toward `queue.max_size`.
    var cost: Int { chunkCost(frame: frame.count, destinations: destinations) }
}

/// A row of table `delivery` without its lane: a run of a chunk's events that a destination has still
/// to get.
struct DeliveryRow {
    var chunk: Int64
    /// Index of the first event in the chunk.
    var first: Int
    var events: Int
    /// Uncompressed size of these events in bytes.
    var bytes: Int
    /// Least event time of the chunk; after an expiry, that of the remaining events.
    var firstTime: Timestamp
    var acceptedAt: Timestamp
    /// The batch in which the events are sent; nil if none was formed yet. A full chunk has an id from
    /// its storing on.
    var batch: BatchID?
    /// Whether the batch was formed by joining or splitting. False for a full chunk, whose id counts
    /// only from its first lease on.
    var isFormed: Bool
    /// Deadlines that concern these events because of their app; nil if no deadline names it.
    var deadlines: DeadlineNames?
}

extension Database {
    /// The error for content that no transaction of ours has written.
    func damage(_ what: String) -> QueueError { QueueError(.corrupt, "\(path) is damaged (\(what))") }
}

extension DeliveryRow {
    /// Whether the numbers are within the bounds of rows that we write. Callers add them up without a
    /// check for overflow.
    var isPlausible: Bool {
        first >= 0 && first <= 1 << 32 && events > 0 && events <= 1 << 32 && bytes >= 0 && bytes <= 1 << 40
    }

    /// Columns of table `delivery`, in the order that `init` and `readRow` expect.
    static let columns =
        "destination, priority, chunk, first, events, bytes, first_time, accepted_at, batch, state, "
        + "deadlines, row_check"

    /// Reads the row from a statement that selects `columns`; the first two belong to the lane.
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
    /// Parses column `wanted_by`: `1,3`, and `1,3,4/3` once what was stored for 3 has moved to 4.
    /// Entries that are damaged are skipped.
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
    /// An id from the sixteen bytes in SQLite's memory, without an array in between; nil for any other
    /// length.
    init?(raw: UnsafeRawBufferPointer) {
        guard raw.count == 16 else { return nil }
        self.init(
            high: UInt64(bigEndian: raw.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
}
