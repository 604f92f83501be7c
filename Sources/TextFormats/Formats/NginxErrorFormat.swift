/// The error log of nginx. Its access logs are templates of `FormatTable`.
enum NginxErrorFormat {
    /// Whether a line begins a record: it has a date. Other lines belong to the record before: nginx copies
    /// what PHP writes to stderr into its message, stack trace included.
    static func begins(_ line: Bytes) -> Bool {
        line.count > 19 && line[0] &- 0x30 < 10 && line[4] == UInt8(ascii: "/")
            && line[7] == UInt8(ascii: "/")
            && line[10] == UInt8(ascii: " ") && line[13] == UInt8(ascii: ":")
    }

    /// Reads a record of nginx's error log: `2026/11/29 10:00:00 [error] 71#72: *5 message, client: …,
    /// server: …, request: "…", host: "…"`.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard reader.time(words: 2, into: &writer) else { return false }
        guard reader.expect("["), let level = reader.until(UInt8(ascii: "]")), reader.expect(" ") else {
            return false
        }
        guard let pid = reader.digits(), reader.expect("#"), let tid = reader.digits(), reader.expect(":")
        else {
            return false
        }
        // Written only now: the checks before distinguish this format from other lines that begin with a
        // time.
        writer.text("level", level)
        writer.number("pid", pid)
        writer.number("tid", tid)
        _ = reader.skip(" ")
        // A message without a connection can begin with `*`.
        if reader.next == UInt8(ascii: "*"), let cid = connection(reader.rest) {
            writer.number("cid", cid)
            reader.p = cid.end + 1
        }
        // The facts of the request follow the message. Source: ngx_http_log_error_handler in
        // https://github.com/nginx/nginx/blob/master/src/http/ngx_http_request.c.
        var message = reader.rest
        if let index = factsIndex(message) {
            var facts = message.dropping(index)
            message = message.prefix(index)
            // The facts are the end of a line. Lines after it are of other programs that share the file, as
            // PHP's, or of nginx itself before it has opened its log.
            let feed = facts.firstIndex(of: 0x0A) ?? facts.count
            let others = facts.dropping(feed)
            facts = facts.prefix(feed)
            // The message comes before the facts in the object, as in the line.
            if others.isEmpty {
                writer.text("message", message)
            } else {
                writer.text("message", message, others)
            }
            writeFacts(facts, into: &writer)
        } else {
            writer.text("message", message)
        }
        return true
    }

    /// Where the facts begin; nil if the line has none. A path in the message, in quotes, may hold the text
    /// `, client: ` too: so an address follows it, and the quotes before it are in pairs.
    private static func factsIndex(_ text: Bytes) -> Int? {
        var from = 0
        var quotes = 0
        while let found = text.dropping(from).firstIndex(of: "client: ") {
            let index = from + found
            quotes += text.dropping(from).prefix(found).buffer.reduce(0) { $0 + ($1 == 0x22 ? 1 : 0) }
            let before = text.prefix(index)
            let length = before.hasSuffix(", udp ") ? 6 : before.hasSuffix(", ") ? 2 : 0
            if length > 0, quotes.isMultiple(of: 2), beginsWithAddress(text.dropping(index + 8)) {
                return index - length
            }
            from = index + 1
        }
        return nil
    }

    /// Whether a text begins with the address of a client: of IP, or `unix:`; nothing or a comma follows it.
    private static func beginsWithAddress(_ text: Bytes) -> Bool {
        if text.hasPrefix("unix:") { return true }
        var length = 0
        while length < text.count, isOfAddress(text[length]) { length += 1 }
        return length > 0 && (length == text.count || text[length] == UInt8(ascii: ","))
    }

    /// Whether a byte may be in an address: a hexadecimal digit, a full stop or a colon.
    private static func isOfAddress(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 11 || (byte | 0x20) &- 0x61 < 6 || byte == UInt8(ascii: ".")
    }

    /// The number of a connection in `*5 `; nil if the text is not one.
    // The number begins after `*`.
    private static func connection(_ text: Bytes) -> Bytes? {
        var index = 1
        while index < text.count, text[index] &- 0x30 < 10 { index += 1 }
        guard index > 1, index < text.count, text[index] == UInt8(ascii: " ") else { return nil }
        return Bytes(text.start + 1, index - 1)
    }

    /// Names of the facts, in no particular order, and the members that they become. The last three are of
    /// streams: https://github.com/nginx/nginx/blob/master/src/stream/ngx_stream_handler.c.
    private static let factNames: [(name: StaticString, member: StaticString)] = [
        ("client", "client"), ("server", "server"), ("request", "request"), ("subrequest", "subrequest"),
        ("upstream", "upstream"), ("host", "host"), ("referrer", "referrer"), ("login", "login"),
        ("udp client", "client"), ("bytes from/to client", "bytes_client"),
        ("bytes from/to upstream", "bytes_upstream"),
    ]

    /// Writes the facts `, name: value`, until something else follows. A value may be quoted.
    private static func writeFacts(_ text: Bytes, into writer: inout RecordWriter) {
        var rest = text
        while rest.hasPrefix(", "), let (name, start) = factName(rest.dropping(2)) {
            var value = rest.dropping(2 + start)
            let isQuoted = value.first == UInt8(ascii: "\"")
            if isQuoted {
                value = value.dropping(1)
            }
            let end = factEnd(value, isQuoted: isQuoted)
            rest = value.dropping(end + (isQuoted ? 1 : 0))
            // An empty value is left out.
            if end > 0 {
                writer.text(name, value.prefix(end))
            }
        }
    }

    /// The member of the fact at the beginning of a text, and the length of its name with colon and blank;
    /// nil if it is unknown.
    private static func factName(_ text: Bytes) -> (name: StaticString, length: Int)? {
        for (name, member) in factNames {
            let length = name.utf8CodeUnitCount
            if text.hasPrefix(name), text.dropping(length).first == UInt8(ascii: ":") {
                return (member, length + (text.dropping(length + 1).first == UInt8(ascii: " ") ? 2 : 1))
            }
        }
        return nil
    }

    /// Where a value ends: before the next fact, or at the end. nginx does not escape quotes in a request, so
    /// a quote alone ends nothing: a known fact or the end of the line must follow it.
    private static func factEnd(_ value: Bytes, isQuoted: Bool) -> Int {
        var from = 0
        while from < value.count {
            guard
                let index = value.dropping(from).firstIndex(
                    of: isQuoted ? UInt8(ascii: "\"") : UInt8(ascii: ","))
            else { break }
            let next = value.dropping(from + index + (isQuoted ? 1 : 0))
            if isQuoted, next.isEmpty { return from + index }
            if next.hasPrefix(", "), factName(next.dropping(2)) != nil { return from + index }
            from += index + 1
        }
        return isQuoted && value.last == UInt8(ascii: "\"") ? value.count - 1 : value.count
    }
}
