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
            let part = #"[^\s@＠"<>()\[\]{},;:=|&?/\\]"#
            return switch self {
            case .email: #"(?:\#(part)+|"[^"]+")(?:@|＠|%(?:25)*40|\\+u0040)\#(part)+\.\#(part){2,}"#
            case .ipv4: #"\d+(?:\.\d+){3,}"#
            // All that may belong to it: each byte of a text is looked at once.
            case .ipv6: "[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+"
            case .jwt: #"eyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]*)?"#
            case .creditCard: #"[\d０-９](?:[ \-\t./_\x{A0}\x{202F}\x{2010}-\x{2013}]*[\d０-９]){12,}"#
            case .bearerToken: #"(?i)bearer(?:[\s+:]|%20)+[A-Za-z0-9._~+/=\-]+"#
            }
        }

        /// What each text has in which it is found: one of these texts, or so many of these bytes in a row.
        var needs: (texts: [String], bytes: String, count: Int) {
            let digits = "0123456789"
            return switch self {
            case .email: (["@", "＠", "%40", "%25", "u0040"], "", 0)
            case .ipv4: ([], digits + ".", 7)
            case .ipv6: (["::"], digits + "abcdefABCDEF:", 15)
            case .jwt: (["eyJ"], "", 0)
            case .creditCard: ([], digits + "０１２３４５６７８９ -\t./_\u{A0}\u{202F}\u{2010}\u{2011}\u{2012}\u{2013}", 13)
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

    /// So many bytes of a text are searched for an expression of the document; then all of the text goes.
    private static let mostWork = 256 << 20

    /// The text with what it finds replaced; nil where it finds nothing, a longer part where it exceeds `most` bytes.
    func replacing(in text: [UInt8], with other: [UInt8], most: Int) -> [UInt8]? {
        guard text.withUnsafeBufferPointer({ mayBe(in: $0, isLine: false) }) else { return nil }
        var result: [UInt8] = []
        var done = 0
        var place = 0
        var work = 0
        while place < text.count, result.count <= most, let found = expression.find(in: text, from: place) {
            // A search may read to the text's end for each thing that it finds.
            work += text.count - place
            guard ready != nil || work < TextPattern.mostWork else { return other }
            place = max(found.upperBound, place + 1)
            for range in confirmed(found, in: text) {
                result += text[done..<range.lowerBound] + other
                done = range.upperBound
            }
        }
        return done == 0 ? nil : result + text[done...]
    }

    /// The parts of what was found that are what is looked for, as far as digits and neighbours tell.
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

    /// The part of what was found that is an address of IPv6. `std::string` is none: letters that go on before or behind belong to
    /// words.
    private static func address(_ found: Range<Int>, in text: [UInt8]) -> Range<Int>? {
        let (colon, point) = (UInt8(ascii: ":"), UInt8(ascii: "."))
        guard text[found].count(where: { $0 == colon }) < 7 || text[found].contains(point) else { return found }
        func isLetter(_ place: Int) -> Bool {
            text.indices.contains(place) && (0x61...0x7A).contains(text[place] | 0x20)
        }
        var range = found
        if isLetter(range.lowerBound - 1), let first = text[range].firstIndex(of: colon) {
            range = first + 1..<range.upperBound
        }
        if isLetter(range.upperBound), let last = text[range].lastIndex(of: colon) { range = range.lowerBound..<last }
        let part = text[range]
        let isOne = zip(part, part.dropFirst()).contains { $0 == colon && $1 == colon }
        return isOne && part.contains { $0 != colon && $0 != point } ? range : nil
    }

    /// Where groups of the digits make a number of 13 to 19 with the right check digit that begins as cards do: a date or another
    /// number may be before it.
    /// Source: ISO/IEC 7812-1, annex B (Luhn).
    private static func cards(in text: ArraySlice<UInt8>) -> [Range<Int>] {
        var text = text
        // Of a full-width digit the first byte becomes the digit: EF BC 90 to 99.
        for place in text.indices.dropLast(2) where text[place] == 0xEF && text[place + 1] == 0xBC {
            text[place] = text[place + 2] - 0x60
        }
        let groups = text.split { !(0x30...0x39).contains($0) }
        var found: [Range<Int>] = []
        for (first, group) in groups.enumerated() {
            guard (0x32...0x36).contains(group[group.startIndex]) else { continue }
            var (digits, end, isOne): ([UInt8], Int, Bool) = ([], group.startIndex, false)
            var last = group
            for other in groups[first...] {
                digits += other
                // What such signs part is mostly a date, a path or a fraction: they join only groups as cards have them.
                let gap = text[min(last.endIndex, other.startIndex)..<other.startIndex]
                let joins = !gap.contains { "./_".utf8.contains($0) } || [last, other].allSatisfy { 3...6 ~= $0.count }
                guard digits.count <= 19, joins else { break }
                last = other
                // Behind it is often its security code.
                end = text[other.endIndex...].firstIndex { $0 & 0xC0 != 0x80 } ?? text.endIndex
                isOne = isOne || digits.count >= 13 && hasCheckDigit(digits)
            }
            guard isOne else { continue }
            // A date may pass for one, with the beginning of the card behind it.
            if let last = found.last, last.upperBound > group.startIndex {
                found[found.count - 1] = last.lowerBound..<max(last.upperBound, end)
            } else {
                found.append(group.startIndex..<end)
            }
        }
        return found
    }

    private static func hasCheckDigit(_ digits: [UInt8]) -> Bool {
        let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
            let value = Int(digit.element & 0x0F) * (digit.offset % 2 + 1)
            return sum + (value > 9 ? value - 9 : value)
        }
        return sum % 10 == 0
    }
}

/// Patterns, and what takes the place of what they find.
struct Scrubber: Sendable {
    let patterns: [TextPattern]
    let other: [UInt8]
    /// How an event's id is replaced: without what was found it would be no id.
    let hashing: Hashing

    /// Whether anything may be found in a line; escapes may hide it.
    func mayBe(in line: UnsafeRawBufferPointer) -> Bool {
        let bytes = line.assumingMemoryBound(to: UInt8.self)
        return bytes.contains(UInt8(ascii: "\\")) || patterns.contains { $0.mayBe(in: bytes, isLine: true) }
    }

    /// The text without what the patterns find; nil where they find nothing, a longer part where it exceeds `most` bytes.
    func clean(_ text: [UInt8], most: Int = .max) -> [UInt8]? {
        var result: [UInt8]?
        for pattern in patterns where (result?.count ?? 0) <= most {
            result = pattern.replacing(in: result ?? text, with: other, most: most) ?? result
        }
        return result
    }

    /// A data layer's value without what the patterns find in texts and numbers, and members whose names they find.
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
