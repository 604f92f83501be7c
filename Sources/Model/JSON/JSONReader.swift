/// Why a text is not JSON, or is beyond the bounds of this reader.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Offset in bytes from the beginning.
    public let offset: Int
    package let message: String

    /// Position and problem.
    public var description: String { "not JSON at byte \(offset): \(message)" }
}

extension JSONValue {
    /// Deepest nesting that is read. The reader is recursive, so deeper texts could overflow the stack.
    public static let maximumDepth = 64

    /// Reads a complete JSON text (RFC 8259), strictly. The caller must bound its size.
    ///
    /// - Parameter number: called for each number with its spelling and value.
    /// - Throws: `JSONError` for other texts, for invalid UTF-8, and for nesting beyond `maximumDepth`.
    public init(parsing bytes: [UInt8], number: ((ArraySlice<UInt8>, JSONValue) -> Void)? = nil)
        throws(JSONError)
    {
        if let mark = JSONReader.byteOrderMark(of: bytes) {
            throw JSONError(
                offset: 0,
                message: "the text begins with a byte order mark of \(mark); "
                    + "save it as UTF-8 without the mark")
        }
        if let offset = JSONReader.firstInvalidByte(of: bytes) {
            throw JSONError(offset: offset, message: "the text is not UTF-8")
        }
        var reader = JSONReader(bytes: bytes, number: number)
        self = try reader.readText()
    }

    /// Reads a whole JSON text.
    public init(parsing text: String) throws(JSONError) { try self.init(parsing: Array(text.utf8)) }
}

/// A recursive descent parser over bytes that are valid UTF-8.
struct JSONReader {
    let bytes: [UInt8]
    /// Called for each number with its spelling and value.
    let number: ((ArraySlice<UInt8>, JSONValue) -> Void)?
    /// Index of the next byte.
    fileprivate var offset = 0

    /// The encoding whose byte order mark a text begins with; nil if it has none. JSON has none (RFC 8259,
    /// section 8.1), and editors do not show it.
    fileprivate static func byteOrderMark(of bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return "UTF-8" }
        return bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) ? "UTF-16" : nil
    }

    /// Offset of the first byte that is not UTF-8; nil if all bytes are.
    fileprivate static func firstInvalidByte(of bytes: [UInt8]) -> Int? {
        guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
        var decoder = UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var offset = 0
        while case .valid(let scalar) = decoder.parseScalar(from: &rest) { offset += scalar.count }
        return min(offset, bytes.count)
    }

    /// A value with nothing but white space around it.
    mutating func readText() throws(JSONError) -> JSONValue {
        let value = try readValue(depth: 0)
        skipSpace()
        guard offset == bytes.count else { throw error("expected the end") }
        return value
    }

    private func error(_ message: String) -> JSONError { JSONError(offset: offset, message: message) }

    /// The next byte; nil at the end.
    private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }

    /// Consumes a character after white space; false if another one is there.
    private mutating func consume(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        guard next == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    private mutating func readValue(depth: Int) throws(JSONError) -> JSONValue {
        skipSpace()
        guard depth < JSONValue.maximumDepth else { throw error("nested too deeply") }
        switch next {
        case UInt8(ascii: "{"): return try readObject(depth: depth)
        case UInt8(ascii: "["): return try readArray(depth: depth)
        case UInt8(ascii: "\""): return .string(try readString())
        case UInt8(ascii: "t"): return try readWord("true", .bool(true))
        case UInt8(ascii: "f"): return try readWord("false", .bool(false))
        case UInt8(ascii: "n"): return try readWord("null", .null)
        default: return try readNumber()
        }
    }

    /// A literal: true, false or null.
    private mutating func readWord(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let text = "\(word)".utf8
        guard bytes[offset...].starts(with: text) else { throw error("expected a value") }
        offset += text.count
        return value
    }

    private mutating func readObject(depth: Int) throws(JSONError) -> JSONValue {
        offset += 1
        var members: [JSONValue.Member] = []
        if consume("}") { return .object(members) }
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw error("expected a key") }
            let key = try readString()
            guard consume(":") else { throw error("expected a colon") }
            members.append(JSONValue.Member(key, try readValue(depth: depth + 1)))
        } while consume(",")
        guard consume("}") else { throw error("expected a comma or the object's end") }
        return .object(members)
    }

    private mutating func readArray(depth: Int) throws(JSONError) -> JSONValue {
        offset += 1
        var elements: [JSONValue] = []
        if consume("]") { return .array(elements) }
        repeat { elements.append(try readValue(depth: depth + 1)) } while consume(",")
        guard consume("]") else { throw error("expected a comma or the array's end") }
        return .array(elements)
    }

    /// A number: an integer if it has neither fraction nor exponent and fits, otherwise a double.
    private mutating func readNumber() throws(JSONError) -> JSONValue {
        let start = offset
        var isWhole = true
        if next == UInt8(ascii: "-") {
            offset += 1
        }
        if next == UInt8(ascii: "0") {
            offset += 1
        } else {
            try skipDigits("expected a value")
        }
        if next == UInt8(ascii: ".") {
            isWhole = false
            offset += 1
            try skipDigits("expected a digit")
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isWhole = false
            offset += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") {
                offset += 1
            }
            try skipDigits("expected a digit")
        }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        let whole = isWhole ? Int(text).map(JSONValue.integer) : nil
        guard let value = whole ?? Double(text).flatMap({ $0.isFinite ? .double($0) : nil }) else {
            throw error("the number is too large")
        }
        number?(bytes[start..<offset], value)
        return value
    }

    private mutating func skipDigits(_ message: String) throws(JSONError) {
        let start = offset
        while let byte = next, byte >= 0x30, byte <= 0x39 { offset += 1 }
        guard offset > start else { throw error(message) }
    }

    /// A string. It is copied as it is unless it has escapes.
    private mutating func readString() throws(JSONError) -> String {
        offset += 1
        let start = offset
        var hasEscapes = false
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw error("a control character in a string") }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                try skipEscape()
            } else {
                offset += 1
            }
        }
        guard next != nil else { throw error("expected the string's end") }
        let text = bytes[start..<offset]
        offset += 1
        guard hasEscapes else { return String(decoding: text, as: UTF8.self) }
        return String(decoding: text.withUnsafeBufferPointer { JSONString.decoded($0) }, as: UTF8.self)
    }

    /// Skips an escape, or the two escapes of a surrogate pair. Half a pair is an error: it has no
    /// UTF-8.
    private mutating func skipEscape() throws(JSONError) {
        guard offset + 1 < bytes.count, bytes[offset + 1] == UInt8(ascii: "u") else {
            guard offset + 1 < bytes.count, JSONString.meaning(of: bytes[offset + 1]) != nil else {
                throw error("no such escape")
            }
            return offset += 2
        }
        guard let unit = unit() else { throw error("expected four hexadecimal digits") }
        offset += 6
        guard unit & 0xF800 == 0xD800 else { return }
        guard unit < 0xDC00, let low = self.unit(), low & 0xFC00 == 0xDC00 else {
            throw error("half a surrogate pair")
        }
        offset += 6
    }

    /// The code unit of a `\u` escape at the present position.
    private func unit() -> UInt32? { bytes.withUnsafeBufferPointer { JSONString.unit($0, offset) } }
}
