internal import Glibc

/// Which lines of text go to the quarantine instead of leaving. Tags find what they hide in the members of
/// JSON objects; a text may contain the same members, where no rule finds them.
///
/// The checks are heuristics that err on the side of withholding: a text that is withheld without need is a
/// nuisance, a secret that was sent cannot be called back.
public enum WithheldTexts: Sendable {
    /// Nothing is hidden: all texts leave.
    case none
    /// Rules search texts by patterns: pieces of a line are withheld, because a pattern would miss a match
    /// that is cut in two.
    case pieces
    /// Rules hide members by their paths: pieces are withheld, and texts that look like parts of JSON,
    /// because such a text may contain the hidden member.
    case members

    /// Whether a text, or a piece of a line, must not leave.
    func include(_ text: UnsafeBufferPointer<UInt8>, isPiece: Bool) -> Bool {
        switch self {
        case .none: false
        case .pieces: isPiece
        case .members: isPiece || WithheldTexts.mayHoldMembers(text)
        }
    }

    /// Whether a text ends before a value of an object that is spread over lines. The value may then be alone
    /// on the next line, without the name by which it would be recognised.
    func endsBeforeValue(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        // Every line of a parsed app is asked, so those that end otherwise are not copied.
        guard self == .members, WithheldTexts.mayEndBeforeValue(text) else { return false }
        return WithheldTexts.plain(text).withUnsafeBufferPointer { text in
            guard let last = text.last(where: { $0 > 0x20 }), ":,[".utf8.contains(last) else { return false }
            return text.allSatisfy { $0 <= 0x20 || ":,[]{}".utf8.contains($0) }
                || WithheldTexts.mayHoldPlainMembers(text)
        }
    }

    /// Whether a text may end before a value, by its last character: a colon, a comma, the opening bracket of
    /// a list, or the last character of another spelling of a colon. A text with terminal sequences may end
    /// with one of them.
    private static func mayEndBeforeValue(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress, let end = text.lastIndex(where: { $0 > 0x20 }) else {
            return false
        }
        if ":,[".utf8.contains(text[end]) { return true }
        if "Aa;".utf8.contains(text[end]),
            spellings.contains(where: { text[...end].suffix($0.text.count).elementsEqual($0.text) })
        {
            return true
        }
        return memchr(start, Int32(escape), text.count) != nil
    }

    /// Whether a text may hold a member of a JSON object, or the end of one: a line that was cut, several
    /// objects, a list, or a line of an object that is spread over lines. When in doubt, it does. Whatever
    /// else the text has does not matter.
    ///
    /// A member is a quoted name before a colon that either follows `{`, a comma or nothing, or is followed
    /// by what may be a value; the quotes may be escaped. The value of the last member is followed by a `}`
    /// without an opening one; if braces in a string seem to open it, the text has that string's quotes.
    /// Terminal colours may be anywhere in the text.
    static func mayHoldMembers(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard text.contains(where: { marks.contains($0) }) else { return mayHoldPlainMembers(text) }
        return plain(text).withUnsafeBufferPointer(mayHoldPlainMembers)
    }

    /// The character with which terminal sequences begin (ECMA-48).
    private static let escape: UInt8 = 0x1B
    /// First bytes of terminal sequences and of the `spellings`.
    private static let marks: [UInt8] = [escape] + Array("\\%&".utf8)
    /// Other spellings of quotes and colons: in logs of requests (`\x22`, `\u0022`), in URLs (`%22`, and
    /// encoded twice) and in HTML.
    private static let spellings: [(text: [UInt8], plain: [UInt8])] = [
        ("\\\"", ["22"], ["&quot;", "&#34;"]), (":", ["3A", "3a"], ["&colon;", "&#58;"]),
    ].flatMap { plain, codes, names in
        let coded = codes.flatMap { ["\\x\($0)", "\\u00\($0)", "%\($0)", "%25\($0)", "&#x\($0);"] }
        return (coded + names).map { (Array($0.utf8), Array(plain.utf8)) }
    }

    /// The text without terminal sequences such as `ESC [ 1 ; 39 m`, `ESC ( B` and `ESC ] 8 ; ; URL BEL`, and
    /// with quotes and colons written plainly. Of unknown sequences only the escape character is removed, so
    /// that nothing can hide in them.
    private static func plain(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var plain: [UInt8] = []
        var rest = text[...]
        while let start = rest.firstIndex(where: { marks.contains($0) }) {
            plain += rest[..<start]
            rest = rest[start...]
            if let spelling = spellings.first(where: { rest.starts(with: $0.text) }) {
                plain += spelling.plain
                rest = rest.dropFirst(spelling.text.count)
                continue
            }
            if rest.first != escape {
                plain.append(rest[start])
            }
            rest = rest.dropFirst()
            guard text[start] == escape else { continue }
            switch rest.first {
            case UInt8(ascii: "["):
                rest = rest.dropFirst().drop { "0123456789;<=>?".utf8.contains($0) }
                if let last = rest.first, (0x40...0x7E).contains(last) {
                    rest = rest.dropFirst()
                }
            case UInt8(ascii: "("): rest = rest.dropFirst(2)
            case UInt8(ascii: "]"):
                // A link's address.
                let behind = rest.drop { $0 > 0x1F && $0 != .quote }
                guard behind.first == 7 || behind.starts(with: [escape, .backslash]) else { break }
                rest = behind.dropFirst(behind.first == 7 ? 1 : 2)
            default: break
            }
        }
        return plain + rest
    }

