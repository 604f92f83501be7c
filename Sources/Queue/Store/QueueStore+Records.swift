internal import EventLoops
public import Model

// What a person asks of the queue, the dead letters and the quarantine.
extension QueueStore {
    /// Records without their content: of the queue critical ones first and the oldest first in each destination, of
    /// the others the oldest first.
    ///
    /// - Parameters:
    ///   - after: the `next` of the page before.
    ///   - limit: at most so many, 1 to 1,000.
    public func list(
        _ kind: RecordStore, _ selection: RecordSelection = RecordSelection(), after: String? = nil, limit: Int = 100
    ) throws(QueueError) -> RecordPage {
        try reading { file throws(QueueError) in try list(kind, selection, after: after, limit: limit, in: file) }
    }

    private func list(
        _ kind: RecordStore, _ selection: RecordSelection, after: String?, limit: Int, in file: QueueFile
    ) throws(QueueError) -> RecordPage {
        let limit = min(max(limit, 1), 1_000)
        guard kind != .queue else { return try listQueue(selection, after, limit, file) }
        let rows = KeptRows(kind, selection, state.figures, after: after.flatMap { Int64($0) } ?? 0)
        var page = RecordPage()
        var last: Int64 = 0
        let columns = kind == .deadLetters ? DeadLetter.columns : StoredQuarantineRecord.columns
        let row = try rows.select(columns, limit: limit, in: file)
        while try row.step() {
            last = Int64(row.integer(0))
            page.records.append(
                .object(kind == .deadLetters ? DeadLetter(row).json(state.figures) : StoredQuarantineRecord(row).json))
        }
        page.next = page.records.count == limit ? "\(last)" : nil
        return page
    }

    /// One record, its content included; nil if there is none of that id.
    public func show(_ kind: RecordStore, id: String) throws(QueueError) -> JSONValue? {
        try reading { file throws(QueueError) in try show(kind, id: id, in: file) }
    }

    private func show(_ kind: RecordStore, id: String, in file: QueueFile) throws(QueueError) -> JSONValue? {
        var selection = RecordSelection()
        selection.ids = [id]
        switch kind {
        case .queue:
            return try showQueue(id, file)
        case .deadLetters:
            let row = try KeptRows(kind, selection, state.figures, after: 0).select(
                DeadLetter.columns, limit: 1, in: file)
            guard try row.step() else { return nil }
            let letter = DeadLetter(row)
            return .object(
                letter.json(state.figures) + [
                    .init("answer", .string(letter.excerpt)), .init("event", QueueStore.readable(letter.event[...])),
                ])
        case .quarantine:
            let row = try KeptRows(kind, selection, state.figures, after: 0)
                .select(StoredQuarantineRecord.columns, limit: 1, in: file)
            guard try row.step() else { return nil }
            let record = StoredQuarantineRecord(row)
            return .object(record.json + [record.content])
        }
    }

    /// The next events as lines: queued ones and dead letters as they were accepted, quarantined ones each as a JSON
    /// object; at most about 1 MiB.
    public func export(
        _ kind: RecordStore, _ selection: RecordSelection = RecordSelection(), after: String? = nil
    ) throws(QueueError) -> RecordLines {
        try reading { file throws(QueueError) in try export(kind, selection, after: after, in: file) }
    }

    private func export(
        _ kind: RecordStore, _ selection: RecordSelection, after: String?, in file: QueueFile
    ) throws(QueueError) -> RecordLines {
        guard kind != .queue else { return try exportQueue(selection, after, file) }
        let rows = KeptRows(kind, selection, state.figures, after: after.flatMap { Int64($0) } ?? 0)
        var page = RecordLines()
        let columns = kind == .deadLetters ? DeadLetter.columns : StoredQuarantineRecord.columns
        let row = try rows.select(columns, limit: 10_000, in: file)
        defer { row.reset() }
        var count = 0
        while try row.step() {
            count += 1
            if kind == .deadLetters {
                page.lines += DeadLetter(row).event
            } else {
                let record = StoredQuarantineRecord(row)
                page.lines += Array("\(JSONValue.object(record.json + [record.content]))\n".utf8)
            }
            if page.lines.count >= 1 << 20 || count == 10_000 {
                page.next = "\(row.integer(0))"
                break
            }
        }
        return page
    }

    /// An event as JSON; as text should it be none.
    static func readable(_ line: ArraySlice<UInt8>) -> JSONValue {
        var line = line
        if line.last == UInt8(ascii: "\n") { line.removeLast() }
        do {
            return try JSONValue(parsing: Array(line))
        } catch {
            // It was valid when it was accepted: damage, which a person should see rather than nothing.
            return .string(String(decoding: line, as: UTF8.self))
        }
    }

    // MARK: Dead letters

    /// Sends dead letters again: they are queued anew for their destinations, and counted as retried.
    ///
    /// - Returns: how many.
    /// - Throws: `QueueError` with code `full` when the queue has no room for them; those before it are queued.
    public func retryDeadLetters(_ selection: RecordSelection = RecordSelection()) async throws(QueueError) -> Int {
        var total = 0
        var after: Int64 = 0
        while true {
            let start = after
            let part = try await write { transaction throws(QueueError) in
                try transaction.retrySome(selection, after: start)
            }
            total += part.count
            guard let last = part.last else { return total }
            after = last
        }
    }

    // MARK: Removing

