internal import EventLoops
public import Model

extension QueueStore {
    /// Leases a lane's next batches: its oldest free ones that are not in `request.except`, then those formed from what waits. Full
    /// chunks go as they are stored; once something has to be written, one transaction makes all that are left.
    ///
    /// It fails with code `misuse` for limits below one, `closed`, or why a write failed.
    public func leaseNext(_ request: LeaseRequest, count: Int) async -> LeasedBatches {
        var leased = LeasedBatches()
        do throws(QueueError) {
            guard request.maxEvents >= 1, request.maxBytes >= 1 else {
                throw QueueError(.misuse, "a batch must be allowed at least one event and one byte")
            }
            do throws(QueueError) {
                try await findNext(request, count, &leased.batches)
            } catch {
                guard error.code == .corrupt else { throw error }
                failed(error, [])
                try await findNext(request, count, &leased.batches)
            }
        } catch {
            leased.failure = error
        }
        return leased
    }

    private func findNext(_ request: LeaseRequest, _ count: Int, _ found: inout [Batch]) async throws(QueueError) {
        let file = try opened()
        guard let lane = state.figures.lane(request.destination, request.priority) else { return }
        guard state.figures.lanes[lane].ledger.queued > 0, !isLeasingStopped else { return }
        try file.database.begin()
        while found.count < count, request.free != .none, state.figures.lanes[lane].freeBatches > 0,
            let free = try state.nextFree(in: lane, request, of: file)
        {
            // One that is gone when it is looked at (expired, damaged) is free no more.
            if let batch = try await find(free, for: request.destination) { found.append(batch) }
        }
        // Where the next transaction forms a batch of this lane, what comes next is known after that. Several requests would
        // each look at what it is about to join, and at up to 256 rows behind it, for nothing.
        var needsWrite = waiting.contains { $0.formsIn == lane }
        while found.count < count, !needsWrite {
            switch try state.leaseWhole(in: lane, request, of: file) {
            case .nothing: return
            case .leased(let batch):
                publishSoon()
                found.append(batch)
            case .needsWrite: needsWrite = true
            }
        }
        let left = count - found.count
        guard left > 0 else { return }
        found += try await write(formsIn: lane) { transaction throws(QueueError) in
            var made: [Batch] = []
            while made.count < left, let batch = try transaction.form(request, lane) { made.append(batch) }
            return made
        }
    }

    /// Leases a batch again; nil when it is gone (purged, moved, disabled, evicted, expired, lost) or in flight already.
    public func lease(_ id: BatchID, for destination: DestinationName) async throws(QueueError) -> Batch? {
        do {
            return try await find(id, for: destination)
        } catch {
            guard error.code == .corrupt else { throw error }
            failed(error, [])
            return try await find(id, for: destination)
        }
    }

    private func find(_ id: BatchID, for destination: DestinationName) async throws(QueueError) -> Batch? {
        let file = try opened()
        guard !isLeasingStopped else { return nil }
        guard let known = state.held[id] else {
            return try await write { transaction throws(QueueError) in try transaction.takeUp(id, for: destination) }
        }
        guard known.status == .free, known.header.destination == destination else { return nil }
        try file.database.begin()
        guard let loaded = try state.load(known.rows, id, known.lane, of: file), try state.isFit(loaded, file) else {
            return try await write { transaction throws(QueueError) in
                // Another call may have been before it.
                guard transaction.state.held[id]?.status == .free else { return nil }
                try transaction.removeUnfit(known.rows, id, known.lane)
                return nil
            }
        }
        state.hold(loaded, isNew: false)
        publishSoon()
        return loaded.batch
    }

    /// Whose the events of a batch in flight are, in their order; the empty name where nobody knows.
    ///
    /// - Returns: none when that cannot be read, or the batch is gone.
    public func apps(of id: BatchID) -> [String] {
        do throws(QueueError) {
            return try reading { file throws(QueueError) in
                var apps: [String] = []
                for row in state.held[id]?.rows ?? [] { apps += try file.holders(of: row) }
                return apps
            }
        } catch {
            health.count(error)
            return []
        }
    }

    /// Gives a lease back: the batch stays as it is, free for another attempt by its id. Leases live in memory only.
    public func release(_ id: BatchID) {
        guard let batch = state.held[id], batch.status == .leased else { return }
        state.held[id]?.status = .free
        state.figures.lanes[batch.lane].freeBatches += 1
        publish()
    }

    /// Whether a reader outside has made the WAL so long that nothing may add to it.
    private var isLeasingStopped: Bool {
        guard let file else { return true }
        return file.walBytes > state.bounds.leaseBelow
    }
}

extension QueueState {
    /// What a lane gives without a write.
    enum Lease {
        case nothing
        /// A full chunk, which is a batch as it is stored.
        case leased(Batch)
        /// What comes next has to be joined, cut, noted or taken out first.
        case needsWrite
    }

    /// Leases what comes next in a lane, if that is a full chunk for which nothing has to be written.
    ///
    /// One call that may change the state: looked at from outside, part by part, the whole state would be copied each time.
    mutating func leaseWhole(in lane: Int, _ request: LeaseRequest, of file: QueueFile) throws(QueueError) -> Lease {
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

    /// Reads a batch's frames; nil if one of them is damaged.
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
            if rows.count == 1, part.isWhole, chunk.destinations == 1 { sole = chunk.cost }
        }
        let header = header(id, rows, lane)
        let held = HeldBatch(header: header, lane: lane, rows: rows, soleCost: sole, status: .leased)
        let mayHaveBeenSent = mayHaveBeenSent(rows[0], in: figures.lanes[lane])
        var batch = Batch(header: header, parts: parts, mayHaveBeenSent: mayHaveBeenSent)
        batch.isClockTrusted = environment.isClockTrusted()
        return LoadedBatch(batch: batch, held: held, newest: newest)
    }

    func header(_ id: BatchID, _ rows: [DeliveryRow], _ lane: Int) -> BatchHeader {
        let never = Timestamp(nanoseconds: .max)
        return BatchHeader(
            id: id, destination: figures.lanes[lane].name, priority: figures.lanes[lane].priority,
            events: rows.reduce(0) { $0 + $1.events }, bytes: rows.reduce(0) { $0 + $1.bytes },
            acceptedAt: rows.reduce(never) { min($0, $1.acceptedAt) },
            firstEventTime: rows.reduce(never) { min($0, $1.firstTime) })
    }

    /// Leases a batch: it is known from now on. A new one's events wait no more; one that is free was counted before.
    mutating func hold(_ loaded: LoadedBatch, isNew: Bool) {
        let (header, lane) = (loaded.held.header, loaded.held.lane)
        held[header.id] = loaded.held
        figures.lanes[lane].oldestIsStale = true
        figures.lanes[lane].handedOut += header.events
        if isNew {
            figures.lanes[lane].batchedEvents += header.events
            figures.lanes[lane].batchedBytes += header.bytes
        } else {
            figures.lanes[lane].freeBatches -= 1
        }
    }
}
