/// What may be the value of a property: texts, numbers, `true` and `false`, and any `PropertyValue`.
public protocol PropertyConvertible {
    /// The value with its type.
    var propertyValue: PropertyValue { get }
}

/// A value of a property, with its type.
public enum PropertyValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    /// A text. The agent cuts texts that are longer than its limit (125 UTF-16 code units by default).
    case string(String)
    /// A number. JSON has neither infinity nor "not a number": an event with one is refused.
    case integer(Int64)
    /// True or false.
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
    /// True or false.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension PropertyValue: PropertyConvertible {
    /// Itself.
    public var propertyValue: PropertyValue { self }
}

/// What `.date(milliseconds:)` and the other functions give in a dictionary literal, so that `PropertyValue`
/// need not be written there.
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
    public static func integer(_ number: Int64) -> TypedProperty {
        TypedProperty(propertyValue: .integer(number))
    }
    /// A number.
    public static func double(_ number: Double) -> TypedProperty {
        TypedProperty(propertyValue: .double(number))
    }
    /// True or false.
    public static func boolean(_ value: Bool) -> TypedProperty {
        TypedProperty(propertyValue: .boolean(value))
    }
}

extension PropertyConvertible where Self: StringProtocol {
    /// A text.
    public var propertyValue: PropertyValue { .string(String(self)) }
}

extension String: PropertyConvertible {}
extension Substring: PropertyConvertible {}

extension Bool: PropertyConvertible {
    /// True or false.
    public var propertyValue: PropertyValue { .boolean(self) }
}

extension Double: PropertyConvertible {
    /// A number.
    public var propertyValue: PropertyValue { .double(self) }
}

extension Float: PropertyConvertible {
    /// A number, with the digits that the value is written with: converted directly, 0.1 would be
    /// 0.10000000149011612.
    public var propertyValue: PropertyValue { .double(Double("\(self)") ?? Double(self)) }
}

extension PropertyConvertible where Self: BinaryInteger {
    /// A whole number; if it does not fit in 64 bits, the nearest `Double`.
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

/// Properties of an event, in their order. Of equal names the last value counts.
public struct EventProperties: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// Names and values, in the order in which they were first set.
    public private(set) var members: [(name: String, value: PropertyValue)] = []

    /// No properties.
    public init() {}

    /// Properties in the order in which they are written; values are literals, variables, or any
    /// `PropertyValue`.
    public init(dictionaryLiteral elements: (String, any PropertyConvertible)...) {
        for (name, value) in elements { self[name] = value.propertyValue }
    }

    /// The properties of a dictionary, in the order of their names: a dictionary has no order of its own.
    public init(_ dictionary: [String: some PropertyConvertible]) {
        members = dictionary.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value.propertyValue) }
    }

    /// Sets a property; the type of the value stays.
    public mutating func setEventProperty(_ value: some PropertyConvertible, forKey name: String) {
        self[name] = value.propertyValue
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

/// How important an event is.
public enum Flags: String, Sendable {
    /// The default.
    case normal
    /// Sent first, evicted last.
    case critical

    /// App Center's name for `normal`.
    public static let `default` = Flags.normal
}
