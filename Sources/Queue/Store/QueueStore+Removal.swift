internal import EventLoops
internal import Logs
internal import Model

// Ways out of the queue other than acknowledgement. All of it runs inside the running transaction.
extension QueueStore {
    /// Whether events as new as that, and no newer, are too old to be sent to a lane's destination. Exactly the maximum age is
    /// kept (ac12).
    func isExpired(_ newest: Timestamp, in lane: Int) -> Bool {
        guard mayExpire else { return false }
        let own = options.maxAges.isEmpty ? nil : options.maxAges[figures.lanes[lane].name]
        return time.wallTime - newest > own ?? options.maxAge
    }

    /// Removes a chunk's payload unless a destination still waits for some of it.
    func dismiss(chunk: Int64, from file: QueueFile) throws(QueueError) {
        for lane in figures.lanes
        where try file.waits(destination: lane.destination, priority: lane.priority, chunk: chunk) {
            return
        }
        guard let facts = try file.chunkFacts(chunk) else { return }
        try file.deleteChunk(chunk)
        figures.totals.stored -= facts.cost
    }

    /// Takes rows of one lane out: all rows of one batch, or one row that is in none.
    func takeOut(
        _ rows: [DeliveryRow], _ lane: Int, _ fate: WritableKeyPath<Ledger, Int>, of file: QueueFile
    ) throws(QueueError) {
        leaveBatch(rows, lane)
        for row in rows {
            try file.deleteDelivery(
                destination: figures.lanes[lane].destination, priority: figures.lanes[lane].priority,
                chunk: row.chunk, first: row.first)
            figures.lanes[lane].remove(fate, events: row.events, bytes: row.bytes)
            try dismiss(chunk: row.chunk, from: file)
        }
    }

    /// Ends the batch of these rows, if they are in one: it is held no more, and its events count as waiting.
    func leaveBatch(_ rows: [DeliveryRow], _ lane: Int) {
        figures.lanes[lane].oldestIsStale = true
        guard let first = rows.first, let id = first.batch, first.isFormed || held[id] != nil else { return }
        if held[id].map({ $0.status == .free }) ?? true { figures.lanes[lane].freeBatches -= 1 }
        held[id] = nil
        figures.lanes[lane].batchedEvents -= rows.reduce(0) { $0 + $1.events }
        figures.lanes[lane].batchedBytes -= rows.reduce(0) { $0 + $1.bytes }
    }

    // MARK: Damage

    /// Gives up those of the chunks whose frames are damaged.
    func loseDamaged(_ rows: [DeliveryRow], of file: QueueFile) throws(QueueError) {
        for row in rows where try file.readChunk(row.chunk)?.part(row) == nil {
            try lose(chunk: row.chunk, of: file)
        }
    }

    /// Gives up a chunk whose frame is damaged, for all who wait for it; batches that had a part of it are dissolved.
    ///
    /// A batch in flight was read before the damage: it keeps its part.
    func lose(chunk: Int64, of file: QueueFile) throws(QueueError) {
        var lost = 0
        for lane in figures.lanes.indices {
            // Read anew each time: dissolving a batch changes other rows of the chunk.
            while let row = try file.rows(of: chunk, figures.lanes[lane]).first(where: { !isInFlight($0) }) {
                try dissolveBatch(of: row, lane, file)
                try file.deleteDelivery(
                    destination: figures.lanes[lane].destination, priority: figures.lanes[lane].priority,
                    chunk: chunk, first: row.first)
                figures.lanes[lane].remove(\.lost, events: row.events, bytes: row.bytes)
                lost += row.events
            }
        }
        try dismiss(chunk: chunk, from: file)
        log.error("stored events are damaged and lost", ["chunk": chunk, "deliveries": lost])
    }

    /// Whether a row's batch is with its destination, or acknowledged and about to go.
    func isInFlight(_ row: DeliveryRow) -> Bool {
        guard let id = row.batch, let batch = held[id] else { return false }
        return batch.status != .free
    }

    /// Lets the events of a row's batch wait again, to go in another batch: this one cannot be whole any more.
    private func dissolveBatch(of row: DeliveryRow, _ lane: Int, _ file: QueueFile) throws(QueueError) {
        guard let id = row.batch else { return }
        guard row.isFormed, let found = try file.lookUp(id) else { return leaveBatch([row], lane) }
        leaveBatch(found.rows, lane)
        let destination = figures.lanes[lane].destination
        let priority = figures.lanes[lane].priority
        for var member in found.rows where member.chunk != row.chunk || member.first != row.first {
            try file.deleteDelivery(
                destination: destination, priority: priority, chunk: member.chunk, first: member.first)
            member.batch = nil
            member.isFormed = false
            try file.insert(member, destination: destination, priority: priority)
            figures.lanes[lane].cursor = min(figures.lanes[lane].cursor, member.chunk)
        }
    }
}

extension QueueFile {
    /// The rows of a chunk in a lane.
    func rows(of chunk: Int64, _ lane: Lane) throws(QueueError) -> [DeliveryRow] {
        var rows: [DeliveryRow] = []
        try walk(destination: lane.destination, priority: lane.priority, from: chunk) { row in
            guard row.chunk == chunk else { return false }
            rows.append(row)
            return true
        }
        return rows
    }
}
