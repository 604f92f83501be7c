/// What may stand as a property's value: texts, numbers, `true` and `false`, and any `PropertyValue`.
public protocol PropertyConvertible {
    var propertyValue: PropertyValue { get }
}

/// A typed value of a property.
public enum PropertyValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    /// A text; what is longer than the agent's limit (125 UTF-16 code units by default) is cut there.
    case string(String)
    /// A whole number.
    case integer(Int64)
    /// A number. JSON has neither infinity nor "not a number": an event with one is refused.
    case double(Double)
    /// Yes or no.
    case boolean(Bool)
    /// A point in time, in milliseconds since 1970-01-01T00:00:00Z; written as RFC 3339 text.
    case date(milliseconds: Int64)

    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// Yes or no.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension PropertyValue: PropertyConvertible {
    /// Itself.
    public var propertyValue: PropertyValue { self }
}

/// What `.date(milliseconds:)` and its like give in a dictionary literal, where `PropertyValue` need not be named.
public struct TypedProperty: PropertyConvertible, Sendable {
    /// The value, typed.
    public let propertyValue: PropertyValue
}

extension PropertyConvertible where Self == TypedProperty {
    /// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
    public static func date(milliseconds: Int64) -> TypedProperty {
        TypedProperty(propertyValue: .date(milliseconds: milliseconds))
    }
    /// A text.
    public static func string(_ text: String) -> TypedProperty { TypedProperty(propertyValue: .string(text)) }
    /// A whole number.
    public static func integer(_ number: Int64) -> TypedProperty { TypedProperty(propertyValue: .integer(number)) }
    /// A number.
    public static func double(_ number: Double) -> TypedProperty { TypedProperty(propertyValue: .double(number)) }
    /// Yes or no.
    public static func boolean(_ value: Bool) -> TypedProperty { TypedProperty(propertyValue: .boolean(value)) }
}

extension PropertyConvertible where Self: StringProtocol {
    /// A text.
    public var propertyValue: PropertyValue { .string(String(self)) }
}

extension String: PropertyConvertible {}
extension Substring: PropertyConvertible {}

extension Bool: PropertyConvertible {
    /// Yes or no.
    public var propertyValue: PropertyValue { .boolean(self) }
}

extension Double: PropertyConvertible {
    /// A number.
    public var propertyValue: PropertyValue { .double(self) }
}

extension Float: PropertyConvertible {
    /// A number, with the digits that it is written with.
    public var propertyValue: PropertyValue { .double(Double("\(self)") ?? Double(self)) }
}

extension PropertyConvertible where Self: BinaryInteger {
    /// A whole number; the nearest number that `Double` has where `Int64` has none.
    public var propertyValue: PropertyValue {
        Int64(exactly: self).map { .integer($0) } ?? .double(Double(self))
    }
}

extension Int: PropertyConvertible {}
extension Int64: PropertyConvertible {}
extension Int32: PropertyConvertible {}
extension UInt: PropertyConvertible {}
extension UInt64: PropertyConvertible {}
extension UInt32: PropertyConvertible {}

/// The properties of an event, in their order; of equal names the last one counts.
public struct EventProperties: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// Names and values, in the order in which they were first set.
    public private(set) var members: [(name: String, value: PropertyValue)] = []

    /// No properties.
    public init() {}

    /// Properties in the order in which they are written; values are literals, variables, or any `PropertyValue`.
    public init(dictionaryLiteral elements: (String, any PropertyConvertible)...) {
        for (name, value) in elements { self[name] = value.propertyValue }
    }

    /// A property by its name; nil removes it.
    public subscript(name: String) -> PropertyValue? {
        get { members.first { $0.name == name }?.value }
        set {
            let index = members.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append((name, value))
            case (nil, nil): break
            }
        }
    }

    /// Whether names, values and order are the same.
    public static func == (left: EventProperties, right: EventProperties) -> Bool {
        left.members.elementsEqual(right.members) { $0 == $1 }
    }
}

/// How much an event matters.
public enum Flags: String, Sendable {
    /// What most events are; the default.
    case normal
    /// Sent first, evicted last.
    case critical
}
