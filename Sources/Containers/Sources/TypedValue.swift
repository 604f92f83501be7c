package import Model

/// The types that a value can be asked for as (tm09).
package enum TypedValue: String, Sendable, CaseIterable {
    case string, integer, double, boolean

    /// What a missing value gives: `""`, 0, 0.0, false.
    package var standard: JSONValue {
        switch self {
        case .string: ""
        case .integer: 0
        case .double: .double(0)
        case .boolean: false
        }
    }

    /// A value as this type, converted where that is exact; nil where it is not: then it counts as missing.
    ///
    /// A number, and a text that spells one by the grammar of JSON, is what its digits say: `"5.0"` is the whole number 5,
    /// 9007199254740993 is no double, `"+5"`, `"0x10"` and `" 5"` are no numbers.
    package func convert(_ value: JSONValue) -> JSONValue? {
        switch (self, value) {
        case (.string, .string), (.integer, .integer), (.double, .double), (.boolean, .bool): value
        case (.string, .integer), (.string, .double), (.string, .bool): .string(value.description)
        case (.integer, .double(let number)):
            (TypedValue.decimal(value)?.integer ?? Int(exactly: number)).map { .integer($0) }
        case (.integer, _): TypedValue.decimal(value)?.integer.map(JSONValue.integer)
        case (.double, _): TypedValue.decimal(value).flatMap { TypedValue.double($0) }
        case (.boolean, .string("true")): true
        case (.boolean, .string("false")): false
        default: nil
        }
    }

    private static func decimal(_ value: JSONValue) -> Decimal? {
        // A truth value spells no number, nor does what is nested.
        let text = (value.string ?? value.description).bytes
        return text.count > Number.longest ? nil : text.withUnsafeBufferPointer { Decimal($0) }
    }

    /// The double that is just this number, or is spelled just so in its shortest form; nil where there is none.
    private static func double(_ number: Decimal) -> JSONValue? {
        let nearest = JSONValue.double(number.nearest)
        guard case .double(let value) = nearest, value.isFinite, let again = decimal(nearest),
            number.isExactly(value) || again.order(to: number) == 0
        else { return nil }
        return nearest
    }
}
