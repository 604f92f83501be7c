internal import Model

/// Removes what a search finds from all tables, a part in each transaction. A trial only counts.
///
/// Erasing single events in DESIGN.md describes how events leave chunks and batches that they share
/// with others.
struct Eraser {
    /// Bytes of lines that one transaction examines, approximately: about as long as a commit takes.
    private static let mostLookedThrough = 4 << 20
    /// Dead letters or quarantined lines that one transaction examines.
    private static let mostRecords = 500

    private let search: ErasureSearch
    /// The search's judge, made once: it may be expensive to make.
    private let judge: ErasureSearch.Judge
    /// Whether nothing is removed, only counted.
    private let isTrial: Bool

    init(_ search: ErasureSearch, isTrial: Bool) {
        self.search = search
        judge = search.makeJudge()
        self.isTrial = isTrial
    }

    /// Removes events from chunks in the order of their ids, about 4 MiB of lines at a time.
    ///
    /// - Parameters:
    ///   - chunk: the first chunk.
    ///   - last: the newest chunk when the erasure began. Without it an erasure would chase new events.
    /// - Returns: what was removed, and the chunk to continue with; nil at the end.
    func erase(
        from chunk: Int64, through last: Int64, in transaction: inout Transaction
    ) throws(QueueError) -> (erased: ErasedRecords, next: Int64?) {
        var erased = ErasedRecords()
        let ids = try transaction.tables.statement(
            "SELECT id FROM chunk WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 500"
        ).with(chunk, last).all { Int64($0.integer(0)) }
        var left = Eraser.mostLookedThrough
        for id in ids {
            guard left > 0 else { return (erased, id) }
            left -= try erase(chunk: id, in: &transaction, into: &erased)
        }
        return (erased, ids.last.map { $0 + 1 })
    }

    /// Retries chunks that were skipped because some of their events were in flight.
    func erase(chunks: [Int64], in transaction: inout Transaction) throws(QueueError) -> ErasedRecords {
        var erased = ErasedRecords()
        for chunk in chunks { _ = try erase(chunk: chunk, in: &transaction, into: &erased) }
        return erased
    }

    /// Removes events from one chunk, unless some of its events are in flight.
    ///
    /// - Returns: how many bytes of lines were examined.
    private func erase(
        chunk id: Int64, in transaction: inout Transaction, into erased: inout ErasedRecords
    ) throws(QueueError) -> Int {
        // The chunk may have been acknowledged between two transactions.
        guard try transaction.file.chunkFacts(id) != nil else { return 0 }
        guard let chunk = try transaction.file.readChunk(id),
            let lines = transaction.unpacker.lines(of: chunk)
        else {
            erased.damagedChunks += 1
            return 0
        }
        let holders = try HolderTable(transaction.file).holding(of: id)?.holders ?? ChunkHolders()
        let names = holders.names(of: 0..<lines.count)
        let staying = StayingLines(of: lines) { line, bytes in !judge(bytes, names[line]) }
        let gone = lines.count - staying.count
        guard gone > 0 else { return lines.bytes.count }
        // A chunk with a batch in flight is skipped in all lanes: its frame is stored once, so it
        // cannot be cut for one lane only.
        let lanes = transaction.state.figures.lanes.map(\.key)
        for lane in lanes {
            let rows = try transaction.file.rows(of: id, in: lane)
            guard !rows.contains(where: { transaction.state.isInFlight($0) }) else {
                erased.chunksInFlight.append(id)
                erased.eventsInFlight += gone
                return lines.bytes.count
            }
        }
        erased.events += gone
        if !isTrial {
            try transaction.tables.overwrites(true)
        }
        for lane in lanes.indices { try leave(staying, ofChunk: id, lane, in: &transaction, &erased) }
        if !isTrial {
            try staying.shrink(id, chunk, names, in: &transaction)
            try transaction.tables.overwrites(false)
        }
        return lines.bytes.count
    }

    /// Reduces a chunk's rows in one lane to the events that stay, and counts those that go.
    ///
    /// Batches that lose events are dissolved first, so that no id is ever sent with other bytes
    /// (stable batches, docs/ARCHITECTURE.md).
    private func leave(
        _ staying: StayingLines, ofChunk id: Int64, _ lane: Int, in transaction: inout Transaction,
        _ erased: inout ErasedRecords
    ) throws(QueueError) {
        let key = transaction.state.figures.lanes[lane].key
        let name = transaction.state.figures.lanes[lane].name
        var batches: Set<BatchID> = []
        for row in try transaction.file.rows(of: id, in: key) {
            let rest = staying.remainder(of: row)
            guard rest.events < row.events else { continue }
            erased.deliveries[name, default: 0] += row.events - rest.events
            guard let batch = row.batch, batches.insert(batch).inserted else { continue }
            if transaction.state.mayHaveBeenSent(row, in: transaction.state.figures.lanes[lane]) {
                erased.dissolved.insert(batch)
            }
            guard !isTrial else { continue }
            if row.isFormed, let found = try transaction.file.lookUp(batch) {
                try transaction.dissolve(found.rows, lane)
            } else {
                transaction.leaveBatch([row], lane)
            }
        }
        guard !isTrial else { return }
        // Read again, because dissolving a batch has replaced rows.
        for row in try transaction.file.rows(of: id, in: key) {
            try staying.reduce(row, lane, "erased", in: &transaction)
        }
    }

