internal import Logs
public import Model

extension QueueStore {
    /// Deletes everything that is queued and counts it as discarded: what `disable` does (ac17).
    ///
    /// Batches in flight are gone as well; what is settled of them later is counted as late and changes nothing.
    /// - Parameters:
    ///   - reason: a metric label, such as `disabled`.
    ///   - atOnce: up to so many stored bytes go in one transaction; more go in small ones, so that others wait no longer
    ///     for it than for a commit. Nothing is to be stored or leased meanwhile, and after a crash it is to be done again.
    /// - Returns: how many deliveries were deleted.
    public func discardAll(reason: String, atOnce: Int = 64 << 20) async throws(QueueError) -> Int {
        var discarded = 0
        if figures.totals.stored > atOnce {
            var round = 0
            repeat {
                try await write { self.endLeases() }
                round = 0
                for name in Set(figures.lanes.map(\.name)) { round += try await discardLanes(name, nil, reason) }
                discarded += round
            } while round > 0 && figures.totals.stored > atOnce
        }
        discarded += try await discardAtOnce(reason)
        if discarded > 0 { log.warning("queue discarded", ["reason": reason, "deliveries": discarded]) }
        return discarded
    }

    /// Takes all batches back that are in flight; those that are acknowledged already leave with this transaction.
    private func endLeases() {
        for (id, batch) in held where batch.status == .leased {
            held[id]?.status = .free
            figures.lanes[batch.lane].freeBatches += 1
        }
    }

    private func discardAtOnce(_ reason: String) async throws(QueueError) -> Int {
        try await write { () throws(QueueError) in
            let file = try self.opened()
            var discarded = 0
            for index in self.figures.lanes.indices {
                let queued = self.figures.lanes[index].ledger.queued
                guard queued > 0 else { continue }
                self.discard(queued, self.figures.lanes[index].queuedBytes, index, reason)
                self.figures.lanes[index].batchedEvents = 0
                self.figures.lanes[index].batchedBytes = 0
                self.figures.lanes[index].freeBatches = 0
                discarded += queued
            }
            try file.database.execute("DELETE FROM delivery")
            try file.database.execute("DELETE FROM chunk")
            self.figures.totals.stored = 0
            self.held.removeAll()
            return discarded
        }
    }

    /// Deletes what is queued for one destination, configured or not, and counts it as discarded.
    ///
    /// Batches in flight stay.
    /// - Parameters:
    ///   - only: of this priority; nil for both.
    ///   - reason: a metric label, such as `purged`.
    /// - Returns: how many deliveries were deleted.
    public func discard(
        _ destination: DestinationName, _ only: Priority? = nil, reason: String
    ) async throws(QueueError) -> Int {
        let total = try await discardLanes(destination, only, reason)
        if total > 0 {
            log.warning("queue purged", ["destination": destination, "reason": reason, "deliveries": total])
        }
        return total
    }

    private func discardLanes(
        _ destination: DestinationName, _ only: Priority?, _ reason: String
    ) async throws(QueueError) -> Int {
        var total = 0
        for priority in Priority.allCases where only ?? priority == priority {
            var from: Int64 = 0
            while from != .max {
                let start = from
                let part = try await write { () throws(QueueError) in
                    try self.discardSome(destination, priority, from: start, reason)
                }
                total += part.events
                from = part.next
            }
        }
        return total
    }

    /// Deletes some rows of a lane; tells where to go on, `Int64.max` for nowhere.
    private func discardSome(
        _ destination: DestinationName, _ priority: Priority, from: Int64, _ reason: String
    ) throws(QueueError) -> (events: Int, next: Int64) {
        let file = try opened()
        guard let lane = figures.lane(destination, priority) else { return (0, .max) }
        var rows: [DeliveryRow] = []
        var next = Int64.max
        let start = figures.lanes[lane]
        try file.walk(destination: start.destination, priority: priority, from: from) { row in
            guard rows.count < 1_000 || row.chunk == rows.last?.chunk else {
                next = row.chunk
                return false
            }
            if !isInFlight(row) { rows.append(row) }
            return true
        }
        return (try discard(rows, lane, reason, file), next)
    }

    /// Discards rows that are not in flight, with the batches that they are in, inside the running transaction.
    func discard(
        _ rows: [DeliveryRow], _ lane: Int, _ reason: String, _ file: QueueFile
    ) throws(QueueError) -> Int {
        var events = 0
        for row in rows where !isInFlight(row) {
            if row.isFormed, let id = row.batch {
                // The whole batch goes with its first row.
                guard let batch = try file.lookUp(id) else { continue }
                leaveBatch(batch.rows, lane)
                for member in batch.rows { events += try discard(member, lane, reason, file) }
            } else {
                leaveBatch([row], lane)
                events += try discard(row, lane, reason, file)
            }
        }
        return events
    }

    private func discard(
        _ row: DeliveryRow, _ lane: Int, _ reason: String, _ file: QueueFile
    ) throws(QueueError) -> Int {
        try file.deleteDelivery(
            destination: figures.lanes[lane].destination, priority: figures.lanes[lane].priority, chunk: row.chunk,
            first: row.first)
        discard(row.events, row.bytes, lane, reason)
        try dismiss(chunk: row.chunk, from: file)
        return row.events
    }

    /// Takes events out of a lane's figures as discarded, inside the running transaction.
    func discard(_ events: Int, _ bytes: Int, _ lane: Int, _ reason: String) {
        figures.lanes[lane].remove(\.discarded, events: events, bytes: bytes)
        figures.lanes[lane].oldestIsStale = true
        figures.countDiscarded(
            events, destination: figures.lanes[lane].destination, priority: figures.lanes[lane].priority,
            reason: reason)
    }
}
