internal import EventLoops
internal import Logs
public import Model

extension QueueStore {
    /// Deletes everything that is queued and counts it as discarded. `disable` calls it, because after
    /// it no queued event may be sent.
    ///
    /// Batches in flight are deleted too, with `_in_flight` appended to the reason. Settling them later
    /// changes nothing.
    /// - Parameters:
    ///   - reason: a metric label, such as `disabled`.
    ///   - atOnce: largest queue in stored bytes that one transaction deletes. A larger one is reduced
    ///     to this size in small transactions first, so that no other call waits longer than for a
    ///     commit. Nothing may be stored or leased meanwhile; after a crash the call must be repeated.
    /// - Returns: number of deleted deliveries.
    public func discardAll(reason: String, atOnce: Int = 64 << 20) async throws(QueueError) -> DiscardedEvents
    {
        var discarded = DiscardedEvents()
        // A large queue is reduced in small transactions first; one transaction then deletes the rest
        // with statements for whole tables.
        if state.figures.totals.stored > atOnce {
            var round = 0
            repeat {
                round = try await write { transaction throws(QueueError) in
                    try transaction.discardLeased(reason)
                }
                discarded.inFlight += round
                for name in Set(state.figures.lanes.map(\.name)) {
                    round += try await discardLanes(name, nil, reason)
                }
                discarded.all += round
            } while round > 0 && state.figures.totals.stored > atOnce
        }
        let last = try await write { transaction throws(QueueError) in
            let inFlight = try transaction.discardLeased(reason)
            return DiscardedEvents(all: inFlight + (try transaction.discardAll(reason)), inFlight: inFlight)
        }
        discarded.all += last.all
        discarded.inFlight += last.inFlight
        try await giveBackFreePages()
        if discarded.all > 0 {
            log.warning(
                "queue discarded",
                ["reason": reason, "deliveries": discarded.all, "in_flight": discarded.inFlight])
        }
        return discarded
    }

    /// Gives all free pages back to the file system, a transaction's worth at a time, and empties the
    /// WAL.
    ///
    /// Free pages still hold the text of acknowledged events: overwriting each page when it is freed
    /// would double the bytes written (Freed pages in DESIGN.md). Without this call, `disable` and a
    /// purge would leave those events readable in the file.
    func giveBackFreePages() async throws(QueueError) {
        var last = Int.max
        while let file {
            let free = try file.freeBytes()
            // SQLite cannot shrink a file that was made without `auto_vacuum`; without this check the
            // loop would not end.
            guard free > 0, free < last else { break }
            last = free
            let pages = state.bounds.transaction / file.pageSize
            try await write { transaction throws(QueueError) in
                try transaction.tables.execute("PRAGMA incremental_vacuum(\(pages))")
            }
        }
        guard let file else { return }
        checkpoint(file, empties: true)
        try file.limit(to: state.bounds)
    }

    /// Deletes what is queued for one destination, configured or not, and counts it as discarded.
    /// Batches in flight stay.
    ///
    /// - Parameters:
    ///   - only: the priority to delete; nil for both.
    ///   - reason: a metric label, such as `purged`.
    /// - Returns: number of deleted deliveries.
    public func discard(
        _ destination: DestinationName, _ only: Priority? = nil, reason: String
    ) async throws(QueueError) -> Int {
        let total = try await discardLanes(destination, only, reason)
        if total > 0 {
            log.warning("queue purged", ["destination": destination, "reason": reason, "deliveries": total])
        }
        return total
    }

    /// Deletes what is queued for one destination, without a log message.
    private func discardLanes(
        _ destination: DestinationName, _ only: Priority?, _ reason: String
    ) async throws(QueueError) -> Int {
        try await inParts(of: destination, only) { transaction, rows, lane throws(QueueError) in
            try transaction.discard(rows, lane, reason)
        }.reduce(0, +)
    }

    /// Calls `body` for the rows of a destination's lanes, about 1,000 rows in each transaction.
    func inParts<Value: Sendable>(
        of name: DestinationName, _ only: Priority?,
        _ body: @escaping (inout Transaction, _ rows: [DeliveryRow], _ lane: Int) throws(QueueError) -> Value
    ) async throws(QueueError) -> [Value] {
        var values: [Value] = []
        for priority in Priority.allCases where only ?? priority == priority {
            var from: Int64? = 0
            while let start = from {
                let part: (value: Value, next: Int64?)? = try await write { transaction throws(QueueError) in
                    guard let lane = transaction.state.figures.lane(name, priority) else { return nil }
                    let key = transaction.state.figures.lanes[lane].key
                    let (rows, next) = try transaction.file.part(of: key, from: start)
                    return (try body(&transaction, rows, lane), next)
                }
                if let part {
                    values.append(part.value)
                }
                from = part?.next
            }
        }
        return values
    }
}

