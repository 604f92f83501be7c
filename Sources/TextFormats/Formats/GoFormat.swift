/// Go's package log, `2026/11/29 10:00:00 message`, log/slog's default handler, and panics with the stacks
/// of goroutines.
enum GoFormat {
    /// Whether a line begins a record: with a time or a panic.
    static func begins(_ line: Bytes) -> Bool {
        isPanic(line)
            || line.count >= 19 && line[4] == UInt8(ascii: "/") && line[7] == UInt8(ascii: "/")
                && line[10] == UInt8(ascii: " ") && line[13] == UInt8(ascii: ":") && line[0] &- 0x30 < 10
    }

    /// Whether the runtime reports a crash.
    private static func isPanic(_ line: Bytes) -> Bool {
        line.hasPrefix("panic: ") || line.hasPrefix("fatal error: ")
    }

    /// Reads a record. A panic has no time.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        if isPanic(reader.rest) {
            // The runtime writes no level; a panic ends the program.
            writer.word("severity", "fatal")
        } else {
            guard reader.time(words: 2, into: &writer) else { return false }
            level(&reader, into: &writer)
        }
        writer.text("message", reader.rest)
        return true
    }

    /// Reads the level that log/slog's default handler writes before the message: `INFO listening port=80`,
    /// `WARN+1 slow`.
    private static func level(_ reader: inout LineReader, into writer: inout RecordWriter) {
        let start = reader.p
        let word = reader.word()
        let plus = word.firstIndex(of: UInt8(ascii: "+")) ?? word.firstIndex(of: UInt8(ascii: "-"))
        let name = word.prefix(plus ?? word.count)
        guard name.equals("INFO") || name.equals("WARN") || name.equals("ERROR") || name.equals("DEBUG"),
            reader.next == UInt8(ascii: " "),
            name.count == word.count || word.dropping(name.count + 1).isDigits
        else {
            reader.p = start
            return
        }
        writer.text("level", word)
        _ = reader.skip(" ")
    }
}
