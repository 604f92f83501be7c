internal import Logs
public import Model

extension QueueStore {
    /// Whether a commit would have to wait, according to the published snapshot.
    public nonisolated var storesNothing: Bool {
        if case .nothing = snapshot.accepting {
            true
        } else {
            false
        }
    }

    /// Whether a file must stay in the spool, because the quarantine could not hold all of its bad
    /// lines.
    public nonisolated func mustStay(_ file: [UInt8]) -> Bool {
        let unkept = snapshot.unkept
        return !unkept.isEmpty && unkept[Hexadecimal.text(file)] != nil
    }

    /// The bad lines of a file that could not be kept, with the names of their rows.
    public func unkept(of file: String) throws(QueueError) -> [(name: String, lines: UnkeptLines)] {
        try reading { queue throws(QueueError) in try UnkeptTable(queue).lines(of: file) }
    }

    /// Makes a commit durable, all or nothing: its events, counts, checkpoints and memory (exact
    /// hand-over).
    ///
    /// All calls that wait when a transaction begins share it. If there is no room, nothing of the
    /// commit is stored and its caller keeps it; the observer tells when less than 90 % of the cap is
    /// used and the commit would fit.
    ///
    /// What can never fit goes to the quarantine: chunks larger than the cap and, if nothing is
    /// evicted, the part of a commit that exceeds the cap.
    public func store(_ commit: Commit) async throws(QueueError) -> StoreResult {
        guard commit.chunks.allSatisfy({ $0.events > 0 && !$0.destinations.isEmpty }) else {
            throw QueueError(.misuse, "a chunk needs an event and a destination")
        }
        if file == nil, !isClosed { return .wait(.notWritable) }
        do {
            let staying = state.figures.unkept.count
            let result = try await write(
                bytes: commit.cost(quarantine: state.options.quarantineMaxSize), places: commit.placesCost,
                bringsEvents: !commit.chunks.isEmpty, wait: { .wait($0) }
            ) { transaction throws(QueueError) in
                try transaction.insert(commit)
            }
            if case .stored = result {
                health.commits += 1
                if state.figures.unkept.count > staying {
                    log.warning(
                        "the quarantine is full: files with bad lines stay in the spool",
                        ["files": state.figures.unkept.count, "hint": "`spoolship status` names what to do"])
                }
                if health.commitFailure != nil {
                    health.commitFailure = nil
                    publishSoon()
                }
            }
            return result
        } catch {
            if error.code != .closed {
                health.commitFailure = error
                publishSoon()
            }
            throw error
        }
    }
}

extension Transaction {
    /// Does a commit's part of a transaction. The order matters: whether the commit must wait is
    /// decided before anything is changed.
    fileprivate mutating func insert(_ commit: Commit) throws(QueueError) -> StoreResult {
        // Chunks that never fit are left out of `needs`: the commit would otherwise wait for room
        // forever.
        let (neverFit, needs) = neverFitting(commit)
        if let reason = try waitReason(needs) { return .wait(reason) }
        // Records above a temporary bound are purged first, so that the commit finds the room that was
        // given up for it.
        if !state.relief.isNone {
            try trimKept()
        }
        var refused = 0
        for (chunk, neverFits) in zip(commit.chunks, neverFit) {
            guard neverFits else {
                refused += try admit(chunk)
                continue
            }
            try refuse(chunk, .neverFits, "does not fit queue.max_size")
            refused += chunk.events
        }
        state.stored(commit.chunks.reduce(0) { $0 + $1.bytes })
        for entry in commit.notStored { try count(entry) }
        try set(commit.progress)
        let requeued = try removeRequeued(commit.requeued)
        // Rows of lines that were read again are removed before `keep` adds rows for those that could
        // not be kept.
        try set(commit.memory)
        if commit.memory.keys.contains(where: { $0.hasPrefix(UnkeptLines.prefix) }) {
            state.figures.unkept = try UnkeptTable(file).filesToStay()
        }
        try storeQuarantined(commit.quarantined)
        let quarantined = commit.quarantined.count { $0.reason != .refused }
        // Counters must not fall. A line that leaves the quarantine is read a second time; if it goes
        // back, it was counted there before.
        let back = min(quarantined, requeued)
        state.figures.totals.intake.read += commit.read - back
        state.figures.totals.intake.refused += commit.refused
        state.figures.totals.intake.quarantined += quarantined - back
        return .stored(refused: refused)
    }

