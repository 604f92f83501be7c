internal import EventLoops
internal import Frames
internal import Model

// Who gives up when the queue is full: the lowest priority, in it who holds most, of that the oldest.
extension Transaction {
    /// Only so large a part is cut out of a chunk: no more than sixteen times the bytes that come are written again for them.
    private static let leastPart = 16

    /// Evicts from the lowest priority what the largest holders have in one chunk; false if there is nothing to evict.
    mutating func evictOne(notAbove limit: Priority) throws(QueueError) -> Bool {
        try countHoldings()
        for priority in Priority.allCases where priority <= limit {
            let givers = state.figures.holdings?.givers(priority) ?? []
            if let holding = try oldestPart(of: givers, priority) {
                if try !cut(givers, outOf: holding) { try evict(holding.chunk, priority) }
                return true
            }
            guard let chunk = try oldestEvictable(priority, from: 0) else { continue }
            try evict(chunk, priority)
            return true
        }
        return false
    }

    private mutating func countHoldings() throws(QueueError) {
        guard state.figures.holdings == nil else { return }
        let known = try file.database.integer("SELECT coalesce(sum(cost), 0) FROM holding")
        if known != state.figures.totals.stored {
            // An older version stored them, or their page was damaged.
            try tables.execute(
                "INSERT INTO holding SELECT id, priority, \(chunkCostColumn), '' FROM chunk "
                    + "WHERE id NOT IN (SELECT chunk FROM holding)")
        }
        var holdings = Holdings()
        let rows = try file.holdings(from: 0)
        while try rows.step() { holdings.add(Holding(rows)) }
        state.figures.holdings = holdings
    }

    /// The oldest chunk in which these holders have enough, and that may be evicted; nil if there is none.
    private mutating func oldestPart(of givers: Set<String>, _ priority: Priority) throws(QueueError) -> Holding? {
        var passed = state.figures.holdings?.start(for: givers, priority) ?? 0
        var isPassing = true
        defer { state.figures.holdings?.pass(passed, for: givers, priority) }
        let rows = try file.holdings(from: passed)
        defer { rows.reset() }
        while try rows.step() {
            let holding = Holding(rows)
            guard holding.priority == priority else { continue }
            let shares = holding.holders.shares(of: holding.cost)
            let part = shares.reduce(0) { $0 + (givers.contains($1.holder) ? $1.cost : 0) }
            let isPure = shares.allSatisfy { givers.contains($0.holder) }
            // Nobody has noted what an earlier process has sent as a batch.
            let mayBeCut = holding.chunk > state.environment.lastChunkAtOpen
            guard part >= holding.cost / Transaction.leastPart, isPure || mayBeCut else {
                if isPassing { passed = holding.chunk + 1 }
                continue
            }
            // One that is in flight may come back.
            isPassing = false
            if try isPure ? !isInFlight(holding.chunk, priority) : isUntouched(holding.chunk, priority) {
                return holding
            }
        }
        return nil
    }

    /// Whether no batch that may have been sent has any of a chunk: once attempted a batch goes whole or stays whole (invariant 2).
    private func isUntouched(_ chunk: Int64, _ priority: Priority) throws(QueueError) -> Bool {
        for lane in state.figures.lanes where lane.priority == priority {
            let rows = try file.rows(of: chunk, in: lane.key)
            if rows.contains(where: { state.mayHaveBeenSent($0, in: lane) }) { return false }
        }
        return true
    }

    /// Evicts what some holders have of a chunk; the others' events stay, in a smaller frame, and wait to go in another batch.
    ///
    /// - Returns: false, and nothing has changed, if nothing would stay, or nobody knows what.
    private mutating func cut(_ givers: Set<String>, outOf holding: Holding) throws(QueueError) -> Bool {
        let (places, left) = holding.holders.without(givers)
        guard !places.isEmpty, let chunk = try file.readChunk(holding.chunk), holding.holders.events == chunk.events,
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
        // What stays may have arrived everywhere.
        try dismiss(chunk: holding.chunk)
        return true
    }

    /// Leaves of a row what stays of its chunk.
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
        if rest.events > 0 { try tables.insert(rest, in: key) }
        noteEvicted(row.events - rest.events)
        state.figures.lanes[lane].remove(\.evicted, events: row.events - rest.events, bytes: row.bytes - rest.bytes)
        state.figures.lanes[lane].oldestIsStale = true
    }

    private func pack(_ lines: [UInt8], _ compression: Compression) throws(QueueError) -> [UInt8] {
        try relaying(try FrameCompressor(compression).compress(lines)) { (error: FrameError) in
            QueueError(.io, error.message)
        }
    }
}
