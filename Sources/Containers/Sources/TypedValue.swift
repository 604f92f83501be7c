package import Model

/// The types in which apps ask for values.
package enum TypedValue: String, Sendable, CaseIterable {
    case string, integer, double, boolean

    /// The value for a missing key: `""`, 0, 0.0, false.
    package var standard: JSONValue {
        switch self {
        case .string: ""
        case .integer: 0
        case .double: .double(0)
        case .boolean: false
        }
    }

    /// A value as this type, if it can be converted exactly; otherwise nil, and the key counts as missing.
    ///
    /// A text counts as a number if it is one by JSON's grammar, and a number is exactly what its digits say:
    /// `"5.0"` is the whole number 5; 9007199254740993 is not a double; `"+5"`, `"0x10"` and `" 5"` are not
    /// numbers.
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

    /// The exact number of a value; nil if it is not a number.
    private static func decimal(_ value: JSONValue) -> Decimal? {
        // The description of a truth value or of an object is not a number.
        let text = (value.string ?? value.description).bytes
        return text.count > Number.longest ? nil : text.withUnsafeBufferPointer { Decimal($0) }
    }

    /// The double that is exactly this number, or whose shortest form is spelled like it; nil if there is no
    /// such double.
    private static func double(_ number: Decimal) -> JSONValue? {
        let nearest = JSONValue.double(number.nearest)
        guard case .double(let value) = nearest, value.isFinite, let again = decimal(nearest),
            number.isExactly(value) || again.order(to: number) == 0
        else { return nil }
        return nearest
    }
}
