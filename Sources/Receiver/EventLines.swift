internal import Events
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
        body.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress, let start = text.firstIndex(of: UInt8(ascii: "[")),
                let end = text.lastIndex(where: { !isSpace($0) }), text[end] == UInt8(ascii: "]")
            else { return nil }
            let elements = RawWalk.elements(base, start..<end + 1)
            let lines = elements.flatMap { element in
                text[element].map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 } + [0x0A]
            }
            return (lines, elements.count)
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }
}