extension QueueStore {
    /// Removes what a search finds from the queue, the dead letters, the quarantine, the stored data
    /// layers and the stored sessions. Then gives the freed pages back, so that no removed text stays
    /// readable in the file.
    ///
    /// Other events of the same chunk or batch stay. If their batch was attempted, they are sent again
    /// in a new batch. Each transaction is complete and counts what it removes: after a crash the same
    /// call removes the rest.
    ///
    /// - Parameters:
    ///   - isTrial: only counts.
    ///   - patience: how long to wait for events in flight. Events that are still in flight then stay
    ///     and are counted.
    public func erase(
        _ search: ErasureSearch, isTrial: Bool = false, patience: Duration = .zero
    ) async throws(QueueError) -> ErasedRecords {
        let eraser = Eraser(search, isTrial: isTrial)
        let last = Int64(state.figures.totals.lastChunk)
        var erased = try await eraseInParts { transaction, from throws(QueueError) in
            try eraser.erase(from: from, through: last, in: &transaction)
        }
        let end = time.bootTime + patience
        while !isTrial, !erased.chunksInFlight.isEmpty, time.bootTime < end {
            await withUnsafeContinuation { again in _ = loop.after(.milliseconds(50)) { again.resume() } }
            let chunks = erased.takeInFlight()
            erased.add(
                try await write { transaction throws(QueueError) in
                    try eraser.erase(chunks: chunks, in: &transaction)
                }
            )
        }
        for kind in [RecordStore.deadLetters, .quarantine] {
            erased.add(
                try await eraseInParts { transaction, after throws(QueueError) in
                    try eraser.erase(kind, after: after, in: &transaction)
                })
        }
        erased.add(
            try await write { transaction throws(QueueError) in try eraser.eraseMemory(in: &transaction) })
        guard !isTrial else { return erased }
        try await giveBackFreePages()
        log.warning(
            "events erased by command",
            [
                "events": erased.events, "deliveries": erased.allDeliveries,
                "in_flight": erased.eventsInFlight,
                "batches_sent_again": erased.dissolvedBatches, "dead_letters": erased.deadLetters,
                "quarantined": erased.quarantined, "data_layers": erased.dataLayers,
                "sessions": erased.sessions,
            ])
        return erased
    }

    /// Calls `body` in one transaction after the other, from 0 until it returns no next position.
    private func eraseInParts(
        _ body:
            @escaping (inout Transaction, Int64) throws(QueueError) -> (
                erased: ErasedRecords, next: Int64?
            )
    ) async throws(QueueError) -> ErasedRecords {
        var erased = ErasedRecords()
        var from: Int64? = 0
        while let start = from {
            let part = try await write { transaction throws(QueueError) in try body(&transaction, start) }
            erased.add(part.erased)
            from = part.next
        }
        return erased
    }
}

extension Transaction {
    /// Deletes all batches in flight. Acknowledged batches leave as acknowledged with this transaction.
    fileprivate mutating func discardLeased(_ reason: String) throws(QueueError) -> Int {
        var events = 0
        for (id, batch) in state.held where batch.status == .leased {
            state.held[id]?.status = .free
            state.figures.lanes[batch.lane].batches.free += 1
            events += try discard(batch.rows, batch.lane, "\(reason)_in_flight")
        }
        return events
    }

    /// Deletes all remaining rows at once.
    fileprivate mutating func discardAll(_ reason: String) throws(QueueError) -> Int {
        var discarded = 0
        try tables.overwrites(true)
        for index in state.figures.lanes.indices {
            let queued = state.figures.lanes[index].ledger.queued
            guard queued > 0 else { continue }
            discard(queued, state.figures.lanes[index].queuedBytes, index, reason)
            state.figures.lanes[index].batches = BatchCounts()
            discarded += queued
        }
        try tables.execute("DELETE FROM delivery")
        try tables.execute("DELETE FROM chunk")
        try tables.execute("DELETE FROM holding")
        state.figures.totals.stored = 0
        state.figures.holdings = nil
        state.held.removeAll()
        try tables.overwrites(false)
        return discarded
    }

    /// Deletes rows of a lane that are not in flight, with the other rows of their batches, and returns
    /// the number of events.
    mutating func discard(_ rows: [DeliveryRow], _ lane: Int, _ reason: String) throws(QueueError) -> Int {
        var events = 0
        try tables.overwrites(true)
        for row in rows where !state.isInFlight(row) {
            // A batch is deleted as a whole with its first row.
            let members = try file.members(with: row)
            leaveBatch(members, lane)
            for member in members {
                try tables.delete(member, from: state.figures.lanes[lane].key)
                discard(member.events, member.bytes, lane, reason)
                try dismiss(chunk: member.chunk)
                events += member.events
            }
        }
        try tables.overwrites(false)
        return events
    }

    /// Counts events of a lane as discarded. The caller deletes their rows.
    mutating func discard(_ events: Int, _ bytes: Int, _ lane: Int, _ reason: String) {
        state.figures.lanes[lane].remove(.discarded, events: events, bytes: bytes)
        state.figures.lanes[lane].ages.markStale()
        state.figures.lanes[lane].withdrawn += events
        state.figures.countDiscarded(events, of: state.figures.lanes[lane].key, reason: reason)
    }
}
