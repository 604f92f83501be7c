/// The grammar below the members: white space, numbers, literals, nested values.
extension JSONScanner {
    /// Steps over white space; returns the byte after it. No space or one blank are the usual cases and are
    /// inlined.
    @inline(__always)
    mutating func space(_ p: inout Pointer) -> UInt8 {
        var c = p.pointee
        if c > .blank { return c }
        if c == .blank {
            p += 1
            c = p.pointee
            if c > .blank { return c }
        }
        p = longSpace(p)
        return p.pointee
    }

    /// Steps over any white space and notes line breaks. A line feed that ends the text, or the line, is not
    /// passed.
    @inline(never)
    private mutating func longSpace(_ start: Pointer) -> Pointer {
        var p = start
        while true {
            switch p.pointee {
            case .blank, UInt8(ascii: "\t"): p += 1
            case UInt8(ascii: "\r"):
                hasLineBreaks = true
                p += 1
            case .lineFeed:
                guard breaksAreSpace, p + 1 < end else { return p }
                hasLineBreaks = true
                p += 1
            default: return p
            }
        }
    }

    /// Steps over a value that is not a string.
    ///
    /// - Parameter depth: nesting level that an opening bracket at `start` would begin.
    @inline(never)
    mutating func other(_ start: Pointer, _ c: UInt8, depth: Int) -> Pointer? {
        if c == .openBrace || c == .openBracket { return nested(start, depth: depth) }
        var p = start
        return simple(&p, c) ? p : nil
    }

    /// Steps over a number or a literal, which begins with `c`.
    @inline(__always)
    private mutating func simple(_ p: inout Pointer, _ c: UInt8) -> Bool {
        if JSONScanner.isDigit(c) || c == UInt8(ascii: "-") { return number(&p) }
        if c == UInt8(ascii: "t") || c == UInt8(ascii: "f") {
            // One path for both, because a processor predicts badly which of the two is next.
            let isFalse = c == UInt8(ascii: "f")
            return literal(&p, isFalse ? 0x65_736C_6166 : 0x6575_7274, isFalse ? 5 : 4)
        }
        switch c {
        case UInt8(ascii: "n"): return literal(&p, 0x6C6C_756E, 4)
        case UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "N"), UInt8(ascii: "I"):
            return fail(.badNumber, p)
        default: return fail(.expectedValue, p)
        }
    }

    /// Steps over a literal, whose bytes are `expected` as a little-endian number.
    @inline(__always)
    private mutating func literal(_ p: inout Pointer, _ expected: UInt64, _ length: Int) -> Bool {
        guard word(p, min(length, end - p)) == expected else { return badLiteral(p, expected) }
        p += length
        return true
    }

    /// Notes a wrong literal: at its first byte, or, if the text ends within it, at the end, so that it
    /// counts as cut short.
    @inline(never)
    private mutating func badLiteral(_ p: Pointer, _ expected: UInt64) -> Bool {
        var offset = 0
        while offset < 5, UInt64(p[offset]) == (expected >> (8 * UInt64(offset))) & 0xFF { offset += 1 }
        return p[offset] == .lineFeed ? fail(.expectedValue, p + offset) : fail(.expectedValue, p)
    }

    /// Steps over a number by the grammar of RFC 8259, section 6: no leading zeros, digits on both sides of
    /// the point.
    @inline(__always)
    private mutating func number(_ p: inout Pointer) -> Bool {
        if p.pointee == UInt8(ascii: "-") {
            p += 1
        }
        if p.pointee == UInt8(ascii: "0") {
            p += 1
            if JSONScanner.isDigit(p.pointee) { return fail(.badNumber, p) }
        } else {
            guard digits(&p) else { return false }
        }
        if p.pointee == UInt8(ascii: ".") {
            p += 1
            guard digits(&p) else { return false }
        }
        if p.pointee | 0x20 == UInt8(ascii: "e") {
            p += 1
            if p.pointee == UInt8(ascii: "+") || p.pointee == UInt8(ascii: "-") {
                p += 1
            }
            guard digits(&p) else { return false }
        }
        return true
    }

    /// Steps over one digit or more.
    @inline(__always)
    private mutating func digits(_ p: inout Pointer) -> Bool {
        guard JSONScanner.isDigit(p.pointee) else { return fail(.badNumber, p) }
        while p <= wordEnd {
            // Eight bytes at once: the high bit is set in the first byte that is not a digit (and perhaps in
            // bytes after it, which do not matter).
            let word = UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian ^ 0x3030_3030_3030_3030
            let others = ((word &+ 0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080
            p += others.trailingZeroBitCount &>> 3
            if others != 0 { return true }
        }
        while JSONScanner.isDigit(p.pointee) { p += 1 }
        return true
    }

    /// Whether a byte is an ASCII digit.
    @inline(__always)
    static func isDigit(_ c: UInt8) -> Bool { c &- UInt8(ascii: "0") < 10 }

    /// Steps over an object or array with all that it contains. Without recursion, because a line decides the
    /// depth: one bit of `kinds` for each open bracket says whether it is an object. 64 levels fit into the
    /// word (`maxDepth`).
    @inline(never)
    private mutating func nested(_ start: Pointer, depth: Int) -> Pointer? {
        var p = start
        var level = depth
        var kinds: UInt64 = 0
        var ignored = false
        enum Step { case value, name, after }
        var step = Step.value
        while true {
            var c = space(&p)
            switch step {
            case .value:
                if c == .openBrace || c == .openBracket {
                    guard level <= JSONScanner.maxDepth else { return failure(.tooDeep, p) }
                    level += 1
                    let isObject = c == .openBrace
                    kinds = kinds << 1 | (isObject ? 1 : 0)
                    p += 1
                    c = space(&p)
                    if c == (isObject ? .closeBrace : .closeBracket) {
                        step = .after
                    } else {
                        step = isObject ? .name : .value
                        continue
                    }
                } else {
                    if c == .quote {
                        p += 1
                        guard string(&p, &ignored) else { return nil }
                    } else {
                        guard simple(&p, c) else { return nil }
                    }
                    step = .after
                    continue
                }
            case .name:
                guard c == .quote else { return failure(.expectedName, p) }
                p += 1
                guard string(&p, &ignored) else { return nil }
                guard space(&p) == .colon else { return failure(.expectedColon, p) }
                p += 1
                step = .value
                continue
            case .after:
                break
            }
            // Here a value has ended, or the closing bracket of an empty object or array is next.
            let isObject = kinds & 1 == 1
            if c == .comma, step == .after {
                p += 1
                step = isObject ? .name : .value
            } else if c == (isObject ? .closeBrace : .closeBracket) {
                p += 1
                kinds >>= 1
                level -= 1
                if level == depth { return p }
            } else {
                return failure(.expectedCommaOrEnd, p)
            }
        }
    }
}

/// Bytes of JSON's syntax.
extension UInt8 {
    @inline(__always) static var lineFeed: UInt8 { 0x0A }
    @inline(__always) static var blank: UInt8 { 0x20 }
    @inline(__always) static var quote: UInt8 { 0x22 }
    @inline(__always) static var comma: UInt8 { 0x2C }
    @inline(__always) static var colon: UInt8 { 0x3A }
    @inline(__always) static var openBracket: UInt8 { 0x5B }
    @inline(__always) static var backslash: UInt8 { 0x5C }
    @inline(__always) static var closeBracket: UInt8 { 0x5D }
    @inline(__always) static var openBrace: UInt8 { 0x7B }
    @inline(__always) static var closeBrace: UInt8 { 0x7D }
}
