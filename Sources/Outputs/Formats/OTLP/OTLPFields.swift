internal import Events
internal import Model

/// A record's severity. Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`.
struct OTLPSeverity {
    /// From 1 (trace) to 24 (fatal).
    let number: Int
    /// The event's own word; empty without one.
    var text = ""

    static let info = OTLPSeverity(number: 9)
    static let fatal = OTLPSeverity(number: 21)
}

/// The members and properties of an event, from which the fields of a record are taken: what is taken is no attribute.
struct OTLPFields {
    private(set) var members: [(key: String, value: JSONSlice)]
    private(set) var properties: [(key: String, value: JSONSlice)]

    init(_ event: EventView) {
        members = event.members
        properties = event.properties
    }

    /// A trace's or span's id, in hexadecimal digits; empty when there is none that is valid.
    mutating func identifier(_ name: String, bytes: Int) -> [UInt8] {
        take(name) { value -> [UInt8]? in
            guard let text = value.string, text.utf8.count == 2 * bytes else { return nil }
            let digits = text.compactMap(\.hexDigitValue)
            guard digits.count == 2 * bytes, digits.contains(where: { $0 != 0 }) else { return nil }
            return (0..<bytes).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
        } ?? []
    }

    /// How serious it is. A word is the record's text then, and no attribute; a number stays one.
    mutating func severity(_ event: EventView) -> OTLPSeverity? {
        if let (value, path, text) = event.severity {
            if text != nil { members.removeAll { $0.key == path } }
            return OTLPSeverity(number: value.number, text: text ?? value.level.rawValue.uppercased())
        }
        for name in ["severity", "level"] {
            let found = take(name) { value in
                Severity(text: value.string ?? value.text, in: Severity.scale(of: name)).map {
                    OTLPSeverity(number: $0.number, text: value.string ?? "")
                }
            }
            if let found { return found }
        }
        return nil
    }

    mutating func message() -> String? {
        take("message") { value -> String? in value.string.flatMap { $0.isEmpty ? nil : $0 } }
    }

    /// The member of that name, or else the property, if it can be read so; it is then no attribute any more.
    private mutating func take<Value>(_ name: String, _ read: (JSONSlice) -> Value?) -> Value? {
        if let member = members.last(where: { $0.key == name }), let value = read(member.value) {
            members.removeAll { $0.key == name }
            return value
        }
        if let property = properties.last(where: { $0.key == name }), let value = read(property.value) {
            properties.removeAll { $0.key == name }
            return value
        }
        return nil
    }
}
