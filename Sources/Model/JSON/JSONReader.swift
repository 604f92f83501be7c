/// Why a text is not JSON, or not one that we read.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Where, in bytes from the beginning.
    public let offset: Int
    package let message: String

    /// Where and what.
    public var description: String { "not JSON at byte \(offset): \(message)" }
}

extension JSONValue {
    /// How deeply a text may be nested.
    public static let maximumDepth = 64

    /// Reads a whole JSON text (RFC 8259), strictly; its size is the caller's to bound.
    ///
    /// - Parameter number: told of each number as it is spelled, and what it became.
    /// - Throws: `JSONError` for anything else, also text that is not UTF-8 and nesting beyond `maximumDepth`.
    public init(parsing bytes: [UInt8], number: ((ArraySlice<UInt8>, JSONValue) -> Void)? = nil) throws(JSONError) {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw JSONError(offset: 0, message: "the text is not UTF-8")
        }
        var reader = JSONReader(bytes: bytes, number: number)
        self = try reader.readText()
    }

    /// Reads a whole JSON text.
    public init(parsing text: String) throws(JSONError) { try self.init(parsing: Array(text.utf8)) }
}

/// A recursive descent over bytes that are known to be UTF-8.
struct JSONReader {
    let bytes: [UInt8]
    let number: ((ArraySlice<UInt8>, JSONValue) -> Void)?
    fileprivate var place = 0

    mutating func readText() throws(JSONError) -> JSONValue {
        let value = try readValue(depth: 0)
        skipSpace()
        guard place == bytes.count else { throw error("expected the end") }
        return value
    }

    private func error(_ message: String) -> JSONError { JSONError(offset: place, message: message) }

    private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { place += 1 }
    }

    /// Takes that byte after any space; false when another one is there.
    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        guard next == UInt8(ascii: character) else { return false }
        place += 1
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

    private mutating func readWord(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let text = "\(word)".utf8
        guard bytes[place...].starts(with: text) else { throw error("expected a value") }
        place += text.count
        return value
    }

    private mutating func readObject(depth: Int) throws(JSONError) -> JSONValue {
        place += 1
        var members: [JSONValue.Member] = []
        if take("}") { return .object(members) }
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw error("expected a key") }
            let key = try readString()
            guard take(":") else { throw error("expected a colon") }
            members.append(JSONValue.Member(key, try readValue(depth: depth + 1)))
        } while take(",")
        guard take("}") else { throw error("expected a comma or the object's end") }
        return .object(members)
    }

    private mutating func readArray(depth: Int) throws(JSONError) -> JSONValue {
        place += 1
        var elements: [JSONValue] = []
        if take("]") { return .array(elements) }
        repeat { elements.append(try readValue(depth: depth + 1)) } while take(",")
        guard take("]") else { throw error("expected a comma or the array's end") }
        return .array(elements)
    }

    private mutating func readNumber() throws(JSONError) -> JSONValue {
        let start = place
        var isWhole = true
        if next == UInt8(ascii: "-") { place += 1 }
        if next == UInt8(ascii: "0") {
            place += 1
        } else {
            try skipDigits("expected a value")
        }
        if next == UInt8(ascii: ".") {
            isWhole = false
            place += 1
            try skipDigits("expected a digit")
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isWhole = false
            place += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { place += 1 }
            try skipDigits("expected a digit")
        }
        let text = String(decoding: bytes[start..<place], as: UTF8.self)
        let whole = isWhole ? Int(text).map(JSONValue.integer) : nil
        guard let value = whole ?? Double(text).flatMap({ $0.isFinite ? .double($0) : nil }) else {
            throw error("the number is too large")
        }
        number?(bytes[start..<place], value)
        return value
    }

    private mutating func skipDigits(_ message: String) throws(JSONError) {
        let start = place
        while let byte = next, byte >= 0x30, byte <= 0x39 { place += 1 }
        guard place > start else { throw error(message) }
    }

    private mutating func readString() throws(JSONError) -> String {
        place += 1
        let start = place
        var hasEscapes = false
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw error("a control character in a string") }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                try skipEscape()
            } else {
                place += 1
            }
        }
        guard next != nil else { throw error("expected the string's end") }
        let text = bytes[start..<place]
        place += 1
        guard hasEscapes else { return String(decoding: text, as: UTF8.self) }
        return String(decoding: text.withUnsafeBufferPointer { JSONString.decoded($0) }, as: UTF8.self)
    }

    /// Goes over an escape, or over two that are one character.
    private mutating func skipEscape() throws(JSONError) {
        guard place + 1 < bytes.count, bytes[place + 1] == UInt8(ascii: "u") else {
            guard place + 1 < bytes.count, JSONString.meaning(of: bytes[place + 1]) != nil else {
                throw error("no such escape")
            }
            return place += 2
        }
        guard let unit = unit() else { throw error("expected four hexadecimal digits") }
        place += 6
        guard unit & 0xF800 == 0xD800 else { return }
        guard unit < 0xDC00, let low = self.unit(), low & 0xFC00 == 0xDC00 else { throw error("half a surrogate pair") }
        place += 6
    }

    private func unit() -> UInt32? { bytes.withUnsafeBufferPointer { JSONString.unit($0, place) } }
}
