internal import EventLoops

/// Redis and Valkey: `4531:M 29 Nov 2026 10:00:00.495 # message`, that is process id, role, time and
/// severity. Source: serverLogRaw in https://github.com/redis/redis/blob/unstable/src/server.c.
enum RedisFormat {
    /// Whether a line begins with a process id and a role. A crash report, whose lines have neither, belongs
    /// to the line before it.
    static func begins(_ line: Bytes) -> Bool {
        // 12 bytes have room for each process id and the colon.
        guard let colon = line.prefix(12).firstIndex(of: UInt8(ascii: ":")), line.prefix(colon).isDigits
        else {
            return false
        }
        return role(line.dropping(colon + 1)) != nil || line.dropping(colon + 1).hasPrefix("signal-handler (")
    }

    /// The role that the letter after the colon says; nil for another letter.
    private static func role(_ text: Bytes) -> StaticString? {
        guard text.count > 2, text[1] == UInt8(ascii: " ") else { return nil }
        return switch text[0] {
        case UInt8(ascii: "M"): "master"
        case UInt8(ascii: "S"): "replica"
        case UInt8(ascii: "C"): "child"
        case UInt8(ascii: "X"): "sentinel"
        default: nil
        }
    }

    /// Reads a record.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard let pid = reader.digits(), reader.expect(":") else { return false }
        writer.number("pid", pid)
        if reader.skip("signal-handler (") { return signal(&reader, into: &writer) }
        guard let role = role(reader.rest) else { return reader.fail("M, S, C or X") }
        writer.word("role", role)
        reader.p += 2
        guard reader.time(words: 4, into: &writer) else { return false }
        // The severity is one character before the message.
        let severity: StaticString? =
            switch reader.next {
            case UInt8(ascii: "."): "debug"
            case UInt8(ascii: "-"), UInt8(ascii: "*"): "info"
            case UInt8(ascii: "#"): "warn"
            default: nil
            }
        guard let severity else { return reader.fail(". - * or #") }
        reader.p += 1
        writer.word("severity", severity)
        _ = reader.skip(" ")
        writer.text("message", reader.rest)
        return true
    }

    /// The line of a signal handler, which has the seconds since 1970 in place of role and time:
    /// `12:signal-handler (1795946400) Received SIGTERM`.
    private static func signal(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard let seconds = reader.digits(), seconds.count <= 12, reader.expect(") ") else { return false }
        writer.word("role", "signal-handler")
        // bounded: twelve digits.
        writer.time(
            Timestamp(seconds: seconds.buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) }, nanoseconds: 0))
        writer.text("message", reader.rest)
        return true
    }
}
