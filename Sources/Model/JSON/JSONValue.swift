/// A JSON text as a value: for control messages, documents and state. Events on the hot path are never
/// parsed into it.
///
/// Members keep their order. Integers that fit 64 bits are integers, other numbers doubles. Texts are
/// equal if their bytes are: comparing `String`s would treat é and e with a combining accent as the
/// same, which JSON does not.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int)
    /// Any other number; always finite.
    case double(Double)
    case string(String)
    case array([JSONValue])
    /// An object: its members in order. Keys may repeat; the last one counts.
    case object([Member])

    /// A member of an object.
    public struct Member: Sendable, Hashable {
        package let key: String
        package let value: JSONValue

        package init(_ key: String, _ value: JSONValue) {
            self.key = key
            self.value = value
        }
    }

    /// The value of a member; nil if this is not an object or has no such member.
    public subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.key.utf8.elementsEqual(key.utf8) }?.value
    }

    /// The string; nil for any other value.
    public var string: String? {
        if case .string(let text) = self {
            text
        } else {
            nil
        }
    }

    /// The whole number; nil for any other value.
    public var integer: Int? {
        if case .integer(let number) = self {
            number
        } else {
            nil
        }
    }

    /// The number, whole or not; nil for any other value.
    public var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The truth value; nil for any other value.
    public var bool: Bool? {
        if case .bool(let value) = self {
            value
        } else {
            nil
        }
    }

    /// The elements; nil for any other value.
    public var array: [JSONValue]? {
        if case .array(let elements) = self {
            elements
        } else {
            nil
        }
    }

    /// The members; nil for any other value.
    public var members: [Member]? {
        if case .object(let members) = self {
            members
        } else {
            nil
        }
    }

    package init(_ value: JSONValue?) { self = value ?? .null }

    package init(_ text: String?) { self = text.map(JSONValue.string) ?? .null }

    package init(_ number: Int?) { self = number.map(JSONValue.integer) ?? .null }

    /// The number; `null` for nil and for infinities and NaN, which JSON does not have.
    public init(_ number: Double?) { self = number.flatMap { $0.isFinite ? .double($0) : nil } ?? .null }
}

extension JSONValue {
    /// Whether both are the same value, comparing texts by their bytes.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.double(let left), .double(let right)): left == right
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }
}

extension JSONValue.Member {
    /// Whether keys, compared by their bytes, and values are the same.
    public static func == (left: JSONValue.Member, right: JSONValue.Member) -> Bool {
        left.key.utf8.elementsEqual(right.key.utf8) && left.value == right.value
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    /// A string.
    public init(stringLiteral text: String) { self = .string(text) }

    /// A whole number.
    public init(integerLiteral number: Int) { self = .integer(number) }

    /// A Boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension JSONValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// An object with these members, in this order.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(members.map { Member($0.0, $0.1) })
    }
}
