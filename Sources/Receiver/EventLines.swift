internal import Glibc

/// Finds the events of an unpacked body, whatever its form: a JSON object a line, one JSON array, or one object.
///
/// It does not validate JSON: a receiver for development shows what came, it does not judge it.
enum EventLines {
    /// The events, one a line, each with a line feed, and how many they are; nil when the body is of none of the forms.
    static func normalise(_ body: [UInt8]) -> (lines: [UInt8], count: Int)? {
        guard let first = body.first(where: { !isSpace($0) }) else { return ([], 0) }
        if first == UInt8(ascii: "[") { return elements(of: body) }
        guard first == UInt8(ascii: "{") else { return nil }
        return lines(of: body)
    }

    private static func lines(of body: [UInt8]) -> (lines: [UInt8], count: Int)? {
        var kept: [UInt8] = []
        var count = 0
        var hasEmpty = false
        let isFine = body.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return true }
            var start = 0
            while start < raw.count {
                let feed = memchr(base + start, 0x0A, raw.count - start)
                let end = feed.map { UnsafeRawPointer($0) - base } ?? raw.count
                if end == start || (end == start + 1 && raw[start] == 0x0D) {
                    if !hasEmpty { kept = Array(raw[..<start]) }
                    hasEmpty = true
                } else {
                    guard raw[start] == UInt8(ascii: "{") else { return false }
                    count += 1
                    if hasEmpty {
                        kept.append(contentsOf: raw[start..<end])
                        kept.append(0x0A)
                    }
                }
                start = end + 1
            }
            return true
        }
        guard isFine else { return nil }
        if !hasEmpty { kept = body }
        if kept.last != 0x0A && !kept.isEmpty { kept.append(0x0A) }
        return (kept, count)
    }

    /// The elements of an array, each on a line; line breaks between tokens become spaces.
    private static func elements(of body: [UInt8]) -> (lines: [UInt8], count: Int)? {
        var lines: [UInt8] = []
        lines.reserveCapacity(body.count + 1)
        var count = 0
        var depth = 0
        var inString = false
        var escaped = false
        var hasContent = false
        for byte in body.drop(while: isSpace) {
            if inString {
                lines.append(byte)
                if escaped {
                    escaped = false
                } else if byte == UInt8(ascii: "\\") {
                    escaped = true
                } else if byte == UInt8(ascii: "\"") {
                    inString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth == 1 { continue }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
            case UInt8(ascii: "\""):
                inString = true
            default:
                break
            }
            let ends = depth == 0 || (depth == 1 && byte == UInt8(ascii: ","))
            if ends {
                if hasContent {
                    lines.append(UInt8(ascii: "\n"))
                    count += 1
                }
                hasContent = false
                if depth == 0 { return (lines, count) }
            } else if isSpace(byte) {
                if hasContent { lines.append(UInt8(ascii: " ")) }
            } else {
                hasContent = true
                lines.append(byte)
            }
        }
        return nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }
}
