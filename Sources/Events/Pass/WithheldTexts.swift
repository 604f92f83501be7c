/// Which lines of text may not leave, because tags find what they hide in members of JSON objects only.
public enum WithheldTexts: Sendable {
    /// None: nothing is hidden.
    case none
    /// Pieces of a line whose rest is elsewhere: what a pattern would find may be cut in two.
    case pieces
    /// Those, and texts that may hold members: some are hidden by their paths.
    case members

    /// Whether a text may not leave.
    ///
    /// - Parameter isPiece: whether it is a piece of a line.
    func include(_ text: UnsafeBufferPointer<UInt8>, isPiece: Bool) -> Bool {
        switch self {
        case .none: false
        case .pieces: isPiece
        case .members: isPiece || WithheldTexts.mayHoldMembers(text)
        }
    }

    /// Whether a text may hold a member of a JSON object, or the end of one: a line that was cut, several objects, a list, a line of
    /// an object that is spread over lines. When in doubt it does; what may be beside them does not matter.
    ///
    /// A member is a quoted name before a colon, and either behind `{`, a comma or nothing, or before what may be a value; its quotes may be
    /// escaped. What follows the value of the last one is a `}` that nothing opened; if braces in a string seem to open it, the
    /// text has that string's quote. What colours a text on a terminal may be anywhere in it.
    static func mayHoldMembers(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard text.contains(escape) else { return mayHoldPlainMembers(text) }
        return uncoloured(text).withUnsafeBufferPointer(mayHoldPlainMembers)
    }

    private static let escape: UInt8 = 0x1B

    /// The text without sequences such as `ESC [ 1 ; 39 m` and `ESC ( B`. Of other sequences more is left, so that nothing is hidden by
    /// them.
    private static func uncoloured(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var plain: [UInt8] = []
        var rest = text[...]
        while let start = rest.firstIndex(of: escape) {
            plain += rest[..<start]
            rest = rest[(start + 1)...]
            switch rest.first {
            case UInt8(ascii: "["):
                rest = rest.dropFirst().drop { "0123456789;".utf8.contains($0) }
                if let last = rest.first, (0x40...0x7E).contains(last) { rest = rest.dropFirst() }
            case UInt8(ascii: "("): rest = rest.dropFirst(2)
            default: break
            }
        }
        return plain + rest
    }

    private static func mayHoldPlainMembers(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        if endsAsObject(text) || text.split(separator: .lineFeed).contains(where: isNumber) { return true }
        // The last quote that was not escaped, and the last that was.
        var before: (plain: Int?, escaped: Int?)
        for (place, byte) in text.enumerated() where byte == .quote {
            let backslashes = place - 1 - (text[..<place].lastIndex { $0 != .backslash } ?? -1)
            let isEscaped = !backslashes.isMultiple(of: 2)
            let opening = isEscaped ? before.escaped : before.plain
            let next = text[(place + 1)...].firstIndex { $0 > 0x20 }
            if let next, text[next] == .colon {
                if opening.map({ mayBegin(at: $0, in: text) }) ?? true { return true }
                if mayBeValue(text[(next + 1)...].drop { $0 <= 0x20 }) { return true }
            }
            if let opening, isAlone(opening...place, in: text) { return true }
            if isEscaped { before.escaped = place } else { before.plain = place }
        }
        return false
    }

    private static func endsAsObject(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let last = text.last { $0 > 0x20 && $0 != .closeBracket && $0 != .comma }
        guard last == .closeBrace else { return false }
        return text.contains(.quote) || text.count { $0 == .closeBrace } > text.count { $0 == .openBrace }
    }

    /// Whether a line is a number, which a list that is spread over lines may hold.
    private static func isNumber(_ line: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard let first = line.firstIndex(where: { $0 > 0x20 }),
            let last = line.lastIndex(where: { $0 > 0x20 && $0 != .comma }), first <= last
        else { return false }
        let text = line[first...last]
        return text.allSatisfy { "0123456789+-.eE".utf8.contains($0) } && text.contains { (0x30...0x39).contains($0) }
    }

    /// Whether a member's name may begin with that quote, whatever follows.
    private static func mayBegin(at quote: Int, in text: UnsafeBufferPointer<UInt8>) -> Bool {
        let before = text[..<quote].last { $0 == .lineFeed || $0 > 0x20 && $0 != .backslash }
        return before.map { $0 == .openBrace || $0 == .comma || $0 == .lineFeed } ?? true
    }

    /// Whether a JSON value may begin there, or is on the next line.
    private static func mayBeValue(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard let first = text.first else { return true }
        return "\"\\{[-0123456789".utf8.contains(first)
            || ["true", "false", "null"].contains { text.starts(with: $0.utf8) }
    }

    /// Whether a string has its line for itself, but for a comma: an element of a list that is spread over lines.
    private static func isAlone(_ string: ClosedRange<Int>, in text: UnsafeBufferPointer<UInt8>) -> Bool {
        func isEnd(_ byte: UInt8?) -> Bool { byte == nil || byte == .lineFeed }
        guard isEnd(text[..<string.lowerBound].last { $0 == .lineFeed || $0 > 0x20 }) else { return false }
        return isEnd(text[(string.upperBound + 1)...].first { $0 == .lineFeed || $0 > 0x20 && $0 != .comma })
    }
}
