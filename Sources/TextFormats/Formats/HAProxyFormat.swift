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
        guard let time = writer.time(of: text) else {
            reader.p = timeStart
            return reader.fail("a time")
        }
        // Client and time are written in the order of the line once both are valid.
        ClientAddress.write(client, into: &writer)
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