    /// Removes records; of the queue they count as discarded, and what is in flight stays.
    ///
    /// - Returns: how many: events of the queue, records of the others.
    public func purge(
        _ kind: RecordStore, _ selection: RecordSelection = RecordSelection()
    ) async throws(QueueError) -> Int {
        guard kind != .queue else { return try await purgeQueue(selection) }
        var total = 0
        while true {
            let count = try await write { transaction throws(QueueError) in
                try transaction.purgeSome(kind, selection)
            }
            guard count > 0 else { return total }
            total += count
        }
    }

    // MARK: Quarantine

    /// The next quarantined lines that were kept whole, to be read again; at most 100.
    ///
    /// What was read of them is committed with their ids in `Commit.requeued`.
    public func quarantined(
        _ selection: RecordSelection = RecordSelection(), after: Int64 = 0
    ) throws(QueueError) -> [StoredQuarantineRecord] {
        try reading { file throws(QueueError) in
            var records: [StoredQuarantineRecord] = []
            let row = try KeptRows(.quarantine, selection, state.figures, after: after)
                .select(StoredQuarantineRecord.columns, limit: 100, in: file)
            while try row.step() { records.append(StoredQuarantineRecord(row)) }
            return records
        }
    }
}

extension Transaction {
    fileprivate mutating func retrySome(
        _ selection: RecordSelection, after: Int64
    ) throws(QueueError) -> (count: Int, last: Int64?) {
        var letters: [DeadLetter] = []
        let row = try KeptRows(.deadLetters, selection, state.figures, after: after)
            .select(DeadLetter.columns, limit: 500, in: file)
        while try row.step() { letters.append(DeadLetter(row)) }
        var rest = letters[...]
        while let first = rest.first {
            let run = rest.prefix { $0.destination == first.destination && $0.priority == first.priority }
                .prefix(max(1, state.options.batchEvents))
            rest.removeFirst(run.count)
            guard let lane = state.figures.lane(first.destination, first.priority) else { continue }
            try requeue(Array(run), lane)
        }
        return (letters.count, letters.last?.id)
    }

    private mutating func requeue(_ letters: [DeadLetter], _ lane: Int) throws(QueueError) {
        guard let first = letters.first else { return }
        let frame = letters.flatMap(\.event)
        let chunk = NewChunk(
            priority: first.priority, destinations: [state.figures.lanes[lane].name], events: letters.count,
            bytes: frame.count,
            eventTimes: letters.reduce(first.eventTimes) {
                min($0.lowerBound, $1.eventTimes.lowerBound)...max($0.upperBound, $1.eventTimes.upperBound)
            }, acceptedAt: time.wallTime, compression: .none, frame: frame, isFull: false)
        guard state.figures.totals.stored + chunk.cost <= state.effectiveCap else {
            throw QueueError(.full, "the queue has no room for dead letters; send or purge first")
        }
        try insert(chunk)
        // They were accepted before: once is enough.
        state.figures.totals.intake.accepted -= letters.count
        state.figures.lanes[lane].ledger.accepted -= letters.count
        state.figures.lanes[lane].ledger.retried += letters.count
        state.figures.lanes[lane].deadLetters -= letters.count
        for letter in letters { try remove(.deadLetters, letter.id, letter.cost) }
    }

    fileprivate mutating func purgeSome(_ kind: RecordStore, _ selection: RecordSelection) throws(QueueError) -> Int {
        var found: [(id: Int64, cost: Int)] = []
        let columns = kind == .deadLetters ? DeadLetter.columns : StoredQuarantineRecord.columns
        let row = try KeptRows(kind, selection, state.figures, after: 0).select(columns, limit: 500, in: file)
        while try row.step() {
            if kind == .deadLetters {
                let letter = DeadLetter(row)
                state.figures.forgetDeadLetter(letter.destination, letter.priority)
                found.append((letter.id, letter.cost))
            } else {
                found.append((Int64(row.integer(0)), StoredQuarantineRecord(row).cost))
            }
        }
        try tables.overwrites(true)
        for record in found { try remove(kind, record.id, record.cost) }
        try tables.overwrites(false)
        if kind == .deadLetters {
            state.figures.totals.deadLettersPurged += found.count
        } else {
            state.figures.totals.quarantinePurged += found.count
        }
        return found.count
    }

    /// Removes a dead letter or a quarantined line.
    mutating func remove(_ kind: RecordStore, _ id: Int64, _ cost: Int) throws(QueueError) {
        let isDeadLetter = kind == .deadLetters
        let delete = try tables.statement("DELETE FROM \(isDeadLetter ? "dead_letter" : "quarantine") WHERE id = ?")
        try delete.run(id)
        if isDeadLetter {
            state.figures.totals.deadLetters -= 1
            state.figures.totals.deadLetterBytes -= cost
        } else {
            state.figures.totals.quarantineRecords -= 1
            state.figures.totals.quarantineBytes -= cost
            state.figures.quarantineHeld = nil
        }
    }

    /// Takes lines out of the quarantine that a commit has read again.
    ///
    /// - Returns: how many.
    mutating func removeRequeued(_ ids: [Int64]) throws(QueueError) -> Int {
        guard !ids.isEmpty else { return 0 }
        var selection = RecordSelection()
        selection.ids = ids.map { "\($0)" }
        let row = try KeptRows(.quarantine, selection, state.figures, after: 0)
            .select(StoredQuarantineRecord.columns, limit: ids.count, in: file)
        var found: [StoredQuarantineRecord] = []
        while try row.step() { found.append(StoredQuarantineRecord(row)) }
        try tables.overwrites(true)
        for record in found { try remove(.quarantine, record.id, record.cost) }
        try tables.overwrites(false)
        return found.count
    }
}
