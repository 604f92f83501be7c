internal import Digests
internal import EventLoops
internal import Events
internal import Model

/// An event of a batch as places in its bytes: what `EventView` knows, without memory of its own for each
/// event. One scan is used for all events of a batch, one after the other.
struct EventScan: ~Copyable {
    /// The event as stored, without the line feed.
    private(set) var line: UnsafeBufferPointer<UInt8>
    /// Offset of the opening brace in the line.
    private(set) var brace = 0
    /// The members in their order; of equal names the last counts, as in most JSON readers.
    private(set) var members = MemberList()
    /// When the event says that it happened; nil if it does not say so.
    private var timestamp: Timestamp?
    /// When the event was read; nil if it does not say so.
    private(set) var observedAt: Timestamp?
    /// Reads times; most events are of the same day as the one before.
    private var times = TimestampReader()

    init() { line = UnsafeBufferPointer(start: nil, count: 0) }

    /// Calls `body` with each event of some lines that each end with a line feed.
    ///
    /// - Throws: `OutputError` with code `badBatch` if a line is not an object.
    static func forEach(
        _ lines: [UInt8], _ body: (borrowing EventScan, _ index: Int) -> Void
    ) throws(OutputError) {
        let wrong = lines.withUnsafeBufferPointer { bytes -> Int? in
            var scan = EventScan()
            var index = 0
            var start = 0
            while start < bytes.count {
                let end = LineEnds.end(of: start, in: bytes)
                if end > start {
                    guard scan.read(UnsafeBufferPointer(rebasing: bytes[start..<end])) else { return index }
                    body(scan, index)
                    index += 1
                }
                start = end + 1
            }
            return nil
        }
        guard let wrong else { return }
        throw OutputError(.badBatch, "event \(wrong) of a stored batch is not a JSON object")
    }

