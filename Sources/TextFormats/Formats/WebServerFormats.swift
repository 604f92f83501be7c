/// The error logs of nginx and Apache httpd. Their access logs are templates of `FormatTable`.
enum WebServerFormats {
    // MARK: nginx

    /// Whether a line begins a record: it has a date. Other lines belong to the record before: nginx copies
    /// what PHP writes to stderr into its message, stack trace included.
    static func nginxErrorBegins(_ line: Bytes) -> Bool {
        line.count > 19 && line[0] &- 0x30 < 10 && line[4] == UInt8(ascii: "/")
            && line[7] == UInt8(ascii: "/")
            && line[10] == UInt8(ascii: " ") && line[13] == UInt8(ascii: ":")
    }

    /// Reads a record of nginx's error log: `2026/11/29 10:00:00 [error] 71#72: *5 message, client: …,
    /// server: …, request: "…", host: "…"`.
    static func nginxError(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
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
            nginxFacts(facts, into: &writer)
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
    private static func nginxFacts(_ text: Bytes, into writer: inout RecordWriter) {
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

    // MARK: Apache

    /// Reads a record of Apache's error log: `[Sun Nov 29 10:00:00.123456 2026] [core:error] [pid 71:tid 140]
    /// [client 192.0.2.8:4849] message`. Source: the default ErrorLogFormat,
    /// https://httpd.apache.org/docs/2.4/mod/core.html#errorlogformat.
    static func apacheError(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard reader.expect("[") else { return false }
        let start = reader.p
        // The time can have blanks, but no bracket.
        guard let text = reader.until(UInt8(ascii: "]")) else { return false }
        guard let time = writer.time(of: text, TextTime.parse) else {
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
            writeClient(client, into: &writer)
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

    /// Writes an address, and its port if there is one. The last colon counts, because an IPv6 address has
    /// others.
    static func writeClient(_ client: Bytes, into writer: inout RecordWriter) {
        if let colon = client.lastIndex(of: UInt8(ascii: ":")), client.dropping(colon + 1).isDigits {
            writer.text("client", client.prefix(colon))
            writer.number("port", client.dropping(colon + 1))
        } else {
            writer.present("client", client)
        }
    }
}

/// HAProxy's `httplog` and `tcplog`, behind a syslog header or without one. Source: chapter 8.2 of
/// https://docs.haproxy.org/3.0/configuration.html.
enum HAProxyFormat {
    /// Reads a record: first as a bare log line, then behind a syslog header, finally as a syslog message.
    /// What an attempt wrote is dropped before the next one.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        let mark = writer.mark
        // First without a header: a header is never followed by a time in brackets.
        if body(&reader, into: &writer) { return true }
        var other = LineReader(reader.record)
        writer.goBack(to: mark)
        guard SyslogFormat.header(&other, into: &writer, writesTime: false) else { return false }
        // The body of the message begins where the header ends.
        let isLine = body(&other, into: &writer)
        if isLine { return true }
        // HAProxy's messages about itself, as `Server static/web1 is DOWN`.
        writer.goBack(to: mark)
        reader = LineReader(reader.record)
        return SyslogFormat.parse(&reader, into: &writer)
    }

    /// Reads a log line without a header. An HTTP line has five times, a TCP line three, which decides the
    /// rest.
    private static func body(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        let start = reader.p
        guard let client = reader.until(UInt8(ascii: " ")) else { return false }
        // An address without a port is not of HAProxy, so the record is tried in another form.
        guard client.firstIndex(of: UInt8(ascii: ":")) != nil else {
            reader.p = start
            return reader.fail("an address and a port")
        }
        guard reader.expect("[") else { return false }
        let timeStart = reader.p
        guard let text = reader.until(UInt8(ascii: "]")) else { return false }
        guard let time = writer.time(of: text, TextTime.parse) else {
            reader.p = timeStart
            return reader.fail("a time")
        }
        // Client and time are written in the order of the line once both are valid.
        WebServerFormats.writeClient(client, into: &writer)
        writer.time(time)
        guard reader.expect(" "), let frontend = reader.until(UInt8(ascii: " ")) else { return false }
        writer.text("frontend", frontend)
        guard let backend = reader.until(UInt8(ascii: "/")), let server = reader.until(UInt8(ascii: " "))
        else {
            return false
        }
        writer.text("backend", backend)
        writer.text("server", server)
        guard let times = reader.until(UInt8(ascii: " ")) else { return false }
        // Four slashes are five times.
        let isHTTP = times.buffer.filter { $0 == UInt8(ascii: "/") }.count == 4
        write(times, as: isHTTP ? httpTimes : tcpTimes, into: &writer)
        if isHTTP {
            guard let status = reader.until(UInt8(ascii: " ")) else { return false }
            writer.number("status", status)
        }
        guard let size = reader.until(UInt8(ascii: " ")) else { return false }
        number("size", size, into: &writer)
        // Two captured cookies, or `-`.
        if isHTTP {
            guard let request = reader.until(UInt8(ascii: " ")),
                let response = reader.until(UInt8(ascii: " "))
            else { return false }
            writer.present("request_cookie", request)
            writer.present("response_cookie", response)
        }
        guard let state = reader.until(UInt8(ascii: " ")), let connections = reader.until(UInt8(ascii: " "))
        else {
            return false
        }
        writer.text("termination_state", state)
        write(connections, as: connectionNames, into: &writer)
        // The last field of a TCP line.
        write(reader.word(), as: queueNames, into: &writer)
        guard isHTTP else { return reader.isAtEnd ? true : reader.fail("the end of the line") }
        captured("request_headers", &reader, into: &writer)
        captured("response_headers", &reader, into: &writer)
        guard reader.expect(" \"") else { return false }
        // The quote can be missing if HAProxy cut a long line.
        let line = reader.rest
        let quote = securityQuote(in: line)
        if let quote {
            RequestLine.write(line.prefix(quote), isEscaped: false, into: &writer)
            tls(line.dropping(quote + 2), into: &writer)
        } else {
            let hasQuote = line.last == UInt8(ascii: "\"")
            RequestLine.write(line.prefix(line.count - (hasQuote ? 1 : 0)), isEscaped: false, into: &writer)
        }
        return true
    }

    /// The quote that ends the request, if what `option httpslog` adds follows: `" 0/0000000000000000/0/0/0
    /// shop.example/TLSv1.3/TLS_AES_256_GCM_SHA384`, five errors and what the client negotiated.
    ///
    /// The first such quote: HAProxy writes a quote of the request as `#22`, but the name that the client
    /// asks for (SNI) as it is, so with a later quote the client could move a part of the line into the
    /// request.
    private static func securityQuote(in line: Bytes) -> Int? {
        var from = 0
        while let index = line.dropping(from).firstIndex(of: UInt8(ascii: "\"")) {
            from += index + 1
            let text = line.dropping(from)
            guard text.first == UInt8(ascii: " ") else { continue }
            let errors = text.dropping(1).buffer.prefix { isOfErrors($0) }
            guard errors.count(where: { $0 == UInt8(ascii: "/") }) == 4 else { continue }
            let rest = text.dropping(1 + errors.count)
            if rest.first == UInt8(ascii: " "), negotiated(rest.dropping(1)) != nil { return from - 1 }
        }
        return nil
    }

    /// Whether a byte may be part of the five errors: numbers, one of them hexadecimal, slashes between them,
    /// and `-` for those that are missing.
    private static func isOfErrors(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "/"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The parts of `shop.example/TLSv1.3/TLS_AES_256_GCM_SHA384`; nil with less than two slashes. Split from
    /// the end: the client chooses the name, which may have slashes.
    private static func negotiated(_ text: Bytes) -> (sni: Bytes, version: Bytes, cipher: Bytes)? {
        guard let last = text.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let front = text.prefix(last)
        guard let first = front.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        return (front.prefix(first), front.dropping(first + 1), text.dropping(last + 1))
    }

    /// Writes what `option httpslog` adds.
    private static func tls(_ text: Bytes, into writer: inout RecordWriter) {
        guard let blank = text.firstIndex(of: UInt8(ascii: " ")),
            let (sni, version, cipher) = negotiated(text.dropping(blank + 1))
        else { return }
        writer.present("tls_errors", text.prefix(blank))
        writer.present("sni", sni)
        writer.present("tls_version", version)
        writer.present("tls_cipher", cipher)
    }

    /// Members of the times, in milliseconds, of an HTTP line; -1 means that the phase was not reached.
    private static let httpTimes: [StaticString] = [
        "time_request", "time_queue", "time_connect", "time_response", "time_total",
    ]
    /// Members of the times of a TCP line.
    private static let tcpTimes: [StaticString] = ["time_queue", "time_connect", "time_total"]
    /// Members of the counts of connections, and of retries.
    private static let connectionNames: [StaticString] = [
        "connections_process", "connections_frontend", "connections_backend", "connections_server", "retries",
    ]
    /// Members of the request's positions in the queues of HAProxy.
    private static let queueNames: [StaticString] = ["queue_server", "queue_backend"]

    /// Writes numbers between slashes under names, in order; fewer numbers than names leave members out.
    private static func write(_ text: Bytes, as names: [StaticString], into writer: inout RecordWriter) {
        var rest = text
        for name in names {
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.count
            number(name, rest.prefix(end), into: &writer)
            rest = rest.dropping(end + 1)
        }
    }

    /// Writes a number without the plus that may precede it: of a time or a size it says that the line was
    /// written before the end of the transfer, of retries that the request went to another server.
    private static func number(_ name: StaticString, _ text: Bytes, into writer: inout RecordWriter) {
        writer.number(name, text.first == UInt8(ascii: "+") ? text.dropping(1) : text)
    }

    /// Writes captured headers, `{a|b}`, if there are any.
    private static func captured(
        _ name: StaticString, _ reader: inout LineReader, into writer: inout RecordWriter
    ) {
        guard reader.rest.hasPrefix(" {"), let end = reader.rest.firstIndex(of: UInt8(ascii: "}")) else {
            return
        }
        writer.present(name, Bytes(reader.p + 2, end - 2))
        reader.p += end + 1
    }
}
