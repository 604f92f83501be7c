internal import EventLoops
internal import Model

/// What the records of a batch hold besides their topics and headers, found in one pass over its lines.
struct KafkaDrafts {
    private struct Draft {
        /// Range of the event in the lines, and range of its id in `ids`.
        let value: Range<Int>
        let eventID: Range<Int>
        let key: [UInt8]?
        let time: Int64
    }

    private var drafts: [Draft] = []
    /// The ids of all events, one after the other.
    private let ids: [UInt8]

    /// - Parameter key: the member whose value is the key, as a name or path with dots; `none` for no keys.
    /// - Throws: `OutputError` with code `badBatch` if a line is not an object.
    init(_ lines: [UInt8], of header: BatchHeader, key: String) throws(OutputError) {
        let path = key == "none" ? nil : KafkaKey(key)
        var found: [Draft] = []
        found.reserveCapacity(header.events)
        var written = BodyBuffer(capacity: header.events * 56)
        var end = 0
        try EventScan.forEach(lines) { event, index in
            let start = written.count
            event.writeStableID(in: header.id, at: index, to: &written)
            // Empty lines are no events.
            while lines[end] == 0x0A { end += 1 }
            found.append(
                Draft(
                    value: end..<end + event.line.count, eventID: start..<written.count,
                    key: path?.value(of: event),
                    // A record cannot have a time before 1970.
                    time: max(0, event.time?.milliseconds ?? 0)))
            end += event.line.count + 1
        }
        drafts = found
        ids = written.array
    }

    /// The records.
    func records(
        _ lines: [UInt8], topics: FilledTemplates?, headers: [[(name: String, value: String)]]?
    ) -> [KafkaRecord] {
        drafts.enumerated().map { index, draft in
            KafkaRecord(
                topic: topics?[index][0], key: draft.key, value: lines[draft.value],
                eventID: ids[draft.eventID], time: draft.time, headers: headers?[index] ?? [])
        }
    }
}

/// The member whose value is the key of a record.
struct KafkaKey {
    private let name: [UInt8]
    private let parts: [[UInt8]]

    /// - Parameter path: a name, or a path with dots.
    init(_ path: String) {
        name = Array(path.utf8)
        parts = path.split(separator: ".").map { Array($0.utf8) }
    }

    /// The key: a text without quotes, another value as written; nil if the member is missing or null.
    func value(of event: borrowing EventScan) -> [UInt8]? {
        guard let value = event.value(name, parts), !value.isNull else { return nil }
        return value.text?.decoded ?? Array(value.buffer)
    }
}
