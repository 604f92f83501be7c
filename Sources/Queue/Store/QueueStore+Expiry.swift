internal import EventLoops
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
        var expired = 0
        for lane in state.figures.lanes.indices where state.figures.lanes[lane].ledger.queued > 0 {
            for row in try oldestExpired(lane, atMost: limit) {
                // A batch goes whole, once; its other rows may be in the list too.
                let rows = try file.members(with: row)
                guard try isExpired(rows, lane) else { continue }
                try takeOut(rows, lane, \.expired)
                expired += rows.reduce(0) { $0 + $1.events }
            }
        }
        return expired
    }

    /// The rows at the head of a lane whose chunks are too old and that nobody has in flight.
    private mutating func oldestExpired(_ lane: Int, atMost limit: Int) throws(QueueError) -> [DeliveryRow] {
        var expired: [DeliveryRow] = []
        var looks = 16 * limit
        try file.walk(state.figures.lanes[lane].key, from: 0) { row throws(QueueError) in
            if state.isInFlight(row) { return true }
            // The least event time says that the chunk need not be looked at.
            guard state.isExpired(row.firstTime, in: lane) else { return false }
            // Between them may be old files' chunks, which never are.
            if try isExpired([row], lane) { expired.append(row) }
            looks -= 1
            return expired.count < limit && looks > 0
        }
        return expired
    }

    private func isExpired(_ rows: [DeliveryRow], _ lane: Int) throws(QueueError) -> Bool {
        for row in rows {
            guard let facts = try file.chunkFacts(row.chunk), state.isExpired(facts.lastTime, in: lane) else {
                return false
            }
        }
        return !rows.isEmpty
    }

    /// Takes those events out of a row that have expired. What is left of a batch that was attempted goes under another id.
    mutating func sift(_ row: DeliveryRow, _ lane: Int) throws(QueueError) {
        guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil,
            let young = state.youngRuns(of: row, chunk, lane)
        else { return try lose(chunk: row.chunk) }
        let key = state.figures.lanes[lane].key
        try tables.delete(row, from: key)
        let expired = young.reduce((row.events, row.bytes)) { ($0.0 - $1.events, $0.1 - $1.bytes) }
        for var run in young {
            if expired.0 > 0 { run.batch = nil }
            try tables.insert(run, in: key)
        }
        state.figures.lanes[lane].remove(\.expired, events: expired.0, bytes: expired.1)
        state.figures.lanes[lane].oldestIsStale = true
        state.figures.lanes[lane].cursor = min(state.figures.lanes[lane].cursor, row.chunk)
        try dismiss(chunk: row.chunk)
    }
}

extension QueueState {
    /// Whether nothing of a batch is too old to be sent.
    func isFit(_ batch: LoadedBatch, _ file: QueueFile) throws(QueueError) -> Bool {
        let lane = batch.held.lane
        if isExpired(batch.newest, in: lane) { return false }
        for row in batch.held.rows where isToBeSifted(row, in: lane) {
            // The least time of a row that was cut is that of its chunk.
            guard let chunk = try file.readChunk(row.chunk), let young = youngRuns(of: row, chunk, lane),
                young.first?.events == row.events
            else { return false }
        }
        return true
    }

    /// What has not expired of a row, run by run; nil if the frame is damaged.
    fileprivate func youngRuns(of row: DeliveryRow, _ chunk: StoredChunk, _ lane: Int) -> [DeliveryRow]? {
        var row = row
        if chunk.lastTime.nanoseconds == .max {
            // Of an old file: it need not be looked at again for as long.
            row.firstTime = environment.time.wallTime
            return [row]
        }
        guard let lines = environment.unpacker.lines(of: chunk) else { return nil }
        var runs: [DeliveryRow] = []
        for event in row.first..<row.first + row.events {
            // What does not say when it happened is as new as the newest.
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
