internal import Model

/// A JSON value as it is in some bytes, read no deeper than it is asked for.
///
/// Nothing is copied, nothing recurs: what is nested is stepped over by counting brackets, so that hostile answers cost
/// time in proportion to their length and no stack. It finds members; it does not validate what it steps over.
struct JSONSlice {
    /// What kind of value it is.
    enum Kind {
        case object
        case array
        case string
        case number
        case boolean
        case null
    }

    /// The value's own bytes, without blanks around.
    let bytes: ArraySlice<UInt8>

    /// The value that bytes hold, blanks around it aside; nil for nothing.
    init?(_ bytes: ArraySlice<UInt8>) {
        let start = bytes.firstIndex { !JSONSlice.isBlank($0) }
        guard let start, let end = bytes.lastIndex(where: { !JSONSlice.isBlank($0) }) else { return nil }
        self.bytes = bytes[start...end]
    }

    var kind: Kind {
        switch bytes[bytes.startIndex] {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }

    /// The text of the value as it stands.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The text of a string, unescaped; nil for anything else.
    var string: String? {
        guard kind == .string, bytes.count >= 2, bytes.last == UInt8(ascii: "\"") else { return nil }
        let inner = bytes.dropFirst().dropLast()
        guard inner.contains(UInt8(ascii: "\\")) else { return String(decoding: inner, as: UTF8.self) }
        return String(decoding: inner.withUnsafeBufferPointer { JSONString.decoded($0) }, as: UTF8.self)
    }

    /// A whole number that fits; nil for anything else.
    var integer: Int64? { kind == .number ? Int64(text) : nil }

    /// A number; nil for anything else.
    var double: Double? { kind == .number ? Double(text) : nil }

    /// A truth value; nil for anything else.
    var boolean: Bool? { kind == .boolean ? bytes.count == 4 : nil }

    /// The members of an object in their order; nil for anything else, and for one that is cut.
    var members: [(key: String, value: JSONSlice)]? {
        guard kind == .object else { return nil }
        var found: [(key: String, value: JSONSlice)] = []
        let isWhole = walk(to: UInt8(ascii: "}")) { cursor in
            guard let name = cursor.value()?.string, cursor.next() == UInt8(ascii: ":") else { return false }
            cursor.position += 1
            guard cursor.next() != nil, let value = cursor.value() else { return false }
            found.append((name, value))
            return true
        }
        return isWhole ? found : nil
    }

    /// The elements of an array in their order; nil for anything else, and for one that is cut.
    var elements: [JSONSlice]? {
        guard kind == .array else { return nil }
        var found: [JSONSlice] = []
        let isWhole = walk(to: UInt8(ascii: "]")) { cursor in
            guard let value = cursor.value() else { return false }
            found.append(value)
            return true
        }
        return isWhole ? found : nil
    }

    /// Takes what is between the brackets, one after the other, until the closing one; false where it is cut.
    private func walk(to end: UInt8, _ take: (inout Cursor) -> Bool) -> Bool {
        var cursor = Cursor(bytes: bytes, position: bytes.startIndex + 1)
        while let byte = cursor.next(), byte != end {
            if byte == UInt8(ascii: ",") {
                cursor.position += 1
            } else if !take(&cursor) {
                return false
            }
        }
        return cursor.next() == end
    }

    /// The last member of a name; nil when there is none.
    subscript(_ name: String) -> JSONSlice? { members?.last { $0.key == name }?.value }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    /// A place in the bytes.
    private struct Cursor {
        let bytes: ArraySlice<UInt8>
        var position: Int

        /// The next byte that is no blank, which the cursor then stands on; nil at the end.
        mutating func next() -> UInt8? {
            while position < bytes.endIndex, JSONSlice.isBlank(bytes[position]) { position += 1 }
            return position < bytes.endIndex ? bytes[position] : nil
        }

        /// The value that begins here, stepped over; nil when it is cut, or is none.
        mutating func value() -> JSONSlice? {
            let start = position
            var depth = 0
            repeat {
                guard position < bytes.endIndex else { return nil }
                switch bytes[position] {
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    depth += 1
                    position += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    guard depth > 0 else { return nil }
                    depth -= 1
                    position += 1
                case UInt8(ascii: "\""):
                    guard stepOverString() else { return nil }
                case UInt8(ascii: ","), UInt8(ascii: ":"), 0x20, 0x0A, 0x0D, 0x09:
                    guard depth > 0 else { return nil }
                    position += 1
                default:
                    while position < bytes.endIndex, !JSONSlice.endsScalar(bytes[position]) { position += 1 }
                }
            } while depth > 0
            return JSONSlice(bytes[start..<position])
        }

        private mutating func stepOverString() -> Bool {
            position += 1
            while position < bytes.endIndex {
                if bytes[position] == UInt8(ascii: "\\") {
                    position += 2
                } else if bytes[position] == UInt8(ascii: "\"") {
                    position += 1
                    return true
                } else {
                    position += 1
                }
            }
            return false
        }
    }

    private static func endsScalar(_ byte: UInt8) -> Bool {
        isBlank(byte) || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}")
            || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "[")
            || byte == UInt8(ascii: "{")
    }
}
