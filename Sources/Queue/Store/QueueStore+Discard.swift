internal import Logs
public import Model

extension QueueStore {
    /// Deletes everything that is queued and counts it as discarded: what `disable` does (ac17).
    ///
    /// Batches in flight are gone too, with `_in_flight` behind their reason; what is settled of them later changes nothing.
    /// - Parameters:
    ///   - reason: a metric label, such as `disabled`.
    ///   - atOnce: up to so many stored bytes go in one transaction; more go in small ones, so that others wait no longer
    ///     for it than for a commit. Nothing is to be stored or leased meanwhile, and after a crash it is to be done again.
    /// - Returns: how many deliveries were deleted.
    public func discardAll(reason: String, atOnce: Int = 64 << 20) async throws(QueueError) -> DiscardedEvents {
        var discarded = DiscardedEvents()
        if state.figures.totals.stored > atOnce {
            var round = 0
            repeat {
                round = try await write { transaction throws(QueueError) in try transaction.discardLeased(reason) }
                discarded.inFlight += round
                for name in Set(state.figures.lanes.map(\.name)) { round += try await discardLanes(name, nil, reason) }
                discarded.all += round
            } while round > 0 && state.figures.totals.stored > atOnce
        }
        let last = try await write { transaction throws(QueueError) in
            let inFlight = try transaction.discardLeased(reason)
            return DiscardedEvents(all: inFlight + (try transaction.discardAll(reason)), inFlight: inFlight)
        }
        discarded.all += last.all
        discarded.inFlight += last.inFlight
        if let file { checkpoint(file, empties: true) }
        if discarded.all > 0 {
            log.warning(
                "queue discarded", ["reason": reason, "deliveries": discarded.all, "in_flight": discarded.inFlight])
        }
        return discarded
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
        try await inParts(of: destination, only) { transaction, rows, lane throws(QueueError) in
            try transaction.discard(rows, lane, reason)
        }.reduce(0, +)
    }

    /// Does `body` for the rows of a destination's lanes, a part of them in each transaction.
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
                if let part { values.append(part.value) }
                from = part?.next
            }
        }
        return values
    }
}

extension Transaction {
    /// Deletes all batches that are in flight; those that are acknowledged already leave with this transaction.
    fileprivate mutating func discardLeased(_ reason: String) throws(QueueError) -> Int {
        var events = 0
        for (id, batch) in state.held where batch.status == .leased {
            state.held[id]?.status = .free
            state.figures.lanes[batch.lane].freeBatches += 1
            events += try discard(batch.rows, batch.lane, "\(reason)_in_flight")
        }
        return events
    }

    fileprivate mutating func discardAll(_ reason: String) throws(QueueError) -> Int {
        var discarded = 0
        try tables.overwrites(true)
        for index in state.figures.lanes.indices {
            let queued = state.figures.lanes[index].ledger.queued
            guard queued > 0 else { continue }
            discard(queued, state.figures.lanes[index].queuedBytes, index, reason)
            state.figures.lanes[index].forgetBatches()
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

    mutating func discard(_ rows: [DeliveryRow], _ lane: Int, _ reason: String) throws(QueueError) -> Int {
        var events = 0
        try tables.overwrites(true)
        for row in rows where !state.isInFlight(row) {
            // The whole batch goes with its first row.
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

    /// Takes events out of a lane's figures as discarded.
    mutating func discard(_ events: Int, _ bytes: Int, _ lane: Int, _ reason: String) {
        state.figures.lanes[lane].remove(\.discarded, events: events, bytes: bytes)
        state.figures.lanes[lane].oldestIsStale = true
        state.figures.lanes[lane].withdrawn += events
        state.figures.countDiscarded(events, of: state.figures.lanes[lane].key, reason: reason)
    }
}
