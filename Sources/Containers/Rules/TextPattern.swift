internal import CRE2
internal import Glibc
internal import Model

/// A pattern that is removed from texts: a regular expression of the document, or a ready pattern.
final class TextPattern: Sendable {
    /// The ready patterns, by the names that documents use.
    enum Ready: String, CaseIterable {
        case email, ipv4, ipv6, jwt
        case creditCard = "credit_card"
        case bearerToken = "bearer_token"

        /// Broader than the standards: in doubt a text is an address or a number.
        var expression: String {
            let part = #"[^\s@＠"<>()\[\]{},;:=|&?/\\]"#
            // An at sign and a full stop, plain and in the escapes of URLs, HTML, JSON and C.
            let at = #"(?:@|＠|%(?:25)*40|\\+(?:u0040|x40)|&(?:#0*64|#[xX]0*40|commat);)"#
            let stop = #"(?:\.|%(?:25)*2[Ee]|\\+(?:u002[Ee]|x2[Ee])|&(?:#0*46|#[xX]0*2[Ee]|period);)"#
            let domain = #"(?:\#(part)+\#(stop)\#(part){2,}|localhost\b|\[[^\s\[\]]+\])"#
            return switch self {
            case .email: #"(?:\#(part)+|"[^"]+")\#(at)\#(domain)"#
            case .ipv4: #"\d+(?:\.\d+){3,}"#
            // All characters that an address may have, so that each byte of a text is looked at once.
            case .ipv6: "[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+"
            case .jwt: #"eyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]*)?"#
            case .creditCard: #"[\d０-９](?:[ \-\t./_\x{A0}\x{202F}\x{2010}-\x{2013}]*[\d０-９]){12,}"#
            case .bearerToken: #"(?i)bearer(?:[\s+:]|%20)+[A-Za-z0-9._~+/=\-]+"#
            }
        }

        /// The quick test for the pattern, which is C code.
        var quick: cre2_ready {
            switch self {
            case .email: cre2_email
            case .ipv4: cre2_ipv4
            case .ipv6: cre2_ipv6
            case .jwt: cre2_jwt
            case .creditCard: cre2_credit_card
            case .bearerToken: cre2_bearer_token
            }
        }
    }

    /// The expression.
    private let expression: Expression
    /// The ready pattern; nil for an expression of the document.
    let ready: Ready?
    /// Whether the expression refers to the beginning or end of a text. Then a search in the whole line says
    /// nothing about the texts in it.
    private let isTied: Bool

