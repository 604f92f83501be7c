internal import Model

/// A row of table `holding`.
struct Holding {
    let chunk: Int64
    let priority: Priority
    /// Bytes of the chunk that count toward `queue.max_size`.
    var cost: Int
    var holders: ChunkHolders
}

extension Holding {
    /// Reads the columns chunk, priority, cost, holders.
    init(_ row: Statement) {
        chunk = Int64(row.integer(0))
        priority = Priority(rawValue: UInt8(truncatingIfNeeded: row.integer(1))) ?? .normal
        cost = row.integer(2)
        holders = ChunkHolders(text: row.text(3))
    }
}

/// Reads table `holding`: whose events a chunk holds.
struct HolderTable {
    private let file: QueueFile

    init(_ file: QueueFile) { self.file = file }

    /// The holders of a chunk; nil if an older version stored it.
    func holding(of chunk: Int64) throws(QueueError) -> Holding? {
        try file.statement("SELECT chunk, priority, cost, holders FROM holding WHERE chunk = ?").with(chunk)
            .first { Holding($0) }
    }

    /// The holder of each event of a delivery row; the empty name if unknown.
    func holders(of row: DeliveryRow) throws(QueueError) -> [String] {
        let holders = try holding(of: row.chunk)?.holders ?? ChunkHolders()
        return holders.names(of: row.first..<row.first + row.events)
    }

    /// The app of each event of a row. Where the chunk does not say it, because its note was damaged, the
    /// event's own member counts.
    func apps(of row: DeliveryRow, _ lines: Lines) throws(QueueError) -> [String] {
        let holders = try holders(of: row)
        guard holders.contains("") else { return holders }
        return holders.enumerated().map { place, holder in
            guard holder.isEmpty else { return holder }
            let line = Array(lines.slice(row.first + place..<row.first + place + 1))
            return (try? JSONValue(parsing: line))?["app"]?.string ?? ""
        }
    }

    /// The rows of `holding` from a chunk on, oldest first. The caller steps and resets the statement.
    func holdings(from chunk: Int64) throws(QueueError) -> Statement {
        try file.statement(
            "SELECT chunk, priority, cost, holders FROM holding WHERE chunk >= ? ORDER BY chunk"
        ).with(chunk)
    }
}
