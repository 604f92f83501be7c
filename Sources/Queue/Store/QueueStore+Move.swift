internal import Logs
public import Model

/// The result of moving events to another destination.
public struct MovedEvents: Sendable, Equatable {
    /// Deliveries that now wait for the other destination.
    public var moved = 0
    /// Deliveries that stay: they are in flight, the other destination was to get the same events
    /// anyway, or their batch may have been sent, contains such events, and must go on as it is.
    public var kept = 0
}

extension QueueStore {
    /// Lets what is queued for one destination, configured or not, wait for another one instead.
    ///
    /// The target counts the events as accepted, the source as discarded with the reason `moved`. A
    /// batch that may have been sent keeps its id, so that a receiver that has it already stores it
    /// once. Events that were accepted for both destinations stay, whatever became of them at the
    /// target. Events that come back to their original destination do move.
    /// - Parameter only: the priority to move; nil for both.
    /// - Throws: `misuse` if the target is not configured or equals the source.
    public func move(
        _ source: DestinationName, to target: DestinationName, _ only: Priority? = nil
    ) async throws(QueueError) -> MovedEvents {
        guard state.options.destinations.contains(target) else {
            let known = state.options.destinations.map(\.text).joined(separator: ", ")
            throw QueueError(
                .misuse, "there is no destination \"\(target)\"; the configuration has: \(known)")
        }
        guard source != target else { throw QueueError(.misuse, "\(target) is their destination already") }
        let parts = try await inParts(of: source, only) { transaction, rows, lane throws(QueueError) in
            try transaction.move(rows, lane, to: target)
        }
        let total = parts.reduce(into: MovedEvents()) {
            $0.moved += $1.moved
            $0.kept += $1.kept
        }
        if total.moved > 0 {
            log.warning(
                "queued events moved",
                ["from": source, "to": target, "deliveries": total.moved, "kept": total.kept])
        }
        return total
    }
}

extension Transaction {
    /// Moves rows of a lane together with their batches.
    fileprivate mutating func move(
        _ rows: [DeliveryRow], _ lane: Int, to target: DestinationName
    ) throws(QueueError) -> MovedEvents {
        var events = MovedEvents()
        let key = state.figures.lanes[lane].key
        guard let other = state.figures.lane(target, key.priority) else { return events }
        var seen: Set<BatchID> = []
        for row in rows {
            var members = [row]
            if row.isFormed, let id = row.batch {
                // A batch moves as a whole with its first row, even if it extends beyond the rows of
                // this part.
                guard seen.insert(id).inserted, let batch = try file.lookUp(id), batch.lane == key else {
                    continue
                }
                members = batch.rows
            }
            var going: [DeliveryRow] = []
            for member in members where !state.isInFlight(row) {
                if try !isMeant(member, lane, for: other) {
                    going.append(member)
                }
            }
            if !going.isEmpty, going.count < members.count {
                if state.options.destinations.contains(state.figures.lanes[lane].name),
                    state.mayHaveBeenSent(row, in: state.figures.lanes[lane])
                {
                    // The source is still configured and may have the batch: it gets the same batch
                    // again, unchanged.
                    going = []
                } else {
                    // The batch cannot move as a whole: the events that may move do so in new batches.
                    try dissolve(members, lane)
                    for index in going.indices { (going[index].batch, going[index].isFormed) = (nil, false) }
                }
            }
            let moved = going.reduce(0) { $0 + $1.events }
            events.moved += moved
            events.kept += members.reduce(-moved) { $0 + $1.events }
            try move(going, lane, to: other)
        }
        return events
    }

    /// Whether another lane was to get some of the same events anyway, or has them.
    ///
    /// Events that were stored for one destination exist once, wherever they move. The same events
    /// stored for another destination are a second copy; a move would let the target receive both.
    private func isMeant(_ row: DeliveryRow, _ lane: Int, for other: Int) throws(QueueError) -> Bool {
        let source = state.figures.lanes[lane].destination
        let target = state.figures.lanes[other].key
        let origins = try file.origins(of: row.chunk)
        let origin = origins[target.destination] ?? origins[-target.destination]
        if let origin, origin != origins[source] ?? source { return true }
        return try file.rows(of: row.chunk, in: target).contains {
            $0.first < row.first + row.events && row.first < $0.first + $0.events
        }
    }

    /// Moves all rows of one batch, or one row that is in no batch.
    private mutating func move(_ rows: [DeliveryRow], _ lane: Int, to other: Int) throws(QueueError) {
        guard let first = rows.first else { return }
        // A full chunk that was leased stays a batch under its id, whatever the limits of the target
        // are.
        let mayHaveBeenSent = state.mayHaveBeenSent(first, in: state.figures.lanes[lane])
        leaveBatch(rows, lane)
        for row in rows {
            var moved = row
            moved.isFormed = mayHaveBeenSent
            try tables.delete(row, from: state.figures.lanes[lane].key)
            try tables.insert(moved, in: state.figures.lanes[other].key)
            try tables.want(
                row.chunk, by: state.figures.lanes[other].destination,
                insteadOf: state.figures.lanes[lane].destination)
            discard(row.events, row.bytes, lane, "moved")
            state.figures.lanes[other].add(
                events: row.events, bytes: row.bytes, acceptedAt: row.acceptedAt, firstTime: row.firstTime,
                deadlines: row.deadlines)
            state.figures.lanes[other].ledger.accepted += row.events
            if mayHaveBeenSent {
                state.figures.lanes[other].batches.events += row.events
                state.figures.lanes[other].batches.bytes += row.bytes
            }
            state.figures.lanes[other].cursor = min(state.figures.lanes[other].cursor, row.chunk)
        }
        if mayHaveBeenSent {
            state.figures.lanes[other].batches.free += 1
        }
        state.figures.lanes[other].ages.markStale()
    }
}
