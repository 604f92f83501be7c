/// Follows one JSON value (RFC 8259) byte by byte, in a bit of memory for each level of nesting. A pure core.
///
/// It knows the grammar, and nothing of what a value means: neither what its strings say, nor whether they are UTF-8.
struct JSONGrammar {
    enum Step {
        /// It belongs to the value, which goes on.
        case inside
        case lineBreak
        /// It is the value's last.
        case last
        /// It does not belong to the value, which was whole before it: a number.
        case after
        /// It cannot stand there.
        case fault(StaticString)
    }

    private enum Mode {
        case value, valueOrEnd, keyOrEnd, key, colon, commaOrEnd
        case string(isKey: Bool), escape(isKey: Bool), digits(left: Int, isKey: Bool)
        case minus, zero, whole, point, fraction, exponent, exponentSign, power
        case word(StaticString, Int)
    }

    /// How deeply values are followed: each level takes a bit.
    static let deepest = 1 << 20

    private var mode = Mode.value
    private var depth = 0
    /// Of each level whether it is an object's.
    private var levels: [UInt64] = []

    /// Whether the bytes so far are a whole value, although more could follow: those of a number.
    var mayEnd: Bool {
        switch mode {
        case .zero, .whole, .fraction, .power: depth == 0
        default: false
        }
    }

    /// Whether the next byte is one of a string's, which most of them are.
    var isInString: Bool { if case .string = mode { true } else { false } }

    static func begins(_ byte: UInt8) -> Bool { "{[\"-0123456789tfn".utf8.contains(byte) }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

    mutating func take(_ byte: UInt8) -> Step {
        switch mode {
        case .string(let isKey): return inString(byte, isKey)
        case .escape(let isKey): return escaped(byte, isKey)
        case .digits(let left, let isKey):
            guard "0123456789abcdefABCDEF".utf8.contains(byte) else {
                return .fault("expected four hexadecimal digits")
            }
            mode = left > 1 ? .digits(left: left - 1, isKey: isKey) : .string(isKey: isKey)
            return .inside
        case .minus, .zero, .whole, .point, .fraction, .exponent, .exponentSign, .power: return inNumber(byte)
        case .word(let word, let index):
            guard word.utf8Start[index] == byte else { return .fault("expected true, false or null") }
            guard index + 1 == word.utf8CodeUnitCount else {
                mode = .word(word, index + 1)
                return .inside
            }
            return ended()
        case .value, .valueOrEnd, .keyOrEnd, .key, .colon, .commaOrEnd:
            if JSONGrammar.isSpace(byte) { return byte == 0x0A || byte == 0x0D ? .lineBreak : .inside }
            return token(byte)
        }
    }

    private mutating func token(_ byte: UInt8) -> Step {
        switch (mode, byte) {
        case (.key, UInt8(ascii: "\"")), (.keyOrEnd, UInt8(ascii: "\"")):
            mode = .string(isKey: true)
            return .inside
        case (.colon, UInt8(ascii: ":")):
            mode = .value
            return .inside
        case (.commaOrEnd, UInt8(ascii: ",")):
            mode = isInObject ? .key : .value
            return .inside
        case (.commaOrEnd, UInt8(ascii: "}")) where isInObject, (.keyOrEnd, UInt8(ascii: "}")),
            (.commaOrEnd, UInt8(ascii: "]")) where !isInObject, (.valueOrEnd, UInt8(ascii: "]")):
            depth -= 1
            if depth & 63 == 0 { levels.removeLast() }
            return ended()
        case (.value, _), (.valueOrEnd, _): return begin(byte)
        case (.key, _), (.keyOrEnd, _): return .fault("expected a member's name")
        case (.colon, _): return .fault("expected a colon")
        default: return .fault(isInObject ? "expected a comma or }" : "expected a comma or ]")
        }
    }

    private mutating func begin(_ byte: UInt8) -> Step {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < JSONGrammar.deepest else { return .fault("nested too deeply") }
            if depth & 63 == 0 { levels.append(0) }
            let isObject = byte == UInt8(ascii: "{")
            levels[depth >> 6] &= ~(1 << (depth & 63))
            if isObject { levels[depth >> 6] |= 1 << (depth & 63) }
            depth += 1
            mode = isObject ? .keyOrEnd : .valueOrEnd
        case UInt8(ascii: "\""): mode = .string(isKey: false)
        case UInt8(ascii: "-"): mode = .minus
        case UInt8(ascii: "0"): mode = .zero
        case UInt8(ascii: "1")...UInt8(ascii: "9"): mode = .whole
        case UInt8(ascii: "t"): mode = .word("true", 1)
        case UInt8(ascii: "f"): mode = .word("false", 1)
        case UInt8(ascii: "n"): mode = .word("null", 1)
        default: return .fault("expected a value")
        }
        return .inside
    }

    private var isInObject: Bool { levels[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1 == 1 }

    private mutating func ended() -> Step {
        mode = .commaOrEnd
        return depth == 0 ? .last : .inside
    }

    private mutating func inString(_ byte: UInt8, _ isKey: Bool) -> Step {
        switch byte {
        case UInt8(ascii: "\""):
            guard isKey else { return ended() }
            mode = .colon
        case UInt8(ascii: "\\"): mode = .escape(isKey: isKey)
        case 0x0A, 0x0D: return .fault("a string has a raw line break")
        case 0x00..<0x20: return .fault("a string has a raw control character")
        default: break
        }
        return .inside
    }

    private mutating func escaped(_ byte: UInt8, _ isKey: Bool) -> Step {
        guard "\"\\/bfnrtu".utf8.contains(byte) else { return .fault("a string has an unknown escape") }
        mode = byte == UInt8(ascii: "u") ? .digits(left: 4, isKey: isKey) : .string(isKey: isKey)
        return .inside
    }

    private mutating func inNumber(_ byte: UInt8) -> Step {
        let digit = UInt8(ascii: "0")...UInt8(ascii: "9")
        let isPower = byte | 0x20 == UInt8(ascii: "e")
        switch (mode, byte) {
        case (.whole, digit), (.fraction, digit), (.power, digit): break
        case (.minus, UInt8(ascii: "0")): mode = .zero
        case (.minus, digit): mode = .whole
        case (.point, digit): mode = .fraction
        case (.exponent, digit), (.exponentSign, digit): mode = .power
        case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): mode = .exponentSign
        case (.minus, _), (.point, _), (.exponent, _), (.exponentSign, _): return .fault("expected a digit")
        case (.zero, UInt8(ascii: ".")), (.whole, UInt8(ascii: ".")): mode = .point
        case (.zero, _) where isPower, (.whole, _) where isPower, (.fraction, _) where isPower: mode = .exponent
        default:
            // `01`, `1.2.3`, `1-2`: one number that is none, rather than two.
            guard !"0123456789.-+eE".utf8.contains(byte) else { return .fault("a number is not a JSON number") }
            mode = .commaOrEnd
            return depth > 0 ? take(byte) : .after
        }
        return .inside
    }
}
