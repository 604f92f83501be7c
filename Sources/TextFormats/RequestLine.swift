internal import CScan

/// The first line of an HTTP request (RFC 9112, section 3).
enum RequestLine {
    /// Writes `method`, `path` and `protocol`; or `request` if the line is not a request, as a TLS handshake
    /// on a plain port is not. The last blank counts: clients send paths with blanks.
    ///
    /// - Parameter isEscaped: whether the line was between quotes, so that a backslash precedes a quote in
    ///   it.
    static func write(_ line: Bytes, isEscaped: Bool, into writer: inout RecordWriter) {
        guard let method = line.firstIndex(of: UInt8(ascii: " ")), method > 0,
            let last = line.lastIndex(of: UInt8(ascii: " ")), last > method,
            line.dropping(last + 1).hasPrefix("HTTP/"),
            isMethod(line.prefix(method))
        else {
            writer.unescaped(quoted: requestName, line)
            return
        }
        writer.text("method", line.prefix(method))
        let path = Bytes(line.start + method + 1, last - method - 1)
        if isEscaped, path.firstIndex(of: UInt8(ascii: "\\")) != nil {
            writer.unescaped(quoted: pathName, path)
        } else {
            writer.text("path", path)
        }
        writer.text("protocol", line.dropping(last + 1))
    }

    /// Writes a request of plain text, which ends at the first `mark`, as `write` does.
    ///
    /// - Returns: the address of the mark; nil, and nothing written, for any other text.
    @inline(__always)
    static func writePlain(
        from start: UnsafePointer<UInt8>, to mark: UInt8, before end: UnsafePointer<UInt8>,
        into writer: inout RecordWriter
    ) -> UnsafePointer<UInt8>? {
        var p = start
        // The first and the last blank.
        var first = end
        var last = start
        while p < end {
            let stops = cscan_stops(p) | cscan_equal(p, mark) | 1 << 16
            let plain = stops.trailingZeroBitCount
            let blanks = cscan_equal(p, UInt8(ascii: " ")) & (1 << plain - 1)
            if blanks != 0 {
                if first == end {
                    first = p + blanks.trailingZeroBitCount
                }
                last = p + (31 - blanks.leadingZeroBitCount)
            }
            p += plain
            guard plain == 16 else { break }
        }
        guard p < end, p.pointee == mark, first < last, first > start,
            Bytes(last + 1, p - last - 1).hasPrefix("HTTP/")
        else { return nil }
        let method = Bytes(start, first - start)
        guard isMethod(method) else { return nil }
        writer.json.plainText("\"method\":\"", method)
        writer.json.plainText("\"path\":\"", Bytes(first + 1, last - first - 1))
        writer.json.plainText("\"protocol\":\"", Bytes(last + 1, p - last - 1))
        return p
    }

    /// Whether a text is the method of a request: capitals, `-` and `_`.
    @inline(__always)
    static func isMethod(_ text: Bytes) -> Bool {
        text.buffer.allSatisfy { $0 >= 0x41 && $0 <= 0x5A || $0 == 0x2D || $0 == 0x5F }
    }

    /// Names as they are written, made once.
    private static let requestName = RecordWriter.quotedName("request")
    private static let pathName = RecordWriter.quotedName("path")
}
