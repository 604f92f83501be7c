/// The error log of MySQL, MariaDB and Percona Server.
enum MySQLErrorFormat {
    /// Whether a line begins a record of the error log: it begins with a time, in the form of today or of
    /// MySQL before 5.7 (`261129 10:00:00`).
    static func begins(_ line: Bytes) -> Bool {
        guard line.count > 15, line[0] &- 0x30 < 10 else { return false }
        if line[6] == UInt8(ascii: " ") { return line[9] == UInt8(ascii: ":") }
        return line[4] == UInt8(ascii: "-") && line[7] == UInt8(ascii: "-") && line[13] == UInt8(ascii: ":")
    }

    /// Reads a record of the error log: `2026-11-29T10:00:00.123456Z 0 [Warning] [MY-010068] [Server]
    /// message`. MariaDB writes no code and no subsystem, and its time is two words.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        let start = reader.p
        // MySQL writes `2026-11-29T10:00:00.123456Z`, MariaDB `2026-11-29 10:00:00` and older versions
        // `261129 10:00:00`.
        let isOneWord = reader.rest.count > 10 && reader.rest[10] == UInt8(ascii: "T")
        guard reader.time(words: isOneWord ? 1 : 2, into: &writer) else {
            reader.p = start
            return reader.fail("a time")
        }
        reader.skipBlanks()
        if reader.next &- 0x30 < 10, let thread = reader.digits() {
            writer.number("thread", thread)
            reader.skipBlanks()
        }
        // The start script writes to the same file, without a level; so does the server when it crashes:
        // `UTC - mysqld got signal 11 ;`.
        if reader.rest.hasPrefix("mysqld_safe ") || reader.rest.hasPrefix("UTC - ") {
            writer.text("message", reader.rest)
            return true
        }
        guard reader.expect("["), let level = reader.until(UInt8(ascii: "]")) else { return false }
        writer.text("level", level)
        _ = reader.skip(" ")
        // `[MY-010068] [Server]`: MySQL 8.
        if reader.rest.hasPrefix("[MY-"), let close = reader.rest.firstIndex(of: "] [") {
            writer.text("code", Bytes(reader.p + 1, close - 1))
            reader.p += close + 3
            guard let subsystem = reader.until(UInt8(ascii: "]")) else { return false }
            writer.text("subsystem", subsystem)
            _ = reader.skip(" ")
        }
        writer.text("message", reader.rest)
        return true
    }
}
