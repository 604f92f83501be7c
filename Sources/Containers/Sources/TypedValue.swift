public import Model

/// The types that a value can be asked for as (tm09).
public enum TypedValue: String, Sendable, CaseIterable {
    /// Text.
    case string
    /// A whole number of 64 bits.
    case integer
    /// A number.
    case double
    /// True or false.
    case boolean

    /// What a missing value gives: `""`, 0, 0.0, false.
    public var standard: JSONValue {
        switch self {
        case .string: ""
        case .integer: 0
        case .double: .double(0)
        case .boolean: false
        }
    }

    /// A value as this type, converted where that is exact; nil where it is not: then it counts as missing.
    public func convert(_ value: JSONValue) -> JSONValue? {
        switch (self, value) {
        case (.string, .string), (.integer, .integer), (.double, .double), (.boolean, .bool): value
        case (.string, .integer), (.string, .double), (.string, .bool): .string(value.description)
        case (.integer, .double(let number)): Int(exactly: number).map(JSONValue.integer)
        case (.integer, .string(let text)): Int(text).flatMap { "\($0)" == text ? .integer($0) : nil }
        case (.double, .integer(let number)): Double(exactly: number).map(JSONValue.double)
        case (.double, .string(let text)):
            Double(text).flatMap { $0.isFinite && text.first?.isWhitespace == false ? .double($0) : nil }
        case (.boolean, .string("true")): true
        case (.boolean, .string("false")): false
        default: nil
        }
    }
}
