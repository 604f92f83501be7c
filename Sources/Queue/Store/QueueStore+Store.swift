internal import Logs
public import Model

extension QueueStore {
    /// Whether nothing would be stored now, by the published snapshot.
    public nonisolated var storesNothing: Bool {
        if case .nothing = snapshot.accepting { true } else { false }
    }

    /// Whether a file has to stay: the quarantine could not hold all of its bad lines.
    public nonisolated func mustStay(_ file: [UInt8]) -> Bool {
        let unkept = snapshot.unkept
        return !unkept.isEmpty && unkept[Hexadecimal.text(file)] != nil
    }

    /// The bad lines of a file that could not be kept, by the names of their rows.
    public func unkept(of file: String) throws(QueueError) -> [(name: String, lines: UnkeptLines)] {
        try reading { queue throws(QueueError) in try queue.unkept(of: file) }
    }

    /// Makes a commit durable, all or nothing (invariant 1).
    ///
    /// Commits, settlements and batches that wait when a transaction begins share it. When there is no room nothing of
    /// the commit is stored and it stays with the caller, who is told by the observer when there is: once less than
    /// 90 % of the cap is used, and the commit would fit.
    /// What could never fit goes to the quarantine: chunks larger than the cap, and where nothing is evicted the rest
    /// of a commit that is larger than the cap as a whole.
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
    fileprivate mutating func insert(_ commit: Commit) throws(QueueError) -> StoreResult {
        let (neverFit, needs) = neverFitting(commit)
        if let reason = try waitReason(needs) { return .wait(reason) }
        // Does first what was given up.
        if !state.relief.isNone { try trimKept() }
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
        // First what was read again goes, then comes what could not be kept of it.
        try set(commit.memory)
        if commit.memory.keys.contains(where: { $0.hasPrefix(UnkeptLines.prefix) }) {
            state.figures.unkept = try file.filesToStay()
        }
        try keep(commit.quarantined)
        let quarantined = commit.quarantined.count { $0.reason != .refused }
        // Counters never fall: a line that leaves the quarantine was read twice. One that goes back was counted there before.
        let back = min(quarantined, requeued)
        state.figures.totals.intake.read += commit.read - back
        state.figures.totals.intake.refused += commit.refused
        state.figures.totals.intake.quarantined += quarantined - back
        return .stored(refused: refused)
    }

    /// - Parameter others: who got its events otherwise, as `DeadLetter.others`.
    mutating func insert(_ chunk: NewChunk, others: String = "") throws(QueueError) {
        state.figures.totals.lastChunk += 1
        let id = Int64(state.figures.totals.lastChunk)
        var lanes: [Int] = []
        for name in chunk.destinations { lanes.append(try place(name, chunk.priority)) }
        let wanted = lanes.map { "\(state.figures.lanes[$0].destination)" }.joined(separator: ",")
        try tables.insert(chunk, id: id, wantedBy: wanted + others)
        state.figures.totals.stored += chunk.cost
        state.figures.totals.intake.accepted += chunk.events
        state.figures.holdings?.add(
            Holding(chunk: id, priority: chunk.priority, cost: chunk.cost, holders: ChunkHolders(chunk.origins)))
        for lane in lanes {
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

    /// The place of a lane; a destination that the database does not know yet gets its row.
    mutating func place(_ name: DestinationName, _ priority: Priority) throws(QueueError) -> Int {
        if let known = state.figures.lane(name, priority) { return known }
        try state.figures.add(name, to: tables)
        return state.figures.lanes.count - Priority.allCases.count + Int(priority.rawValue) - 1
    }

    /// Counts events that were accepted and at once expired or discarded.
    private mutating func count(_ entry: NotStored) throws(QueueError) {
        state.figures.totals.intake.accepted += entry.events
        for name in entry.destinations {
            let lane = try place(name, entry.priority)
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

    private mutating func set(_ progress: SpoolProgress) throws(QueueError) {
        for checkpoint in progress.checkpoints {
            try tables.run(
                "REPLACE INTO checkpoint (key, path, offset, state) VALUES (?, ?, ?, ?)", checkpoint.key,
                checkpoint.shownPath, checkpoint.offset, checkpoint.state)
        }
        for key in progress.forgotten { try tables.run("DELETE FROM checkpoint WHERE key = ?", key) }
        for record in progress.done {
            try tables.run(
                "INSERT OR IGNORE INTO done_record (claim, handle) VALUES (?, ?)", record.claim, record.handle)
        }
        for record in progress.unlinked {
            try tables.run("DELETE FROM done_record WHERE claim = ? AND handle = ?", record.claim, record.handle)
        }
        // A file that is gone has no bad lines any more; of one that is done only the place is forgotten.
        guard !state.figures.unkept.isEmpty else { return }
        let done = Set(progress.done.map(\.handle))
        for file in progress.unlinked.map(\.handle) + progress.forgotten where !done.contains(file) {
            let name = Hexadecimal.text(file)
            guard state.figures.unkept.removeValue(forKey: name) != nil else { continue }
            for row in try self.file.unkept(of: name) { try tables.run("DELETE FROM memory WHERE name = ?", row.name) }
        }
    }

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
