internal import EventLoops
internal import Model

/// A row of table `delivery` as a record for a person.
private struct QueuedRecord: StoredRecord {
    /// Index of the lane in `Figures.lanes`.
    let lane: Int
    /// The lane's destination.
    let name: DestinationName
    let row: DeliveryRow

    var cursor: String { "\(lane).\(row.chunk).\(row.first)" }

    /// The record's id: destination, chunk and first event, such as `main/17.0`.
    var id: String { "\(name)/\(row.chunk).\(row.first)" }

    /// Whether the ids contain this record's id or that of its batch.
    func isNamed(in ids: Set<String>) -> Bool {
        ids.contains(id) || row.batch.map { ids.contains($0.description) } ?? false
    }

    func json(_ state: QueueState) -> [JSONValue.Member] {
        let word =
            switch row.batch.flatMap({ state.held[$0]?.status }) {
            case .leased?: "leased"
            case .acknowledged?: "acknowledged"
            case .free?: "retry"
            case nil: row.isFormed ? "retry" : row.batch == nil ? "waiting" : "full"
            }
        return [
            .init("id", .string(id)),
            .init("destination", .string(name.text)),
            .init("priority", .string(state.figures.lanes[lane].priority.name)),
            .init("state", .string(word)),
            .init("events", .integer(row.events)), .init("bytes", .integer(row.bytes)),
            .init("batch", JSONValue(row.batch?.description)),
            .init("accepted_ms", .integer(Int(row.acceptedAt.milliseconds))),
            .init("first_event_ms", .integer(Int(row.firstTime.milliseconds))),
            .init("deadlines", JSONValue(row.deadlines?.text)),
        ]
    }

    /// The row's lines. A damaged chunk gives none; its events are counted as lost when they are due to
    /// be sent.
    func lines(_ state: QueueState, _ file: QueueFile) throws(QueueError) -> [UInt8] {
        guard let chunk = try file.readChunk(row.chunk),
            let lines = state.environment.unpacker.lines(of: chunk)
        else {
            return []
        }
        return Array(lines.slice(row.first..<row.first + row.events))
    }
}

extension QueueStore {
    /// A record or a batch with its events; nil if the id is unknown.
    func showQueue(_ id: String, _ file: QueueFile) throws(QueueError) -> JSONValue? {
        guard let (lane, rows) = try QueuedRows(state, file).named(id), let first = rows.first else {
            return nil
        }
        let name = state.figures.lanes[lane].name
        var events: [JSONValue] = []
        for row in rows {
            let lines = Lines(try QueuedRecord(lane: lane, name: name, row: row).lines(state, file))
            events += (0..<lines.count).map { QueueStore.readable(lines.slice($0..<$0 + 1)) }
        }
        var members = QueuedRecord(lane: lane, name: name, row: first).json(state)
        members.removeAll { $0.key == "events" }
        return .object(members + [.init("events", .array(events))])
    }

    /// Discards selected records, by their ids or by destination and priority.
    func purgeQueue(_ selection: RecordSelection) async throws(QueueError) -> Int {
        var total = 0
        guard let ids = selection.ids else {
            for name in Set(state.figures.lanes.map(\.name)) where selection.destination ?? name == name {
                total += try await discard(name, selection.priority, reason: "purged")
            }
            return total
        }
        // All or nothing: a purge that is refused must not have removed some of the records.
        return try await write { transaction throws(QueueError) in
            for id in ids { try transaction.checkWhole(id, Set(ids)) }
            var total = 0
            for id in ids {
                let rows = QueuedRows(transaction.state, transaction.file)
                guard let (lane, rows) = try rows.named(id) else { continue }
                total += try transaction.discard(rows, lane, "purged")
            }
            return total
        }
    }
}

extension Transaction {
    /// - Throws: `misuse` if the record is in a batch with records that are not named: a batch can be
    ///   removed only as a whole, so they would be removed too.
    fileprivate func checkWhole(_ id: String, _ ids: Set<String>) throws(QueueError) {
        guard let (lane, rows) = try QueuedRows(state, file).named(id), let row = rows.first else { return }
        let name = state.figures.lanes[lane].name
        let others = try file.members(with: row).map { QueuedRecord(lane: lane, name: name, row: $0) }
            .filter { !$0.isNamed(in: ids) }
        guard let first = others.first, let batch = row.batch else { return }
        let events = others.reduce(0) { $0 + $1.row.events }
        throw QueueError(
            .misuse,
            "\(id) is in one batch with \(others.count) others (\(first.id) …, \(events) events): "
                + "to remove all of it, name the batch: \(batch)")
    }
}

/// Finds waiting rows for a person, by the ids that people see.
struct QueuedRows {
    private let lanes: [Lane]
    private let file: QueueFile

    init(_ state: QueueState, _ file: QueueFile) {
        lanes = state.figures.lanes
        self.file = file
    }

    /// Passes the selected rows behind `after` to `body` until it returns false: by priority,
    /// destination and age.
    func read(
        _ selection: RecordSelection, after: String?,
        _ body: (any StoredRecord) throws(QueueError) -> Bool
    ) throws(QueueError) {
        let position = after?.split(separator: ".").compactMap { Int64($0) } ?? []
        let from =
            position.count == 3 ? (lane: Int(position[0]), chunk: position[1], first: Int(position[2])) : nil
        let ids = selection.ids.map { Set($0) }
        let ordered = Priority.allCases.reversed().flatMap { priority in
            lanes.indices.filter { lanes[$0].priority == priority }
        }
        var isOver = false
        for index in ordered.drop(while: { from != nil && $0 != from?.lane }) where !isOver {
            let lane = lanes[index]
            guard selection.priority ?? lane.priority == lane.priority,
                selection.destination ?? lane.name == lane.name
            else { continue }
            let start = from.flatMap { $0.lane == index ? $0 : nil }
            try file.walk(lane.key, from: start?.chunk ?? 0) { row throws(QueueError) in
                if let start, (row.chunk, row.first) <= (start.chunk, start.first) { return true }
                let record = QueuedRecord(lane: index, name: lane.name, row: row)
                if let ids, !record.isNamed(in: ids) { return true }
                isOver = try !body(record)
                return !isOver
            }
        }
    }

    /// The rows that an id names, which may be that of a batch or of a record, with their lane.
    func named(_ id: String) throws(QueueError) -> (lane: Int, rows: [DeliveryRow])? {
        if let batch = BatchID(id) {
            guard let found = try file.lookUp(batch),
                let lane = lanes.firstIndex(where: { $0.key == found.lane })
            else { return nil }
            return (lane, found.rows)
        }
        guard let slash = id.lastIndex(of: "/") else { return nil }
        let numbers = id[id.index(after: slash)...].split(separator: ".").compactMap { Int64($0) }
        guard numbers.count == 2 else { return nil }
        let name = DestinationName(String(id[..<slash]))
        for lane in lanes.indices where lanes[lane].name == name {
            let found = try file.rows(of: numbers[0], in: lanes[lane].key).filter {
                $0.first == Int(numbers[1])
            }
            if !found.isEmpty { return (lane, found) }
        }
        return nil
    }
}
