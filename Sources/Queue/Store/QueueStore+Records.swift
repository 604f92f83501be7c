internal import EventLoops
public import Model

// What a person asks of the queue, the dead letters and the quarantine.
extension QueueStore {
    /// A page of records without their content. Queued records come with critical ones first, then by
    /// destination and age; the others oldest first.
    ///
    /// - Parameters:
    ///   - after: `next` of the previous page.
    ///   - limit: most records in the page, 1 to 1,000.
    public func list(
        _ kind: RecordStore, _ selection: RecordSelection = RecordSelection(), after: String? = nil,
        limit: Int = 100
    ) throws(QueueError) -> RecordPage {
        let limit = min(max(limit, 1), 1_000)
        return try reading { file throws(QueueError) in
            var page = RecordPage()
            try read(kind, selection, after, limit, file) { record in
                page.records.append(.object(record.json(state)))
                if page.records.count == limit {
                    page.next = record.cursor
                }
                return page.next == nil
            }
            return page
        }
    }

    /// Passes the selected records behind a position to `body` until it returns false. Dead letters and
    /// quarantined lines are read in pages of `limit`.
    private func read(
        _ kind: RecordStore, _ selection: RecordSelection, _ after: String?, _ limit: Int, _ file: QueueFile,
        _ body: (any StoredRecord) throws(QueueError) -> Bool
    ) throws(QueueError) {
        guard kind != .queue else { return try QueuedRows(state, file).read(selection, after: after, body) }
        try KeptRows(kind, selection, state.figures, after: after.flatMap { Int64($0) } ?? 0)
            .read(limit: limit, in: file, body)
    }

    /// A record with its content; nil if the id is unknown.
    public func show(_ kind: RecordStore, id: String) throws(QueueError) -> JSONValue? {
        try reading { file throws(QueueError) in
            guard kind != .queue else { return try showQueue(id, file) }
            var selection = RecordSelection()
            selection.ids = [id]
            let record = try KeptRows(kind, selection, state.figures).read(limit: 1, in: file).first
            return record.map { .object($0.json(state) + $0.content) }
        }
    }

    /// The next selected events as lines, at most about 1 MiB. Queued events and dead letters are
    /// exported as they were accepted, quarantined lines each as a JSON object.
    public func export(
        _ kind: RecordStore, _ selection: RecordSelection = RecordSelection(), after: String? = nil
    ) throws(QueueError) -> RecordLines {
        try reading { file throws(QueueError) in
            var page = RecordLines()
            var count = 0
            try read(kind, selection, after, 10_000, file) { record throws(QueueError) in
                count += 1
                page.lines += try record.lines(state, file)
                if page.lines.count >= 1 << 20 || count == 10_000 {
                    page.next = record.cursor
                }
                return page.next == nil
            }
            return page
        }
    }

    /// An event as JSON; as text if it cannot be parsed.
    static func readable(_ line: ArraySlice<UInt8>) -> JSONValue {
        do {
            return try JSONValue(parsing: Array(line))
        } catch {
            // The event was valid JSON when it was accepted. Now it is damaged, and a person should see
            // it nevertheless.
            return .string(String(decoding: line, as: UTF8.self))
        }
    }

    /// Queues dead letters again for their destinations and counts them as retried.
    ///
    /// - Returns: number of dead letters that were queued.
    /// - Throws: `full` if the queue has no room for them; the ones before stay queued.
    public func retryDeadLetters(_ selection: RecordSelection = RecordSelection()) async throws(QueueError)
        -> Int
    {
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

    /// Removes records. Queued events count as discarded, and those in flight stay.
    ///
    /// - Returns: number of removed events of the queue, or of other records.
    public func purge(
        _ kind: RecordStore, _ selection: RecordSelection = RecordSelection()
    ) async throws(QueueError) -> Int {
        var total = 0
        if kind == .queue {
            total = try await purgeQueue(selection)
        } else {
            var count = 0
            repeat {
                count = try await write { transaction throws(QueueError) in
                    try transaction.purgeSome(kind, selection)
                }
                total += count
            } while count > 0
        }
        try await giveBackFreePages()
        return total
    }

    /// The next quarantined lines to be read again, at most 100. A commit with what was read from them
    /// names their ids in `Commit.requeued`.
    public func quarantined(
        _ selection: RecordSelection = RecordSelection(), after: Int64 = 0
    ) throws(QueueError) -> [StoredQuarantineRecord] {
        try reading { file throws(QueueError) in
            try KeptRows(.quarantine, selection, state.figures, after: after).read(limit: 100, in: file)
                .compactMap { $0 as? StoredQuarantineRecord }
        }
    }
}

extension Transaction {
    /// Queues up to 500 dead letters again, those of one lane and the same other destinations in
    /// chunks.
    fileprivate mutating func retrySome(
        _ selection: RecordSelection, after: Int64
    ) throws(QueueError) -> (count: Int, last: Int64?) {
        let letters = try KeptRows(.deadLetters, selection, state.figures, after: after)
            .read(limit: 500, in: file).compactMap { $0 as? DeadLetter }
        var rest = letters[...]
        while let first = rest.first {
            let run = rest.prefix { $0.lane == first.lane && $0.others == first.others }.prefix(
                max(1, state.options.batchEvents))
            rest.removeFirst(run.count)
            guard let lane = state.figures.lane(first.lane) else { continue }
            try requeue(Array(run), lane)
        }
        return (letters.count, letters.last?.id)
    }

