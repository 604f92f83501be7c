internal import EventLoops
internal import Logs
public import Model

extension QueueStore {
    /// Ends a batch: what happened to each of its events, in one transaction.
    ///
    /// A settlement that only acknowledges returns at once and becomes durable with the next transaction, at the latest
    /// after 250 ms. One for a batch that is gone changes nothing.
    /// - Returns: the batches that were made for the parts that go `again`, free, in the order of their groups.
    /// - Throws: `QueueError` with code `misuse` if the parts are not all of the batch's events in their order.
    public func settle(_ settlement: Settlement) async throws(QueueError) -> [BatchHeader] {
        _ = try opened()
        guard let batch = state.held[settlement.batch] else { return [] }
        var next = 0
        for part in settlement.parts {
            guard part.events.lowerBound == next, !part.events.isEmpty else { break }
            next = part.events.upperBound
        }
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

    /// Ends batches that were acknowledged as a whole; durable with the next transaction, at the latest after 250 ms.
    ///
    /// Those that are gone change nothing.
    /// - Throws: `QueueError` with code `closed`.
    public func acknowledge(_ batches: [BatchID]) async throws(QueueError) {
        _ = try opened()
        for id in batches where state.held[id]?.status == .leased {
            state.held[id]?.status = .acknowledged
            state.acknowledged.append(id)
        }
        armAcknowledgementTimer()
    }

    /// Returns once all that was settled and acknowledged before is durable.
    ///
    /// - Throws: why it could not be written; it is tried again with the next transaction.
    public func flush() async throws(QueueError) {
        guard !state.acknowledged.isEmpty else { return }
        // It shares the transaction that takes the acknowledgements.
        try await write { _ in }
    }
}

extension Transaction {
    fileprivate mutating func divide(_ settlement: Settlement) throws(QueueError) -> [BatchHeader] {
        guard let batch = state.held[settlement.batch], batch.status == .leased else { return [] }
        let lane = batch.lane
        leaveBatch(batch.rows, lane)
        var groups: [Int: [DeliveryRow]] = [:]
        var before = 0
        for row in batch.rows {
            let runs = runs(of: row, before, settlement)
            before += row.events
            try tables.delete(row, from: state.figures.lanes[lane].key)
            guard let chunk = try file.readChunk(row.chunk), let lines = unpacker.lines(of: chunk) else {
                // It could be sent and now it cannot be read: what the destination has not got is lost.
                try settleDamaged(row, runs, lane)
                try dismiss(chunk: row.chunk)
                continue
            }
            for run in runs {
                let bytes = lines.size(run.events)
                switch run.disposition {
                case .acknowledged:
                    state.figures.lanes[lane].remove(\.acknowledged, events: run.events.count, bytes: bytes)
                case .deadLetter(let failure):
                    try addDeadLetters(run.events, lines, chunk, row, settlement.batch, lane, failure)
                    state.figures.lanes[lane].remove(\.deadLettered, events: run.events.count, bytes: bytes)
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

    /// The fates of a row's events, in order, by places in its chunk; so many events of the batch are before them.
    private func runs(of row: DeliveryRow, _ before: Int, _ settlement: Settlement) -> [Settlement.Part] {
        let mine = before..<before + row.events
        return settlement.parts.compactMap { part in
            let common = part.events.clamped(to: mine)
            guard !common.isEmpty else { return nil }
            let shift = row.first - before
            return Settlement.Part(common.lowerBound + shift..<common.upperBound + shift, part.disposition)
        }
    }

    private mutating func settleDamaged(_ row: DeliveryRow, _ runs: [Settlement.Part], _ lane: Int) throws(QueueError) {
        // The bytes of a part cannot be told any more: they leave with the first run.
        var bytes = row.bytes
        for run in runs {
            let fate: WritableKeyPath<Ledger, Int> = run.disposition == .acknowledged ? \.acknowledged : \.lost
            state.figures.lanes[lane].remove(fate, events: run.events.count, bytes: bytes)
            bytes = 0
        }
        note { $0.error("stored events are damaged and lost", ["chunk": row.chunk, "deliveries": row.events]) }
    }

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
        state.figures.lanes[lane].freeBatches += 1
        state.figures.lanes[lane].batchedEvents += header.events
        state.figures.lanes[lane].batchedBytes += header.bytes
        return header
    }
}
