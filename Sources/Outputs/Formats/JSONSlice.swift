internal import Events
internal import Model

/// A JSON value as it is in some bytes, read no deeper than it is asked for.
///
/// Nothing is copied, nothing recurs: what is nested is stepped over by counting brackets, so that hostile answers cost
/// time in proportion to their length and no stack. It finds members; it does not validate what it steps over.
struct JSONSlice {
    enum Kind {
        case object, array, string, number, boolean, null
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

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The text of a string, unescaped; nil for anything else.
    var string: String? {
        guard kind == .string, bytes.count >= 2, bytes.last == UInt8(ascii: "\"") else { return nil }
        return bytes.dropFirst().dropLast().withUnsafeBufferPointer { JSONSlice.unescaped($0) }
    }

    private static func unescaped(_ text: UnsafeBufferPointer<UInt8>) -> String {
        guard text.contains(UInt8(ascii: "\\")) else { return String(decoding: text, as: UTF8.self) }
        return String(decoding: JSONString.decoded(text), as: UTF8.self)
    }

    /// A whole number that fits; nil for anything else.
    var integer: Int64? { kind == .number ? Int64(text) : nil }

    var double: Double? { kind == .number ? Double(text) : nil }

    /// A text that is not empty, or a number or truth value as it stands; nil for anything else.
    var scalar: String? {
        switch kind {
        case .string: string.flatMap { $0.isEmpty ? nil : $0 }
        case .number, .boolean: text
        case .object, .array, .null: nil
        }
    }

    /// A truth value; nil for anything else.
    var boolean: Bool? { kind == .boolean ? bytes.count == 4 : nil }

    /// The members of an object in their order; nil for anything else, and for one that is cut.
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

    /// The elements of an array in their order; nil for anything else, and for one that is cut.
    var elements: [JSONSlice]? {
        guard kind == .array, bytes.count >= 2, bytes.last == UInt8(ascii: "]") else { return nil }
        return bytes.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress else { return nil }
            let found = RawWalk.elements(base, 0..<text.count).map { part($0) }
            return found.contains { $0 == nil } ? nil : found.compactMap { $0 }
        }
    }

    private func part(_ range: Range<Int>) -> JSONSlice? {
        guard !range.isEmpty else { return nil }
        return JSONSlice(bytes[bytes.startIndex + range.lowerBound..<bytes.startIndex + range.upperBound])
    }

    subscript(_ name: String) -> JSONSlice? { members?.last { $0.key == name }?.value }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }
}