    /// Compiles a pattern.
    ///
    /// - Throws: `expression` if RE2 refuses it, or it matches the empty text.
    init(_ text: String, at path: String) throws(ContainerError) {
        ready = Ready(rawValue: text)
        expression = try Expression(ready?.expression ?? text, ignoreCase: false, at: path)
        guard ![UInt8]().withUnsafeBufferPointer({ [expression] in expression.finds(in: $0) }) else {
            throw ContainerError(
                .expression, at: path, "the pattern matches the empty text, which is in every text")
        }
        isTied =
            ready == nil
            && (text.replacingAll("[^", with: "").contains { "^$".contains($0) } || text.holds(#"\A"#)
                || text.holds(#"\z"#))
    }

    /// Whether the pattern may be in a text, quickly. The text may be a whole line without escapes.
    func mayBe(in text: UnsafeBufferPointer<UInt8>, isLine: Bool) -> Bool {
        guard let ready else { return isLine ? isTied || expression.finds(in: text) : true }
        guard let start = text.baseAddress else { return false }
        return cre2_may_hold(ready.quick, start, text.count)
    }

    /// Bytes that are searched for an expression of the document in one text, 256 MiB. Beyond that the whole
    /// text is replaced.
    private static let mostWork = 256 << 20

    /// The text with each match replaced; nil if nothing matches. A text that grows beyond `most` is returned
    /// as it is then.
    func replacing(in text: [UInt8], with other: [UInt8], most: Int) -> [UInt8]? {
        guard text.withUnsafeBufferPointer({ mayBe(in: $0, isLine: false) }) else { return nil }
        var result: [UInt8] = []
        var done = 0
        var offset = 0
        var work = 0
        while offset < text.count, result.count <= most, let found = expression.find(in: text, from: offset) {
            // A search may read to the end of the text for each match, which is quadratic.
            work += text.count - offset
            guard ready != nil || work < TextPattern.mostWork else { return other }
            offset = max(found.upperBound, offset + 1)
            for range in confirmed(found, in: text) {
                result += text[done..<range.lowerBound] + other
                done = range.upperBound
            }
        }
        return done == 0 ? nil : result + text[done...]
    }

    /// The parts of a match that really are what the pattern means, by digits and neighbouring characters.
    private func confirmed(_ found: Range<Int>, in text: [UInt8]) -> [Range<Int>] {
        switch ready {
        case .creditCard: return TextPattern.cards(in: text[found])
        case .ipv4:
            let numbers = text[found].split(separator: UInt8(ascii: ".")).map {
                $0.count <= 3 && $0.reduce(0) { 10 * $0 + Int($1 & 0x0F) } <= 255
            }
            let isOne = numbers.indices.dropLast(3).contains { numbers[$0..<$0 + 4].allSatisfy { $0 } }
            return isOne ? [found] : []
        case .ipv6: return TextPattern.address(found, in: text).map { [$0] } ?? []
        default: return found.isEmpty ? [] : [found]
        }
    }

    /// The part of a match that is an IPv6 address. `std::string` is not one: letters that continue before or
    /// behind it belong to words.
    private static func address(_ found: Range<Int>, in text: [UInt8]) -> Range<Int>? {
        let colon = UInt8(ascii: ":")
        let point = UInt8(ascii: ".")
        guard text[found].count(where: { $0 == colon }) < 7 || text[found].contains(point) else {
            return found
        }
        func isLetter(_ offset: Int) -> Bool {
            text.indices.contains(offset) && (0x61...0x7A).contains(text[offset] | 0x20)
        }
        var range = found
        if isLetter(range.lowerBound - 1), let first = text[range].firstIndex(of: colon) {
            range = first + 1..<range.upperBound
        }
        if isLetter(range.upperBound), let last = text[range].lastIndex(of: colon) {
            range = range.lowerBound..<last
        }
        let part = text[range]
        let isOne = zip(part, part.dropFirst()).contains { $0 == colon && $1 == colon }
        return isOne && part.contains { $0 != colon && $0 != point } ? range : nil
    }

    /// Groups of digits that make a number of 13 to 19 digits, with a correct check digit and a first digit
    /// of cards. A date or another number may precede it.
    ///
    /// Source: ISO/IEC 7812-1, annex B (Luhn).
    private static func cards(in text: ArraySlice<UInt8>) -> [Range<Int>] {
        var text = text
        // The first byte of a full-width digit (EF BC 90 to 99) becomes the digit.
        for offset in text.indices.dropLast(2) where text[offset] == 0xEF && text[offset + 1] == 0xBC {
            text[offset] = text[offset + 2] - 0x60
        }
        let groups = text.split { !(0x30...0x39).contains($0) }
        var found: [Range<Int>] = []
        for (first, group) in groups.enumerated() {
            guard (0x32...0x36).contains(group[group.startIndex]) else { continue }
            var (digits, end, isOne): ([UInt8], Int, Bool) = ([], group.startIndex, false)
            var last = group
            for other in groups[first...] {
                digits += other
                // Points, slashes and underscores mostly separate dates, paths and fractions: they join only
                // groups of the lengths that cards have.
                let gap = text[min(last.endIndex, other.startIndex)..<other.startIndex]
                let joins =
                    !gap.contains { "./_".utf8.contains($0) }
                    || [last, other].allSatisfy { 3...6 ~= $0.count }
                guard digits.count <= 19, joins else { break }
                last = other
                // The security code often follows.
                end = text[other.endIndex...].firstIndex { $0 & 0xC0 != 0x80 } ?? text.endIndex
                isOne = isOne || digits.count >= 13 && hasCheckDigit(digits)
            }
            guard isOne else { continue }
            // A date may pass for a card that has the beginning of the card behind it: join the two.
            if let last = found.last, last.upperBound > group.startIndex {
                found[found.count - 1] = last.lowerBound..<max(last.upperBound, end)
            } else {
                found.append(group.startIndex..<end)
            }
        }
        return found
    }

    /// Whether digits have a correct check digit.
    private static func hasCheckDigit(_ digits: [UInt8]) -> Bool {
        let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
            let value = Int(digit.element & 0x0F) * (digit.offset % 2 + 1)
            return sum + (value > 9 ? value - 9 : value)
        }
        return sum % 10 == 0
    }
}

/// Some of the ready patterns, for one quick look for all of them.
struct ReadyPatterns: Sendable {
    /// A bit for each, as `cre2_may_hold_any` has them.
    private var bits: UInt32 = 0

    static let none = ReadyPatterns()

    var isEmpty: Bool { bits == 0 }

    mutating func insert(_ pattern: TextPattern.Ready) { bits |= 1 << pattern.quick.rawValue }

    /// Whether one of them may match in a text.
    @inline(__always)
    func mayBe(in text: UnsafeRawBufferPointer) -> Bool {
        guard let start = text.baseAddress else { return false }
        return cre2_may_hold_any(bits, start, text.count)
    }

    /// Whether one of them may match in a line. A line with escapes always may, because they hide matches.
    @inline(__always)
    func mayBe(inLine line: UnsafeRawBufferPointer) -> Bool {
        guard let start = line.baseAddress else { return false }
        // memchr looks at 16 and more bytes at a time.
        return memchr(start, 0x5C, line.count) != nil || cre2_may_hold_any(bits, start, line.count)
    }
}

/// Patterns, and the replacement for what they match.
struct Scrubber: Sendable {
    /// The patterns.
    let patterns: [TextPattern]
    /// The replacement.
    let other: [UInt8]
    /// How an event's id is replaced, if a pattern matches in it: with a part missing it would not be an id.
    let hashing: Hashing
    /// Those of the patterns that are ready ones.
    private let ready: ReadyPatterns
    /// The others.
    private let expressions: [TextPattern]

    init(patterns: [TextPattern], other: [UInt8], hashing: Hashing) {
        self.patterns = patterns
        self.other = other
        self.hashing = hashing
        var ready = ReadyPatterns.none
        for case let pattern? in patterns.map(\.ready) { ready.insert(pattern) }
        self.ready = ready
        expressions = patterns.filter { $0.ready == nil }
    }

    /// The ready patterns, if there are no others; otherwise none.
    var onlyReady: ReadyPatterns { expressions.isEmpty ? ready : .none }

    /// Whether the key was drawn by this process, because the settings name none.
    var hasOwnKey: Bool {
        guard case .keyed(let key) = hashing else { return false }
        return key == .ofThisProcess
    }

    /// Whether a pattern may match in a line. A line with escapes always may, because they hide matches.
    func mayBe(in line: UnsafeRawBufferPointer) -> Bool {
        ready.mayBe(inLine: line)
            || expressions.contains { $0.mayBe(in: line.assumingMemoryBound(to: UInt8.self), isLine: true) }
    }

    /// The text with matches replaced; nil if nothing matches. A text that grows beyond `most` is returned as
    /// it is then.
    func clean(_ text: [UInt8], most: Int = .max) -> [UInt8]? {
        // One look for all of them: most texts of a line that has escapes hold nothing.
        if expressions.isEmpty, !text.withUnsafeBytes({ ready.mayBe(in: $0) }) { return nil }
        var result: [UInt8]?
        for pattern in patterns where (result?.count ?? 0) <= most {
            result = pattern.replacing(in: result ?? text, with: other, most: most) ?? result
        }
        return result
    }

    /// A value of a data layer with matches in texts and numbers replaced, and without members whose names
    /// match.
    func clean(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string, .integer, .double:
            let clean = clean((value.string ?? value.description).bytes, most: DataLayer.limit)
            return clean.map { .string(String(decoding: $0, as: UTF8.self)) } ?? value
        case .array(let elements): return .array(elements.map { clean($0) })
        case .object(let members):
            return .object(
                members.filter { clean($0.key.bytes) == nil }.map { .init($0.key, clean($0.value)) })
        case .null, .bool: return value
        }
    }
}
