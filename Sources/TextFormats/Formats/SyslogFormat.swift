/// Syslog in files: RFC 3164, RFC 5424, and RFC 3164 with the times of RFC 3339, as rsyslog writes in Debian
/// 12; and what journalctl prints in its forms `short`, `short-iso`, `short-precise`, `short-full`.
enum SyslogFormat {
    /// Reads a record.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // What journalctl says itself: `-- Boot 0b5d… --`, `-- No entries --`.
        if reader.rest.hasPrefix("-- "), reader.rest.count > 6,
            reader.rest.dropping(reader.rest.count - 3).equals(" --")
        {
            writer.text("message", reader.rest)
            return true
        }
        guard header(&reader, into: &writer) else { return false }
        if !reader.isAtEnd {
            writer.text("message", reader.rest)
        }
        return true
    }

    /// Reads everything before the message. HAProxy's format uses it too.
    ///
    /// - Parameter writesTime: false leaves out the header's time, because the message has one of its own.
    static func header(
        _ reader: inout LineReader, into writer: inout RecordWriter, writesTime: Bool = true
    ) -> Bool {
        if reader.next == UInt8(ascii: "<") {
            guard priority(&reader, into: &writer) else { return false }
        }
        // RFC 5424 has its version, 1, before the time; the number alone could be a host of RFC 3164.
        if reader.rest.hasPrefix("1 "), reader.rest.count > 2,
            isNil(reader.rest[2]) || reader.rest[2] &- 0x30 < 10
        {
            reader.p += 2
            return modern(&reader, into: &writer, writesTime: writesTime)
        }
        return old(&reader, into: &writer, writesTime: writesTime)
    }

    /// Whether a byte is RFC 5424's mark for a missing value.
    private static func isNil(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") }

    /// Reads `<165>` and writes facility and severity: 8 × facility + severity, at most 191 (RFC 5424,
    /// section 6.2.1). The names are journald's: `PRIORITY` is a severity there, 0 the worst.
    private static func priority(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        reader.p += 1
        guard let digits = reader.digits() else { return false }
        guard digits.count <= 3, reader.expect(">") else { return reader.fail("a priority below 192") }
        let value = digits.buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) }
        guard value < 192 else { return reader.fail("a priority below 192") }
        writer.whole("facility", value / 8)
        writer.whole("PRIORITY", value % 8)
        return true
    }

    // MARK: RFC 3164

    /// Reads the header of RFC 3164: a time, perhaps a host, and a tag.
    private static func old(
        _ reader: inout LineReader, into writer: inout RecordWriter, writesTime: Bool
    ) -> Bool {
        let start = reader.p
        let text = reader.rest
        // journalctl's `Sun 2026-11-29 10:00:00 CET` has four words. Its first three also read as a time.
        let isFull =
            text.count > 4 && text[3] == UInt8(ascii: " ") && text[4] &- 0x30 < 3
            && reader.next &- 0x30 >= 10 && text.dropping(8).first == UInt8(ascii: "-")
        let words = reader.next &- 0x30 < 10 ? 1 : isFull ? 4 : 3
        let mark = writer.mark
        if !reader.time(words: words, into: &writer) {
            // Cisco writes the year before the time.
            reader.p = start
            guard words == 3, reader.time(words: 4, into: &writer) else {
                reader.p = start
                return reader.fail("a time")
            }
        }
        if !writesTime {
            writer.goBack(to: mark)
        }
        return hostAndTag(&reader, into: &writer)
    }

    /// Reads `web-1 sshd[573]: `. A line from the local socket has no host: then the first word ends with the
    /// colon of the tag.
    private static func hostAndTag(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        let start = reader.p
        let host = reader.word()
        guard !host.isEmpty else { return reader.fail("a host") }
        // No host has a `=`: such a word is a pair of the message, whose writer names neither host nor
        // program.
        if host.last == UInt8(ascii: ":") || host.firstIndex(of: UInt8(ascii: "=")) != nil {
            reader.p = start
        } else {
            writer.text("host", host)
            _ = reader.skip(" ")
        }
        tag(&reader, into: &writer)
        return true
    }

    /// Reads the tag, `sshd[573]: `, with one blank after it; further blanks belong to the message. Without a
    /// tag all is message.
    private static func tag(_ reader: inout LineReader, into writer: inout RecordWriter) {
        let start = reader.p
        let word = reader.word()
        var program = word
        var pid = Bytes.none
        var end = word.count
        // The process id need not be in the same word: some programs write blanks in brackets, and such a
        // text is a message.
        if let open = word.firstIndex(of: UInt8(ascii: "[")), open > 0,
            let close = reader.record.endingAt(of: word).dropping(open).firstIndex(of: UInt8(ascii: "]"))
        {
            program = word.prefix(open)
            pid = Bytes(word.start + open + 1, close - 1)
            end = open + close + 1
            let next = Bytes(word.start + end, reader.rest.end - word.start - end).first
            guard pid.firstIndex(of: UInt8(ascii: " ")) == nil,
                next == UInt8(ascii: ":") || next == UInt8(ascii: " ")
            else {
                reader.p = start
                return
            }
            if next == UInt8(ascii: ":") {
                end += 1
            }
        } else if word.count > 1, word.last == UInt8(ascii: ":") {
            program = word.prefix(word.count - 1)
        } else {
            reader.p = start
            return
        }
        writer.text("program", program)
        writer.number("pid", pid)
        reader.p = word.start + end
        _ = reader.skip(" ")
    }

    // MARK: RFC 5424

    /// Reads the header of RFC 5424 after its version (section 6). `-` stands for a missing value.
    private static func modern(
        _ reader: inout LineReader, into writer: inout RecordWriter, writesTime: Bool
    ) -> Bool {
        let mark = writer.mark
        if reader.skip("- ") {
            // No time.
        } else {
            guard reader.time(words: 1, into: &writer) else { return false }
            if !writesTime {
                writer.goBack(to: mark)
            }
        }
        for name in ["host", "program", "pid", "msgid"] as [StaticString] {
            guard let value = reader.until(UInt8(ascii: " ")) else { return false }
            // `pid` is written as a number if it is one. Its length identifies it: the other names are
            // longer.
            if name.utf8CodeUnitCount == 3 {
                writer.number(name, value)
            } else {
                writer.present(name, value)
            }
        }
        if reader.skip("-") {
            // No structured data.
        } else {
            guard structuredData(&reader, into: &writer) else { return false }
        }
        guard reader.isAtEnd || reader.expect(" ") else { return false }
        // A byte order mark says that the message is UTF-8 (section 6.4); the message is read so anyway.
        _ = reader.skip("\u{FEFF}")
        return true
    }

    /// Reads structured data, `[id name="value" …][…]`, as an object of objects (RFC 5424, section 6.3).
    private static func structuredData(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard reader.next == UInt8(ascii: "[") else { return reader.fail("[") }
        writer.openObject(Bytes(structuredName.utf8Start, structuredName.utf8CodeUnitCount))
        while reader.skip("[") {
            let id = name(&reader, until: UInt8(ascii: "]"))
            guard !id.isEmpty else { return reader.fail("an SD-ID") }
            writer.openObject(id)
            while reader.skip(" ") {
                let name = name(&reader, until: UInt8(ascii: "="))
                guard !name.isEmpty, reader.expect("=\"") else { return false }
                guard let value = quoted(&reader) else { return false }
                writer.openMember(name)
                unescape(value, into: &writer)
                writer.json.closeString()
            }
            guard reader.expect("]") else { return false }
            writer.closeInnerObject()
        }
        writer.closeInnerObject()
        return true
    }

    /// Name of the member for structured data.
    private static let structuredName: StaticString = "structured_data"

    /// Reads an SD-ID or a parameter's name: all before `mark`, a quote or a blank. May be empty.
    private static func name(_ reader: inout LineReader, until mark: UInt8) -> Bytes {
        let start = reader.p
        while !reader.isAtEnd, reader.next > 0x20, reader.next != mark, reader.next != UInt8(ascii: "\"") {
            reader.p += 1
        }
        return Bytes(start, reader.p - start)
    }

    /// Returns a value up to its closing quote, and steps over both. A byte after a backslash does not close
    /// it.
    private static func quoted(_ reader: inout LineReader) -> Bytes? {
        let start = reader.p
        while !reader.isAtEnd {
            if reader.next == UInt8(ascii: "\"") {
                let value = Bytes(start, reader.p - start)
                reader.p += 1
                return value
            }
            reader.p += reader.next == UInt8(ascii: "\\") && reader.rest.count > 1 ? 2 : 1
        }
        _ = reader.fail("\"")
        return nil
    }

    /// Writes a value without its escapes: a backslash counts only before `"`, `\` and `]` (RFC 5424, section
    /// 6.3.3).
    private static func unescape(_ text: Bytes, into writer: inout RecordWriter) {
        var left = text
        while let index = left.firstIndex(of: UInt8(ascii: "\\")), index + 1 < left.count {
            let isEscape = "\"\\]".utf8.contains(left[index + 1])
            writer.json.content(left.prefix(isEscape ? index : index + 1))
            if isEscape {
                writer.json.content(Bytes(left.start + index + 1, 1))
            }
            left = left.dropping(index + (isEscape ? 2 : 1))
        }
        writer.json.content(left)
    }
}
