internal import EventLoops
internal import Events
internal import Model

/// An event of a batch, with the members that formats look for.
struct EventView {
    /// The event as it is stored, without the line feed.
    let line: ArraySlice<UInt8>
    /// Its members in their order.
    let members: [(key: String, value: JSONSlice)]
    /// When it happened, or else was read; nil when neither is known.
    let time: Timestamp?

    /// - Returns: nil when the line is no object; what the queue holds always is.
    init?(_ line: ArraySlice<UInt8>) {
        guard let members = JSONSlice(line)?.members else { return nil }
        self.line = line
        self.members = members
        time = EventView.time(members, "timestamp") ?? EventView.time(members, "observed_at")
    }

    subscript(_ name: String) -> JSONSlice? { members.last { $0.key == name }?.value }

    var name: String { self["name"]?.string ?? "" }
    /// The agent's id of it: a record with an `id` of its own has it in `record_id`.
    var id: String? { (self["record_id"] ?? self["id"])?.string }
    var sessionID: String? { self["session_id"]?.string }
    var properties: [(key: String, value: JSONSlice)] { self["properties"]?.members ?? [] }
    var device: JSONSlice? { self["device"] }
    /// When it was read; nil when it does not say.
    var observedAt: Timestamp? { EventView.time(members, "observed_at") }

    /// How serious it is, and where it says so; nil where it does not, or nothing that is known.
    var severity: (value: Severity, path: String, text: String?)? {
        for path in Severity.usualMembers {
            guard let value = self[path] ?? below(path), value.kind == .string || value.kind == .number,
                let found = Severity(text: value.string ?? value.text, in: Severity.scale(of: path))
            else { continue }
            return (found, path, value.string.flatMap { Int($0) == nil ? $0 : nil })
        }
        return nil
    }

    private func below(_ path: String) -> JSONSlice? {
        let parts = path.split(separator: ".")
        guard parts.count > 1, let first = self[String(parts[0])] else { return nil }
        return parts.dropFirst().reduce(Optional(first)) { $0?[String($1)] }
    }

    /// An id that stays the same at every attempt: its own, or else its place in its batch.
    func stableID(in batch: BatchID, at index: Int) -> String { id ?? "\(batch)-\(index)" }

    private static func time(_ members: [(key: String, value: JSONSlice)], _ name: String) -> Timestamp? {
        guard let value = members.last(where: { $0.key == name })?.value else { return nil }
        switch value.kind {
        case .string: return EventView.time(value.string ?? "")
        case .number: return value.bytes.withUnsafeBufferPointer { TimestampText.parseNumber($0) }
        default: return nil
        }
    }

    /// The time that a text says, by RFC 3339; nil for anything else.
    static func time(_ text: String) -> Timestamp? {
        var text = text
        return text.withUTF8 { TimestampText.parse($0) }
    }

    /// The events of lines that each end with a line feed.
    ///
    /// - Throws: `OutputError` with code `badBatch` when a line is no object.
    static func all(_ lines: [UInt8]) throws(OutputError) -> [EventView] {
        var events: [EventView] = []
        var rest = lines[...]
        while let feed = rest.firstIndex(of: 0x0A) {
            guard let event = EventView(rest[..<feed]) else {
                throw OutputError(.badBatch, "event \(events.count) of a stored batch is no JSON object")
            }
            events.append(event)
            rest = rest[(feed + 1)...]
        }
        return events
    }
}
