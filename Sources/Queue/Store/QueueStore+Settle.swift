internal import EventLoops
internal import Logs
public import Model

extension QueueStore {
    /// Ends a batch with the fate of each of its events, in one transaction.
    ///
    /// A settlement that only acknowledges returns at once and becomes durable with the next
    /// transaction, after 250 ms at the latest. A settlement of a batch that is gone changes nothing.
    /// - Returns: headers of the batches made for the parts that go `again`, in the order of their
    ///   groups. They are free.
    /// - Throws: `misuse` if the parts do not cover all events of the batch in order.
    public func settle(_ settlement: Settlement) async throws(QueueError) -> [BatchHeader] {
        _ = try opened()
        guard let batch = state.held[settlement.batch] else { return [] }
        var next = 0
        for part in settlement.parts {
            guard part.events.lowerBound == next, !part.events.isEmpty else { break }
            next = part.events.upperBound
        }
        // An event without a fate would vanish from the ledger.
        guard next == batch.header.events else {
            throw QueueError(
                .misuse, "a settlement does not name all \(batch.header.events) events of its batch in order")
        }
        if settlement.isAcknowledgement {
            try await acknowledge([settlement.batch])
            return []
        }
        return try await write { transaction throws(QueueError) in try transaction.divide(settlement) }
    }

    /// Ends batches that were acknowledged as a whole; durable with the next transaction, after 250 ms
    /// at the latest. Batches that are gone change nothing.
    ///
    /// - Throws: `closed`, or why the database cannot be opened again after damage.
    public func acknowledge(_ batches: [BatchID]) async throws(QueueError) {
        _ = try opened()
        for id in batches where state.held[id]?.status == .leased {
            state.held[id]?.status = .acknowledged
            state.acknowledged.append(id)
        }
        armAcknowledgementTimer()
    }

    /// Returns when everything settled and acknowledged before is durable.
    ///
    /// - Throws: why it could not be written; the next transaction tries again.
    public func flush() async throws(QueueError) {
        guard !state.acknowledged.isEmpty else { return }
        // An empty call: it completes with the transaction that removes the acknowledged batches.
        try await write { _ in }
    }
}

extension Transaction {
    /// Divides a batch: acknowledged events leave, rejected ones become dead letters, the others form
    /// new batches.
    fileprivate mutating func divide(_ settlement: Settlement) throws(QueueError) -> [BatchHeader] {
        guard let batch = state.held[settlement.batch], batch.status == .leased else { return [] }
        let lane = batch.lane
        // The batch's id ends here. Events that are sent again get new ids, because a part has other
        // bytes.
        leaveBatch(batch.rows, lane)
        var groups: [Int: [DeliveryRow]] = [:]
        var before = 0
        for row in batch.rows {
            let runs = runs(of: row, before, settlement)
            before += row.events
            try tables.delete(row, from: state.figures.lanes[lane].key)
            guard let chunk = try file.readChunk(row.chunk), let lines = unpacker.lines(of: chunk) else {
                // The chunk was readable when the batch was sent and no longer is: what the destination
                // did not acknowledge is lost.
                try settleDamaged(row, runs, lane)
                try dismiss(chunk: row.chunk)
                continue
            }
            for run in runs {
                let bytes = lines.size(run.events)
                switch run.disposition {
                case .acknowledged:
                    state.figures.lanes[lane].remove(.acknowledged, events: run.events.count, bytes: bytes)
                case .deadLetter(let failure):
                    try addDeadLetters(run.events, lines, chunk, row, settlement.batch, lane, failure)
                    state.figures.lanes[lane].remove(.deadLettered, events: run.events.count, bytes: bytes)
                case .again(let group):
                    var child = row
                    child.first = run.events.lowerBound
                    child.events = run.events.count
                    child.bytes = bytes
                    groups[group, default: []].append(child)
                }
            }
        }
        var children: [BatchHeader] = []
        for (_, rows) in groups.sorted(by: { $0.key < $1.key }) {
            children.append(try formChild(rows, lane))
        }
        for row in batch.rows { try dismiss(chunk: row.chunk) }
        try trim(.deadLetters, to: state.deadLettersBound)
        return children
    }

    /// The fates of a row's events in order, by index in the chunk. `before` events of the batch
    /// precede the row.
    private func runs(of row: DeliveryRow, _ before: Int, _ settlement: Settlement) -> [Settlement.Part] {
        let mine = before..<before + row.events
        return settlement.parts.compactMap { part in
            let common = part.events.clamped(to: mine)
            guard !common.isEmpty else { return nil }
            let shift = row.first - before
            return Settlement.Part(common.lowerBound + shift..<common.upperBound + shift, part.disposition)
        }
    }

    /// Counts the events of a damaged row: as acknowledged if the destination has them, otherwise as
    /// lost.
    private mutating func settleDamaged(_ row: DeliveryRow, _ runs: [Settlement.Part], _ lane: Int)
        throws(QueueError)
    {
        // The bytes of a part can no longer be determined, so the first run counts all of them.
        var bytes = row.bytes
        for run in runs {
            let departure: Departure = run.disposition == .acknowledged ? .acknowledged : .lost
            state.figures.lanes[lane].remove(departure, events: run.events.count, bytes: bytes)
            bytes = 0
        }
        note {
            $0.error("stored events are damaged and lost", ["chunk": row.chunk, "deliveries": row.events])
        }
    }

    /// Makes a free batch of rows that must be sent again.
    private mutating func formChild(_ rows: [DeliveryRow], _ lane: Int) throws(QueueError) -> BatchHeader {
        let id = drawID()
        var mine = rows
        for index in mine.indices {
            mine[index].batch = id
            mine[index].isFormed = true
            try tables.insert(mine[index], in: state.figures.lanes[lane].key)
        }
        let header = state.header(id, mine, lane)
        state.held[id] = HeldBatch(header: header, lane: lane, rows: mine, soleCost: nil, status: .free)
        state.figures.lanes[lane].batches.free += 1
        state.figures.lanes[lane].batches.events += header.events
        state.figures.lanes[lane].batches.bytes += header.bytes
        return header
    }
}
