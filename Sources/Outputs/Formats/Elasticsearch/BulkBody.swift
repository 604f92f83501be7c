internal import Events
internal import Model

/// A `_bulk` request while it is written: for each event a line that says what to do, and the event as it is,
/// with `@timestamp` as its first member if it has none.
struct BulkBody: ~Copyable {
    private let batch: BatchHeader
    private var out: BodyBuffer
    /// The id of the present event.
    private var id = BodyBuffer(capacity: 320)
    private var times = TimestampWriter()

    init(_ batch: BatchHeader, _ out: consuming BodyBuffer) {
        self.batch = batch
        self.out = out
    }

    /// The request.
    consuming func written() -> BodyBuffer { out }

    /// Adds an event.
    ///
    /// - Parameter index: the index or data stream; nil if the address names it.
    mutating func add(_ event: borrowing EventScan, at position: Int, index: String?) {
        out.append(#"{"create":{"# as StaticString)
        if let index {
            out.append(#""_index":"# as StaticString)
            Array(index.utf8).withUnsafeBufferPointer { out.quoted($0) }
            out.byte(UInt8(ascii: ","))
        }
        id.cut(to: 0)
        event.writeStableID(in: batch.id, at: position, to: &id)
        out.append(#""_id":"# as StaticString)
        out.quoted(id.bytes)
        out.append("}}\n" as StaticString)
        document(event)
        out.byte(UInt8(ascii: "\n"))
    }

    private mutating func document(_ event: borrowing EventScan) {
        guard event[.atTimestamp] == nil, let time = event.time else { return out.append(event.line) }
        out.append(#"{"@timestamp":""# as StaticString)
        times.text(of: time).withUnsafeBufferPointer { out.append($0) }
        out.byte(UInt8(ascii: "\""))
        if event.members.count > 0 {
            out.byte(UInt8(ascii: ","))
        }
        out.append(UnsafeBufferPointer(rebasing: event.line[(event.brace + 1)...]))
    }
}
