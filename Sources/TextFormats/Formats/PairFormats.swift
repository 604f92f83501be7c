internal import EventLoops

/// Lines of `key=value`: logfmt and the Linux audit log.
enum PairFormats {
    // MARK: logfmt

    /// Reads logfmt. A key alone is `true`; a quoted value has the escapes of Go and JSON. A line without any
    /// `=` fails, because it would otherwise become a list of flags. Source: https://brandur.org/logfmt.
    static func logfmt(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // Whether a key has a value; without one the line is prose.
        var hasValue = false
        // Whether each member was written by `plainPair`, which notes where it is.
        var isPlain = true
        let loads = writer.loads(upTo: reader.end)
        reader.skipBlanks()
        while !reader.isAtEnd {
            if loads, let after = writer.plainPair(from: reader.p, before: reader.end) {
                hasValue = true
                reader.p = after
                while !reader.isAtEnd, reader.next <= 0x20 { reader.p += 1 }
                continue
            }
            isPlain = false
            let key = key(&reader)
            guard !key.isEmpty else { return reader.fail("a key") }
            if reader.skip("=") {
                hasValue = true
                if reader.next == UInt8(ascii: "\"") {
                    // The name is written before the value is complete. If the quote is not closed, the
                    // record fails and what was written is discarded by the caller.
                    writer.openMember(key)
                    guard quoted(&reader, into: &writer) else { return false }
                    writer.closeString()
                } else {
                    writer.member(key, value(&reader))
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

    /// Reads a key: all before `=`, a quote or a blank. May be empty.
    private static func key(_ reader: inout LineReader) -> Bytes {
        let start = reader.p
        while !reader.isAtEnd, reader.next > 0x20, reader.next != UInt8(ascii: "="),
            reader.next != UInt8(ascii: "\"")
        {
            reader.p += 1
        }
        return Bytes(start, reader.p - start)
    }

    /// Reads a value without quotes: all before a blank.
    private static func value(_ reader: inout LineReader) -> Bytes {
        let start = reader.p
        while !reader.isAtEnd, reader.next > 0x20 { reader.p += 1 }
        return Bytes(start, reader.p - start)
    }

    /// Reads a value from its opening quote on, and writes it without its escapes.
    private static func quoted(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        reader.p += 1
        var from = reader.p
        while !reader.isAtEnd {
            if reader.next == UInt8(ascii: "\"") {
                // Text up to the quote or the escape is copied at once, not byte by byte.
                writer.content(Bytes(from, reader.p - from))
                reader.p += 1
                return true
            }
            guard reader.next == UInt8(ascii: "\\"), reader.rest.count > 1 else {
                reader.p += 1
                continue
            }
            writer.content(Bytes(from, reader.p - from))
            let length = escape(reader.rest, into: &writer)
            if length == 0 {
                // An unknown escape stays as it is.
                writer.content(reader.rest.prefix(1))
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

    // MARK: auditd

    /// Reads a record of the audit log: `type=SYSCALL msg=audit(1795946400.243:24287): arch=c000003e
    /// comm="cat"`. Events of several lines stay several records with the same `serial`. Source: auditd(8),
    /// and the audit event fields of https://github.com/linux-audit/audit-documentation.
    static func auditd(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // `node=` is there if `name_format` is set in auditd.conf.
        if reader.skip("node=") {
            writer.text("node", reader.word())
        }
        _ = reader.skip(" ")
        guard reader.expect("type=") else { return false }
        writer.text("type", reader.word())
        guard reader.expect(" msg=audit("), let time = reader.until(UInt8(ascii: ":")) else { return false }
        guard let seconds = auditTime(time) else { return reader.fail("a time") }
        writer.time(seconds)
        guard let serial = reader.digits(), reader.expect("):") else { return false }
        writer.number("serial", serial)
        // SELinux's decision is words before the pairs: `avc:  denied  { read } for  pid=`.
        let decision = Bytes(reader.p, decisionLength(reader.rest))
        if !decision.isEmpty {
            writer.text("message", decision.trimmed)
            reader.p = decision.end
        }
        while true {
            // An enriched record (`log_format = ENRICHED` in auditd.conf) has a second list, after the byte
            // 0x1D.
            while !reader.isAtEnd, reader.next <= 0x20 { reader.p += 1 }
            guard !reader.isAtEnd else { return true }
            let key = key(&reader)
            guard !key.isEmpty else { return reader.fail("a key") }
            // A word without `=` is not part of a pair and is skipped.
            guard reader.skip("=") else { continue }
            guard let value = auditValue(&reader) else { return false }
            // The pairs of an enriched address are in braces, `SADDR={ saddr_fam=inet laddr=192.0.2.7 }`, and
            // become members as the others do.
            guard !value.equals("{") else { continue }
            writer.member(key, value)
        }
    }

    /// Length of the words before the first pair; 0 if the record begins with a pair, as most do.
    private static func decisionLength(_ text: Bytes) -> Int {
        let end = text.firstIndex(of: UInt8(ascii: "=")) ?? text.count
        var length = end
        // The name of the first pair is the word before its `=`.
        while end < text.count, length > 0, text[length - 1] > 0x20 { length -= 1 }
        return text.prefix(length).trimmed.isEmpty ? 0 : length
    }

    /// Reads a value, without the quotes around it. The audit log has no escapes: it writes special bytes as
    /// hexadecimal digits.
    private static func auditValue(_ reader: inout LineReader) -> Bytes? {
        let quote = reader.next
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return value(&reader) }
        reader.p += 1
        return reader.until(quote)
    }

    /// The time of `1795946400.243`: at most twelve digits, a point and three digits.
    private static func auditTime(_ text: Bytes) -> Timestamp? {
        guard let dot = text.firstIndex(of: UInt8(ascii: ".")), dot <= 12, text.prefix(dot).isDigits,
            text.count - dot == 4, text.dropping(dot + 1).isDigits
        else { return nil }
        // bounded: twelve digits, and three.
        return Timestamp(
            seconds: text.prefix(dot).buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) },
            nanoseconds: text.dropping(dot + 1).buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) } * 1_000_000)
    }
}

/// The formats `csv` and `tsv`: fields in the order of the columns that the settings name. CSV has quotes by
/// RFC 4180; TSV has neither quotes nor escapes.
struct ColumnFormat: Sendable {
    /// The byte between fields: a comma or a tab.
    private let separator: UInt8
    /// Names of the columns, in quotes and with a colon.
    private let names: [[UInt8]]
    /// For each column, whether `numbers` has its name.
    private let isNumber: [Bool]

    /// A format for columns.
    init(_ separator: UInt8, _ columns: [String], numbers: [String]) {
        self.separator = separator
        names = columns.map { RecordWriter.quotedName($0) }
        isNumber = columns.map { numbers.contains($0) }
    }

    /// Names of the members of a record.
    var memberNames: [[UInt8]] { names.map { RecordWriter.name(quoted: $0) } }

    /// Reads a record, which must have exactly one field for each column. An empty text is written as one, an
    /// empty number is left out.
    func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // Fields are written as they are read: a record that turns out to be wrong is discarded by the
        // caller.
        for index in names.indices {
            if index > 0 {
                guard reader.next == separator, !reader.isAtEnd else {
                    return reader.fail(separator == UInt8(ascii: ",") ? "," : "a tab")
                }
                reader.p += 1
            }
            // A quote counts only at the beginning of a field, and only for CSV.
            if reader.next == UInt8(ascii: "\""), separator == UInt8(ascii: ",") {
                guard quoted(names[index], &reader, into: &writer) else { return false }
                continue
            }
            let rest = reader.rest
            let value = rest.prefix(rest.firstIndex(of: separator) ?? rest.count)
            reader.p = value.end
            if isNumber[index] {
                if !value.isEmpty {
                    writer.number(quoted: names[index], value)
                }
            } else {
                writer.member(quoted: names[index], value)
            }
        }
        // A line with more fields than columns fails: values would be lost without a sign.
        return reader.isAtEnd ? true : reader.fail("the end of the line: columns has fewer names")
    }

    /// Reads a field in quotes, in which two quotes stand for one (RFC 4180, section 2.7). The name is
    /// written first, so that no copy of the value is needed; it is a text even if `numbers` has its name.
    private func quoted(_ name: [UInt8], _ reader: inout LineReader, into writer: inout RecordWriter) -> Bool
    {
        reader.p += 1
        writer.raw(name)
        writer.openString()
        // Each piece ends at a quote; two quotes in a row are one quote of the value.
        while let piece = reader.until(UInt8(ascii: "\"")) {
            writer.content(piece)
            guard reader.next == UInt8(ascii: "\""), !reader.isAtEnd else {
                writer.closeString()
                return true
            }
            writer.content(reader.rest.prefix(1))
            reader.p += 1
        }
        return false
    }
}

extension RecordWriter {
    /// Begins a text under a name from the line. `content` and `closeString` follow.
    mutating func openMember(_ name: Bytes) {
        openString()
        content(name)
        closeName()
        openString()
    }

    /// Writes a number, or a text if it is not one, under a name from the line in small letters. The name is
    /// copied, because the line must not change.
    mutating func lowercased(_ name: Bytes, _ value: Bytes) {
        openString()
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count) { small in
            for index in 0..<name.count {
                let byte = name[index]
                small[index] = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
            }
            if let start = small.baseAddress {
                content(Bytes(UnsafePointer(start), name.count), readable: name.count)
            }
        }
        closeName()
        numberOrText(value)
    }

    /// Writes one character as content of a text.
    mutating func scalar(_ value: UInt32) {
        guard let scalar = Unicode.Scalar(value) else { return }
        var bytes = Array(String(Character(scalar)).utf8)
        bytes.withUnsafeMutableBufferPointer { text in
            guard let start = text.baseAddress else { return }
            content(Bytes(UnsafePointer(start), text.count), readable: text.count)
        }
    }
}