    /// Stores dead letters of one lane as a chunk.
    private mutating func requeue(_ letters: [DeadLetter], _ lane: Int) throws(QueueError) {
        guard let first = letters.first else { return }
        let frame = letters.flatMap(\.event)
        var chunk = NewChunk(
            priority: first.lane.priority, destinations: [state.figures.lanes[lane].name],
            events: letters.count,
            bytes: frame.count,
            eventTimes: letters.reduce(first.eventTimes) {
                min($0.lowerBound, $1.eventTimes.lowerBound)...max($0.upperBound, $1.eventTimes.upperBound)
            }, acceptedAt: time.wallTime, compression: .none, frame: frame, isFull: false)
        chunk.origins = letters.map {
            EventOrigin(app: $0.app, path: "", offsets: [0], bytes: $0.event.count)
        }
        guard state.figures.totals.stored + chunk.cost <= state.effectiveCap else {
            throw QueueError(.full, "the queue has no room for dead letters; send or purge first")
        }
        // An older version did not record who else was to get the event, so any destination may have
        // it.
        let all = Set(state.figures.lanes.map(\.destination)).subtracting([first.lane.destination])
        try insert(
            chunk, others: first.others == "?" ? all.sorted().map { ",-\($0)" }.joined() : first.others)
        // `insert` counts the events as accepted. They were counted when they were first read; a second
        // time would unbalance the ledger.
        state.figures.totals.intake.accepted -= letters.count
        state.figures.lanes[lane].ledger.accepted -= letters.count
        state.figures.lanes[lane].ledger.retried += letters.count
        state.figures.lanes[lane].deadLetters -= letters.count
        for letter in letters { try remove(letter) }
    }

    /// Purges up to 500 records; returns how many.
    fileprivate mutating func purgeSome(_ kind: RecordStore, _ selection: RecordSelection) throws(QueueError)
        -> Int
    {
        let found = try removeAll(KeptRows(kind, selection, state.figures), limit: 500)
        for case let letter as DeadLetter in found { state.figures.forgetDeadLetter(letter.lane) }
        for record in found { state.figures.totals[keyPath: record.shelf.kept].purged += 1 }
        return found.count
    }

    /// Removes up to `limit` records and overwrites their pages.
    private mutating func removeAll(_ rows: KeptRows, limit: Int) throws(QueueError) -> [any KeptRecord] {
        let found = try rows.read(limit: limit, in: file)
        try tables.overwrites(true)
        for record in found { try remove(record) }
        try tables.overwrites(false)
        return found
    }

    /// Removes a dead letter or a quarantined line.
    mutating func remove(_ record: any KeptRecord) throws(QueueError) {
        try tables.run("DELETE FROM \(record.shelf.table) WHERE id = ?", record.id)
        state.figures.totals[keyPath: record.shelf.kept].remove(record.cost)
        state.figures[keyPath: record.shelf.bytesByApp] = nil
    }

    /// Removes quarantined lines that a commit has read again; returns how many.
    mutating func removeRequeued(_ ids: [Int64]) throws(QueueError) -> Int {
        guard !ids.isEmpty else { return 0 }
        var selection = RecordSelection()
        selection.ids = ids.map { "\($0)" }
        return try removeAll(KeptRows(.quarantine, selection, state.figures), limit: ids.count).count
    }
}
