internal import CRE2
internal import Model

/// What is taken out of texts: an expression of the document, or one of the ready ones.
final class TextPattern: Sendable {
    /// Patterns that documents name.
    enum Ready: String, CaseIterable {
        case email, ipv4, ipv6, jwt
        case creditCard = "credit_card"
        case bearerToken = "bearer_token"

        /// Wider than the standards: what may be one is one.
        var expression: String {
            let part = #"[^\s@"<>()\[\]{},;:=|&?/\\]"#
            let byte = #"(?:25[0-5]|2[0-4]\d|1?\d?\d)"#
            return switch self {
            case .email: #"\#(part)+(?:@|%40)\#(part)+\.\#(part){2,}"#
            case .ipv4: #"\b(?:\#(byte)\.){3}\#(byte)\b"#
            case .ipv6: "[0-9A-Fa-f:.]*::[0-9A-Fa-f:.]*|(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}"
            case .jwt: #"\beyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]*)?"#
            case .creditCard: #"\b(?:\d[ -]?){12,18}\d\b"#
            case .bearerToken: #"(?i)\bbearer\s+[A-Za-z0-9._~+/=\-]+"#
            }
        }

        /// What each text has in which it is found: one of these texts, or so many of these bytes in a row.
        var needs: (texts: [String], bytes: String, count: Int) {
            let digits = "0123456789"
            return switch self {
            case .email: (["@", "%40"], "", 0)
            case .ipv4: ([], digits + ".", 7)
            case .ipv6: (["::"], digits + "abcdefABCDEF:", 15)
            case .jwt: (["eyJ"], "", 0)
            case .creditCard: ([], digits + " -", 13)
            case .bearerToken: ([], "bearBEAR", 6)
            }
        }
    }

    private let expression: Expression
    private let ready: Ready?
    private let texts: [[UInt8]]
    private let bytes: [UInt64]
    private let count: Int
    /// Whether it asks where a text begins or ends: a look at the whole line tells nothing then.
    private let isTied: Bool

