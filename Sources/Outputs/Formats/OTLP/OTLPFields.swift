/// How serious an event is. Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`.
struct OTLPSeverity: Equatable {
    /// From 1 (trace) to 24 (fatal).
    let number: Int
    /// The event's own word; empty without one.
    var text = ""

    static let info = OTLPSeverity(number: 9)
    static let fatal = OTLPSeverity(number: 21)

    /// The words of common loggers and of syslog, in small letters.
    private static let numbers = [
        "trace": 1, "verbose": 1, "debug": 5, "info": 9, "information": 9, "informational": 9, "notice": 10, "warn": 13,
        "warning": 13, "error": 17, "err": 17, "critical": 18, "crit": 18, "alert": 19, "fatal": 21, "emergency": 21,
        "emerg": 21, "panic": 21,
    ]

    init(number: Int, text: String = "") {
        self.number = number
        self.text = text
    }

    /// - Returns: nil for a word that is not known and a number that is none of the model's.
    init?(_ value: JSONSlice) {
        if let number = value.integer, (1...24).contains(number) {
            self.init(number: Int(number))
        } else if let word = value.string, let number = OTLPSeverity.numbers[word.lowercased()] {
            self.init(number: number, text: word)
        } else {
            return nil
        }
    }
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

    mutating func severity() -> OTLPSeverity? {
        take("severity") { OTLPSeverity($0) } ?? take("level") { OTLPSeverity($0) }
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
