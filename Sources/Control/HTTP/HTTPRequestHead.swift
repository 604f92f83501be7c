internal import Model

/// A request line with headers, parsed strictly: what two readers could understand in two ways is refused,
/// because such differences make request smuggling possible.
///
/// Source: RFC 9110, RFC 9112.
package struct HTTPRequestHead: Sendable {
    /// How the end of the body is found.
    package enum Length: Sendable, Equatable {
        case bytes(Int)
        case chunked
    }

    /// `GET`, `POST` and so on.
    package private(set) var method = ""
    /// Decoded path without the query; `*` for a question about the server itself.
    package private(set) var path = ""
    /// Decoded arguments; the first of equal names counts.
    private(set) var query: [String: String] = [:]
    /// The host that is asked, from the target or the header, without its port; nil if an HTTP/1.0 request
    /// names none.
    private(set) var host: String?
    private(set) var accept: String?
    /// How the body is packed, such as `gzip`; nil if nothing is said.
    package private(set) var contentEncoding: String?
    /// The client's name for the request, which is the same if it is repeated.
    package private(set) var idempotencyKey: String?
    package private(set) var length = Length.bytes(0)
    /// True for HTTP/1.1, false for 1.0.
    private(set) var isCurrent = true
    /// Whether the client wants to keep the connection.
    private(set) var keepsOpen = true
    /// Whether the client waits for `100 Continue` before it sends the body.
    private(set) var expectsContinue = false

    /// Parses lines that end with CR LF, without the empty line at the end. The caller refuses an LF
    /// without CR.
    init(_ bytes: ArraySlice<UInt8>) throws(ControlRefusal) {
        let pieces = bytes.split(separator: UInt8(ascii: "\n"))
        var lines = pieces.map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }[...]
        guard let first = lines.popFirst() else { throw .bad("the request is empty") }
        let target = try readLine(first)
        try readTarget(target)
        try readHeaders(lines)
    }

    // MARK: The request line

    /// Parses the request line, and returns the target.
    private mutating func readLine(_ line: ArraySlice<UInt8>) throws(ControlRefusal) -> ArraySlice<UInt8> {
        let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3, HTTPRequestHead.isToken(parts[0]), parts[0].count <= 32 else {
            throw .bad("the request line must be a method, a path and HTTP/1.1, with one space between them")
        }
        let version = parts[2]
        guard version.count == 8, version.starts(with: "HTTP/".utf8) else {
            throw .bad("the request line must end with HTTP/1.1")
        }
        switch String(decoding: version.dropFirst(5), as: UTF8.self) {
        case "1.1": break
        case "1.0":
            isCurrent = false
            keepsOpen = false
        default: throw ControlRefusal(505, "bad_version", "use HTTP/1.1")
        }
        method = String(decoding: parts[0], as: UTF8.self)
        guard parts[1].allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .bad(
                "a path holds neither spaces nor control characters nor other bytes than ASCII: encode them")
        }
        return parts[1]
    }

    /// Parses the target into path and query.
    private mutating func readTarget(_ target: ArraySlice<UInt8>) throws(ControlRefusal) {
        var rest = target
        if target.first != UInt8(ascii: "/") {
            if target.elementsEqual("*".utf8), method == "OPTIONS" {
                path = "*"
                return
            }
            // The absolute form (RFC 9112, section 3.2.2), which proxies receive.
            let scheme = "http://"
            guard target.count > scheme.utf8.count,
                String(decoding: target.prefix(scheme.utf8.count), as: UTF8.self).lowercased() == scheme
            else { throw .bad("the path must begin with a slash") }
            rest = target.dropFirst(scheme.utf8.count)
            let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
            host = try HTTPRequestHead.host(rest[..<end])
            rest = rest[end...]
        }
        // Clients do not send fragments; if one comes nevertheless, it does not belong to the path.
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            rest = rest[..<hash]
        }
        let mark = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
        path = try HTTPRequestHead.decoded(rest[..<mark])
        if path.isEmpty {
            path = "/"
        }
        for argument in rest[mark...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let equals = argument.firstIndex(of: UInt8(ascii: "=")) ?? argument.endIndex
            let name = try HTTPRequestHead.decoded(argument[..<equals], plusIsSpace: true)
            let value = try HTTPRequestHead.decoded(argument[equals...].dropFirst(), plusIsSpace: true)
            if query[name] == nil {
                query[name] = value
            }
        }
    }

    // MARK: Headers

    /// Parses the headers that matter, and checks that the body's length is unambiguous (RFC 9112, section
    /// 6.3): one length, or chunks, not both.
    private mutating func readHeaders(_ lines: ArraySlice<ArraySlice<UInt8>>) throws(ControlRefusal) {
        var hosts = 0
        var lengths: [ArraySlice<UInt8>] = []
        var isChunked = false
        for line in lines {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), HTTPRequestHead.isToken(line[..<colon])
            else {
                throw .bad("a header must be a name, a colon and a value on one line")
            }
            let value = HTTPRequestHead.trimmed(line[(colon + 1)...])
            guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw .bad("a header's value contains a control character")
            }
            switch String(decoding: line[..<colon], as: UTF8.self).lowercased() {
            case "host":
                hosts += 1
                let named = try HTTPRequestHead.host(value)
                // A host in the target takes precedence (RFC 9112, section 3.2.2).
                if host == nil {
                    host = named
                }
            case "accept":
                accept = accept.map { "\($0), " + HTTPRequestHead.text(value) } ?? HTTPRequestHead.text(value)
            case "content-encoding": contentEncoding = HTTPRequestHead.text(value)
            case "idempotency-key": idempotencyKey = HTTPRequestHead.text(value)
            case "content-length": lengths.append(value)
            case "transfer-encoding":
                guard HTTPRequestHead.text(value).lowercased() == "chunked", !isChunked, isCurrent else {
                    throw ControlRefusal(501, "bad_encoding", "a body needs a length, or must be chunked")
                }
                isChunked = true
            case "connection":
                let words = HTTPRequestHead.text(value).lowercased().split(separator: ",").map {
                    $0.drop { $0 == " " }
                }
                if words.contains("close") {
                    keepsOpen = false
                }
            case "expect":
                guard HTTPRequestHead.text(value).lowercased() == "100-continue" else {
                    throw ControlRefusal(417, "bad_expectation", "expect nothing")
                }
                expectsContinue = isCurrent
            default: break
            }
        }
        guard hosts == 1 || hosts == 0 && !isCurrent else { throw .bad("a request has one Host header") }
        if isChunked {
            guard lengths.isEmpty else { throw .bad("a body has a length or is chunked, not both") }
            length = .chunked
        } else if let first = lengths.first {
            guard lengths.allSatisfy({ $0.elementsEqual(first) }) else {
                throw .bad("the request has more than one Content-Length")
            }
            guard !first.isEmpty, first.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
                throw .bad("Content-Length must be a number")
            }
            // A number beyond 64 bits is too large rather than wrong.
            length = .bytes(Int(HTTPRequestHead.text(first)) ?? .max)
        }
    }

    /// The host without port and brackets, in lower case.
    private static func host(_ bytes: ArraySlice<UInt8>) throws(ControlRefusal) -> String {
        let text = text(bytes).lowercased()
        if text.hasPrefix("[") {
            guard let end = text.lastIndex(of: "]"), isPort(text[text.index(after: end)...]) else {
                throw .bad("the Host header is not a host and port")
            }
            return String(text[..<end].dropFirst())
        }
        let colon = text.firstIndex(of: ":") ?? text.endIndex
        let name = text[..<colon]
        guard isPort(text[colon...]), name.utf8.count <= 255,
            name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#@\\<>\"".utf8.contains($0) })
        else { throw .bad("the Host header is not a host and port") }
        return String(name.hasSuffix(".") ? name.dropLast() : name)
    }

    /// Whether a text is empty or a port with its colon.
    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty || text == ":" || text.first == ":" && UInt16(text.dropFirst()) != nil
    }

    // MARK: Bytes

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    /// Bytes without blanks around.
    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while bytes.last == 0x20 || bytes.last == 0x09 { bytes.removeLast() }
        return bytes
    }

    /// Whether bytes are a token (RFC 9110, section 5.6.2).
    private static func isToken(_ bytes: ArraySlice<UInt8>) -> Bool { text(bytes).isHeaderName }

    /// Decodes percent-encoded bytes. A zero byte is refused: C code would see only the text before it.
    private static func decoded(
        _ bytes: ArraySlice<UInt8>, plusIsSpace: Bool = false
    ) throws(ControlRefusal) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            index += 1
            if byte == UInt8(ascii: "%") {
                guard bytes.endIndex - index >= 2, let high = hex(bytes[index]),
                    let low = hex(bytes[index + 1]),
                    high | low != 0
                else {
                    throw .bad("a percent sign must be followed by two hexadecimal digits, and not by 00")
                }
                result.append(high << 4 | low)
                index += 2
            } else {
                result.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        guard let text = String(validating: result, as: UTF8.self) else {
            throw .bad("the path is not UTF-8")
        }
        return text
    }

    /// The value of a hexadecimal digit; nil for any other byte.
    static func hex(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
