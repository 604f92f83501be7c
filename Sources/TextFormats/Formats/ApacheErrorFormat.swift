/// The error log of Apache httpd. Its access logs are templates of `FormatTable`.
enum ApacheErrorFormat {
    /// Reads a record of Apache's error log: `[Sun Nov 29 10:00:00.123456 2026] [core:error] [pid 71:tid 140]
    /// [client 192.0.2.8:4849] message`. Source: the default ErrorLogFormat,
    /// https://httpd.apache.org/docs/2.4/mod/core.html#errorlogformat.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard reader.expect("[") else { return false }
        let start = reader.p
        // The time can have blanks, but no bracket.
        guard let text = reader.until(UInt8(ascii: "]")) else { return false }
        guard let time = writer.time(of: text) else {
            reader.p = start
            return reader.fail("a time")
        }
        writer.time(time)
        guard reader.expect(" ["), let level = reader.until(UInt8(ascii: "]")), reader.expect(" ") else {
            return false
        }
        // Apache 2.2 writes the level without a module.
        if let colon = level.firstIndex(of: UInt8(ascii: ":")) {
            writer.present("module", level.prefix(colon))
            writer.text("level", level.dropping(colon + 1))
        } else {
            writer.text("level", level)
        }
        if reader.skip("[pid ") {
            guard let process = reader.until(UInt8(ascii: "]")) else { return false }
            _ = reader.skip(" ")
            // `tid` is there for threaded MPMs only.
            let colon = process.firstIndex(of: ":tid ")
            writer.number("pid", process.prefix(colon ?? process.count))
            if let colon {
                writer.number("tid", process.dropping(colon + 5))
            }
        }
        // A system error comes before the client: `(13)Permission denied: [client …] `. It becomes the
        // beginning of the message.
        var cause = Bytes.none
        if reader.next == UInt8(ascii: "("), let index = reader.rest.firstIndex(of: ": [client ") {
            cause = reader.rest.prefix(index + 2)
            reader.p += index + 2
        }
        if reader.skip("[client ") || reader.skip("[remote ") {
            guard let client = reader.until(UInt8(ascii: "]")) else { return false }
            _ = reader.skip(" ")
            ClientAddress.write(client, into: &writer)
        }
        // Apache adds the referer after the message; the last one counts, because the message may quote
        // another.
        var message = reader.rest
        if let index = message.lastIndex(of: ", referer: ") {
            writer.present("referer", message.dropping(index + 11))
            message = message.prefix(index)
        }
        writer.text("message", cause, message)
        return true
    }
}
