internal import EventLoops
internal import Model

/// A dead letter or a quarantined line, as it was read back.
protocol KeptRecord {
    init(_ row: Statement)
    var id: Int64 { get }
    /// What it counts for in its bound.
    var cost: Int { get }
    /// The record without its content.
    func json(_ figures: Figures) -> [JSONValue.Member]
    /// What was kept, for a person.
    var content: [JSONValue.Member] { get }
    /// The record as a line of an export.
    func line(_ figures: Figures) -> [UInt8]
}

/// Selects rows of `dead_letter` and `quarantine`, page by page.
struct KeptRows {
    private let isDeadLetters: Bool
    private var conditions: [String] = []
    private var values: [Value] = []

    private enum Value {
        case text(String)
        case number(Int64)
    }

    /// - Parameter after: only rows of higher ids.
    init(_ kind: RecordStore, _ selection: RecordSelection, _ figures: Figures, after: Int64 = 0) {
        isDeadLetters = kind == .deadLetters
        add("id > ?", .number(after))
        if let destination = selection.destination, isDeadLetters {
            add(
                "destination = ?",
                .number(figures.lane(destination, .normal).map { figures.lanes[$0].destination } ?? -1))
        }
        if let priority = selection.priority, isDeadLetters {
            add("priority = ?", .number(Int64(priority.rawValue)))
        }
        if let app = selection.app { add("app = ?", .text(app)) }
        if let reason = selection.reason { add(isDeadLetters ? "kind = ?" : "reason = ?", .text(reason)) }
        if let ids = selection.ids {
            // Numbers only, so that they can be in the statement however many they are.
            conditions.append("id IN (\(ids.compactMap { Int64($0) }.map { "\($0)" }.joined(separator: ", ")))")
        }
    }

    private mutating func add(_ condition: String, _ value: Value) {
        conditions.append(condition)
        values.append(value)
    }

    /// The records in the order of their ids, as long as `body` wants more.
    func read(limit: Int, in file: QueueFile, _ body: (any KeptRecord) -> Bool) throws(QueueError) {
        let source =
            isDeadLetters
            ? "\(DeadLetter.columns) FROM dead_letter" : "\(StoredQuarantineRecord.columns) FROM quarantine"
        let statement = try file.database.prepare(
            "SELECT \(source) WHERE \(conditions.joined(separator: " AND ")) ORDER BY id LIMIT \(limit)")
        for (place, value) in values.enumerated() {
            switch value {
            case .text(let text): statement.bind(Int32(place + 1), text)
            case .number(let number): statement.bind(Int32(place + 1), number)
            }
        }
        while try statement.step(), body(isDeadLetters ? DeadLetter(statement) : StoredQuarantineRecord(statement)) {}
    }

    /// All of them.
    func read(limit: Int, in file: QueueFile) throws(QueueError) -> [any KeptRecord] {
        var records: [any KeptRecord] = []
        try read(limit: limit, in: file) {
            records.append($0)
            return true
        }
        return records
    }
}

struct DeadLetter: KeptRecord {
    static let columns =
        "id, destination, priority, batch, accepted_at, first_time, last_time, rejected_at, kind, status, message, "
        + "excerpt, event, app"

    let id: Int64
    let lane: LaneKey
    let batch: BatchID?
    let acceptedAt: Timestamp
    let eventTimes: ClosedRange<Timestamp>
    let rejectedAt: Timestamp
    let kind: String
    let status: Int?
    let message: String
    let excerpt: String
    let event: [UInt8]
    let app: String

    init(_ row: Statement) {
        id = Int64(row.integer(0))
        lane = LaneKey(row, at: 1) ?? LaneKey(destination: Int64(row.integer(1)), priority: .normal)
        batch = BatchID(raw: row.raw(3))
        acceptedAt = Timestamp(nanoseconds: Int64(row.integer(4)))
        let first = Timestamp(nanoseconds: Int64(row.integer(5)))
        eventTimes = first...max(first, Timestamp(nanoseconds: Int64(row.integer(6))))
        rejectedAt = Timestamp(nanoseconds: Int64(row.integer(7)))
        kind = row.text(8)
        status = row.isNull(9) ? nil : row.integer(9)
        message = row.text(10)
        excerpt = row.text(11)
        event = row.bytes(12)
        app = row.text(13)
    }

    var cost: Int { keptCost(event.count + message.utf8.count + excerpt.utf8.count) }

    func json(_ figures: Figures) -> [JSONValue.Member] {
        let name = figures.lanes.first { $0.destination == lane.destination }?.name.text
        return [
            .init("id", .string("\(id)")), .init("destination", JSONValue(name)),
            .init("app", JSONValue(app.isEmpty ? nil : app)), .init("priority", .string(lane.priority.name)),
            .init("reason", .string(kind)),
            .init("status", JSONValue(status)), .init("message", .string(message)),
            .init("bytes", .integer(event.count)), .init("batch", JSONValue(batch?.description)),
            .init("accepted_ms", .integer(Int(acceptedAt.milliseconds))),
            .init("rejected_ms", .integer(Int(rejectedAt.milliseconds))),
        ]
    }

    var content: [JSONValue.Member] {
        [.init("answer", .string(excerpt)), .init("event", QueueStore.readable(event[...]))]
    }

    func line(_ figures: Figures) -> [UInt8] { event }
}

extension StoredQuarantineRecord: KeptRecord {
    static let columns = "id, reason, detail, app, path, offset, length, time, content"

    init(_ row: Statement) {
        id = Int64(row.integer(0))
        record = QuarantineRecord(
            reason: .init(rawValue: row.text(1)) ?? .unknown, detail: row.text(2), app: row.text(3), path: row.text(4),
            offset: Int64(row.integer(5)), length: Int64(row.integer(6)), content: row.bytes(8),
            time: Timestamp(nanoseconds: Int64(row.integer(7))))
    }

    var cost: Int { record.cost }

    func json(_ figures: Figures) -> [JSONValue.Member] {
        [
            .init("id", .string("\(id)")), .init("reason", .string(record.reason.rawValue)),
            .init("detail", .string(record.detail)), .init("app", .string(record.app)),
            .init("path", .string(record.path)), .init("offset", .integer(Int(record.offset))),
            .init("length", .integer(Int(record.length))), .init("time_ms", .integer(Int(record.time.milliseconds))),
        ]
    }

    /// The line as text, or as hexadecimal digits where it is none.
    var content: [JSONValue.Member] {
        if let text = String(validating: record.content, as: UTF8.self) { return [.init("content", .string(text))] }
        return [.init("content_hex", .string(Hexadecimal.text(record.content)))]
    }

    func line(_ figures: Figures) -> [UInt8] { Array("\(JSONValue.object(json(figures) + content))\n".utf8) }
}
