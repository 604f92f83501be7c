internal import Digests
internal import EventLoops
internal import Events
internal import Model

/// An event of a batch with its members, as formats need them. Parsed once for each encoding.
struct EventView {
    /// The event as stored, without the line feed.
    let line: ArraySlice<UInt8>
    /// The members in their order; of equal names the last counts, as in most JSON readers.
    let members: [(key: String, value: JSONSlice)]
    /// When the event happened, or else when it was read; nil if neither is known.
    let time: Timestamp?

    /// - Returns: nil if the line is not an object; lines of the queue always are.
    init?(_ line: ArraySlice<UInt8>) {
        guard let members = JSONSlice(line)?.members else { return nil }
        self.line = line
        self.members = members
        time = EventView.time(members, "timestamp") ?? EventView.time(members, "observed_at")
    }

    /// Whether a member has a field of its own in the formats, or is the agent's. A member of that name
    /// with another kind of value is treated as data.
    private static func isPlaced(_ key: String, _ value: JSONSlice) -> Bool {
        switch key {
        case "name", "app", "host_name", "session_id", "country", "type": value.kind == .string
        case "timestamp", "observed_at": time(value) != nil
        case "properties", "device": value.kind == .object
        default: false
        }
    }

    /// The member of that name; nil without one.
    subscript(_ name: String) -> JSONSlice? { members.last { $0.key == name }?.value }

    var name: String { self["name"]?.string ?? "" }
    /// Whether the event is a record of a log that was not written for the agent. Events have a device, a
    /// session or properties. Where the agent adds none of these, a record has the host's name, or the name
    /// that the agent gives to records without one.
    var isRecord: Bool {
        guard device?.kind != .object, sessionID == nil, self["properties"]?.kind != .object else {
            return false
        }
        return self["host_name"]?.kind == .string || ["", "log"].contains(name)
    }
    /// The id, a text or a number. A record with an `id` of its own has the agent's id in `record_id` or
    /// `spoolship_id`, behind it.
    var id: String? { idMember.flatMap { EventView.identifier($0.value) } }
    /// The member with the agent's id: the last `id`, or one of the other names if its value is a UUIDv7.
    private var idMember: (key: String, value: JSONSlice)? {
        let others = ["record_id", "spoolship_id"]
        return members.last { key, value in
            key == "id" || others.contains(key) && value.string.map { UUIDv7($0) != nil } == true
        }
    }
    var sessionID: String? { self["session_id"]?.string }
    /// The members of `properties`.
    var properties: [(key: String, value: JSONSlice)] { self["properties"]?.members ?? [] }
    /// All data of the event: its properties, and the members that have no field of their own, except the
    /// priority.
    var values: [(key: String, value: JSONSlice)] {
        properties + ownMembers.filter { $0.key != "priority" }
    }
    /// Members that have no field of their own in the formats.
    var ownMembers: [(key: String, value: JSONSlice)] {
        let id = idMember?.key
        return members.filter { !EventView.isPlaced($0.key, $0.value) && $0.key != id }
    }
    /// The member `device`: what is known about the machine.
    var device: JSONSlice? { self["device"] }
    /// The app that the event belongs to. Older versions did not store it: then the app that the event
    /// names, if it names one.
    ///
    /// - Parameter known: the app in the batch's header; empty if unknown.
    func owner(_ known: String) -> String? { known.isEmpty ? self["app"]?.scalar : known }
    /// Whether the event itself says that it comes from this machine. No format may add the host's name to
    /// other events: a tag may have redacted it.
    func isFrom(_ host: String) -> Bool { (device?["host_name"] ?? self["host_name"])?.string == host }
    /// When the event was read; nil if it does not say so.
    var observedAt: Timestamp? { EventView.time(members, "observed_at") }

    /// The severity, the member that gave it, and that member's text if it is not a number; nil if no
    /// member gives a known severity.
    var severity: (value: Severity, path: String, text: String?)? {
        for (path, hasDots, reading) in EventView.severityPaths {
            guard let value = hasDots ? member(at: path) : self[path],
                value.kind == .string || value.kind == .number,
                let found = Severity(
                    text: value.string ?? value.text, as: reading,
                    isGELF: Severity.isGELF(version: self["version"]?.string))
            else { continue }
            return (found, path, value.string.flatMap { Int($0) == nil ? $0 : nil })
        }
        return nil
    }

    /// The members that may give a severity, in order of precedence, with how to read each.
    private static let severityPaths = Severity.usualMembers.map { path in
        (path: path, hasDots: path.holds("."), reading: Severity.reading(of: path))
    }

    /// The member of that name; or, for a path with dots, the member that it leads to. A name may itself
    /// contain dots.
    func member(at path: String) -> JSONSlice? {
        if let member = self[path] { return member }
        let parts = path.split(separator: ".")
        guard let first = parts.first.flatMap({ self[String($0)] }) else { return nil }
        return parts.dropFirst().reduce(Optional(first)) { $0?[String($1)] }
    }

    /// An id as text: a number as it is written, or a string.
    private static func identifier(_ value: JSONSlice) -> String? {
        value.kind == .number ? value.text : value.string
    }

    /// The id by which receivers recognise a repeat: the same at every attempt, and not one that another
    /// app could choose.
    ///
    /// `APP/ID`, with `/` and `%` in the app's name as `%2F` and `%25`; the SHA-256 of that if it exceeds
    /// 256 bytes. An event without an id gets the batch's id and its position.
    func stableID(in batch: BatchID, at index: Int) -> String {
        guard let id else { return "\(batch)-\(index)" }
        var key = self["app"].flatMap { EventView.identifier($0) } ?? ""
        if key.utf8.contains(where: { "/%".utf8.contains($0) }) {
            key = key.replacingAll("%", with: "%25").replacingAll("/", with: "%2F")
        }
        key += "/\(id)"
        return key.utf8.count <= 256 ? key : SHA256.hexadecimal(Array(key.utf8))
    }

    /// The time of the last member of that name; nil if it has none.
    private static func time(_ members: [(key: String, value: JSONSlice)], _ name: String) -> Timestamp? {
        members.last { $0.key == name }.flatMap { time($0.value) }
    }

    /// The time of a value: a text of RFC 3339, or a number (`TimestampText.parseNumber`); nil for other
    /// kinds.
    private static func time(_ value: JSONSlice) -> Timestamp? {
        switch value.kind {
        case .string: return EventView.time(value.string ?? "")
        case .number: return value.bytes.withUnsafeBufferPointer { TimestampText.parseNumber($0) }
        default: return nil
        }
    }

    /// The time in a text of RFC 3339; nil for any other text.
    static func time(_ text: String) -> Timestamp? {
        var text = text
        return text.withUTF8 { TimestampText.parse($0) }
    }

    /// The events of lines that each end with a line feed.
    ///
    /// - Throws: `OutputError` with code `badBatch` if a line is not an object.
    static func all(_ lines: [UInt8]) throws(OutputError) -> [EventView] {
        try lines.split(separator: 0x0A).enumerated().map { place, line throws(OutputError) in
            if let event = EventView(line) { return event }
            throw OutputError(.badBatch, "event \(place) of a stored batch is not a JSON object")
        }
    }
}
