internal import Model

/// The lines of a chunk that stay, as runs of neighbours.
struct StayingLines {
    private let lines: Lines
    /// Runs of line indexes that stay, in order; neighbouring lines are one run.
    private var runs: [Range<Int>] = []

    /// - Parameter stays: whether a line stays, given its index and its bytes with the line feed.
    init(of lines: Lines, _ stays: (_ line: Int, _ bytes: UnsafeRawBufferPointer) -> Bool) {
        self.lines = lines
        for line in 0..<lines.count {
            guard lines.slice(line..<line + 1).withUnsafeBytes({ stays(line, $0) }) else { continue }
            if let last = runs.last, last.upperBound == line {
                runs[runs.count - 1] = last.lowerBound..<line + 1
            } else {
                runs.append(line..<line + 1)
            }
        }
    }

    /// Number of lines that stay.
    var count: Int { runs.reduce(0) { $0 + $1.count } }

    /// The lines that stay, line feeds included: the content of the new frame.
    var bytes: [UInt8] { runs.flatMap { lines.slice($0) } }

    /// The row as it is once only the staying lines are left in its chunk.
    func remainder(of row: DeliveryRow) -> DeliveryRow {
        let mine = runs.map { $0.clamped(to: row.first..<row.first + row.events) }
        var rest = row
        rest.first = runs.reduce(0) { $0 + $1.clamped(to: 0..<row.first).count }
        rest.events = mine.reduce(0) { $0 + $1.count }
        // bounded: lines of one chunk.
        rest.bytes = mine.reduce(0) { $0 + lines.size($1) }
        return rest
    }

    /// The holders of the staying lines, given the holders of all lines.
    func holders(_ names: [String]) -> ChunkHolders {
        var holders = ChunkHolders()
        for run in runs {
            for line in run {
                holders.add(
                    ChunkHolders.Run(holder: names[line], events: 1, bytes: lines.size(line..<line + 1)))
            }
        }
        return holders
    }
}

// Takes the other lines out of the stored chunk.
extension StayingLines {
    /// Replaces a row with its staying events. The batch of a row that loses nothing keeps its id, because
    /// its bytes are the same.
    ///
    /// - Parameter reason: under which the events that go count as discarded.
    func reduce(
        _ row: DeliveryRow, _ lane: Int, _ reason: String, in transaction: inout Transaction
    ) throws(QueueError) {
        let key = transaction.state.figures.lanes[lane].key
        var rest = remainder(of: row)
        let gone = row.events - rest.events
        if gone > 0 {
            rest.batch = nil
            rest.isFormed = false
        }
        try transaction.tables.delete(row, from: key)
        if rest.events > 0 {
            try transaction.tables.insert(rest, in: key)
        }
        if gone > 0 {
            transaction.discard(gone, row.bytes - rest.bytes, lane, reason)
            let cursor = transaction.state.figures.lanes[lane].cursor
            transaction.state.figures.lanes[lane].cursor = min(cursor, row.chunk)
        } else if let batch = row.batch, let held = transaction.state.held[batch] {
            transaction.state.held[batch] = HeldBatch(
                header: held.header, lane: held.lane,
                rows: held.rows.map { $0.chunk == row.chunk && $0.first == row.first ? rest : $0 },
                soleCost: nil,
                status: held.status)
        }
    }

    /// Rewrites a chunk's frame with the lines that stay. Removes the chunk if no line stays, or if no
    /// destination waits for any.
    ///
    /// - Parameter names: the holders of all lines.
    func shrink(
        _ id: Int64, _ chunk: StoredChunk, _ names: [String], in transaction: inout Transaction
    ) throws(QueueError) {
        guard count > 0 else { return try transaction.dismiss(chunk: id) }
        let frame = try transaction.pack(bytes, chunk.compression)
        let known = try HolderTable(transaction.file).holding(of: id)
        let smaller = Holding(
            chunk: id, priority: known?.priority ?? .normal,
            cost: chunkCost(frame: frame.count, destinations: chunk.destinations),
            holders: holders(names))
        try transaction.tables.shrink(smaller, to: frame)
        transaction.state.figures.totals.stored += smaller.cost - chunk.cost
        if let known {
            transaction.state.figures.holdings?.remove(known)
        }
        transaction.state.figures.holdings?.add(smaller)
        try transaction.dismiss(chunk: id)
    }
}
