/// Which session an event names.
enum SessionMark: Equatable {
    /// No member: the agent adds the session that it finds.
    case automatic
    /// Null: the event belongs to no session, and the agent adds none.
    case none
    /// The session that the app began.
    case id(String)
}

/// A line of the spool while it is written (docs/writing-events.md).
struct EventLine {
    /// The line so far.
    private(set) var bytes: [UInt8] = [UInt8(ascii: "{")]

    /// An event as a line, with its line feed.
    ///
    /// - Throws: `invalidEvent` for an empty name, or a number that JSON does not have.
    static func event(
        _ name: String, _ properties: EventProperties, _ flags: Flags, at milliseconds: Int64,
        session: SessionMark,
        country: String?, type: String? = nil
    ) throws(AnalyticsError) -> [UInt8] {
        guard !name.isEmpty else { throw AnalyticsError(.invalidEvent, "an event needs a name") }
        var line = EventLine()
        if let type {
            line.member("type", type)
        }
        line.member("name", name)
        line.member("timestamp", timeText(milliseconds))
        if flags == .critical {
            line.member("priority", "critical")
        }
        switch session {
        case .automatic: break
        case .none: line.member("session_id", number: "null")
        case .id(let id): line.member("session_id", id)
        }
        if let country {
            line.member("country", country)
        }
        line.member("pid", number: String(processID()))
        if !properties.members.isEmpty {
            line.key("properties")
            line.bytes.append(UInt8(ascii: "{"))
            for (name, value) in properties.members { try line.property(name, value) }
            line.bytes.append(UInt8(ascii: "}"))
        }
        return line.bytes + [UInt8(ascii: "}"), 0x0A]
    }

    /// A push into the data layer as a line, with its line feed.
    ///
    /// - Throws: `invalidEvent` for anything but an object with members, for a member `type`, which would
    ///   hide that the line is a push, and for values that JSON does not have.
    static func push(_ value: DataLayerValue) throws(AnalyticsError) -> [UInt8] {
        guard case .object(let members) = value, !members.isEmpty else {
            throw AnalyticsError(
                .invalidEvent, "a push needs names and values, such as [\"event\": \"openScreen\"]")
        }
        guard !members.contains(where: { $0.name == "type" }) else {
            throw AnalyticsError(
                .invalidEvent, "the name \"type\" says that a line is a push; use another name")
        }
        var line = EventLine()
        line.member("type", "data_layer")
        for member in members { try line.value(member.value, named: member.name, depth: 1) }
        return line.bytes + [UInt8(ascii: "}"), 0x0A]
    }

    /// A value as JSON.
    ///
    /// - Throws: `invalidEvent` as `push`; the message names `name`.
    static func json(_ value: DataLayerValue, for name: String) throws(AnalyticsError) -> String {
        var line = EventLine()
        line.bytes = []
        try line.write(value, depth: 1, for: name)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// Writes a member of the data layer.
    private mutating func value(_ value: DataLayerValue, named name: String, depth: Int)
        throws(AnalyticsError)
    {
        key(name)
        try write(value, depth: depth, for: name)
    }

    /// Writes a value of the data layer.
    private mutating func write(_ value: DataLayerValue, depth: Int, for name: String) throws(AnalyticsError)
    {
        // The agent reads at most 64 levels.
        guard depth < 64 else {
            throw AnalyticsError(.invalidEvent, "\"\(name)\" is nested to more than 64 levels")
        }
        switch value {
        case .null: bytes += Array("null".utf8)
        case .boolean(let flag): bytes += Array((flag ? "true" : "false").utf8)
        case .integer(let number): bytes += Array(String(number).utf8)
        case .string(let text): quote(text)
        case .double(let number):
            guard number.isFinite else {
                throw AnalyticsError(
                    .invalidEvent, "the value \"\(name)\" is \(number), which JSON does not have")
            }
            bytes += Array("\(number)".utf8)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 {
                    bytes.append(UInt8(ascii: ","))
                }
                try write(element, depth: depth + 1, for: name)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for member in members { try self.value(member.value, named: member.name, depth: depth + 1) }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Writes a property.
    private mutating func property(_ name: String, _ value: PropertyValue) throws(AnalyticsError) {
        switch value {
        case .string(let text): member(name, text)
        case .integer(let value): member(name, number: String(value))
        case .boolean(let value): member(name, number: value ? "true" : "false")
        case .date(let milliseconds): member(name, timeText(milliseconds))
        case .double(let value):
            guard value.isFinite else {
                throw AnalyticsError(
                    .invalidEvent, "the property \"\(name)\" is \(value), which JSON does not have")
            }
            member(name, number: "\(value)")
        }
    }

    /// Writes a name, after a comma unless it is the first.
    private mutating func key(_ name: String) {
        if let last = bytes.last, last != UInt8(ascii: "{") {
            bytes.append(UInt8(ascii: ","))
        }
        quote(name)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes a text under a name.
    private mutating func member(_ name: String, _ text: String) {
        key(name)
        quote(text)
    }

    /// Writes a number, `true`, `false` or `null` under a name.
    private mutating func member(_ name: String, number: String) {
        key(name)
        bytes += Array(number.utf8)
    }

    /// A text as a JSON string.
    static func quoted(_ text: String) -> String {
        var line = EventLine()
        line.bytes = []
        line.quote(text)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// Writes a text as a JSON string. Only quotes, backslashes and control characters need an escape (RFC
    /// 8259, section 7).
    private mutating func quote(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                bytes += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
