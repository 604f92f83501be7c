/// Just enough JSON to read what the agent publishes; the library depends on nothing.
enum JSONText {
    indirect enum Value: Equatable {
        case null
        case bool(Bool)
        case integer(Int64)
        case double(Double)
        case string(String)
        case array([Value])
        case object([String: Value])
    }

    static func read(_ text: String) -> Value? {
        var reader = Reader(bytes: Array(text.utf8))
        guard let value = reader.value(depth: 0) else { return nil }
        reader.skipSpace()
        return reader.place == reader.bytes.count ? value : nil
    }

    private struct Reader {
        let bytes: [UInt8]
        var place = 0

        private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

        mutating func skipSpace() {
            while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { place += 1 }
        }

        private mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard next == byte else { return false }
            place += 1
            return true
        }

        private mutating func take(word: String) -> Bool {
            guard bytes[place...].starts(with: word.utf8) else { return false }
            place += word.utf8.count
            return true
        }

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

        private mutating func object(_ depth: Int) -> Value? {
            place += 1
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

        private mutating func array(_ depth: Int) -> Value? {
            place += 1
            var elements: [Value] = []
            if take(UInt8(ascii: "]")) { return .array(elements) }
            repeat {
                guard let value = value(depth: depth + 1) else { return nil }
                elements.append(value)
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "]")) ? .array(elements) : nil
        }

        private mutating func number() -> Value? {
            let start = place
            while let byte = next, "+-.0123456789eE".utf8.contains(byte) { place += 1 }
            let text = String(decoding: bytes[start..<place], as: UTF8.self)
            if let whole = Int64(text) { return .integer(whole) }
            return Double(text).map(Value.double)
        }

        private mutating func string() -> String? {
            guard next == UInt8(ascii: "\"") else { return nil }
            place += 1
            var text: [UInt8] = []
            while let byte = next {
                place += 1
                if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
                guard byte == UInt8(ascii: "\\") else {
                    text.append(byte)
                    continue
                }
                guard let escaped = next else { return nil }
                place += 1
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

        private mutating func unit() -> UInt32? {
            guard place + 4 <= bytes.count else { return nil }
            defer { place += 4 }
            return UInt32(String(decoding: bytes[place..<place + 4], as: UTF8.self), radix: 16)
        }

        /// The scalar behind `\u`, of one unit or of two.
        private mutating func scalar() -> Unicode.Scalar? {
            guard let high = unit() else { return nil }
            guard (0xD800..<0xDC00).contains(high) else { return Unicode.Scalar(high) }
            guard take(word: "\\u"), let low = unit(), (0xDC00..<0xE000).contains(low) else { return nil }
            return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
        }
    }
}
