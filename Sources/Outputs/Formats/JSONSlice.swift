internal import Events
internal import Glibc
internal import Model

/// A JSON value inside some bytes, parsed only as deep as it is asked for.
///
/// Nothing is copied, and nothing is recursive: nested values are skipped by counting brackets. So hostile
/// answers cost time in proportion to their length, and no stack. It finds members and does not validate
/// what it skips.
struct JSONSlice {
    /// The kind of a value, by its first byte alone.
    enum Kind {
        case object, array, string, number, boolean, null
    }

    /// The value's bytes, without blanks around.
    let bytes: ArraySlice<UInt8>

    /// The value in these bytes; nil if they are blank.
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

    /// The value as it is written.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The unescaped text of a string; nil for other kinds.
    var string: String? {
        guard kind == .string, bytes.count >= 2, bytes.last == UInt8(ascii: "\"") else { return nil }
        return bytes.dropFirst().dropLast().withUnsafeBufferPointer { JSONSlice.unescaped($0) }
    }

    /// Text without its escapes; texts without a backslash are not copied twice.
    private static func unescaped(_ text: UnsafeBufferPointer<UInt8>) -> String {
        guard text.contains(UInt8(ascii: "\\")) else { return String(decoding: text, as: UTF8.self) }
        return String(decoding: JSONString.decoded(text), as: UTF8.self)
    }

    /// A whole number within 64 bits; nil for anything else.
    var integer: Int64? { kind == .number ? Int64(text) : nil }

    /// A number as the nearest double; nil for other kinds.
    var double: Double? { kind == .number ? Double(text) : nil }

    /// A text that is not empty, or a number or truth value as written; nil for other kinds.
    var scalar: String? {
        switch kind {
        case .string: string.flatMap { $0.isEmpty ? nil : $0 }
        case .number, .boolean: text
        case .object, .array, .null: nil
        }
    }

    /// A truth value; nil for other kinds.
    var boolean: Bool? { kind == .boolean ? bytes.count == 4 : nil }

    /// The members of an object in order; nil for other kinds, and for an object that is cut off.
    var members: [(key: String, value: JSONSlice)]? {
        guard kind == .object else { return nil }
        return bytes.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress else { return nil }
            var found: [(key: String, value: JSONSlice)] = []
            var walk = RawWalk(base, from: 0, to: text.count)
            while let member = walk.next() {
                guard let value = part(member.value) else { return nil }
                found.append((JSONSlice.unescaped(UnsafeBufferPointer(rebasing: text[member.name])), value))
            }
            return walk.offset < text.count && base[walk.offset] == UInt8(ascii: "}") ? found : nil
        }
    }

    /// The elements of an array in order; nil for other kinds, and for an array that is cut off.
    var elements: [JSONSlice]? {
        guard kind == .array, bytes.count >= 2, bytes.last == UInt8(ascii: "]") else { return nil }
        return bytes.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress else { return nil }
            let found = RawWalk.elements(base, 0..<text.count).map { part($0) }
            return found.contains { $0 == nil } ? nil : found.compactMap { $0 }
        }
    }

    /// Number of elements of an array; nil if `elements` is.
    var elementCount: Int? {
        guard kind == .array, bytes.count >= 2, bytes.last == UInt8(ascii: "]") else { return nil }
        return bytes.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress else { return nil }
            let found = RawWalk.elements(base, 0..<text.count)
            return found.contains(where: \.isEmpty) ? nil : found.count
        }
    }

    /// Whether the value contains a text as it is written.
    func contains(_ text: String) -> Bool {
        self.text.withCString { strstr($0, text) != nil }
    }

    /// A value at a range of `bytes`, counted from 0.
    private func part(_ range: Range<Int>) -> JSONSlice? {
        guard !range.isEmpty else { return nil }
        return JSONSlice(bytes[bytes.startIndex + range.lowerBound..<bytes.startIndex + range.upperBound])
    }

    /// The last member of that name; nil without one. Parses the whole object at each call.
    subscript(_ name: String) -> JSONSlice? { members?.last { $0.key == name }?.value }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }
}
