internal import Events
internal import EventLoops
internal import Glibc
internal import Model

/// A text in memory that belongs to somebody else, who keeps it until the text is no longer used.
struct TextBytes {
    /// How the text is written there.
    enum Form {
        /// As in a JSON string, without escapes: it needs none.
        case plain
        /// As in a JSON string, with escapes.
        case escaped
        /// UTF-8 of any kind, which JSON may have to escape.
        case utf8
    }

    let start: UnsafePointer<UInt8>
    let count: Int
    let form: Form

    @inline(__always)
    init(_ start: UnsafePointer<UInt8>, _ count: Int, _ form: Form) {
        self.start = start
        self.count = count
        self.form = form
    }

    /// A text of the program that needs no escapes.
    @inline(__always)
    init(_ text: StaticString) { self.init(text.utf8Start, text.utf8CodeUnitCount, .plain) }

    /// Whether there are escapes in it.
    @inline(__always) var isEscaped: Bool { form == .escaped }
    var isEmpty: Bool { count == 0 }
    var buffer: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: count) }

    /// The text in memory of its own, with its escapes resolved.
    var decoded: [UInt8] { isEscaped ? JSONString.decoded(buffer) : Array(buffer) }

    var string: String { String(decoding: decoded, as: UTF8.self) }

    /// Whether the text has these bytes once its escapes are resolved.
    @inline(__always)
    func equals(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !isEscaped else { return decoded.elementsEqual(other) }
        guard count == other.count, let otherStart = other.baseAddress else { return count == other.count }
        return memcmp(start, otherStart, count) == 0
    }

    func equals(_ other: [UInt8]) -> Bool { other.withUnsafeBufferPointer { equals($0) } }

    func equals(_ other: StaticString) -> Bool {
        equals(UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount))
    }
}

/// A JSON value as it is written, in memory that the caller keeps. The text was validated when its event
/// was accepted.
struct JSONBytes {
    let start: UnsafePointer<UInt8>
    let count: Int
    /// Whether the value is a string with escapes; false for other kinds, whatever is inside them.
    let isEscaped: Bool

    @inline(__always)
    init(_ start: UnsafePointer<UInt8>, _ count: Int, isEscaped: Bool) {
        self.start = start
        self.count = count
        self.isEscaped = isEscaped
    }

    /// The value that begins at an offset of `base`.
    init(_ base: UnsafePointer<UInt8>, _ value: Range<Int>) {
        var isEscaped = false
        if base[value.lowerBound] == UInt8(ascii: "\"") {
            _ = RawWalk.stringEnd(base, value.lowerBound + 1, value.upperBound, &isEscaped)
        }
        self.init(base + value.lowerBound, value.count, isEscaped: isEscaped)
    }

    @inline(__always) var first: UInt8 { start[0] }
    @inline(__always) var isString: Bool { first == UInt8(ascii: "\"") }
    @inline(__always) var isObject: Bool { first == UInt8(ascii: "{") }
    @inline(__always) var isArray: Bool { first == UInt8(ascii: "[") }
    @inline(__always) var isNull: Bool { first == UInt8(ascii: "n") }
    @inline(__always) var isBoolean: Bool { first == UInt8(ascii: "t") || first == UInt8(ascii: "f") }
    @inline(__always) var isNumber: Bool { !isString && !isObject && !isArray && !isNull && !isBoolean }

    /// The value as it is written.
    var buffer: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: count) }

    /// The content of a string; nil for other kinds.
    @inline(__always) var text: TextBytes? {
        isString && count >= 2 ? TextBytes(start + 1, count - 2, isEscaped ? .escaped : .plain) : nil
    }

    /// Whether two values are written alike.
    @inline(__always)
    func isSame(as other: JSONBytes) -> Bool {
        count == other.count && memcmp(start, other.start, count) == 0
    }

    /// A string's text, or another value as it is written.
    var words: TextBytes { text ?? TextBytes(start, count, .utf8) }

    /// A text that is not empty, or a number or truth value as written; nil for other kinds.
    var scalar: TextBytes? {
        if let text { return text.isEmpty ? nil : text }
        return isNumber || isBoolean ? words : nil
    }

    /// A truth value; nil for other kinds.
    var boolean: Bool? { isBoolean ? count == 4 : nil }

    /// A whole number within 64 bits; nil for anything else.
    var integer: Int64? {
        guard isNumber else { return nil }
        let isNegative = first == UInt8(ascii: "-")
        var value: Int64 = 0
        var index = isNegative ? 1 : 0
        guard count > index, count <= 18 else { return Int64(String(decoding: buffer, as: UTF8.self)) }
        while index < count {
            let digit = start[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            // bounded: at most 18 digits.
            value = value &* 10 &+ Int64(digit)
            index += 1
        }
        return isNegative ? -value : value
    }

    /// The last member of that name in an object; nil without one, and for other kinds.
    func member(_ name: [UInt8]) -> JSONBytes? {
        guard isObject else { return nil }
        return RawWalk.find(name, in: start, from: 0, to: count).map { JSONBytes(start, $0.value) }
    }

    /// The time of a value: a text of RFC 3339, or a number (`TimestampText.parseNumber`); nil for other
    /// kinds.
    @inline(__always)
    func time(_ reader: inout TimestampReader) -> Timestamp? {
        guard isString else { return isNumber ? TimestampText.parseNumber(buffer) : nil }
        guard let text else { return nil }
        guard text.isEscaped else { return reader.parse(text.buffer) }
        return text.decoded.withUnsafeBufferPointer { TimestampText.parse($0) }
    }
}

extension [UInt8] {
    /// Calls `body` with the bytes as UTF-8.
    func withTextBytes<Result>(_ body: (TextBytes) -> Result) -> Result {
        // An empty array has no memory to point to.
        guard !isEmpty else { return body(TextBytes("")) }
        return withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map { body(TextBytes($0, bytes.count, .utf8)) } ?? body(TextBytes(""))
        }
    }
}
