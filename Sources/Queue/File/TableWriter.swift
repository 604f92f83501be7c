internal import EventLoops
internal import Frames
internal import Model

/// A running transaction, and the only way to write the tables.
///
/// Creating a writer begins the transaction and `commit` ends it. A writer that is dropped without a
/// commit rolls back, so an error path cannot leave half a transaction behind. One writer at a time.
struct TableWriter: ~Copyable {
    private let file: QueueFile
    private let statements: WriteStatements

    /// Begins a transaction. A transaction that has only read so far becomes part of it.
    init(_ file: QueueFile) throws(QueueError) {
        try file.database.begin()
        self.file = file
        statements = file.writing
    }

    // After a commit there is nothing to roll back.
    deinit { file.database.rollback() }

    /// Makes all changes durable, or throws and rolls back.
    consuming func commit() throws(QueueError) {
        try file.database.commit()
    }

    /// A writing statement, prepared at its first use.
    func statement(_ sql: String) throws(QueueError) -> Statement { try file.statement(sql) }

    /// Runs statements whose results are not needed.
    func execute(_ sql: String) throws(QueueError) { try file.database.execute(sql) }

    /// Whether pages that are freed from now on are overwritten with zeros. Needed when rows are
    /// deleted because their text must not stay readable; see Freed pages in DESIGN.md.
    func overwrites(_ isOn: Bool) throws(QueueError) {
        try execute("PRAGMA secure_delete = \(isOn ? "ON" : "FAST")")
    }

    /// Sets the parameters of a statement, prepared at its first use, and runs it. It returns no rows.
    func run<each Value: SQLValue>(_ sql: String, _ values: repeat each Value) throws(QueueError) {
        try file.statement(sql).run(repeat each values)
    }

    /// Stores a chunk and its row of `holding`.
    ///
    /// - Parameter destinations: value of column `wanted_by`.
    func insert(_ chunk: NewChunk, id: Int64, wantedBy destinations: String) throws(QueueError) {
        let statement = statements.insertChunk
        let checksum = Int64(chunk.frame.withUnsafeBytes { crc32($0) })
        statement.with(
            id, chunk.priority, chunk.destinations.count, chunk.events, chunk.bytes,
            chunk.eventTimes.lowerBound,
            chunk.eventTimes.upperBound, chunk.acceptedAt, Int64(chunk.compression.rawValue), checksum)
        statement.bind(12, destinations)
        statement.bind(13, RowCheck.of(id, checksum))
        try statement.run(chunk.frame, at: 11)
        try statements.setHolding.run(id, chunk.priority, chunk.cost, ChunkHolders(chunk.origins).text)
    }

    /// Replaces a chunk's frame with a smaller one, whose events and bytes are those of the holding.
    func shrink(_ holding: Holding, to frame: [UInt8]) throws(QueueError) {
        let checksum = Int64(frame.withUnsafeBytes { crc32($0) })
        let update = try statement(
            "UPDATE chunk SET events = ?, bytes = ?, checksum = ?, row_check = ?, frame = ? WHERE id = ?")
        update.with(
            holding.holders.events, holding.holders.bytes, checksum, RowCheck.of(holding.chunk, checksum))
        update.bind(6, holding.chunk)
        try update.run(frame, at: 5)
        try statements.setHolding.run(holding.chunk, holding.priority, holding.cost, holding.holders.text)
    }

    /// Notes that a chunk's events for one destination now go to another, so that a salvage recreates
    /// deliveries for the right one. If it is unknown whom the chunk was stored for, nothing is noted.
    func want(_ chunk: Int64, by destination: Int64, insteadOf source: Int64) throws(QueueError) {
        let origins = try file.origins(of: chunk)
        guard origins[destination] == nil else { return }
        try run(
            "UPDATE chunk SET wanted_by = wanted_by || ',' || ? || '/' || ? WHERE id = ?", destination,
            origins[source] ?? source, chunk)
    }

    /// Deletes a chunk and its row of `holding`.
    func deleteChunk(_ id: Int64) throws(QueueError) {
        try statements.deleteChunk.run(id)
        try statements.deleteHolding.run(id)
    }

    /// Adds a delivery, with its check.
    func insert(_ row: DeliveryRow, in lane: LaneKey) throws(QueueError) {
        try statements.insertDelivery.run(
            lane.destination, lane.priority, row.chunk, row.first, row.events, row.bytes, row.firstTime,
            row.acceptedAt,
            row.batch, row.isFormed ? 1 : 0, row.deadlines?.text, row.check(in: lane))
    }

    /// Deletes a delivery.
    ///
    /// - Throws: `corrupt` if its key is not found although the row was read: the row is on a page
    ///   where it does not belong. Ignoring it would send the events again.
    func delete(_ row: DeliveryRow, from lane: LaneKey) throws(QueueError) {
        try statements.deleteDelivery.run(lane.destination, lane.priority, row.chunk, row.first)
        // A row that was read and is not found by its key is on a page where it does not belong.
        guard file.database.changes == 1 else { throw file.database.damage("a delivery's row") }
    }
}

/// The statements of `TableWriter`, prepared once; no other type runs them.
final class WriteStatements {
    fileprivate let insertChunk: Statement
    fileprivate let deleteChunk: Statement
    fileprivate let setHolding: Statement
    fileprivate let deleteHolding: Statement
    fileprivate let insertDelivery: Statement
    fileprivate let deleteDelivery: Statement

    init(_ database: Database) throws(QueueError) {
        insertChunk = try database.prepare("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        deleteChunk = try database.prepare("DELETE FROM chunk WHERE id = ?")
        setHolding = try database.prepare("REPLACE INTO holding VALUES (?, ?, ?, ?)")
        deleteHolding = try database.prepare("DELETE FROM holding WHERE chunk = ?")
        insertDelivery = try database.prepare(
            "INSERT INTO delivery VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        deleteDelivery = try database.prepare(
            "DELETE FROM delivery WHERE destination = ? AND priority = ? AND chunk = ? AND first = ?")
    }
}
