internal import Glibc
internal import Model

/// The value of a macro for one event: a range of the line if possible, so that nothing is copied.
enum MacroValue {
    /// Null, or a missing value.
    case null
    /// A truth value.
    case bool(Bool)
    /// A string of the line without escapes: the range of its text.
    case text(Range<Int>)
    /// A number of the line.
    case number(Range<Int>)
    /// An object or a list of the line.
    case nested(Range<Int>)
    /// Any other value.
    case value(JSONValue)

    /// The value at a range of the line.
    init(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) {
        guard !range.isEmpty else {
            self = .null
            return
        }
        switch base[range.lowerBound] {
        case UInt8(ascii: "\""):
            let text = range.lowerBound + 1..<max(range.lowerBound + 1, range.upperBound - 1)
            if memchr(base + text.lowerBound, Int32(UInt8(ascii: "\\")), text.count) == nil {
                self = .text(text)
            } else {
                self = .value(.string(String(decoding: RawJSON.decoded(base, text), as: UTF8.self)))
            }
        case UInt8(ascii: "{"), UInt8(ascii: "["): self = .nested(range)
        case UInt8(ascii: "t"): self = .bool(true)
        case UInt8(ascii: "f"): self = .bool(false)
        case UInt8(ascii: "n"): self = .null
        default: self = .number(range)
        }
    }

    /// Whether the value is null.
    var isNull: Bool {
        switch self {
        case .null, .value(.null): true
        default: false
        }
    }

    /// A value, in the form that is compared quickest.
    init(_ value: JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        default: self = .value(value)
        }
    }

    /// The value, copied out of the line.
    func json(_ base: UnsafePointer<UInt8>) -> JSONValue {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .text(let range): .string(String(decoding: RawJSON.bytes(base, range), as: UTF8.self))
        case .number(let range), .nested(let range): RawJSON.value(base, range)
        case .value(let value): value
        }
    }

    /// The value as JSON text.
    func jsonText(_ base: UnsafePointer<UInt8>) -> [UInt8] {
        switch self {
        case .text(let range): [UInt8(ascii: "\"")] + RawJSON.bytes(base, range) + [UInt8(ascii: "\"")]
        case .number(let range), .nested(let range): Array(RawJSON.bytes(base, range))
        case .null, .bool, .value: json(base).description.bytes
        }
    }

    /// The text for keys and comparisons: of a string its content, of a number or truth value its spelling,
    /// otherwise JSON; nil for null.
    func text(_ base: UnsafePointer<UInt8>) -> [UInt8]? {
        switch self {
        case .null: nil
        case .text(let range): Array(RawJSON.bytes(base, range))
        case .value(.string(let text)): Array(text.utf8)
        default: jsonText(base)
        }
    }
}
