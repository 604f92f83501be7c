internal import EventLoops
internal import Glibc

/// Writes the head of an answer.
enum HTTPAnswerHead {
    /// The bytes of the head.
    ///
    /// - Parameter length: size of the body in bytes; nil for an answer that never has a body, and for a
    ///   stream, which ends with its last chunk or with the connection.
    static func bytes(
        _ response: ControlResponse, length: Int?, isChunked: Bool = false, closes: Bool, at time: Timestamp
    ) -> [UInt8] {
        var text = "HTTP/1.1 \(response.status) \(reason(response.status))\r\nDate: \(date(time))\r\n"
        for (name, value) in response.headers + common where isClean(name) && isClean(value) {
            text += "\(name): \(value)\r\n"
        }
        if let length {
            text += "Content-Length: \(length)\r\n"
        }
        if isChunked {
            text += "Transfer-Encoding: chunked\r\n"
        }
        if closes {
            text += "Connection: close\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// Headers of all answers: nothing is cached, and browsers must not guess types.
    private static let common = [
        (name: "Cache-Control", value: "no-store"), (name: "X-Content-Type-Options", value: "nosniff"),
    ]

    /// Whether a name or value can be sent: a line break in it would forge another header.
    private static func isClean(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }

    /// The reason phrase of a status (RFC 9110, section 15).
    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 202: "Accepted"
        case 204: "No Content"
        case 400: "Bad Request"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). `strftime` writes English names, because
    /// nothing in the agent sets a locale.
    private static func date(_ time: Timestamp) -> String {
        var seconds = time_t(time.milliseconds / 1000)
        var parts = tm()
        var text = [CChar](repeating: 0, count: 32)
        guard gmtime_r(&seconds, &parts) != nil,
            strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0
        else { return "Thu, 01 Jan 1970 00:00:00 GMT" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
