internal import Events
internal import Model

/// The members and properties of an event, from which the fields of a record are taken: what is taken is no attribute.
struct OTLPFields {
    private(set) var members: [(key: String, value: JSONSlice)]
    private(set) var properties: [(key: String, value: JSONSlice)]

    init(_ event: EventView) {
        members = event.ownMembers
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

    /// How serious it is, from 1 (trace) to 24 (fatal), and the event's own word for that; empty without one. A word is no
    /// attribute then; a number stays one.
    ///
    /// Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`.
    mutating func severity(_ event: EventView) -> (number: Int, text: String) {
        if let (value, path, text) = event.severity {
            if text != nil { members.removeAll { $0.key == path } }
            return (value.number, text ?? value.level.rawValue.uppercased())
        }
        for name in ["severity", "level"] {
            let found = take(name) { value in
                Severity(text: value.string ?? value.text, in: Severity.scale(of: name)).map {
                    ($0.number, value.string ?? "")
                }
            }
            if let found { return found }
        }
        return (event["type"]?.string == "crash" ? 21 : 9, "")
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
