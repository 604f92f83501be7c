struct EventLine {
    private(set) var bytes: [UInt8] = [UInt8(ascii: "{")]

    /// - Throws: `AnalyticsError` with code `invalidEvent`.
    static func event(
        _ name: String, _ properties: EventProperties, _ flags: Flags, at milliseconds: Int64, session: String?,
        country: String?, type: String? = nil
    ) throws(AnalyticsError) -> [UInt8] {
        guard !name.isEmpty else { throw AnalyticsError(.invalidEvent, "an event needs a name") }
        var line = EventLine()
        if let type { line.member("type", type) }
        line.member("name", name)
        line.member("timestamp", timeText(milliseconds))
        if flags == .critical { line.member("priority", "critical") }
        if let session { line.member("session_id", session) }
        if let country { line.member("country", country) }
        line.member("pid", number: String(processID()))
        if !properties.members.isEmpty {
            line.key("properties")
            line.bytes.append(UInt8(ascii: "{"))
            for (name, value) in properties.members { try line.property(name, value) }
            line.bytes.append(UInt8(ascii: "}"))
        }
        return line.bytes + [UInt8(ascii: "}"), 0x0A]
    }

    private mutating func property(_ name: String, _ value: PropertyValue) throws(AnalyticsError) {
        switch value {
        case .string(let text): member(name, text)
        case .integer(let value): member(name, number: String(value))
        case .boolean(let value): member(name, number: value ? "true" : "false")
        case .date(let milliseconds): member(name, timeText(milliseconds))
        case .double(let value):
            guard value.isFinite else {
                throw AnalyticsError(.invalidEvent, "the property \"\(name)\" is \(value), which JSON does not have")
            }
            member(name, number: "\(value)")
        }
    }

    private mutating func key(_ name: String) {
        if let last = bytes.last, last != UInt8(ascii: "{") { bytes.append(UInt8(ascii: ",")) }
        quote(name)
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func member(_ name: String, _ text: String) {
        key(name)
        quote(text)
    }

    private mutating func member(_ name: String, number: String) {
        key(name)
        bytes += Array(number.utf8)
    }

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
