internal import EventLoops
internal import Logs
internal import Model

/// What was evicted and refused since the cap was reached, for one log message at the end.
struct FullEpisode {
    var evicted = 0
    var refused = 0
    /// Whether only critical events are stored.
    var isFullOfCritical = false
}

// The storage cap: whether a commit is stored at once, waits, evicts other events, or is refused.
extension Transaction {
    /// Which chunks of a commit can never be stored, and how many bytes the others need.
    ///
    /// These are chunks larger than the whole queue and, if nothing is evicted, those that exceed the
    /// cap together with the chunks before them. Waiting for room would never end for them.
    func neverFitting(_ commit: Commit) -> (chunks: [Bool], needs: Int) {
        var needs = 0
        let chunks = commit.chunks.map { chunk in
            let cost = chunk.cost
            let fits = state.evicts || needs + cost <= state.options.maxSize
            guard fits, cost <= state.options.maxSize, !state.relief.dropsEvents else { return true }
            needs += cost
            return false
        }
        return (chunks, needs)
    }

    /// Why a commit that needs this many bytes must wait; nil if it can be stored.
    ///
    /// Before it waits for room, expired events are removed and destinations that are behind give up
    /// events.
    mutating func waitReason(_ needs: Int) throws(QueueError) -> WaitReason? {
        if let refusal = state.refusal, refusal.reason != .full { return refusal.reason }
        if file.walBytes > state.bounds.storeBelow {
            let reader = WALReader.find(file.database.path)
            state.refusal = QueueState.Refusal(reason: .walPinned)
            state.walReader = reader
            let bytes = file.walBytes
            note {
                $0.warning(
                    "storing waits for a reader of the database",
                    [
                        "wal_bytes": bytes, "reader": reader ?? "unknown",
                        "help": "stop the program that reads it",
                    ])
            }
            return .walPinned
        }
        guard state.options.whenFull == .wait, needs > 0 else { return nil }
        if let refusal = state.refusal { return refusal.reason }
        guard state.figures.totals.stored + needs > state.effectiveCap else { return nil }
        try expireOldest(atMost: 1_000)
        try giveWay(to: needs)
        guard state.figures.totals.stored + needs > state.effectiveCap, !state.evicts else { return nil }
        state.refusal = QueueState.Refusal(reason: .full, needs: needs, queued: state.figures.queued)
        let stored = state.figures.totals.stored
        let cap = state.options.maxSize
        note { $0.info("queue is full", ["stored_bytes": stored, "max_size": cap]) }
        return .full
    }

    /// Chunks that are examined for one commit; takes about 10 ms.
    private static let mostLookedAt = 1_000

    /// Lets destinations that are behind, and are set to skip or given up, lose their oldest events
    /// until `needs` bytes fit.
    ///
    /// A chunk is evicted only if every destination that still waits for it gives way. Lowest priority
    /// first, oldest first, nothing in flight.
    private mutating func giveWay(to needs: Int) throws(QueueError) {
        var looked = 0
        for priority in Priority.allCases {
            var from: Int64 = 0
            while state.figures.totals.stored + needs > state.effectiveCap, looked < Transaction.mostLookedAt
            {
                var lanes = state.figures.lanes.filter { $0.priority == priority }
                let others = lanes.partition { state.givesWay($0.name) }
                guard let chunk = try oldestChunk(of: lanes[others...], from: from) else { break }
                looked += 1
                from = chunk + 1
                if try isWanted(chunk, by: lanes[..<others]) { continue }
                if try !isInFlight(chunk, priority) {
                    try evict(chunk, priority)
                }
            }
        }
    }

    /// Whether one of these lanes still waits for a chunk.
    private func isWanted(_ chunk: Int64, by lanes: ArraySlice<Lane>) throws(QueueError) -> Bool {
        for lane in lanes where try file.waits(lane.key, for: chunk) { return true }
        return false
    }

    /// Stores a chunk, and evicts others first if the settings say so. Returns how many of its events
    /// were refused.
    mutating func admit(_ chunk: NewChunk) throws(QueueError) -> Int {
        let needs = chunk.cost
        if state.figures.totals.stored + needs > state.effectiveCap {
            try expireOldest(atMost: 1_000)
            // Decided before anything is evicted: a chunk that is refused must not cost other events.
            guard
                try canEvict(
                    state.figures.totals.stored + needs - state.effectiveCap, notAbove: chunk.priority)
            else {
                try refuse(chunk, .refused, "the queue is full of critical events")
                return chunk.events
            }
            while state.figures.totals.stored + needs > state.effectiveCap {
                guard try evictOne(notAbove: chunk.priority) else { break }
            }
        }
        try insert(chunk)
        if chunk.priority == .normal {
            state.fullEpisode?.isFullOfCritical = false
        }
        return 0
    }

    /// Whether eviction can free this many bytes. An evicted chunk leaves for all destinations, so its
    /// whole cost becomes free.
    private func canEvict(_ bytes: Int, notAbove limit: Priority) throws(QueueError) -> Bool {
        var missing = bytes
        for priority in Priority.allCases where priority <= limit && missing > 0 {
            var from: Int64 = 0
            while missing > 0, let chunk = try oldestEvictable(priority, from: from) {
                missing -= try file.chunkFacts(chunk)?.cost ?? 0
                from = chunk + 1
            }
        }
        return missing <= 0
    }

    /// Evicts a chunk for all destinations that still wait for it, together with all batches that
    /// contain a part of it: a batch that was attempted is sent whole or removed whole.
    mutating func evict(_ chunk: Int64, _ priority: Priority) throws(QueueError) {
        for lane in state.figures.lanes.indices where state.figures.lanes[lane].priority == priority {
            // Read again each time, because removing a batch may remove other rows of the chunk.
            while let row = try file.rows(of: chunk, in: state.figures.lanes[lane].key).first {
                let rows = try file.members(with: row)
                noteEvicted(rows.reduce(0) { $0 + $1.events })
                try takeOut(rows, lane, .evicted)
            }
        }
    }

