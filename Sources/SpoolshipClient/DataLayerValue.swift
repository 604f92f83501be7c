/// A value for the containers' data layer: JSON, written as literals or by its cases.
public indirect enum DataLayerValue: Sendable, Equatable {
    /// Null; replaces the previous value.
    case null
    /// True or false.
    case boolean(Bool)
    /// A whole number.
    case integer(Int64)
    /// A number. JSON has neither infinity nor "not a number": a push with one fails.
    case double(Double)
    /// A text.
    case string(String)
    /// A list; merged by index with the previous list.
    case array([DataLayerValue])
    /// A map; merged by name with the previous map.
    case object([Member])

    /// A name with its value.
    public struct Member: Sendable, Equatable {
        /// The name.
        public let name: String
        /// The value.
        public let value: DataLayerValue

        /// A name with its value.
        public init(_ name: String, _ value: DataLayerValue) {
            self.name = name
            self.value = value
        }
    }

    /// A map of one name, for `push(_:forKey:)`.
    init(_ name: String, _ value: DataLayerValue) { self = .object([Member(name, value)]) }
}

extension DataLayerValue {
    /// The value of a name in a map; nil in any other value, and if the map has no such name. Of equal names
    /// the last one counts.
    public subscript(name: String) -> DataLayerValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    /// A value that the agent has sent; names of maps are sorted.
    init(_ value: JSONText.Value) {
        switch value {
        case .null: self = .null
        case .bool(let flag): self = .boolean(flag)
        case .integer(let number): self = .integer(number)
        case .double(let number): self = .double(number)
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.map { DataLayerValue($0) })
        case .object(let members):
            self = .object(
                members.sorted { $0.key < $1.key }.map { Member($0.key, DataLayerValue($0.value)) })
        }
    }
}

extension DataLayerValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// True or false.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    /// Null.
    public init(nilLiteral: ()) { self = .null }
    /// A list.
    public init(arrayLiteral elements: DataLayerValue...) { self = .array(elements) }
    /// A map; of equal names the last one counts.
    public init(dictionaryLiteral elements: (String, DataLayerValue)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }
}
