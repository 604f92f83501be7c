/// Why a text is not JSON, or not one that we read.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Where, in bytes from the beginning.
    public let offset: Int
    /// What was expected there.
    public let message: String

    /// Where and what.
    public var description: String { "not JSON at byte \(offset): \(message)" }
}

extension JSONValue {
    /// How deeply a text may be nested.
    public static let maximumDepth = 64

    /// Reads a whole JSON text (RFC 8259), strictly; its size is the caller's to bound.
    ///
    /// - Throws: `JSONError` for anything else, including text that is not UTF-8 and deeper nesting than
    ///   `maximumDepth`.
    public init(parsing bytes: [UInt8]) throws(JSONError) {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw JSONError(offset: 0, message: "the text is not UTF-8")
        }
        var reader = JSONReader(bytes: bytes)
        self = try reader.readText()
    }

    /// Reads a whole JSON text.
    public init(parsing text: String) throws(JSONError) { try self.init(parsing: Array(text.utf8)) }
}

/// A recursive descent over bytes that are known to be UTF-8.
struct JSONReader {
    private let bytes: [UInt8]
    private var place = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

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
        if isWhole, let number = Int(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else { throw error("the number is too large") }
        return .double(number)
    }

    private mutating func skipDigits(_ message: String) throws(JSONError) {
        let start = place
        while let byte = next, byte >= 0x30, byte <= 0x39 { place += 1 }
        guard place > start else { throw error(message) }
    }

    private mutating func readString() throws(JSONError) -> String {
        place += 1
        var text: [UInt8] = []
        while let byte = next {
            place += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): text.append(contentsOf: String(try readEscape()).utf8)
            case 0..<0x20: throw error("a control character in a string")
            default: text.append(byte)
            }
        }
        throw error("expected the string's end")
    }

    private mutating func readEscape() throws(JSONError) -> Unicode.Scalar {
        guard let byte = next else { throw error("expected an escape") }
        place += 1
        if byte == UInt8(ascii: "u") { return try readUnicode() }
        guard let meant = JSONString.meaning(of: byte) else { throw error("no such escape") }
        return Unicode.Scalar(meant)
    }

    private mutating func readUnicode() throws(JSONError) -> Unicode.Scalar {
        let first = try readHex()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, next == UInt8(ascii: "\\") else { throw error("half a surrogate pair") }
        place += 1
        guard next == UInt8(ascii: "u") else { throw error("half a surrogate pair") }
        place += 1
        let second = try readHex()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + UInt32(second) - 0xDC00)
        else { throw error("half a surrogate pair") }
        return scalar
    }

    private mutating func readHex() throws(JSONError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = next, byte < 0x80, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw error("expected four hexadecimal digits")
            }
            value = value << 4 | UInt16(digit)
            place += 1
        }
        return value
    }
}
