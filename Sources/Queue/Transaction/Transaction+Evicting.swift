internal import EventLoops
internal import Frames
internal import Model

// Chooses what a full queue evicts: from the lowest priority, of the largest holders, the oldest
// events. Eviction by holder in DESIGN.md explains the rules.
extension Transaction {
    /// A part is cut out of a chunk only if it is at least this fraction (a sixteenth) of it. So at
    /// most sixteen times the incoming bytes are rewritten.
    private static let leastPart = 16

    /// Evicts what the largest holders of the lowest priority have in one chunk; false if there is
    /// nothing to evict.
    mutating func evictOne(notAbove limit: Priority) throws(QueueError) -> Bool {
        try countHoldings()
        for priority in Priority.allCases where priority <= limit {
            let givers = state.figures.holdings?.givers(priority) ?? []
            if let holding = try oldestPart(of: givers, priority) {
                if try !cut(givers, outOf: holding) {
                    try evict(holding.chunk, priority)
                }
                return true
            }
            guard let chunk = try oldestEvictable(priority, from: 0) else { continue }
            try evict(chunk, priority)
            return true
        }
        return false
    }

    /// Counts the bytes of each holder, unless they are counted already.
    private mutating func countHoldings() throws(QueueError) {
        guard state.figures.holdings == nil else { return }
        let known = try file.database.integer("SELECT coalesce(sum(cost), 0) FROM holding")
        if known != state.figures.totals.stored {
            // Chunks without holdings were stored by an older version, or the page of their holdings was
            // damaged. They count towards no holder.
            try tables.execute(
                "INSERT INTO holding SELECT id, priority, \(chunkCostColumn), '' FROM chunk "
                    + "WHERE id NOT IN (SELECT chunk FROM holding)")
        }
        var holdings = Holdings()
        let rows = try HolderTable(file).holdings(from: 0)
        while try rows.step() { holdings.add(Holding(rows)) }
        state.figures.holdings = holdings
    }

    /// The oldest chunk that these holders have enough of and that may be evicted; nil if there is
    /// none.
    private mutating func oldestPart(of givers: Set<String>, _ priority: Priority) throws(QueueError)
        -> Holding?
    {
        var passed = state.figures.holdings?.start(for: givers, priority) ?? 0
        var isPassing = true
        defer { state.figures.holdings?.pass(passed, for: givers, priority) }
        let rows = try HolderTable(file).holdings(from: passed)
        defer { rows.reset() }
        while try rows.step() {
            let holding = Holding(rows)
            guard holding.priority == priority else { continue }
            let shares = holding.holders.shares(of: holding.cost)
            let part = shares.reduce(0) { $0 + (givers.contains($1.holder) ? $1.cost : 0) }
            let isPure = shares.allSatisfy { givers.contains($0.holder) }
            // Which batches an earlier process sent is not recorded, so a chunk from before the start
            // is not cut.
            let mayBeCut = holding.chunk > state.environment.lastChunkAtOpen
            guard part >= holding.cost / Transaction.leastPart, isPure || mayBeCut else {
                if isPassing {
                    passed = holding.chunk + 1
                }
                continue
            }
            // A chunk that is passed over only because it is in flight may come back: later searches
            // must see it.
            isPassing = false
            if try isPure ? !isInFlight(holding.chunk, priority) : isUntouched(holding.chunk, priority) {
                return holding
            }
        }
        return nil
    }

    /// Whether no batch that may have been sent contains events of a chunk. Such a batch is sent whole
    /// or evicted whole, because its bytes under its id must not change.
    private func isUntouched(_ chunk: Int64, _ priority: Priority) throws(QueueError) -> Bool {
        for lane in state.figures.lanes where lane.priority == priority {
            let rows = try file.rows(of: chunk, in: lane.key)
            if rows.contains(where: { state.mayHaveBeenSent($0, in: lane) }) { return false }
        }
        return true
    }

    /// Evicts some holders' events from a chunk. The other events stay in a smaller frame and wait for
    /// another batch.
    ///
    /// - Returns: false, without any change, if no event would stay or the holders are unknown.
    private mutating func cut(_ givers: Set<String>, outOf holding: Holding) throws(QueueError) -> Bool {
        let (places, left) = holding.holders.without(givers)
        guard !places.isEmpty, let chunk = try file.readChunk(holding.chunk),
            holding.holders.events == chunk.events,
            let lines = unpacker.lines(of: chunk)
        else { return false }
        let staying = places.flatMap { lines.slice($0) }
        guard staying.count == left.bytes else { return false }
        for lane in state.figures.lanes.indices where state.figures.lanes[lane].priority == holding.priority {
            for row in try file.rows(of: holding.chunk, in: state.figures.lanes[lane].key) {
                try cut(row, to: places, lines, lane)
            }
        }
        let frame = try pack(staying, chunk.compression)
        let smaller = Holding(
            chunk: holding.chunk, priority: holding.priority,
            cost: chunkCost(frame: frame.count, destinations: chunk.destinations), holders: left)
        try tables.shrink(smaller, to: frame)
        state.figures.totals.stored += smaller.cost - chunk.cost
        state.figures.holdings?.remove(holding)
        state.figures.holdings?.add(smaller)
        // The destinations may have all events that stay.
        try dismiss(chunk: holding.chunk)
        return true
    }

    /// Reduces a row to the events that stay in its chunk; the others count as evicted.
    private mutating func cut(
        _ row: DeliveryRow, to places: [Range<Int>], _ lines: Lines, _ lane: Int
    ) throws(QueueError) {
        let stays = places.map { $0.clamped(to: row.first..<row.first + row.events) }
        var rest = row
        rest.first = places.reduce(0) { $0 + $1.clamped(to: 0..<row.first).count }
        rest.events = stays.reduce(0) { $0 + $1.count }
        // bounded: lines of one chunk.
        rest.bytes = stays.reduce(0) { $0 + lines.size($1) }
        rest.batch = nil
        let key = state.figures.lanes[lane].key
        try tables.delete(row, from: key)
        if rest.events > 0 {
            try tables.insert(rest, in: key)
        }
        noteEvicted(row.events - rest.events)
        state.figures.lanes[lane].remove(
            .evicted, events: row.events - rest.events, bytes: row.bytes - rest.bytes)
        state.figures.lanes[lane].ages.markStale()
    }

    /// Compresses lines again as a chunk's frame.
    func pack(_ lines: [UInt8], _ compression: Compression) throws(QueueError) -> [UInt8] {
        try relaying(try FrameCompressor(compression).compress(lines)) { (error: FrameError) in
            QueueError(.io, error.message)
        }
    }
}
