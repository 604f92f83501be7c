internal import EventLoops
public import Model

extension QueueStore {
    /// Leases a lane's next batches: free batches that are not in `request.except`, then batches formed from
    /// waiting events. Full chunks are leased as they are stored. Once something has to be written, one
    /// transaction forms all remaining batches.
    ///
    /// The answer's `failure` is `misuse` for limits below one, `closed`, or why a write failed.
    public func leaseNext(_ request: LeaseRequest, count: Int) async -> LeasedBatches {
        var leased = LeasedBatches()
        do throws(QueueError) {
            guard request.maxEvents >= 1, request.maxBytes >= 1 else {
                throw QueueError(.misuse, "a batch must be allowed at least one event and one byte")
            }
            do throws(QueueError) {
                try await findNext(request, count, &leased)
            } catch {
                guard error.code == .corrupt else { throw error }
                failed(error, [])
                try await findNext(request, count, &leased)
            }
        } catch {
            leased.failure = error
        }
        return leased
    }

    /// Collects up to `count` batches, and the lane as it is then; what was found before an error stays in
    /// `found`.
    private func findNext(_ request: LeaseRequest, _ count: Int, _ found: inout LeasedBatches)
        async throws(QueueError)
    {
        found.lane = nil
        _ = try opened()
        guard let first = state.figures.lane(request.destination, request.priority) else { return }
        guard state.figures.lanes[first].ledger.queued > 0, !isLeasingStopped else {
            found.lane = summary(of: first)
            return
        }
        while found.batches.count < count, let free = try nextFree(request) {
            // A batch that turns out to be expired or damaged is no longer free, so the loop ends.
            if let batch = try await find(free, for: request.destination) {
                found.batches.append(batch)
            }
        }
        // While a free batch was looked at, a damaged database may have been replaced: its lanes have other
        // places now.
        let file = try opened()
        guard let lane = state.figures.lane(request.destination, request.priority) else { return }
        try file.database.begin()
        // A waiting transaction is about to form a batch of this lane, and what comes next is known
        // only after it. Several requests would otherwise each examine the rows that it will join, and
        // up to 256 rows behind them, for nothing.
        var needsWrite = waiting.contains { $0.formsIn == lane }
        var isOver = false
        while found.batches.count < count, !needsWrite, !isOver {
            switch try state.leaseWhole(in: lane, request, of: file) {
            case .nothing: isOver = true
            case .leased(let batch):
                publishSoon()
                found.batches.append(batch)
            case .needsWrite: needsWrite = true
            }
        }
        let left = count - found.batches.count
        guard left > 0, !isOver else {
            found.lane = summary(of: lane)
            return
        }
        let formed = try await write(formsIn: lane) { transaction throws(QueueError) in
            var made = LeasedBatches()
            guard let lane = transaction.state.figures.lane(request.destination, request.priority) else {
                return made
            }
            while made.batches.count < left, let batch = try transaction.form(request, lane) {
                made.batches.append(batch)
            }
            // Not after the transaction: an empty answer would then seem to know of events that its later
            // calls store. The published summary follows with the times of the oldest events.
            made.lane = transaction.state.figures.lanes[lane].summary
            return made
        }
        found.batches += formed.batches
        found.lane = formed.lane
    }

    /// The summary of a lane now, with the times of its oldest events.
    private func summary(of lane: Int) -> LaneSummary {
        refreshOldest()
        return state.figures.lanes[lane].summary
    }

    /// The oldest free batch that a request allows; nil if no batch is.
    private func nextFree(_ request: LeaseRequest) throws(QueueError) -> BatchID? {
        guard request.free != .none, let lane = state.figures.lane(request.destination, request.priority),
            state.figures.lanes[lane].batches.free > 0
        else { return nil }
        let file = try opened()
        try file.database.begin()
        return try LaneSearch(state, lane, file).nextFree(request)
    }

    /// Leases a known batch again, with the lane as it is then. No batch if it is gone (purged, moved,
    /// disabled, evicted, expired, lost) or in flight already.
    public func leaseAgain(_ id: BatchID, for destination: DestinationName) async -> LeasedBatches {
        var leased = LeasedBatches()
        do throws(QueueError) {
            guard let batch = try await lease(id, for: destination) else { return leased }
            leased.batches.append(batch)
            leased.lane = state.figures.lane(destination, batch.header.priority).map(summary)
        } catch {
            leased.failure = error
        }
        return leased
    }

    /// Leases a known batch again, by its id; nil if it is gone or in flight already.
    func lease(_ id: BatchID, for destination: DestinationName) async throws(QueueError) -> Batch? {
        do {
            return try await find(id, for: destination)
        } catch {
            guard error.code == .corrupt else { throw error }
            failed(error, [])
            return try await find(id, for: destination)
        }
    }

    /// Leases a batch by its id, from memory if this process knows it.
    private func find(_ id: BatchID, for destination: DestinationName) async throws(QueueError) -> Batch? {
        let file = try opened()
        guard !isLeasingStopped else { return nil }
        guard let known = state.held[id] else {
            return try await write { transaction throws(QueueError) in
                try transaction.takeUp(id, for: destination)
            }
        }
        guard known.status == .free, known.header.destination == destination else { return nil }
        try file.database.begin()
        guard let loaded = try state.load(known.rows, id, known.lane, of: file),
            try Sifter(state, known.lane, file).isFit(loaded)
        else {
            return try await write { transaction throws(QueueError) in
                // Another call may have leased the batch before this transaction.
                guard transaction.state.held[id]?.status == .free else { return nil }
                try transaction.removeUnfit(known.rows, id, known.lane)
                return nil
            }
        }
        state.hold(loaded, isNew: false)
        publishSoon()
        return loaded.batch
    }