    /// Stores a chunk and a delivery for each of its destinations.
    ///
    /// - Parameter others: destinations that got the events with another chunk, as `DeadLetter.others`.
    mutating func insert(_ chunk: NewChunk, others: String = "") throws(QueueError) {
        state.figures.totals.lastChunk += 1
        let id = Int64(state.figures.totals.lastChunk)
        var lanes: [Int] = []
        for name in chunk.destinations { lanes.append(try laneIndex(name, chunk.priority)) }
        let wanted = lanes.map { "\(state.figures.lanes[$0].destination)" }.joined(separator: ",")
        try tables.insert(chunk, id: id, wantedBy: wanted + others)
        state.figures.totals.stored += chunk.cost
        state.figures.totals.intake.accepted += chunk.events
        state.figures.holdings?.add(
            Holding(
                chunk: id, priority: chunk.priority, cost: chunk.cost, holders: ChunkHolders(chunk.origins)))
        for lane in lanes {
            // A full chunk gets its batch id now, in the transaction that stores it anyway. Recording
            // the id at the lease would cost another write, which the request would wait for
            // (DESIGN.md).
            let isBatch = chunk.isFull && !chunk.otherBatches.contains(state.figures.lanes[lane].name)
            let row = DeliveryRow(
                chunk: id, first: 0, events: chunk.events, bytes: chunk.bytes,
                firstTime: chunk.eventTimes.lowerBound, acceptedAt: chunk.acceptedAt,
                batch: isBatch ? drawID() : nil, isFormed: false, deadlines: chunk.deadlines)
            try tables.insert(row, in: state.figures.lanes[lane].key)
            state.figures.lanes[lane].add(
                events: chunk.events, bytes: chunk.bytes, acceptedAt: chunk.acceptedAt,
                firstTime: chunk.eventTimes.lowerBound, deadlines: chunk.deadlines)
            state.figures.lanes[lane].ledger.accepted += chunk.events
        }
    }

    /// Index of a lane. A destination that the database does not know yet gets its row.
    mutating func laneIndex(_ name: DestinationName, _ priority: Priority) throws(QueueError) -> Int {
        if let known = state.figures.lane(name, priority) { return known }
        try state.figures.add(name, to: tables)
        return state.figures.lanes.count - Priority.allCases.count + Int(priority.rawValue) - 1
    }

    /// Counts events that were accepted and immediately expired or discarded.
    private mutating func count(_ entry: NotStored) throws(QueueError) {
        if !entry.isStoredForOthers {
            state.figures.totals.intake.accepted += entry.events
        }
        for name in entry.destinations {
            let lane = try laneIndex(name, entry.priority)
            state.figures.lanes[lane].ledger.accepted += entry.events
            state.figures.lanes[lane].isDirty = true
            switch entry.fate {
            case .expired: state.figures.lanes[lane].ledger.expired += entry.events
            case .discarded(let reason):
                state.figures.lanes[lane].ledger.discarded += entry.events
                state.figures.countDiscarded(entry.events, of: state.figures.lanes[lane].key, reason: reason)
            }
        }
        if entry.destinations.isEmpty {
            let reason = if case .discarded(let reason) = entry.fate { reason } else { "expired" }
            let nobody = LaneKey(destination: 0, priority: entry.priority)
            state.figures.countDiscarded(entry.events, of: nobody, reason: reason)
        }
    }

    /// Stores checkpoints and done records, and removes those of files that are gone.
    private mutating func set(_ progress: SpoolProgress) throws(QueueError) {
        for checkpoint in progress.checkpoints {
            try tables.run(
                "REPLACE INTO checkpoint (key, path, offset, state) VALUES (?, ?, ?, ?)", checkpoint.key,
                checkpoint.shownPath, checkpoint.offset, checkpoint.state)
        }
        for key in progress.forgotten { try tables.run("DELETE FROM checkpoint WHERE key = ?", key) }
        for record in progress.done {
            try tables.run(
                "INSERT OR IGNORE INTO done_record (claim, handle) VALUES (?, ?)", record.claim, record.handle
            )
        }
        for record in progress.unlinked {
            try tables.run(
                "DELETE FROM done_record WHERE claim = ? AND handle = ?", record.claim, record.handle)
        }
        // A file that is gone has no bad lines to wait for. A done file only loses its checkpoint: it
        // still exists.
        guard !state.figures.unkept.isEmpty else { return }
        let done = Set(progress.done.map(\.handle))
        for file in progress.unlinked.map(\.handle) + progress.forgotten where !done.contains(file) {
            let name = Hexadecimal.text(file)
            guard state.figures.unkept.removeValue(forKey: name) != nil else { continue }
            for row in try UnkeptTable(self.file).lines(of: name) {
                try tables.run("DELETE FROM memory WHERE name = ?", row.name)
            }
        }
    }

    /// Stores or removes entries of the memory. Old values are overwritten on disk, because they may
    /// contain personal data (sessions, data layers).
    mutating func set(_ memory: [String: [UInt8]?]) throws(QueueError) {
        guard !memory.isEmpty else { return }
        try tables.overwrites(true)
        for (name, value) in memory {
            if let value {
                try tables.run("REPLACE INTO memory (name, value) VALUES (?, ?)", name, value)
            } else {
                try tables.run("DELETE FROM memory WHERE name = ?", name)
            }
        }
        try tables.overwrites(false)
    }
}
