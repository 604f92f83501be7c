/// A small reader of JSON (RFC 8259), for what the agent publishes. The library depends on no other, so that
/// linking it costs nothing. It accepts some texts that are not JSON, as `01`, because the agent does not
/// write them.
enum JSONText {
    /// A value. Of equal names the last one counts.
    indirect enum Value: Equatable {
        case null
        case bool(Bool)
        case integer(Int64)
        case double(Double)
        case string(String)
        case array([Value])
        case object([String: Value])
    }

    /// The value of a whole text; nil if it is not one value.
    static func read(_ text: String) -> Value? {
        var reader = Reader(bytes: Array(text.utf8))
        guard let value = reader.value(depth: 0) else { return nil }
        reader.skipSpace()
        return reader.position == reader.bytes.count ? value : nil
    }

    /// The position of reading.
    private struct Reader {
        /// The text.
        let bytes: [UInt8]
        /// Offset of the next byte.
        var position = 0

        /// The next byte; nil at the end.
        private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

        /// Steps over white space.
        mutating func skipSpace() {
            while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
                position += 1
            }
        }

        /// Skips white space and consumes a byte; returns false if another byte is next.
        private mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard next == byte else { return false }
            position += 1
            return true
        }

        /// Consumes a word; returns false, and consumes nothing, if another one is next.
        private mutating func take(word: String) -> Bool {
            guard bytes[position...].starts(with: word.utf8) else { return false }
            position += word.utf8.count
            return true
        }

        /// Reads a value; nil beyond 64 levels, so that a hostile file cannot exhaust the stack.
        mutating func value(depth: Int) -> Value? {
            skipSpace()
            guard depth < 64, let byte = next else { return nil }
            switch byte {
            case UInt8(ascii: "{"): return object(depth)
            case UInt8(ascii: "["): return array(depth)
            case UInt8(ascii: "\""): return string().map(Value.string)
            case UInt8(ascii: "t"): return take(word: "true") ? .bool(true) : nil
            case UInt8(ascii: "f"): return take(word: "false") ? .bool(false) : nil
            case UInt8(ascii: "n"): return take(word: "null") ? .null : nil
            default: return number()
            }
        }

        /// Reads an object from its opening brace on.
        private mutating func object(_ depth: Int) -> Value? {
            position += 1
            var members: [String: Value] = [:]
            if take(UInt8(ascii: "}")) { return .object(members) }
            repeat {
                skipSpace()
                guard let key = string(), take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else {
                    return nil
                }
                members[key] = value
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "}")) ? .object(members) : nil
        }

        /// Reads an array from its opening bracket on.
        private mutating func array(_ depth: Int) -> Value? {
            position += 1
            var elements: [Value] = []
            if take(UInt8(ascii: "]")) { return .array(elements) }
            repeat {
                guard let value = value(depth: depth + 1) else { return nil }
                elements.append(value)
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "]")) ? .array(elements) : nil
        }

        /// Reads a number; a whole one if it fits in 64 bits.
        private mutating func number() -> Value? {
            let start = position
            while let byte = next, "+-.0123456789eE".utf8.contains(byte) { position += 1 }
            let text = String(decoding: bytes[start..<position], as: UTF8.self)
            if let whole = Int64(text) { return .integer(whole) }
            return Double(text).map(Value.double)
        }

        /// Reads a string from its opening quote on.
        private mutating func string() -> String? {
            guard next == UInt8(ascii: "\"") else { return nil }
            position += 1
            var text: [UInt8] = []
            while let byte = next {
                position += 1
                if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
                guard byte == UInt8(ascii: "\\") else {
                    text.append(byte)
                    continue
                }
                guard let escaped = next else { return nil }
                position += 1
                switch escaped {
                case UInt8(ascii: "n"): text.append(0x0A)
                case UInt8(ascii: "r"): text.append(0x0D)
                case UInt8(ascii: "t"): text.append(0x09)
                case UInt8(ascii: "b"): text.append(0x08)
                case UInt8(ascii: "f"): text.append(0x0C)
                case UInt8(ascii: "u"):
                    guard let scalar = scalar() else { return nil }
                    text += Array(String(Character(scalar)).utf8)
                default: text.append(escaped)
                }
            }
            return nil
        }

        /// Reads the four hexadecimal digits of an escape.
        private mutating func unit() -> UInt32? {
            guard position + 4 <= bytes.count else { return nil }
            defer { position += 4 }
            return UInt32(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16)
        }

        /// Reads the scalar of an escape after its `\u`; a pair of surrogates if it is beyond U+FFFF.
        private mutating func scalar() -> Unicode.Scalar? {
            guard let high = unit() else { return nil }
            guard (0xD800..<0xDC00).contains(high) else { return Unicode.Scalar(high) }
            guard take(word: "\\u"), let low = unit(), (0xDC00..<0xE000).contains(low) else { return nil }
            return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
        }
    }
}