    /// Reads another event; false if the line is not an object.
    mutating func read(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        self.line = line
        guard let base = line.baseAddress else { return false }
        brace = 0
        while brace < line.count, EventScan.isBlank(base[brace]) { brace += 1 }
        guard brace < line.count, base[brace] == UInt8(ascii: "{"),
            members.read(base + brace, line.count - brace)
        else { return false }
        observedAt = members[.observedAt].flatMap { $0.time(&times) }
        timestamp = members[.timestamp].flatMap { $0.time(&times) }
        return true
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    /// The member of that name; nil without one.
    @inline(__always)
    subscript(_ name: EventName) -> JSONBytes? { members[name] }

    /// The value that a path leads to; nil without one.
    func value(at path: EventPath) -> JSONBytes? {
        if let whole = members[path.name] { return whole }
        guard let outer = path.outer.flatMap({ members[$0] }) else { return nil }
        return path.inner.reduce(Optional(outer)) { $0?.member($1) }
    }

    /// When the event happened, or else when it was read; nil if neither is known.
    var time: Timestamp? { timestamp ?? observedAt }

    /// The value of a member of any name; or else of the path that its parts make.
    func value(_ name: [UInt8], _ parts: [[UInt8]]) -> JSONBytes? {
        if let whole = members.value(of: name) { return whole }
        guard let first = parts.first, let outer = members.value(of: first) else { return nil }
        return parts.dropFirst().reduce(Optional(outer)) { $0?.member($1) }
    }

    var name: TextBytes { members[.name]?.text ?? TextBytes("") }

    /// Whether the event is a record of a log that was not written for the agent. Events have a device, a
    /// session or properties. Where the agent adds none of these, a record has the host's name, or the name
    /// that the agent gives to records without one.
    var isRecord: Bool {
        guard members[.device]?.isObject != true, members[.sessionID]?.text == nil,
            members[.properties]?.isObject != true
        else { return false }
        if members[.hostName]?.isString == true { return true }
        let name = name
        return name.isEmpty || name.equals("log")
    }

    /// Index of the member with the agent's id: the last `id`, or one of the other names if its value is a
    /// UUIDv7. A record with an `id` of its own has the agent's id behind it. Nil without one.
    var idIndex: Int? {
        guard members.present.meets([.id, .recordID, .spoolshipID]) else { return nil }
        for index in (0..<members.count).reversed() {
            let member = members[index]
            switch member.known {
            case .id: return index
            case .recordID, .spoolshipID: if EventScan.isID(member.value) { return index }
            default: break
            }
        }
        return nil
    }

    /// Whether a value is a UUID in its usual text.
    private static func isID(_ value: JSONBytes) -> Bool {
        guard let text = value.text else { return false }
        guard !text.isEscaped else { return UUIDv7(text.string) != nil }
        guard text.count == 36 else { return false }
        for index in 0..<36 {
            let byte = text.start[index]
            let isDash = index == 8 || index == 13 || index == 18 || index == 23
            guard isDash ? byte == UInt8(ascii: "-") : byte.isHexadecimalDigit else { return false }
        }
        return true
    }

    /// Whether a member has a field of its own in the formats, or is the agent's. A member of that name with
    /// another kind of value is treated as data.
    func isPlaced(_ member: MemberList.Member) -> Bool {
        switch member.known {
        case .name, .app, .hostName, .sessionID, .country, .type: return member.value.isString
        case .timestamp: return isTime(member.value, members[.timestamp], timestamp)
        case .observedAt: return isTime(member.value, members[.observedAt], observedAt)
        case .properties, .device: return member.value.isObject
        default: return false
        }
    }

    /// Whether a value is a time. Of several members with one name the last was read already: its time is
    /// `known`.
    private func isTime(_ value: JSONBytes, _ last: JSONBytes?, _ known: Timestamp?) -> Bool {
        if value.start == last?.start { return known != nil }
        var times = TimestampReader()
        return value.time(&times) != nil
    }

    /// Whether the event itself says that it comes from this machine. No format may add the host's name to
    /// other events: a tag may have redacted it.
    func isFrom(_ host: [UInt8]) -> Bool {
        (members[.device]?.member(EventScan.hostName) ?? members[.hostName])?.text?.equals(host) == true
    }

    private static let hostName = Array("host_name".utf8)

    /// Writes the id by which receivers recognise a repeat: the same at every attempt, and not one that
    /// another app could choose (`EventView.stableID`).
    func writeStableID(in batch: BatchID, at index: Int, to target: inout BodyBuffer) {
        let start = target.count
        guard let index = idIndex, let id = EventScan.identifier(members[index].value) else {
            target.reserve(40)
            batch.write(to: UnsafeMutableRawBufferPointer(start: target.cursor, count: 36))
            target.wrote(36)
            target.byte(UInt8(ascii: "-"))
            target.number(Int64(index))
            return
        }
        if let app = members[.app].flatMap({ EventScan.identifier($0) }) {
            target.text(app)
            EventScan.escapeSeparators(from: start, in: &target)
        }
        target.byte(UInt8(ascii: "/"))
        target.text(id)
        guard target.count - start > 256 else { return }
        let long = Array(UnsafeBufferPointer(rebasing: target.bytes[start...]))
        target.cut(to: start)
        target.append(SHA256.hexadecimal(long))
    }

    /// An id as text: a number as it is written, or a string; nil for other kinds.
    private static func identifier(_ value: JSONBytes) -> TextBytes? {
        value.text ?? (value.isNumber ? value.words : nil)
    }

    /// Writes `/` and `%` of an app's name as `%2F` and `%25`, so that the id of one app cannot be that of
    /// another.
    private static func escapeSeparators(from start: Int, in target: inout BodyBuffer) {
        let app = UnsafeBufferPointer(rebasing: target.bytes[start...])
        guard app.contains(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "%") }) else { return }
        let raw = Array(app)
        target.cut(to: start)
        for byte in raw {
            switch byte {
            case UInt8(ascii: "%"): target.append("%25" as StaticString)
            case UInt8(ascii: "/"): target.append("%2F" as StaticString)
            default: target.byte(byte)
            }
        }
    }
}

extension BodyBuffer {
    /// Appends a text with its escapes resolved.
    @inline(__always)
    mutating func text(_ text: TextBytes) {
        if text.isEscaped {
            decoded(text.buffer)
        } else {
            append(text.start, text.count)
        }
    }

    /// Appends a text as a JSON string in quotes, spelled as all formats spell it.
    @inline(__always)
    mutating func quoted(_ text: TextBytes) {
        byte(UInt8(ascii: "\""))
        switch text.form {
        case .plain: append(text.start, text.count)
        case .escaped: text.decoded.withUnsafeBufferPointer { escaped($0) }
        case .utf8: escaped(text.buffer)
        }
        byte(UInt8(ascii: "\""))
    }

    /// Appends UTF-8 as a JSON string in quotes.
    mutating func quoted(_ text: UnsafeBufferPointer<UInt8>) {
        byte(UInt8(ascii: "\""))
        escaped(text)
        byte(UInt8(ascii: "\""))
    }
}

extension UInt8 {
    /// Whether the byte is a hexadecimal digit in either case.
    fileprivate var isHexadecimalDigit: Bool {
        let letter = (self | 0x20) &- UInt8(ascii: "a")
        return self &- UInt8(ascii: "0") < 10 || letter < 6
    }
}
