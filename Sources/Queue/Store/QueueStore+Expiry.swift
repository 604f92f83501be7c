internal import Model

extension QueueStore {
    /// Takes out what is too old to be sent, from the oldest on, as far as all is too old.
    ///
    /// What is sent is looked at by itself before it is sent; this is for what waits for a destination that is down.
    /// A chunk goes when its newest event is too old.
    /// - Returns: how many deliveries expired.
    @discardableResult
    public func expire() async throws(QueueError) -> Int {
        var total = 0
        while true {
            let expired = try await write { transaction throws(QueueError) in
                try transaction.expireOldest(atMost: 1_000)
            }
            total += expired
            if expired == 0 { return total }
        }
    }
}

extension Transaction {
    /// Takes out the oldest rows of each lane while they are too old.
    @discardableResult
    mutating func expireOldest(atMost limit: Int) throws(QueueError) -> Int {
        guard state.surroundings.isClockTrusted() else { return 0 }
        var expired = 0
        for lane in state.figures.lanes.indices where state.figures.lanes[lane].ledger.queued > 0 {
            for row in try oldestExpired(lane, atMost: limit) {
                var rows = [row]
                if row.isFormed, let id = row.batch {
                    // A batch goes whole, once; its other rows may be in the list as well.
                    guard let batch = try file.lookUp(id), try isExpired(batch.rows, lane) else { continue }
                    rows = batch.rows
                }
                try takeOut(rows, lane, \.expired)
                expired += rows.reduce(0) { $0 + $1.events }
            }
        }
        return expired
    }

    /// The rows at the head of a lane whose chunks are too old and that nobody has in flight.
    private mutating func oldestExpired(_ lane: Int, atMost limit: Int) throws(QueueError) -> [DeliveryRow] {
        var head: [DeliveryRow] = []
        let start = state.figures.lanes[lane]
        try file.walk(destination: start.destination, priority: start.priority, from: 0) { row in
            if state.isInFlight(row) { return true }
            // The least event time says that the chunk need not be looked at.
            guard state.isExpired(row.firstTime, in: lane) else { return false }
            head.append(row)
            return head.count < limit
        }
        var expired: [DeliveryRow] = []
        for row in head {
            guard let facts = try file.chunkFacts(row.chunk), state.isExpired(facts.lastTime, in: lane) else { break }
            expired.append(row)
        }
        return expired
    }

    private func isExpired(_ rows: [DeliveryRow], _ lane: Int) throws(QueueError) -> Bool {
        for row in rows {
            guard let facts = try file.chunkFacts(row.chunk), state.isExpired(facts.lastTime, in: lane) else {
                return false
            }
        }
        return true
    }

    // MARK: Chunks of which only some events are too old

    /// Takes those events out of a row that have expired. The row is in no batch that
    /// was ever attempted: such a one goes whole or stays whole (invariant 2).
    mutating func sift(_ row: DeliveryRow, _ lane: Int) throws(QueueError) {
        guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil, let lines = unpacker.lines(of: chunk)
        else { return try lose(chunk: row.chunk) }
        guard !state.isExpired(chunk.lastTime, in: lane) else { return try takeOut([row], lane, \.expired) }
        let destination = state.figures.lanes[lane].destination
        let priority = state.figures.lanes[lane].priority
        try tables.deleteDelivery(destination: destination, priority: priority, chunk: row.chunk, first: row.first)
        state.figures.lanes[lane].oldestIsStale = true
        state.figures.lanes[lane].cursor = min(state.figures.lanes[lane].cursor, row.chunk)
        var run = row
        run.batch = nil
        run.events = 0
        for event in row.first..<row.first + row.events {
            // What does not say when it happened is as new as the newest.
            let time =
                state.surroundings.eventTime?(Array(lines.slice(event..<event + 1)), row.acceptedAt) ?? chunk.lastTime
            if state.isExpired(time, in: lane) {
                state.figures.lanes[lane].remove(\.expired, events: 1, bytes: lines.size(event..<event + 1))
                try keep(run, lines, lane)
                run.events = 0
            } else {
                if run.events == 0 {
                    run.first = event
                    run.firstTime = time
                }
                run.events += 1
                run.firstTime = min(run.firstTime, time)
            }
        }
        try keep(run, lines, lane)
        try dismiss(chunk: row.chunk)
    }

    private mutating func keep(_ run: DeliveryRow, _ lines: Lines, _ lane: Int) throws(QueueError) {
        guard run.events > 0 else { return }
        var kept = run
        kept.bytes = lines.size(run.first..<run.first + run.events)
        try tables.insert(
            kept, destination: state.figures.lanes[lane].destination, priority: state.figures.lanes[lane].priority)
    }
}
