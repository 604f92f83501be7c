internal import EventLoops
internal import Model

/// A record that the commands `list`, `show` and `export` present: queued events, a dead letter, or a
/// quarantined line.
protocol StoredRecord {
    /// Position of the record in its listing; passed as `after`, it gives the page behind the record.
    var cursor: String { get }
    /// The record's members without its content.
    func json(_ state: QueueState) -> [JSONValue.Member]
    /// The record as lines of an export.
    func lines(_ state: QueueState, _ file: QueueFile) throws(QueueError) -> [UInt8]
}

/// A table that keeps records for a person, within a bound of its own: dead letters or the quarantine.
struct Shelf {
    let table: String
    /// Column with the time at which a record was added.
    let time: String
    /// SQL for a record's destination and priority; `0, 0` for quarantined lines, which have neither.
    let lane: String
    /// SQL for the size of a record's content, in bytes.
    let length: String
    /// Whether rows may hold text that containers would hide. Deleted rows are then overwritten on disk
    /// (`TableWriter.overwrites`).
    let mayBeInClear: Bool
    /// Count and bytes of the table's rows.
    let kept: WritableKeyPath<Totals, QueueSnapshot.Kept>
    /// Bytes by app, from which the app that gives up records first is chosen; nil until that is
    /// needed.
    let bytesByApp: WritableKeyPath<Figures, [String: Int]?>

    static var deadLetters: Shelf {
        Shelf(
            table: "dead_letter", time: "rejected_at", lane: "destination, priority",
            length: "length(event) + length(CAST(message AS BLOB)) + length(CAST(excerpt AS BLOB))",
            mayBeInClear: false, kept: \.deadLetters, bytesByApp: \.deadLettersHeld)
    }

    static var quarantine: Shelf {
        Shelf(
            table: "quarantine", time: "time", lane: "0, 0",
            length: "length(content) + length(CAST(detail AS BLOB)) + length(CAST(app AS BLOB)) "
                + "+ length(CAST(path AS BLOB))",
            mayBeInClear: true, kept: \.quarantine, bytesByApp: \.quarantineHeld)
    }
}

/// A dead letter or a quarantined line, as it was read back.
protocol KeptRecord: StoredRecord {
    var shelf: Shelf { get }
    var id: Int64 { get }
    /// Bytes that the record counts toward the bound of its table.
    var cost: Int { get }
    /// Members with the kept content, for `show`.
    var content: [JSONValue.Member] { get }
}

extension KeptRecord {
    var cursor: String { "\(id)" }
}

/// Selects rows of `dead_letter` and `quarantine`, page by page, in the order of their ids.
struct KeptRows {
    private let isDeadLetters: Bool
    /// SQL conditions, each with one `?` for the value at the same index. The condition on ids comes
    /// last and has no `?`.
    private var conditions: [String] = []
    /// Values of the conditions' parameters, in order.
    private var values: [any SQLValue] = []

    /// - Parameter after: only rows with higher ids.
    init(_ kind: RecordStore, _ selection: RecordSelection, _ figures: Figures, after: Int64 = 0) {
        isDeadLetters = kind == .deadLetters
        add("id > ?", after)
        if let destination = selection.destination, isDeadLetters {
            add(
                "destination = ?",
                figures.lane(destination, .normal).map { figures.lanes[$0].destination } ?? -1)
        }
        if let priority = selection.priority, isDeadLetters {
            add("priority = ?", priority)
        }
        if let app = selection.app {
            add("app = ?", app)
        }
        if let reason = selection.reason {
            add(isDeadLetters ? "kind = ?" : "reason = ?", reason)
        }
        if let ids = selection.ids {
            // The ids are parsed as numbers, so they can be part of the SQL text. As parameters they
            // would be limited by SQLITE_MAX_VARIABLE_NUMBER:
            // https://www.sqlite.org/limits.html#max_variable_number
            conditions.append(
                "id IN (\(ids.compactMap { Int64($0) }.map { "\($0)" }.joined(separator: ", ")))")
        }
    }

    /// Adds a condition with its parameter.
    private mutating func add(_ condition: String, _ value: any SQLValue) {
        conditions.append(condition)
        values.append(value)
    }

