/// logfmt: lines of `key=value`.
enum LogfmtFormat {
    /// Reads logfmt. A key alone is `true`; a quoted value has the escapes of Go and JSON. A line without any
    /// `=` fails, because it would otherwise become a list of flags. Source: https://brandur.org/logfmt.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // Whether a key has a value; without one the line is prose.
        var hasValue = false
        // Whether each member was written by `plainPair`, which notes where it is.
        var isPlain = true
        let loads = writer.json.loads(upTo: reader.end)
        reader.skipBlanks()
        while !reader.isAtEnd {
            if loads, let after = writer.plainPair(from: reader.p, before: reader.end) {
                hasValue = true
                reader.p = after
                while !reader.isAtEnd, reader.next <= 0x20 { reader.p += 1 }
                continue
            }
            isPlain = false
            let key = reader.pairKey()
            guard !key.isEmpty else { return reader.fail("a key") }
            if reader.skip("=") {
                hasValue = true
                if reader.next == UInt8(ascii: "\"") {
                    // The name is written before the value is complete. If the quote is not closed, the
                    // record fails and what was written is discarded by the caller.
                    writer.openMember(key)
                    guard quoted(&reader, into: &writer) else { return false }
                    writer.json.closeString()
                } else {
                    writer.member(key, reader.pairValue())
                }
            } else {
                writer.flag(key)
            }
            // After a value only a blank may follow: `a="b"c` is not logfmt.
            guard reader.isAtEnd || reader.next <= 0x20 else { return reader.fail("a blank") }
            while !reader.isAtEnd, reader.next <= 0x20 { reader.p += 1 }
        }
        writer.noteMembersKnown(isPlain)
        return hasValue ? true : reader.fail("key=value")
    }

    /// Reads a value from its opening quote on, and writes it without its escapes.
    private static func quoted(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        reader.p += 1
        var from = reader.p
        while !reader.isAtEnd {
            if reader.next == UInt8(ascii: "\"") {
                // Text up to the quote or the escape is copied at once, not byte by byte.
                writer.json.content(Bytes(from, reader.p - from))
                reader.p += 1
                return true
            }
            guard reader.next == UInt8(ascii: "\\"), reader.rest.count > 1 else {
                reader.p += 1
                continue
            }
            writer.json.content(Bytes(from, reader.p - from))
            let length = escape(reader.rest, into: &writer)
            if length == 0 {
                // An unknown escape stays as it is.
                writer.json.content(reader.rest.prefix(1))
            }
            reader.p += max(length, 1)
            from = reader.p
        }
        return reader.fail("\"")
    }

    /// Writes the character of an escape, and returns the escape's length; 0, and nothing written, if it is
    /// unknown.
    private static func escape(_ text: Bytes, into writer: inout RecordWriter) -> Int {
        let scalar: UInt32
        var length = 2
        switch text[1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scalar = UInt32(text[1])
        case UInt8(ascii: "n"): scalar = 10
        case UInt8(ascii: "t"): scalar = 9
        case UInt8(ascii: "r"): scalar = 13
        case UInt8(ascii: "b"): scalar = 8
        case UInt8(ascii: "f"): scalar = 12
        case UInt8(ascii: "x"):
            // A byte beyond ASCII would be part of a character in an unknown encoding.
            guard let value = hexadecimal(text, 2, 2), value < 0x80 else { return 0 }
            scalar = value
            length = 4
        case UInt8(ascii: "u"):
            guard let value = hexadecimal(text, 2, 4) else { return 0 }
            scalar = value
            length = 6
            // A character beyond U+FFFF is a pair of surrogates (RFC 8259, section 7); half a pair stays as
            // it is.
            if value & 0xFC00 == 0xD800 {
                guard text.count >= 12, text[6] == UInt8(ascii: "\\"), text[7] == UInt8(ascii: "u"),
                    let low = hexadecimal(text, 8, 4), low & 0xFC00 == 0xDC00
                else { return 0 }
                writer.scalar(0x10000 + (value & 0x3FF) << 10 + low & 0x3FF)
                return 12
            }
        default: return 0
        }
        // A single surrogate is not a character.
        guard Unicode.Scalar(scalar) != nil else { return 0 }
        writer.scalar(scalar)
        return length
    }

    /// The number of `count` hexadecimal digits at an offset; nil if there are fewer.
    private static func hexadecimal(_ text: Bytes, _ from: Int, _ count: Int) -> UInt32? {
        guard text.count >= from + count else { return nil }
        var value: UInt32 = 0
        for index in from..<(from + count) {
            guard let digit = Character(Unicode.Scalar(text[index])).hexDigitValue else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