    /// The app of each event of a batch in flight, in order; the empty name if unknown.
    ///
    /// - Returns: an empty list if the apps cannot be read or the batch is gone.
    public func apps(of id: BatchID) -> [String] {
        do throws(QueueError) {
            return try reading { file throws(QueueError) in
                var apps: [String] = []
                for row in state.held[id]?.rows ?? [] { apps += try HolderTable(file).holders(of: row) }
                return apps
            }
        } catch {
            health.count(error)
            return []
        }
    }

    /// Gives a lease back: the batch can be leased again by its id. Leases are only in memory, so a
    /// restart releases all of them.
    public func release(_ id: BatchID) {
        guard let batch = state.held[id], batch.status == .leased else { return }
        state.held[id]?.status = .free
        state.figures.lanes[batch.lane].batches.free += 1
        publish()
    }

    /// Whether a reader outside has made the WAL so long that no transaction may add to it.
    private var isLeasingStopped: Bool {
        guard let file else { return true }
        return file.walBytes > state.bounds.leaseBelow
    }
}

extension QueueState {
    /// What a lane offers without a write.
    enum Lease {
        case nothing
        /// A full chunk, which is a batch as it is stored.
        case leased(Batch)
        /// The next events must be joined, split, recorded or removed first.
        case needsWrite
    }

    /// Finds what to lease next from a lane, and moves the lane's cursor past rows in known batches.
    mutating func next(in lane: Int, _ request: LeaseRequest, of file: QueueFile) throws(QueueError)
        -> LaneSearch.Candidate
    {
        var search = LaneSearch(self, lane, file)
        defer { figures.lanes[lane].cursor = search.cursor }
        return try search.next(request)
    }

    /// Leases a lane's next batch, if it is a full chunk for which nothing has to be written.
    ///
    /// A single mutating call: a caller outside that changed the state part by part would copy the
    /// whole state each time.
    mutating func leaseWhole(in lane: Int, _ request: LeaseRequest, of file: QueueFile) throws(QueueError)
        -> Lease
    {
        switch try next(in: lane, request, of: file) {
        case .nothing:
            return .nothing
        case .whole(let row, let id):
            guard figures.lanes[lane].allows(row), let loaded = try load([row], id, lane, of: file),
                !isExpired(loaded.newest, in: lane)
            else { return .needsWrite }
            hold(loaded, isNew: true)
            return .leased(loaded.batch)
        case .join, .sift:
            return .needsWrite
        }
    }

    /// Reads the frames of a batch; nil if one of them is damaged.
    func load(
        _ rows: [DeliveryRow], _ id: BatchID, _ lane: Int, of file: QueueFile
    ) throws(QueueError) -> LoadedBatch? {
        guard !rows.isEmpty else { return nil }
        var parts: [Batch.Part] = []
        var newest = Timestamp(nanoseconds: .min)
        var sole: Int?
        for row in rows {
            guard let chunk = try file.readChunk(row.chunk), let part = chunk.part(row) else { return nil }
            parts.append(part)
            newest = max(newest, chunk.lastTime)
            if rows.count == 1, part.isWhole, chunk.destinations == 1 {
                sole = chunk.cost
            }
        }
        let header = header(id, rows, lane)
        let held = HeldBatch(header: header, lane: lane, rows: rows, soleCost: sole, status: .leased)
        let mayHaveBeenSent = mayHaveBeenSent(rows[0], in: figures.lanes[lane])
        var batch = Batch(header: header, parts: parts, mayHaveBeenSent: mayHaveBeenSent)
        batch.isClockTrusted = environment.isClockTrusted()
        return LoadedBatch(batch: batch, held: held, newest: newest)
    }

    /// The header of a batch with these rows.
    func header(_ id: BatchID, _ rows: [DeliveryRow], _ lane: Int) -> BatchHeader {
        let never = Timestamp(nanoseconds: .max)
        return BatchHeader(
            id: id, destination: figures.lanes[lane].name, priority: figures.lanes[lane].priority,
            events: rows.reduce(0) { $0 + $1.events }, bytes: rows.reduce(0) { $0 + $1.bytes },
            acceptedAt: rows.reduce(never) { min($0, $1.acceptedAt) },
            firstEventTime: rows.reduce(never) { min($0, $1.firstTime) })
    }

    /// Makes a lease take effect. The events of a new batch stop waiting; a free batch was counted
    /// before.
    mutating func hold(_ loaded: LoadedBatch, isNew: Bool) {
        let header = loaded.held.header
        let lane = loaded.held.lane
        assert(held[header.id] == nil || held[header.id]?.status == .free, "a batch is leased twice")
        assert(header.events == loaded.held.rows.reduce(0) { $0 + $1.events }, "a batch lacks events")
        held[header.id] = loaded.held
        figures.lanes[lane].ages.markStale()
        if isNew {
            figures.lanes[lane].batches.events += header.events
            figures.lanes[lane].batches.bytes += header.bytes
        } else {
            assert(figures.lanes[lane].batches.free > 0, "a free batch is leased that was not counted")
            figures.lanes[lane].batches.free -= 1
        }
    }
}