    /// Passes the records to `body` in the order of their ids until it returns false.
    func read(limit: Int, in file: QueueFile, _ body: (any KeptRecord) throws(QueueError) -> Bool)
        throws(QueueError)
    {
        let source =
            isDeadLetters
            ? "\(DeadLetter.columns) FROM dead_letter" : "\(StoredQuarantineRecord.columns) FROM quarantine"
        let statement = try file.database.prepare(
            "SELECT \(source) WHERE \(conditions.joined(separator: " AND ")) ORDER BY id LIMIT \(limit)")
        for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
        while try statement.step(),
            try body(isDeadLetters ? DeadLetter(statement) : StoredQuarantineRecord(statement))
        {}
    }

    /// All selected records, at most `limit`.
    func read(limit: Int, in file: QueueFile) throws(QueueError) -> [any KeptRecord] {
        var records: [any KeptRecord] = []
        try read(limit: limit, in: file) {
            records.append($0)
            return true
        }
        return records
    }
}

/// An event that a destination rejected permanently.
struct DeadLetter: KeptRecord {
    /// Columns in the order in which `init` reads them.
    static let columns =
        "id, destination, priority, batch, accepted_at, first_time, last_time, rejected_at, kind, status, "
        + "message, excerpt, event, app, also_for"

    var shelf: Shelf { .deadLetters }
    let id: Int64
    /// The destination that rejected the event, and the event's priority.
    let lane: LaneKey
    /// The batch in which the event was rejected; nil if the stored id is damaged.
    let batch: BatchID?
    let acceptedAt: Timestamp
    /// Least and greatest event time of the chunk that the event was in.
    let eventTimes: ClosedRange<Timestamp>
    let rejectedAt: Timestamp
    /// Kind of the failure, as in metrics.
    let kind: String
    /// HTTP status of the answer; nil for other protocols and failures without one.
    let status: Int?
    let message: String
    /// Beginning of the destination's answer.
    let excerpt: String
    /// The event's line, with its line feed.
    let event: [UInt8]
    let app: String
    /// Other destinations that the event was accepted for, such as `,-1,-3`; `?` if an older version
    /// stored the record without them. A retried event must not reach these a second time (`isMeant`).
    let others: String

    init(_ row: Statement) {
        id = Int64(row.integer(0))
        lane = LaneKey(row, at: 1) ?? LaneKey(destination: Int64(row.integer(1)), priority: .normal)
        batch = BatchID(raw: row.raw(3))
        acceptedAt = row.time(4)
        eventTimes = row.time(5)...max(row.time(5), row.time(6))
        rejectedAt = row.time(7)
        kind = row.text(8)
        status = row.isNull(9) ? nil : row.integer(9)
        message = row.text(10)
        excerpt = row.text(11)
        event = row.bytes(12)
        app = row.text(13)
        others = row.text(14)
    }

    var cost: Int { keptCost(event.count + message.utf8.count + excerpt.utf8.count) }

    func json(_ state: QueueState) -> [JSONValue.Member] {
        let name = state.figures.lanes.first { $0.destination == lane.destination }?.name.text
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

    func lines(_ state: QueueState, _ file: QueueFile) -> [UInt8] { event }
}

extension StoredQuarantineRecord: KeptRecord {
    var shelf: Shelf { .quarantine }

    /// Columns in the order in which `init` reads them.
    static let columns = "id, reason, detail, app, path, offset, length, time, content"

    init(_ row: Statement) {
        id = Int64(row.integer(0))
        record = QuarantineRecord(
            reason: .init(rawValue: row.text(1)) ?? .unknown, detail: row.text(2), app: row.text(3),
            path: row.text(4),
            offset: Int64(row.integer(5)), length: Int64(row.integer(6)), content: row.bytes(8),
            time: row.time(7))
    }

    var cost: Int { record.cost }

    func json(_ state: QueueState) -> [JSONValue.Member] {
        [
            .init("id", .string("\(id)")), .init("reason", .string(record.reason.rawValue)),
            .init("detail", .string(record.detail)), .init("app", .string(record.app)),
            .init("path", .string(record.path)), .init("offset", .integer(Int(record.offset))),
            .init("length", .integer(Int(record.length))),
            .init("time_ms", .integer(Int(record.time.milliseconds))),
        ]
    }

    /// The line as text, or as hexadecimal digits if it is not UTF-8.
    var content: [JSONValue.Member] {
        if let text = String(validating: record.content, as: UTF8.self) {
            return [.init("content", .string(text))]
        }
        return [.init("content_hex", .string(Hexadecimal.text(record.content)))]
    }

    func lines(_ state: QueueState, _ file: QueueFile) -> [UInt8] {
        Array("\(JSONValue.object(json(state) + content))\n".utf8)
    }
}
