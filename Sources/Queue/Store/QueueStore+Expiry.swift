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
            if expired == 0 { break }
        }
        // Events of apps with an age of their own are anywhere in the lanes. So is what a command has
        // withheld and a commit has stored since.
        guard state.appRules != nil else { return total }
        return total + (try await siftWaiting().expired)
    }

    /// Takes out of all lanes what has expired by the age of its app, and what must not be sent.
    func siftWaiting() async throws(QueueError) -> SiftedEvents {
        var found = SiftedEvents()
        for lane in state.figures.lanes.map(\.key) {
            var from: Int64? = 0
            while let start = from {
                let part = try await write { transaction throws(QueueError) in
                    try transaction.siftPart(of: lane, from: start)
                }
                found.add(part.found)
                from = part.next
            }
        }
        return found
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
                try takeOut(rows, lane, .expired)
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
}

// Takes single events out of lanes: those that have expired, and those that must not be sent any more.
extension Transaction {
    /// Removes what must leave from a row that is in no known batch. If a batch loses events, the others go
    /// under another id.
    mutating func sift(_ row: DeliveryRow, _ lane: Int) throws(QueueError) {
        guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil,
            let sifted = try Sifter(state, lane, file).sifted(row, chunk)
        else { return try lose(chunk: row.chunk) }
        let key = state.figures.lanes[lane].key
        try tables.delete(row, from: key)
        for var run in sifted.left {
            if !sifted.gone.isEmpty {
                run.batch = nil
            }
            try tables.insert(run, in: key)
        }
        if !sifted.expired.isEmpty {
            let apps = try HolderTable(file).holders(of: row)
            state.figures.noteExpired(sifted.expired.map { apps[$0] })
        }
        for (cause, gone) in sifted.gone {
            switch cause {
            case .expired:
                state.figures.lanes[lane].remove(.expired, events: gone.events, bytes: gone.bytes)
            case .withheld(let reason): discard(gone.events, gone.bytes, lane, reason)
            }
        }
        state.figures.lanes[lane].ages.markStale()
        state.figures.lanes[lane].cursor = min(state.figures.lanes[lane].cursor, row.chunk)
        try dismiss(chunk: row.chunk)
        if sifted.withholds {
            try forgetText(ofChunk: row.chunk)
        }
    }

    /// Removes what must leave from all rows of a chunk in one lane. Batches that lose events are dissolved;
    /// those in flight stay.
    ///
    /// - Returns: whether some event left or will leave.
    @discardableResult
    mutating func siftWaiting(
        chunk: Int64, _ lane: Int, into found: inout SiftedEvents
    ) throws(QueueError) -> Bool {
        let key = state.figures.lanes[lane].key
        let before = state.figures.lanes[lane].ledger
        let inFlightBefore = found.inFlight
        var batches: Set<BatchID> = []
        for row in try file.rows(of: chunk, in: key) {
            let gone = try leaving(row, lane)
            guard gone > 0 else { continue }
            if state.isInFlight(row) {
                found.chunksInFlight.insert(chunk)
                found.inFlight += gone
            } else if let batch = row.batch, batches.insert(batch).inserted {
                try dissolveBatch(of: row, lane)
            }
        }
        // Read again each time, because a change of one row may change others of the chunk.
        while let row = try nextLeaving(chunk, lane) { try sift(row, lane) }
        let expired = state.figures.lanes[lane].ledger.expired - before.expired
        let withheld = state.figures.lanes[lane].ledger.discarded - before.discarded
        found.expired += expired
        found.withheld += withheld
        return expired + withheld + found.inFlight > inFlightBefore
    }

    /// The first row of a chunk in a lane from which events leave now, if any.
    private func nextLeaving(_ chunk: Int64, _ lane: Int) throws(QueueError) -> DeliveryRow? {
        for row in try file.rows(of: chunk, in: state.figures.lanes[lane].key) where !state.isInFlight(row) {
            if try leaving(row, lane) > 0 { return row }
        }
        return nil
    }

    /// Number of a row's events that leave; all of them if they are damaged.
    private func leaving(_ row: DeliveryRow, _ lane: Int) throws(QueueError) -> Int {
        let sifter = Sifter(state, lane, file)
        guard try sifter.isToBeSifted(row) else { return 0 }
        guard let chunk = try file.readChunk(row.chunk), let sifted = try sifter.sifted(row, chunk)
        else { return row.events }
        return sifted.gone.values.reduce(0) { $0 + $1.events }
    }

    /// Removes the text of withheld events from a chunk, as far as no destination waits for them. A chunk
    /// with a batch in flight keeps it: its frame is stored once for all destinations.
    ///
    /// - Returns: whether the chunk has such a batch.
    @discardableResult
    mutating func forgetText(ofChunk id: Int64) throws(QueueError) -> Bool {
        guard let rules = state.appRules, try file.chunkFacts(id) != nil, let chunk = try file.readChunk(id),
            let lines = unpacker.lines(of: chunk)
        else { return false }
        var isNeeded = Array(repeating: false, count: lines.count)
        let lanes = state.figures.lanes.map(\.key)
        for lane in lanes {
            for row in try file.rows(of: id, in: lane) {
                if state.isInFlight(row) { return true }
                for event in row.first..<row.first + row.events where event < lines.count {
                    isNeeded[event] = true
                }
            }
        }
        let holders = try HolderTable(file).holding(of: id)?.holders ?? ChunkHolders()
        let names = holders.names(of: 0..<lines.count)
        let staying = StayingLines(of: lines) { line, _ in isNeeded[line] || !rules.withholds(names[line]) }
        guard staying.count < lines.count else { return false }
        try tables.overwrites(true)
        for lane in lanes.indices {
            for row in try file.rows(of: id, in: lanes[lane]) {
                try staying.reduce(row, lane, "", in: &self)
            }
        }
        try staying.shrink(id, chunk, names, in: &self)
        try tables.overwrites(false)
        return false
    }

    /// Bytes of lines that one transaction examines, approximately: about as long as a commit takes.
    private static var mostExamined: Int { 4 << 20 }

    /// Examines a part of a lane.
    ///
    /// - Returns: what was taken out, and the chunk to continue with; nil at the end.
    fileprivate mutating func siftPart(
        of key: LaneKey, from start: Int64
    ) throws(QueueError) -> (found: SiftedEvents, next: Int64?) {
        var found = SiftedEvents()
        guard let lane = state.figures.lane(key), state.appRules != nil else { return (found, nil) }
        let (rows, next) = try file.part(of: key, from: start)
        var left = Transaction.mostExamined
        var last: Int64?
        for row in rows where row.chunk != last {
            guard left > 0 else { return (found, row.chunk) }
            last = row.chunk
            // What is unpacked and judged counts, whether or not something leaves.
            if try Sifter(state, lane, file).isToBeSifted(row) {
                left -= row.bytes
            }
            guard try siftWaiting(chunk: row.chunk, lane, into: &found) else { continue }
            if try forgetText(ofChunk: row.chunk) {
                found.chunksInFlight.insert(row.chunk)
            }
        }
        return (found, next)
    }

    /// Sets a switch, or removes it if `value` is nil.
    mutating func setSwitch(_ name: String, _ value: String?) throws(QueueError) {
        if let value {
            try tables.run("REPLACE INTO switch (name, value) VALUES (?, ?)", name, value)
        } else {
            try tables.run("DELETE FROM switch WHERE name = ?", name)
        }
    }
}
