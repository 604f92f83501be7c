/// Checks one JSON value (RFC 8259) byte by byte, without recursion, with one bit of memory for each level of
/// nesting. So the depth of hostile input costs neither stack nor much memory.
///
/// It checks the grammar only. It ignores the meaning of values, UTF-8 and duplicate names.
struct JSONGrammar {
    /// The role of a byte.
    enum Step {
        /// The byte belongs to the value, which continues.
        case inside
        /// A line break between two tokens of the value.
        case lineBreak
        /// The byte is the last one of the value.
        case last
        /// The byte does not belong to the value, which was complete before it. Only numbers end like this.
        case after
        /// The byte is not allowed here; with the text that was expected.
        case fault(StaticString)
    }

    /// The state of the automaton, named by the token or byte that is expected next or has begun.
    private enum Mode {
        case value, valueOrEnd, keyOrEnd, key, colon, commaOrEnd
        case string(isKey: Bool), escape(isKey: Bool), digits(left: Int, isKey: Bool)
        case minus, zero, whole, point, fraction, exponent, exponentSign, power
        case word(StaticString, Int)
    }

    /// Deepest nesting that is checked: 128 KiB of memory.
    static let deepest = 1 << 20

    private var mode = Mode.value
    /// Number of open objects and arrays.
    private var depth = 0
    /// One bit for each level: whether it is an object.
    private var levels: [UInt64] = []

    /// Whether the bytes so far are a complete value although more could follow, as with a number.
    var mayEnd: Bool {
        switch mode {
        case .zero, .whole, .fraction, .power: depth == 0
        default: false
        }
    }

    /// Whether the next byte is inside a string. Most bytes are, so the caller skips plain ones without
    /// `take`.
    var isInString: Bool { if case .string = mode { true } else { false } }

    /// Whether a value may begin with a byte.
    static func begins(_ byte: UInt8) -> Bool { "{[\"-0123456789tfn".utf8.contains(byte) }

    /// White space between tokens (RFC 8259, section 2).
    static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    /// Checks the next byte.
    mutating func advance(_ byte: UInt8) -> Step {
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

    /// Checks the first byte of a token.
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
            if depth & 63 == 0 {
                levels.removeLast()
            }
            return ended()
        case (.value, _), (.valueOrEnd, _): return begin(byte)
        case (.key, _), (.keyOrEnd, _): return .fault("expected a member's name")
        case (.colon, _): return .fault("expected a colon")
        default: return .fault(isInObject ? "expected a comma or }" : "expected a comma or ]")
        }
    }

    /// Checks the first byte of a value.
    private mutating func begin(_ byte: UInt8) -> Step {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < JSONGrammar.deepest else { return .fault("nested too deeply") }
            if depth & 63 == 0 {
                levels.append(0)
            }
            let isObject = byte == UInt8(ascii: "{")
            levels[depth >> 6] &= ~(1 << (depth & 63))
            if isObject {
                levels[depth >> 6] |= 1 << (depth & 63)
            }
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

    /// A value has ended, perhaps the outermost one.
    private mutating func ended() -> Step {
        mode = .commaOrEnd
        return depth == 0 ? .last : .inside
    }

    /// Checks a byte inside of a string.
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

    /// Checks the byte after a backslash.
    private mutating func escaped(_ byte: UInt8, _ isKey: Bool) -> Step {
        guard "\"\\/bfnrtu".utf8.contains(byte) else { return .fault("a string has an unknown escape") }
        mode = byte == UInt8(ascii: "u") ? .digits(left: 4, isKey: isKey) : .string(isKey: isKey)
        return .inside
    }

    /// Checks a byte after the beginning of a number. A byte that is not part of the number is checked as the
    /// next token, or ends the value.
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
        case (.zero, _) where isPower, (.whole, _) where isPower, (.fraction, _) where isPower:
            mode = .exponent
        default:
            // `01`, `1.2.3` and `1-2` are reported as one invalid number, not as two numbers.
            guard !"0123456789.-+eE".utf8.contains(byte) else {
                return .fault("a number is not a JSON number")
            }
            mode = .commaOrEnd
            return depth > 0 ? advance(byte) : .after
        }
        return .inside
    }
}
