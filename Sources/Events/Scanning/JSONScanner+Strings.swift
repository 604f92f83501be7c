internal import CScan

/// Strings: UTF-8 without overlong forms and surrogates, escapes by the grammar, escaped surrogates in pairs.
extension JSONScanner {
    /// Steps over a string: `p` is after the opening quote before, and after the closing one afterwards.
    /// Returns false if the string is wrong.
    @inline(__always)
    mutating func string(_ p: inout Pointer, _ isEscaped: inout Bool) -> Bool {
        var cursor = p
        while cursor <= runEnd {
            let stops = cscan_stops(cursor)
            // A step of constant length: the processor can continue without waiting for the result of the
            // comparison.
            if stops == 0 {
                cursor += Int(CSCAN_WIDTH)
                continue
            }
            cursor += stops.trailingZeroBitCount
            guard cursor.pointee == .quote else { break }
            p = cursor + 1
            return true
        }
        var hasEscapes = false
        guard let end = finishString(cursor, &hasEscapes) else { return false }
        if hasEscapes {
            isEscaped = true
        }
        p = end
        return true
    }

    /// Steps over the rest of a string from its first byte that is not plain text, or from where too few
    /// bytes are left for the fast loop. Tries the fast check once, and otherwise goes character by
    /// character: so no text can make it start over and over.
    @inline(never)
    private mutating func finishString(_ start: Pointer, _ isEscaped: inout Bool) -> Pointer? {
        if let quote = cscan_text(start, runEnd, &isEscaped) { return quote + 1 }
        var p = start
        return carefully(&p, &isEscaped) ? p : nil
    }

    /// Steps over a string one character at a time. It says what is wrong and where, reads strings at the
    /// very end of a block, and reads all strings on processors without the instructions of the fast check.
    mutating func carefully(_ p: inout Pointer, _ isEscaped: inout Bool) -> Bool {
        while true {
            let c = p.pointee
            if c >= 0x80 {
                guard character(&p) else { return false }
            } else if c == .backslash {
                isEscaped = true
                guard escape(&p) else { return false }
            } else if c == .blank {
                // Between two words the search for plain text is not worth starting.
                p += 1
            } else if c < .blank {
                return fail(.controlCharacter, p)
            } else if c == .quote {
                p += 1
                return true
            } else if p <= runEnd {
                p += Int(cscan_plain(p))
            } else {
                p += 1
            }
        }
    }

    /// Steps over one character beyond ASCII. Each byte is loaded only after the one before was found to be
    /// part of the character, so that the line feed at the end stops it.
    ///
    /// Source: Unicode 15.0, table 3-7 (well-formed UTF-8 byte sequences).
    @inline(__always)
    private mutating func character(_ p: inout Pointer) -> Bool {
        let c = p[0]
        if c < 0xE0 {
            if p <= wordEnd {
                // Four characters of two bytes at once, as in Greek or Cyrillic: the marks of lead and
                // continuation bytes are right, and no lead byte is C0 or C1, which would be overlong.
                let word = UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
                let leads = (word & 0x001E_001E_001E_001E) &+ 0x007E_007E_007E_007E
                if word & 0xC0E0_C0E0_C0E0_C0E0 == 0x80C0_80C0_80C0_80C0,
                    leads & 0x0080_0080_0080_0080 == 0x0080_0080_0080_0080
                {
                    p += 8
                    return true
                }
            }
            guard c >= 0xC2, p[1] & 0xC0 == 0x80 else { return fail(.notUTF8, p) }
            p += 2
        } else if c < 0xF0 {
            let low: UInt8 = c == 0xE0 ? 0xA0 : 0x80
            let high: UInt8 = c == 0xED ? 0x9F : 0xBF
            guard p[1] >= low, p[1] <= high, p[2] & 0xC0 == 0x80 else { return fail(.notUTF8, p) }
            p += 3
        } else {
            let low: UInt8 = c == 0xF0 ? 0x90 : 0x80
            let high: UInt8 = c == 0xF4 ? 0x8F : 0xBF
            guard c <= 0xF4, p[1] >= low, p[1] <= high, p[2] & 0xC0 == 0x80, p[3] & 0xC0 == 0x80 else {
                return fail(.notUTF8, p)
            }
            p += 4
        }
        return true
    }

    /// Steps over an escape; `p` is at its backslash.
    @inline(__always)
    private mutating func escape(_ p: inout Pointer) -> Bool {
        let c = p[1]
        if c == UInt8(ascii: "u") { return unicodeEscape(&p) }
        // A bit for each character that may follow a backslash: `"` and `/`, then `\`, b, f, n, r and t.
        let allowed: UInt64 = c < 64 ? 0x0000_8004_0000_0000 : 0x0014_4044_1000_0000
        guard c < 128, allowed >> UInt64(c & 63) & 1 == 1 else { return fail(.badEscape, p + 1) }
        p += 2
        return true
    }

    /// Steps over `\uXXXX`, or over a pair of them if the first is a high surrogate. Half a pair is refused,
    /// although the grammar allows it: many destinations refuse a whole batch over one.
    @inline(__always)
    private mutating func unicodeEscape(_ p: inout Pointer) -> Bool {
        let start = p
        guard let unit = hexUnit(&p) else { return false }
        if unit & 0xF800 != 0xD800 { return true }
        guard unit < 0xDC00, p[0] == .backslash, p[1] == UInt8(ascii: "u") else {
            return fail(.loneSurrogate, start)
        }
        guard let low = hexUnit(&p) else { return false }
        guard low & 0xFC00 == 0xDC00 else { return fail(.loneSurrogate, start) }
        return true
    }

    /// The value of the four digits of `\uXXXX`; `p` is at the backslash before, and after the digits
    /// afterwards.
    @inline(__always)
    private mutating func hexUnit(_ p: inout Pointer) -> UInt32? {
        var unit: UInt32 = 0
        for index in 2..<6 {
            let digit = JSONText.hexDigit(p[index])
            guard digit < 16 else {
                _ = fail(.badEscape, p + index)
                return nil
            }
            unit = unit << 4 | UInt32(digit)
        }
        p += 6
        return unit
    }
}