    /// Counts evicted events, and logs a warning at the first one.
    mutating func noteEvicted(_ events: Int) {
        if state.fullEpisode == nil {
            state.fullEpisode = FullEpisode()
            let cap = state.options.maxSize
            note { $0.warning("queue is full, evicting", ["max_size": cap]) }
        }
        state.fullEpisode?.evicted += events
    }

    /// The oldest chunk of a priority, from `start` on, that is not in flight; nil if all are in flight
    /// or gone.
    func oldestEvictable(_ priority: Priority, from start: Int64) throws(QueueError) -> Int64? {
        var from = start
        while let chunk = try oldestChunk(
            of: state.figures.lanes.filter { $0.priority == priority }, from: from)
        {
            if try !isInFlight(chunk, priority) { return chunk }
            from = chunk + 1
        }
        return nil
    }

    /// The oldest chunk that any of these lanes waits for, from `from` on.
    private func oldestChunk(of lanes: some Sequence<Lane>, from: Int64) throws(QueueError) -> Int64? {
        var oldest: Int64?
        for lane in lanes where lane.ledger.queued > 0 {
            try file.walk(lane.key, from: from) { row in
                oldest = min(oldest ?? row.chunk, row.chunk)
                return false
            }
        }
        return oldest
    }

    /// Whether any destination has events of a chunk in flight.
    func isInFlight(_ chunk: Int64, _ priority: Priority) throws(QueueError) -> Bool {
        for lane in state.figures.lanes where lane.priority == priority {
            if try file.rows(of: chunk, in: lane.key).contains(where: { state.isInFlight($0) }) {
                return true
            }
        }
        return false
    }

    /// Puts a chunk's lines in the quarantine instead of storing the chunk.
    mutating func refuse(_ chunk: NewChunk, _ reason: QuarantineRecord.Reason, _ detail: String)
        throws(QueueError)
    {
        if reason == .refused {
            if state.fullEpisode == nil {
                state.fullEpisode = FullEpisode()
            }
            if state.fullEpisode?.isFullOfCritical == false {
                let cap = state.options.maxSize
                note { $0.warning("queue is full of critical events, refusing others", ["max_size": cap]) }
            }
            state.fullEpisode?.isFullOfCritical = true
            state.fullEpisode?.refused += chunk.events
            state.figures.totals.intake.refused += chunk.events
        } else {
            state.figures.totals.intake.quarantined += chunk.events
        }
        guard
            let lines = unpacker.lines(
                chunk.frame, chunk.compression, bytes: chunk.bytes, events: chunk.events)
        else { throw QueueError(.misuse, "a chunk's frame does not hold the lines that it names") }
        let origins = chunk.origins.flatMap { origin in origin.offsets.map { (origin.app, origin.path, $0) } }
        let records = (0..<lines.count).map { line in
            let content = lines.slice(line..<line + 1)
            let (app, path, offset) = line < origins.count ? origins[line] : ("", "", 0)
            return QuarantineRecord(
                reason: reason, detail: detail, app: app, path: path, offset: offset,
                length: Int64(content.count),
                content: Array(reason == .neverFits && chunk.events == 1 ? content.prefix(4_096) : content),
                time: time.wallTime)
        }
        try storeQuarantined(records)
    }
}

// Waiting for room, between transactions.
extension QueueStore {
    /// Ends a refusal when less than 90 % of the cap is used and the refused commit fits. The margin
    /// keeps storing from stopping and starting with each event.
    func reconsiderRefusal() {
        let stored = state.figures.totals.stored
        if stored < state.options.maxSize / 2 {
            state.effectiveCap = state.options.maxSize
            state.figures.holdings = nil
        }
        if let refusal = state.refusal, refusal.reason == .full, state.anyYields {
            // The destination that has just acknowledged may have been the last one that needed what
            // others give up.
            if state.figures.queued < refusal.queued, isAnybodyBehind {
                state.refusal = nil
            } else {
                armRoomTimer()
            }
        }
        guard stored < state.effectiveCap / 10 * 9 else { return }
        if let refusal = state.refusal, refusal.reason == .full, stored + refusal.needs <= state.effectiveCap
        {
            state.refusal = nil
        }
        if let episode = state.fullEpisode {
            state.fullEpisode = nil
            log.warning("queue was full", ["evicted": episode.evicted, "refused": episode.refused])
        }
    }

    /// Whether any destination gives way at present.
    private var isAnybodyBehind: Bool { state.figures.lanes.contains { state.givesWay($0.name) } }

    /// Checks again after a second whether storing can continue.
    func armRoomTimer() { arm(.room, after: .seconds(1)) }

    /// Tries to end whatever keeps storing from continuing: a lost WAL, a failed salvage, a reader of
    /// the database, or a disk that could not be written.
    func lookForRoom() {
        replaceLostWAL()
        guard let file else { return isClosed ? () : reopen() }
        guard let refusal = state.refusal else { return }
        if refusal.reason == .full {
            // Batches that were in flight at the last check may now be evictable.
            guard isAnybodyBehind else { return }
            state.refusal = nil
            return publish()
        }
        guard refusal.reason == .walPinned else { return tryWriting(file) }
        checkpoint(file)
        if file.walBytes > state.bounds.storeBelow { return armRoomTimer() }
        state.refusal = nil
        state.walReader = nil
        log.warning("storing continues, the database's reader has ended")
        publish()
    }
}
