internal import EventLoops
internal import Model

extension QueueStore {
    /// Removes expired events from the head of each lane.
    ///
    /// A batch is checked when it is leased; this call is for events that wait for a destination that
    /// is down. A chunk is removed when its newest event has expired.
    /// - Returns: number of expired deliveries.
    @discardableResult
    public func expire() async throws(QueueError) -> Int {
        var total = 0
        // Small transactions, so that other calls get their turn in between.
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
    /// Removes expired rows from the head of each lane, at most `limit` for each.
    @discardableResult
    mutating func expireOldest(atMost limit: Int) throws(QueueError) -> Int {
        var expired = 0
        for lane in state.figures.lanes.indices where state.figures.lanes[lane].ledger.queued > 0 {
            for row in try oldestExpired(lane, atMost: limit) {
                // A batch is removed as a whole; the list may contain more of its rows, which are then
                // gone already.
                let rows = try file.members(with: row)
                guard try isExpired(rows, lane) else { continue }
                try takeOut(rows, lane, \.expired)
                expired += rows.reduce(0) { $0 + $1.events }
            }
        }
        return expired
    }

    /// Rows at the head of a lane whose chunks have expired and that are not in flight. Gives up after
    /// sixteen times `limit` rows, so that a transaction stays short.
    private mutating func oldestExpired(_ lane: Int, atMost limit: Int) throws(QueueError) -> [DeliveryRow] {
        var expired: [DeliveryRow] = []
        var looks = 16 * limit
        try file.walk(state.figures.lanes[lane].key, from: 0) { row throws(QueueError) in
            if state.isInFlight(row) { return true }
            // If the least event time has not expired, the chunk has not, and need not be read.
            guard state.isExpired(row.firstTime, in: lane) else { return false }
            // Chunks of old files, which never expire, may be between expired ones.
            if try isExpired([row], lane) {
                expired.append(row)
            }
            looks -= 1
            return expired.count < limit && looks > 0
        }
        return expired
    }

    /// Whether the chunks of all these rows have expired.
    private func isExpired(_ rows: [DeliveryRow], _ lane: Int) throws(QueueError) -> Bool {
        for row in rows {
            guard let facts = try file.chunkFacts(row.chunk), state.isExpired(facts.lastTime, in: lane) else {
                return false
            }
        }
        return !rows.isEmpty
    }

    /// Removes the expired events of a row. If a batch loses events, the others go under another id.
    mutating func sift(_ row: DeliveryRow, _ lane: Int) throws(QueueError) {
        guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil,
            let young = state.youngRuns(of: row, chunk, lane)
        else { return try lose(chunk: row.chunk) }
        let key = state.figures.lanes[lane].key
        try tables.delete(row, from: key)
        let expired = young.reduce((row.events, row.bytes)) { ($0.0 - $1.events, $0.1 - $1.bytes) }
        for var run in young {
            if expired.0 > 0 {
                run.batch = nil
            }
            try tables.insert(run, in: key)
        }
        state.figures.lanes[lane].remove(\.expired, events: expired.0, bytes: expired.1)
        state.figures.lanes[lane].ages.markStale()
        state.figures.lanes[lane].cursor = min(state.figures.lanes[lane].cursor, row.chunk)
        try dismiss(chunk: row.chunk)
    }
}

extension QueueState {
    /// Whether no event of a batch has expired.
    func isFit(_ batch: LoadedBatch, _ file: QueueFile) throws(QueueError) -> Bool {
        let lane = batch.held.lane
        if isExpired(batch.newest, in: lane) { return false }
        for row in batch.held.rows where isToBeSifted(row, in: lane) {
            // A row that was split has its chunk's least time, so its own events must be examined.
            guard let chunk = try file.readChunk(row.chunk), let young = youngRuns(of: row, chunk, lane),
                young.first?.events == row.events
            else { return false }
        }
        return true
    }

    /// The events of a row that have not expired, as runs of neighbours; nil if the frame is damaged.
    fileprivate func youngRuns(of row: DeliveryRow, _ chunk: StoredChunk, _ lane: Int) -> [DeliveryRow]? {
        var row = row
        if chunk.lastTime.nanoseconds == .max {
            // The chunk of an old file never expires. The present time keeps it from being examined
            // again for as long as an event may wait.
            row.firstTime = environment.time.wallTime
            return [row]
        }
        guard let lines = environment.unpacker.lines(of: chunk) else { return nil }
        var runs: [DeliveryRow] = []
        for event in row.first..<row.first + row.events {
            // An event whose line does not say when it happened counts as new as the chunk's newest
            // event.
            let line = Array(lines.slice(event..<event + 1))
            let time = environment.eventTime?(line, row.acceptedAt) ?? chunk.lastTime
            guard !isExpired(time, in: lane) else { continue }
            if let last = runs.last, last.first + last.events == event {
                runs[runs.count - 1].events += 1
                runs[runs.count - 1].bytes += line.count
                runs[runs.count - 1].firstTime = min(last.firstTime, time)
            } else {
                var run = row
                (run.first, run.events, run.bytes, run.firstTime) = (event, 1, line.count, time)
                runs.append(run)
            }
        }
        return runs
    }
}
