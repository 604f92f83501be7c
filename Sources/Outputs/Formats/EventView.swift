internal import Digests
internal import EventLoops
internal import Events
internal import Model

/// An event of a batch, with the members that formats look for.
struct EventView {
    /// The event as it is stored, without the line feed.
    let line: ArraySlice<UInt8>
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

    /// Whether a member has its own place in every format, or is the agent's; so is that of the id. One of another kind is data.
    private static func isPlaced(_ key: String, _ value: JSONSlice) -> Bool {
        switch key {
        case "name", "app", "host_name", "session_id", "country", "type": value.kind == .string
        case "timestamp", "observed_at": time(value) != nil
        case "properties", "device": value.kind == .object
        default: false
        }
    }

    subscript(_ name: String) -> JSONSlice? { members.last { $0.key == name }?.value }

    var name: String { self["name"]?.string ?? "" }
    /// Its id, a text or a number: of a record with its own `id` the agent's, which is behind that and called otherwise.
    var id: String? { idMember.flatMap { EventView.identifier($0.value) } }
    private var idMember: (key: String, value: JSONSlice)? {
        let others = ["record_id", "spoolship_id"]
        return members.last { key, value in
            key == "id" || others.contains(key) && value.string.map { UUIDv7($0) != nil } == true
        }
    }
    var sessionID: String? { self["session_id"]?.string }
    var properties: [(key: String, value: JSONSlice)] { self["properties"]?.members ?? [] }
    /// Its properties, and members of its own beside them, as records have: all that is neither placed elsewhere nor the agent's.
    var values: [(key: String, value: JSONSlice)] {
        properties + ownMembers.filter { $0.key != "priority" }
    }
    /// Its members that have no place of their own.
    var ownMembers: [(key: String, value: JSONSlice)] {
        let id = idMember?.key
        return members.filter { !EventView.isPlaced($0.key, $0.value) && $0.key != id }
    }
    var device: JSONSlice? { self["device"] }
    /// Whether it says that it comes from this machine. Else no format says so in its place: tags may have redacted it.
    func isFrom(_ host: String) -> Bool { (device?["host_name"] ?? self["host_name"])?.string == host }
    /// When it was read; nil when it does not say.
    var observedAt: Timestamp? { EventView.time(members, "observed_at") }

    /// How serious it is, and where it says so; nil where it does not, or nothing that is known.
    var severity: (value: Severity, path: String, text: String?)? {
        for path in Severity.usualMembers {
            guard let value = member(at: path), value.kind == .string || value.kind == .number,
                let found = Severity(text: value.string ?? value.text, in: Severity.scale(of: path))
            else { continue }
            return (found, path, value.string.flatMap { Int($0) == nil ? $0 : nil })
        }
        return nil
    }

    /// The member of that name, or what a path with dots leads to: a name may have dots itself.
    func member(at path: String) -> JSONSlice? {
        if let member = self[path] { return member }
        let parts = path.split(separator: ".")
        guard let first = parts.first.flatMap({ self[String($0)] }) else { return nil }
        return parts.dropFirst().reduce(Optional(first)) { $0?[String($1)] }
    }

    private static func identifier(_ value: JSONSlice) -> String? {
        value.kind == .number ? value.text : value.string
    }

    /// The id by which receivers know a repeat: the same at every attempt, and one that no other app can choose.
    ///
    /// `APP/ID`, with `/` and `%` of the app's name as `%2F` and `%25`; beyond 256 bytes the hash of that. An event without an id
    /// has its batch's and its place in it.
    func stableID(in batch: BatchID, at index: Int) -> String {
        guard let id else { return "\(batch)-\(index)" }
        var key = self["app"].flatMap { EventView.identifier($0) } ?? ""
        if key.utf8.contains(where: { "/%".utf8.contains($0) }) {
            key = key.replacingAll("%", with: "%25").replacingAll("/", with: "%2F")
        }
        key += "/\(id)"
        return key.utf8.count <= 256 ? key : SHA256.hexadecimal(Array(key.utf8))
    }

    private static func time(_ members: [(key: String, value: JSONSlice)], _ name: String) -> Timestamp? {
        members.last { $0.key == name }.flatMap { time($0.value) }
    }

    private static func time(_ value: JSONSlice) -> Timestamp? {
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

    /// The events of lines that each end with a line feed; throws with code `badBatch` when a line is no object.
    static func all(_ lines: [UInt8]) throws(OutputError) -> [EventView] {
        try lines.split(separator: 0x0A).enumerated().map { place, line throws(OutputError) in
            if let event = EventView(line) { return event }
            throw OutputError(.badBatch, "event \(place) of a stored batch is not a JSON object")
        }
    }
}