    /// - Throws: `ContainerError` with code `expression`.
    init(_ text: String, at path: String) throws(ContainerError) {
        ready = Ready(rawValue: text)
        expression = try Expression(ready?.expression ?? text, ignoreCase: false, at: path)
        guard ![UInt8]().withUnsafeBufferPointer({ [expression] in expression.finds(in: $0) }) else {
            throw ContainerError(.expression, at: path, "the pattern matches the empty text, which is in every text")
        }
        let needs = ready?.needs ?? (texts: [], bytes: "", count: 0)
        texts = needs.texts.map(\.bytes)
        count = needs.count
        var bits: [UInt64] = [0, 0, 0, 0]
        for byte in needs.bytes.utf8 { bits[Int(byte >> 6)] |= 1 << UInt64(byte & 63) }
        bytes = bits
        isTied =
            ready == nil
            && (text.replacingAll("[^", with: "").contains { "^$".contains($0) } || text.holds(#"\A"#)
                || text.holds(#"\z"#))
    }

    /// Whether it may be found in the text; quick for ready ones. The text may be a whole line without escapes.
    func mayBe(in text: UnsafeBufferPointer<UInt8>, isLine: Bool) -> Bool {
        guard ready != nil else { return isLine ? isTied || expression.finds(in: text) : true }
        guard let start = text.baseAddress else { return false }
        return texts.contains { cre2_contains(start, text.count, $0, $0.count) }
            || count > 0 && cre2_has_run(start, text.count, bytes, count)
    }

    /// The text with something else in the place of what it finds; nil where it finds nothing, and a part of it that is longer
    /// where it becomes longer than `most` bytes.
    func replacing(in text: [UInt8], with other: [UInt8], most: Int) -> [UInt8]? {
        guard text.withUnsafeBufferPointer({ mayBe(in: $0, isLine: false) }) else { return nil }
        var result: [UInt8] = []
        var done = 0
        var place = 0
        while place < text.count, result.count <= most, let found = expression.find(in: text, from: place) {
            place = max(found.upperBound, place + 1)
            guard !found.isEmpty, let range = confirmed(found, in: text) else { continue }
            result += text[done..<range.lowerBound] + other
            done = range.upperBound
        }
        return done == 0 ? nil : result + text[done...]
    }

    /// The part of what was found that is one, as far as digits and neighbours tell.
    private func confirmed(_ found: Range<Int>, in text: [UInt8]) -> Range<Int>? {
        switch ready {
        case .creditCard: return TextPattern.hasCard(text[found]) ? found : nil
        case .ipv6:
            guard text[found].count(where: { $0 == UInt8(ascii: ":") }) < 7 || text[found].contains(UInt8(ascii: "."))
            else {
                return found
            }
            // `std::string` is none: letters that go on before or behind belong to words.
            func isWord(_ place: Int) -> Bool {
                guard text.indices.contains(place) else { return false }
                let byte = text[place] | 0x20
                return (0x61...0x7A).contains(byte) || text[place] == UInt8(ascii: "_") || text[place] >= 0x80
            }
            var range = found
            if isWord(range.lowerBound - 1), let colon = text[range].firstIndex(of: UInt8(ascii: ":")) {
                range = colon + 1..<range.upperBound
            }
            if isWord(range.upperBound), let colon = text[range].lastIndex(of: UInt8(ascii: ":")) {
                range = range.lowerBound..<colon
            }
            let part = text[range]
            let isOne = zip(part, part.dropFirst()).contains { $0 == UInt8(ascii: ":") && $1 == $0 }
            return isOne && part.contains { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: ".") } ? range : nil
        default: return found
        }
    }

    /// Whether groups of the digits make a number of 13 to 19 with the right check digit that begins as cards do.
    /// Source: ISO/IEC 7812-1, annex B (Luhn).
    private static func hasCard(_ text: ArraySlice<UInt8>) -> Bool {
        let groups = text.split { !(0x30...0x39).contains($0) }.map { $0.map { Int($0 & 0x0F) } }
        for first in groups.indices {
            var digits: [Int] = []
            for group in groups[first...] {
                digits += group
                guard (13...19).contains(digits.count), (2...6).contains(digits[0]) else { continue }
                let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
                    let value = digit.offset % 2 == 0 ? digit.element : digit.element * 2
                    return sum + (value > 9 ? value - 9 : value)
                }
                if sum % 10 == 0 { return true }
            }
        }
        return false
    }
}

/// Patterns, and what takes the place of what they find.
struct Scrubber: Sendable {
    let patterns: [TextPattern]
    let other: [UInt8]

    /// Whether anything may be found in a line; escapes may hide it.
    func mayBe(in line: UnsafeRawBufferPointer) -> Bool {
        let bytes = line.assumingMemoryBound(to: UInt8.self)
        return bytes.contains(UInt8(ascii: "\\")) || patterns.contains { $0.mayBe(in: bytes, isLine: true) }
    }

    /// The text without what the patterns find; nil where they find nothing, and a part of it that is longer where it becomes
    /// longer than `most` bytes.
    func clean(_ text: [UInt8], most: Int = .max) -> [UInt8]? {
        var result: [UInt8]?
        for pattern in patterns where (result?.count ?? 0) <= most {
            result = pattern.replacing(in: result ?? text, with: other, most: most) ?? result
        }
        return result
    }

    /// The value of a data layer without what the patterns find in texts and numbers; members go in whose names they find
    /// something.
    func clean(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string, .integer, .double:
            let clean = clean((value.string ?? value.description).bytes, most: DataLayer.limit)
            return clean.map { .string(String(decoding: $0, as: UTF8.self)) } ?? value
        case .array(let elements): return .array(elements.map { clean($0) })
        case .object(let members):
            return .object(members.filter { clean($0.key.bytes) == nil }.map { .init($0.key, clean($0.value)) })
        case .null, .bool: return value
        }
    }
}