    /// As `mayHoldMembers`, for a text without terminal sequences and other spellings.
    private static func mayHoldPlainMembers(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        if endsAsObject(text) || text.split(separator: .lineFeed).contains(where: holdsElements) {
            return true
        }
        // The last quote that was not escaped, and the last one that was: names in a string inside a JSON
        // string have escaped quotes.
        var before: (plain: Int?, escaped: Int?)
        for (offset, byte) in text.enumerated() where byte == .quote {
            let backslashes = offset - 1 - (text[..<offset].lastIndex { $0 != .backslash } ?? -1)
            let isEscaped = !backslashes.isMultiple(of: 2)
            let opening = isEscaped ? before.escaped : before.plain
            let next = text[(offset + 1)...].firstIndex { $0 > 0x20 }
            if let next, text[next] == .colon {
                if opening.map({ mayBegin(at: $0, in: text) }) ?? true { return true }
                if mayBeValue(text[(next + 1)...].drop { $0 <= 0x20 }) { return true }
            }
            if let opening, endsLine(opening...offset, in: text) { return true }
            if isEscaped {
                before.escaped = offset
            } else {
                before.plain = offset
            }
        }
        return false
    }

    /// Whether a text ends with the closing brace of an object that has a string, or that was opened on
    /// another line.
    private static func endsAsObject(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let last = text.last { $0 > 0x20 && $0 != .closeBracket && $0 != .comma }
        guard last == .closeBrace else { return false }
        return text.contains(.quote) || text.count { $0 == .closeBrace } > text.count { $0 == .openBrace }
    }

    /// Whether a line consists of JSON tokens, with a string or a number among them: a part of a value that
    /// is spread over lines. A string may be cut off.
    private static func holdsElements(_ line: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var rest = line
        var holdsOne = false
        // True if a value may start here; two values need a separator.
        var mayFollow = true
        while let first = rest.first {
            switch first {
            case 0...0x20, .backslash, .closeBrace, .closeBracket: rest = rest.dropFirst()
            case .openBrace, .colon, .comma, UInt8(ascii: "["):
                mayFollow = true
                rest = rest.dropFirst()
            case .quote where mayFollow:
                holdsOne = true
                mayFollow = false
                let isEscaped = line[..<rest.startIndex].last == .backslash
                rest = rest.dropFirst()
                while let byte = rest.first, byte != .quote {
                    rest = rest.dropFirst(byte == .backslash && !isEscaped ? 2 : 1)
                }
                rest = rest.dropFirst()
            case UInt8(ascii: "-") where mayFollow, UInt8(ascii: "+") where mayFollow,
                0x30...0x39 where mayFollow:
                let number = rest.prefix { "0123456789+-.eE".utf8.contains($0) }
                guard number.contains(where: { (0x30...0x39).contains($0) }) else { return false }
                holdsOne = true
                mayFollow = false
                rest = rest[number.endIndex...]
            default:
                guard mayFollow,
                    let word = ["true", "false", "null"].first(where: { rest.starts(with: $0.utf8) })
                else { return false }
                mayFollow = false
                rest = rest.dropFirst(word.utf8.count)
            }
        }
        return holdsOne
    }

    /// Whether a member's name may begin with the quote at this offset, by what stands before it.
    private static func mayBegin(at quote: Int, in text: UnsafeBufferPointer<UInt8>) -> Bool {
        let before = text[..<quote].last { $0 == .lineFeed || $0 > 0x20 && $0 != .backslash }
        return before.map { $0 == .openBrace || $0 == .comma || $0 == .lineFeed } ?? true
    }

    /// Whether a JSON value may begin here, or is on the next line.
    private static func mayBeValue(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard let first = text.first else { return true }
        return "\"\\{[-0123456789".utf8.contains(first)
            || ["true", "false", "null"].contains { text.starts(with: $0.utf8) }
    }

    /// Whether a string ends its line like an element of a list that is spread over lines: a comma follows,
    /// or indentation precedes.
    private static func endsLine(_ string: ClosedRange<Int>, in text: UnsafeBufferPointer<UInt8>) -> Bool {
        // Ends at the first byte that decides: a line of a megabyte may have half a million quotes.
        let rest = text[(string.upperBound + 1)...]
        let end = rest.firstIndex {
            $0 == .lineFeed || !($0 <= 0x20 || $0 == .comma || $0 == .closeBracket)
        }
        guard end.map({ text[$0] == .lineFeed }) ?? true else { return false }
        let behind = rest[..<(end ?? rest.endIndex)]
        let before = text[..<string.lowerBound].suffix(2)
        return behind.contains(.comma) || before.elementsEqual([0x20, 0x20]) || before.last == 0x09
    }
}
