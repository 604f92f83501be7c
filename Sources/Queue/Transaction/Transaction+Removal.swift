internal import Logs
internal import Model

// The ways out of the queue other than acknowledgement.
extension Transaction {
    /// Deletes a chunk unless a destination still waits for some of its events.
    mutating func dismiss(chunk: Int64) throws(QueueError) {
        for lane in state.figures.lanes where try file.waits(lane.key, for: chunk) { return }
        guard let facts = try file.chunkFacts(chunk) else { return }
        try remove(chunk: chunk, cost: facts.cost)
    }

    /// Deletes a chunk that no destination waits for.
    mutating func remove(chunk: Int64, cost: Int) throws(QueueError) {
        if state.figures.holdings != nil, let holding = try HolderTable(file).holding(of: chunk) {
            state.figures.holdings?.remove(holding)
        }
        try tables.deleteChunk(chunk)
        state.figures.totals.stored -= cost
    }

    /// Removes rows of one lane and counts them in its ledger. The rows are all those of one batch, or
    /// one row that is in no batch.
    mutating func takeOut(_ rows: [DeliveryRow], _ lane: Int, _ departure: Departure) throws(QueueError) {
        leaveBatch(rows, lane)
        for row in rows {
            if departure == .expired {
                state.figures.noteExpired(try HolderTable(file).holders(of: row))
            }
            try tables.delete(row, from: state.figures.lanes[lane].key)
            state.figures.lanes[lane].remove(departure, events: row.events, bytes: row.bytes)
            try dismiss(chunk: row.chunk)
        }
    }

    /// Ends the batch that these rows are in, if any. Its events count as waiting until the caller
    /// removes them.
    mutating func leaveBatch(_ rows: [DeliveryRow], _ lane: Int) {
        state.figures.lanes[lane].ages.markStale()
        guard let first = rows.first, let id = first.batch, first.isFormed || state.held[id] != nil else {
            return
        }
        if state.held[id].map({ $0.status == .free }) ?? true {
            state.figures.lanes[lane].batches.free -= 1
        }
        state.held[id] = nil
        state.figures.lanes[lane].batches.events -= rows.reduce(0) { $0 + $1.events }
        state.figures.lanes[lane].batches.bytes -= rows.reduce(0) { $0 + $1.bytes }
    }

    /// Gives up a chunk whose frame is damaged, for all destinations. Batches that had a part of it are
    /// dissolved.
    ///
    /// A batch in flight keeps its part: it was read before the damage.
    /// - Throws: `corrupt` if the chunk does not exist. It may be on a page at the wrong place, where a
    ///   salvage finds it; counting it as lost would be premature.
    mutating func lose(chunk: Int64) throws(QueueError) {
        guard try file.chunkFacts(chunk) != nil else { throw file.database.damage("a chunk is missing") }
        var lost = 0
        for lane in state.figures.lanes.indices {
            // The rows are read again each time, because dissolving a batch changes other rows of the
            // chunk.
            let key = state.figures.lanes[lane].key
            while let row = try file.rows(of: chunk, in: key).first(where: { !state.isInFlight($0) }) {
                try dissolveBatch(of: row, lane)
                try tables.delete(row, from: key)
                state.figures.lanes[lane].remove(.lost, events: row.events, bytes: row.bytes)
                lost += row.events
            }
        }
        try dismiss(chunk: chunk)
        let deliveries = lost
        note { $0.error("stored events are damaged and lost", ["chunk": chunk, "deliveries": deliveries]) }
    }

    /// Lets the events of a row's batch wait again, because this batch can no longer be sent whole.
    mutating func dissolveBatch(of row: DeliveryRow, _ lane: Int) throws(QueueError) {
        guard let id = row.batch else { return }
        guard row.isFormed, let found = try file.lookUp(id) else { return leaveBatch([row], lane) }
        try dissolve(found.rows, lane)
    }

    /// Lets all rows of a batch wait again. They get a new id with their next batch.
    mutating func dissolve(_ rows: [DeliveryRow], _ lane: Int) throws(QueueError) {
        leaveBatch(rows, lane)
        let key = state.figures.lanes[lane].key
        for var member in rows {
            try tables.delete(member, from: key)
            member.batch = nil
            member.isFormed = false
            try tables.insert(member, in: key)
            state.figures.lanes[lane].cursor = min(state.figures.lanes[lane].cursor, member.chunk)
        }
    }
}
