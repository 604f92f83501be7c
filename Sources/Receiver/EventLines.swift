internal import Events

/// Finds the events in an unpacked body: a JSON object on each line, one JSON array, or one object.
///
/// It does not validate JSON: a development receiver shows what it got and does not judge it.
enum EventLines {
    /// The events, each on a line with a line feed, and their number; nil if the body has none of the
    /// forms. An empty body has no events.
    static func normalise(_ body: [UInt8]) -> (lines: [UInt8], count: Int)? {
        guard let first = body.first(where: { !isSpace($0) }) else { return ([], 0) }
        if first == UInt8(ascii: "[") { return elements(of: body) }
        guard first == UInt8(ascii: "{") else { return nil }
        return lines(of: body)
    }

    /// The lines of a body, without empty ones; nil if a line does not begin like an object.
    private static func lines(of body: [UInt8]) -> (lines: [UInt8], count: Int)? {
        let lines = body.split(separator: 0x0A).filter { $0.count > 1 || $0.first != 0x0D }
        guard lines.allSatisfy({ $0.first == UInt8(ascii: "{") }) else { return nil }
        var kept: [UInt8] = []
        kept.reserveCapacity(body.count + 1)
        for line in lines {
            kept += line
            kept.append(0x0A)
        }
        return (kept, lines.count)
    }

    /// The elements of an array, each on a line. Line breaks between tokens become spaces; inside a string
    /// they are always escaped.
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
