internal import EventLoops
internal import Model

/// The queue's own record: a row of table `delivery`.
private struct QueuedRecord: StoredRecord {
    /// The lane's place in `Figures.lanes`.
    let lane: Int
    let row: DeliveryRow

    var place: String { "\(lane).\(row.chunk).\(row.first)" }

    func id(_ state: QueueState) -> String { "\(state.figures.lanes[lane].name)/\(row.chunk).\(row.first)" }

    /// Whether its own id or that of its batch is one of these.
    func isNamed(in ids: Set<String>, _ state: QueueState) -> Bool {
        ids.contains(id(state)) || row.batch.map { ids.contains($0.description) } ?? false
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
            .init("id", .string(id(state))), .init("destination", .string(state.figures.lanes[lane].name.text)),
            .init("priority", .string(state.figures.lanes[lane].priority.name)), .init("state", .string(word)),
            .init("events", .integer(row.events)), .init("bytes", .integer(row.bytes)),
            .init("batch", JSONValue(row.batch?.description)),
            .init("accepted_ms", .integer(Int(row.acceptedAt.milliseconds))),
            .init("first_event_ms", .integer(Int(row.firstTime.milliseconds))),
            .init("deadlines", JSONValue(row.deadlines?.text)),
        ]
    }

    /// What is damaged is left out here, and counted as lost when it is to be sent.
    func lines(_ state: QueueState, _ file: QueueFile) throws(QueueError) -> [UInt8] {
        guard let chunk = try file.readChunk(row.chunk), let lines = state.environment.unpacker.lines(of: chunk) else {
            return []
        }
        return Array(lines.slice(row.first..<row.first + row.events))
    }
}

extension QueueStore {
    func showQueue(_ id: String, _ file: QueueFile) throws(QueueError) -> JSONValue? {
        guard let (lane, rows) = try state.rows(id, file), let first = rows.first else { return nil }
        var events: [JSONValue] = []
        for row in rows {
            let lines = Lines(try QueuedRecord(lane: lane, row: row).lines(state, file))
            events += (0..<lines.count).map { QueueStore.readable(lines.slice($0..<$0 + 1)) }
        }
        var members = QueuedRecord(lane: lane, row: first).json(state)
        members.removeAll { $0.key == "events" }
        return .object(members + [.init("events", .array(events))])
    }

    func purgeQueue(_ selection: RecordSelection) async throws(QueueError) -> Int {
        var total = 0
        guard let ids = selection.ids else {
            for name in Set(state.figures.lanes.map(\.name)) where selection.destination ?? name == name {
                total += try await discard(name, selection.priority, reason: "purged")
            }
            return total
        }
        // All or none: what was asked for and refused must not be gone in part.
        return try await write { transaction throws(QueueError) in
            for id in ids { try transaction.checkWhole(id, Set(ids)) }
            var total = 0
            for id in ids {
                guard let (lane, rows) = try transaction.state.rows(id, transaction.file) else { continue }
                total += try transaction.discard(rows, lane, "purged")
            }
            return total
        }
    }
}

extension Transaction {
    /// Throws where others that nobody named are in one batch with an entry: they would go with it.
    fileprivate func checkWhole(_ id: String, _ ids: Set<String>) throws(QueueError) {
        guard let (lane, rows) = try state.rows(id, file), let row = rows.first else { return }
        let others = try file.members(with: row).map { QueuedRecord(lane: lane, row: $0) }
            .filter { !$0.isNamed(in: ids, state) }
        guard let first = others.first, let batch = row.batch else { return }
        let events = others.reduce(0) { $0 + $1.row.events }
        throw QueueError(
            .misuse,
            "\(id) is in one batch with \(others.count) others (\(first.id(state)) …, \(events) events): "
                + "to remove all of it, name the batch: \(batch)")
    }
}

extension QueueState {
    /// Goes through the selected rows behind a place until `body` returns false: by priority, destination and age.
    func readQueue(
        _ selection: RecordSelection, after: String?, in file: QueueFile,
        _ body: (any StoredRecord) throws(QueueError) -> Bool
    ) throws(QueueError) {
        let place = after?.split(separator: ".").compactMap { Int64($0) } ?? []
        let from = place.count == 3 ? (lane: Int(place[0]), chunk: place[1], first: Int(place[2])) : nil
        let ids = selection.ids.map { Set($0) }
        let ordered = Priority.allCases.reversed().flatMap { priority in
            figures.lanes.indices.filter { figures.lanes[$0].priority == priority }
        }
        var isOver = false
        for index in ordered.drop(while: { from != nil && $0 != from?.lane }) where !isOver {
            let lane = figures.lanes[index]
            guard selection.priority ?? lane.priority == lane.priority, selection.destination ?? lane.name == lane.name
            else { continue }
            let start = from.flatMap { $0.lane == index ? $0 : nil }
            try file.walk(lane.key, from: start?.chunk ?? 0) { row throws(QueueError) in
                if let start, (row.chunk, row.first) <= (start.chunk, start.first) { return true }
                let record = QueuedRecord(lane: index, row: row)
                if let ids, !record.isNamed(in: ids, self) { return true }
                isOver = try !body(record)
                return !isOver
            }
        }
    }

    func rows(_ id: String, _ file: QueueFile) throws(QueueError) -> (lane: Int, rows: [DeliveryRow])? {
        if let batch = BatchID(id) {
            guard let found = try file.lookUp(batch), let lane = figures.lane(found.lane) else { return nil }
            return (lane, found.rows)
        }
        guard let slash = id.lastIndex(of: "/") else { return nil }
        let numbers = id[id.index(after: slash)...].split(separator: ".").compactMap { Int64($0) }
        guard numbers.count == 2 else { return nil }
        let name = DestinationName(String(id[..<slash]))
        for lane in figures.lanes.indices where figures.lanes[lane].name == name {
            let found = try file.rows(of: numbers[0], in: figures.lanes[lane].key).filter {
                $0.first == Int(numbers[1])
            }
            if !found.isEmpty { return (lane, found) }
        }
        return nil
    }
}
