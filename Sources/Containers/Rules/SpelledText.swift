internal import Model

/// Texts as they may be spelled, with escapes of JSON (`\u0040`), JavaScript (`\u{40}`), C (`\x40`, `\100`),
/// URLs (`%40`) or HTML (`&#64;`, `&#x40;`, `&commat;`). A search for a person's data must find them all.
package enum SpelledText {
    /// Rounds of decoding: `%2540` is `%40` after the first round.
    private static let rounds = 3

    /// Names of HTML for characters that addresses, names and numbers contain.
    private static let entities: [String: Unicode.Scalar] = [
        "amp": "&", "quot": "\"", "apos": "'", "lt": "<", "gt": ">", "commat": "@", "period": ".",
        "plus": "+",
        "lowbar": "_", "hyphen": "-", "sol": "/", "colon": ":",
    ]

    /// The text, and the results of each round of decoding that changes it.
    package static func decodings(of text: [UInt8]) -> [[UInt8]] {
        var found = [text]
        for _ in 0..<rounds {
            guard let decoded = decoded(found[found.count - 1]) else { break }
            found.append(decoded)
        }
        return found
    }

    /// The text without one layer of escapes; nil if it has no escapes.
    private static func decoded(_ text: [UInt8]) -> [UInt8]? {
        // Most texts have none of the three, and are not copied.
        guard
            text.contains(where: {
                $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "&")
            })
        else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        // Units of UTF-16 are collected, because a character beyond U+FFFF is two escapes (RFC 8259, section
        // 7).
        var units: [UInt16] = []
        // Writes the collected units as characters.
        func flush() {
            guard !units.isEmpty else { return }
            out += Array(String(decoding: units, as: UTF16.self).utf8)
            units = []
        }
        var offset = 0
        while offset < text.count {
            if let (escape, length) = escape(text[offset...]) {
                switch escape {
                case .unit(let unit): units.append(unit)
                case .scalar(let scalar):
                    flush()
                    out += Array(String(Character(scalar)).utf8)
                case .byte(let byte):
                    flush()
                    out.append(byte)
                }
                offset += length
            } else {
                flush()
                out.append(text[offset])
                offset += 1
            }
        }
        flush()
        // Without a change there would be further rounds for nothing.
        return out == text ? nil : out
    }

    /// What an escape stands for.
    private enum Escape {
        /// A code unit of UTF-16: a character, or half of one.
        case unit(UInt16)
        /// A character.
        case scalar(Unicode.Scalar)
        /// A byte.
        case byte(UInt8)
    }

    /// The escape at the beginning of a text, with its length in bytes; nil if there is no escape.
    private static func escape(_ text: ArraySlice<UInt8>) -> (Escape, Int)? {
        let rest = text.dropFirst()
        switch text.first {
        case UInt8(ascii: "%")?:
            return number(rest.prefix(2), 16, digits: 2).map { (.byte(UInt8(truncatingIfNeeded: $0)), 3) }
        case UInt8(ascii: "\\")?:
            switch rest.first {
            case UInt8(ascii: "u")? where rest.dropFirst().first == UInt8(ascii: "{"):
                let digits = rest.dropFirst(2).prefix(7).prefix { $0 != UInt8(ascii: "}") }
                guard digits.endIndex < text.endIndex, text[digits.endIndex] == UInt8(ascii: "}") else {
                    return nil
                }
                return number(digits, 16).flatMap { Unicode.Scalar($0) }.map {
                    (.scalar($0), digits.count + 4)
                }
            case UInt8(ascii: "u")?:
                return number(rest.dropFirst().prefix(4), 16, digits: 4).map {
                    (.unit(UInt16(truncatingIfNeeded: $0)), 6)
                }
            case UInt8(ascii: "x")?:
                return number(rest.dropFirst().prefix(2), 16, digits: 2).map {
                    (.byte(UInt8(truncatingIfNeeded: $0)), 4)
                }
            case UInt8(ascii: "0")?, UInt8(ascii: "1")?, UInt8(ascii: "2")?, UInt8(ascii: "3")?:
                return number(rest.prefix(3), 8, digits: 3).map {
                    (.byte(UInt8(truncatingIfNeeded: $0)), 4)
                }
            // Only short escapes of printable characters.
            case let byte? where "\"\\/".utf8.contains(byte): return (.byte(byte), 2)
            default: return nil
            }
        case UInt8(ascii: "&")?:
            // The semicolon is searched in the next ten bytes only. Otherwise each `&` would cost a search of
            // the whole text.
            guard let end = rest.prefix(10).firstIndex(of: UInt8(ascii: ";")) else { return nil }
            guard rest.first == UInt8(ascii: "#") else {
                return entities[String(decoding: rest[..<end], as: UTF8.self)].map {
                    (.scalar($0), end - text.startIndex + 1)
                }
            }
            let digits = text[(text.startIndex + 2)..<end]
            let isHexadecimal = digits.first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
            let code = isHexadecimal ? number(digits.dropFirst(), 16) : number(digits, 10)
            guard let code, let scalar = Unicode.Scalar(code) else { return nil }
            return (.scalar(scalar), end - text.startIndex + 1)
        default: return nil
        }
    }

    /// A number of digits; nil for other texts.
    private static func number(
        _ digits: ArraySlice<UInt8>, _ radix: Int, digits count: Int? = nil
    ) -> UInt32? {
        // `UInt32` would accept a sign.
        guard !digits.isEmpty, count == nil || digits.count == count, digits.first != UInt8(ascii: "+") else {
            return nil
        }
        return UInt32(String(decoding: digits, as: UTF8.self), radix: radix)
    }
}