    /// Removes some dead letters or quarantined lines.
    ///
    /// - Returns: what was removed, and the id after which to continue; nil at the end.
    func erase(
        _ kind: RecordStore, after: Int64, in transaction: inout Transaction
    ) throws(QueueError) -> (erased: ErasedRecords, next: Int64?) {
        var erased = ErasedRecords()
        let rows = KeptRows(kind, RecordSelection(), transaction.state.figures, after: after)
        let records = try rows.read(limit: Eraser.mostRecords, in: transaction.file)
        if !isTrial {
            try transaction.tables.overwrites(true)
        }
        for record in records {
            if let letter = record as? DeadLetter {
                try erase(letter, in: &transaction, &erased)
            } else if let line = record as? StoredQuarantineRecord, isFound(line.record) {
                erased.quarantined += 1
                if !isTrial {
                    try purge(line, in: &transaction)
                }
            }
        }
        if !isTrial {
            try transaction.tables.overwrites(false)
        }
        return (erased, records.last?.id)
    }

    /// Removes a dead letter that the search finds. If only the destination's answer mentions what is to be
    /// removed, the event stays and the answer is removed.
    private func erase(
        _ letter: DeadLetter, in transaction: inout Transaction, _ erased: inout ErasedRecords
    ) throws(QueueError) {
        if letter.event.withUnsafeBytes({ judge($0, letter.app) }) {
            erased.deadLetters += 1
            guard !isTrial else { return }
            try purge(letter, in: &transaction)
            transaction.state.figures.forgetDeadLetter(letter.lane)
        } else if search.isMentioned(Array(letter.message.utf8))
            || search.isMentioned(Array(letter.excerpt.utf8))
        {
            // The answer may be about another event of the same request.
            erased.answers += 1
            guard !isTrial else { return }
            try transaction.tables.run(
                "UPDATE dead_letter SET message = '', excerpt = '' WHERE id = ?", letter.id)
            transaction.state.figures.totals.deadLetters.remove(letter.cost)
            transaction.state.figures.totals.deadLetters.add(keptCost(letter.event.count))
            transaction.state.figures.deadLettersHeld = nil
        }
    }

    /// Whether a quarantined line must be removed: its text mentions a value that is searched for, or it is a
    /// JSON object that the search finds. Both are checked, because an object may contain a member twice, and
    /// reading it shows only one of the two.
    private func isFound(_ record: QuarantineRecord) -> Bool {
        if search.isMentioned(record.content) || search.isMentioned(Array(record.detail.utf8)) { return true }
        guard case .object? = try? JSONValue(parsing: record.content) else { return false }
        return record.content.withUnsafeBytes { judge($0, record.app) }
    }

    /// Removes a record and counts it as purged.
    private func purge(_ record: any KeptRecord, in transaction: inout Transaction) throws(QueueError) {
        try transaction.remove(record)
        transaction.state.figures.totals[keyPath: record.shelf.kept].purged += 1
    }

    /// What stays of a stored data layer: what it says about consent. Nil for nothing.
    private func leftOfLayer(_ stored: [UInt8]) -> [UInt8]? {
        guard case .object(let members)? = try? JSONValue(parsing: stored) else { return nil }
        let kept = ConsentStatement.kept(of: members) { search.isMentioned($0) }
        return kept.isEmpty ? nil : Array(JSONValue.object(kept).description.utf8)
    }

    /// Removes stored data layers and sessions. A running agent must drop its own copies before, or its
    /// next commit would store them again.
    func eraseMemory(in transaction: inout Transaction) throws(QueueError) -> ErasedRecords {
        var erased = ErasedRecords()
        // "0" follows "/" in ASCII, so each range covers all names with the prefix.
        let rows = try transaction.tables.statement(
            "SELECT name, value FROM memory WHERE name >= 'layer/' AND name < 'layer0' "
                + "OR name >= 'session/' AND name < 'session0'"
        ).all { (name: $0.text(0), value: $0.bytes(1)) }
        var gone: [String: [UInt8]?] = [:]
        for row in rows {
            // Names are layer/APP, session/APP, session/APP/process/PROCESS and session/APP/file/DIGITS.
            let parts = row.name.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            let isLayer = parts[0] == "layer"
            let process = parts.count == 4 && parts[2] == "process" ? Array(parts[3].utf8) : []
            guard search.isMentioned(row.value) || search.isMentioned(process) else { continue }
            if isLayer {
                erased.dataLayers += 1
            } else {
                erased.sessions += 1
            }
            gone.updateValue(isLayer ? leftOfLayer(row.value) : nil, forKey: row.name)
        }
        if !isTrial {
            try transaction.set(gone)
        }
        return erased
    }
}
