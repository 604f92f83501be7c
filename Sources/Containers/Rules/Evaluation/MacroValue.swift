internal import Glibc
internal import Model

/// What a macro gives for one event: as a place in the line where that will do, so that nothing is copied.
enum MacroValue {
    case null
    case bool(Bool)
    /// A string of the line without escapes: its text.
    case text(Range<Int>)
    case number(Range<Int>)
    /// An object or an array of the line.
    case nested(Range<Int>)
    case value(JSONValue)

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

    /// A value of its own, in the form that comparing is quickest with.
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

    func jsonText(_ base: UnsafePointer<UInt8>) -> [UInt8] {
        switch self {
        case .text(let range): [UInt8(ascii: "\"")] + RawJSON.bytes(base, range) + [UInt8(ascii: "\"")]
        case .number(let range), .nested(let range): Array(RawJSON.bytes(base, range))
        case .null, .bool, .value: json(base).description.bytes
        }
    }

    /// The text for keys and comparisons: a string's own, a number's or truth value's spelling, or JSON; nil for null.
    func text(_ base: UnsafePointer<UInt8>) -> [UInt8]? {
        switch self {
        case .null: nil
        case .text(let range): Array(RawJSON.bytes(base, range))
        case .value(.string(let text)): Array(text.utf8)
        default: jsonText(base)
        }
    }
}
