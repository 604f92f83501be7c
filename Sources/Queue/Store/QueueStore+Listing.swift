internal import EventLoops
internal import Model

// The queue's own records: one for each row of table `delivery`.
extension QueueStore {
    /// Where a page ends.
    private struct Place {
        let lane: Int
        let chunk: Int64
        let first: Int

        init(lane: Int, chunk: Int64, first: Int) {
            self.lane = lane
            self.chunk = chunk
            self.first = first
        }

        init?(_ text: String) {
            let numbers = text.split(separator: ".").compactMap { Int64($0) }
            guard numbers.count == 3, numbers[0] >= 0 else { return nil }
            self.init(lane: Int(numbers[0]), chunk: numbers[1], first: Int(numbers[2]))
        }

        var text: String { "\(lane).\(chunk).\(first)" }
    }

    /// Goes through the selected rows: critical ones first, by destination, the oldest first.
    private func walk(
        _ selection: RecordSelection, _ after: String?, _ file: QueueFile,
        _ body: (Int, DeliveryRow) throws(QueueError) -> Bool
    ) throws(QueueError) {
        let from = after.flatMap { Place($0) }
        var isReached = from == nil
        for priority in Priority.allCases.reversed() where selection.priority ?? priority == priority {
            for lane in state.figures.lanes.indices where state.figures.lanes[lane].priority == priority {
                guard selection.destination ?? state.figures.lanes[lane].name == state.figures.lanes[lane].name else {
                    continue
                }
                let isStart = from?.lane == lane
                guard isReached || isStart else { continue }
                isReached = true
                var isOver = false
                let start = state.figures.lanes[lane]
                let chunk = isStart ? from?.chunk ?? 0 : 0
                try file.walk(start.key, from: chunk) { row throws(QueueError) in
                    if isStart, let from, (row.chunk, row.first) <= (from.chunk, from.first) { return true }
                    guard try body(lane, row) else {
                        isOver = true
                        return false
                    }
                    return true
                }
                if isOver { return }
            }
        }
    }

    private func id(_ lane: Int, _ row: DeliveryRow) -> String {
        "\(state.figures.lanes[lane].name)/\(row.chunk).\(row.first)"
    }

    private func matches(_ lane: Int, _ row: DeliveryRow, _ ids: Set<String>?) -> Bool {
        guard let ids else { return true }
        return ids.contains(id(lane, row)) || row.batch.map { ids.contains($0.description) } ?? false
    }

    private func json(_ lane: Int, _ row: DeliveryRow) -> [JSONValue.Member] {
        let word =
            switch row.batch.flatMap({ state.held[$0]?.status }) {
            case .leased?: "leased"
            case .acknowledged?: "acknowledged"
            case .free?: "retry"
            case nil: row.isFormed ? "retry" : row.batch == nil ? "waiting" : "full"
            }
        return [
            .init("id", .string(id(lane, row))), .init("destination", .string(state.figures.lanes[lane].name.text)),
            .init("priority", .string(state.figures.lanes[lane].priority.name)), .init("state", .string(word)),
            .init("events", .integer(row.events)), .init("bytes", .integer(row.bytes)),
            .init("batch", JSONValue(row.batch?.description)),
            .init("accepted_ms", .integer(Int(row.acceptedAt.milliseconds))),
            .init("first_event_ms", .integer(Int(row.firstTime.milliseconds))),
            .init("deadlines", JSONValue(row.deadlines?.text)),
        ]
    }

    func listQueue(
        _ selection: RecordSelection, _ after: String?, _ limit: Int, _ file: QueueFile
    ) throws(QueueError) -> RecordPage {
        var page = RecordPage()
        let ids = selection.ids.map { Set($0) }
        try walk(selection, after, file) { lane, row in
            guard matches(lane, row, ids) else { return true }
            page.records.append(.object(json(lane, row)))
            guard page.records.count == limit else { return true }
            page.next = Place(lane: lane, chunk: row.chunk, first: row.first).text
            return false
        }
        return page
    }

    func showQueue(_ id: String, _ file: QueueFile) throws(QueueError) -> JSONValue? {
        guard let (lane, rows) = try state.rows(id, file), let first = rows.first else { return nil }
        var events: [JSONValue] = []
        for row in rows {
            guard let chunk = try file.readChunk(row.chunk), let lines = state.surroundings.unpacker.lines(of: chunk)
            else { continue }
            for line in row.first..<row.first + row.events {
                events.append(QueueStore.readable(lines.slice(line..<line + 1)))
            }
        }
        var members = json(lane, first)
        members.removeAll { $0.key == "events" }
        return .object(members + [.init("events", .array(events))])
    }

    func exportQueue(
        _ selection: RecordSelection, _ after: String?, _ file: QueueFile
    ) throws(QueueError) -> RecordLines {
        var page = RecordLines()
        let ids = selection.ids.map { Set($0) }
        var found: [(lane: Int, row: DeliveryRow)] = []
        var bytes = 0
        try walk(selection, after, file) { lane, row in
            guard matches(lane, row, ids) else { return true }
            found.append((lane, row))
            bytes += row.bytes
            guard bytes >= 1 << 20 || found.count == 10_000 else { return true }
            page.next = Place(lane: lane, chunk: row.chunk, first: row.first).text
            return false
        }
        for (_, row) in found {
            // What is damaged is left out here, and counted as lost when it is to be sent.
            guard let chunk = try file.readChunk(row.chunk), let lines = state.surroundings.unpacker.lines(of: chunk)
            else { continue }
            page.lines += lines.slice(row.first..<row.first + row.events)
        }
        return page
    }

    func purgeQueue(_ selection: RecordSelection) async throws(QueueError) -> Int {
        var total = 0
        guard let ids = selection.ids else {
            for name in Set(state.figures.lanes.map(\.name)) where selection.destination ?? name == name {
                total += try await discard(name, selection.priority, reason: "purged")
            }
            return total
        }
        for id in ids {
            total += try await write { transaction throws(QueueError) in
                guard let (lane, rows) = try transaction.state.rows(id, transaction.file) else { return 0 }
                return try transaction.discard(rows, lane, "purged")
            }
        }
        return total
    }
}

extension QueueState {
    /// The rows that an id names: one row, or all of a batch.
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
