/// A pattern of one name in a path: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`, and a backslash that makes
/// the next character literal.
///
/// Matches as `fnmatch` does in a UTF-8 locale: `?` and brackets stand for one character, and a bracket
/// without an end is literal. A byte that is not UTF-8 counts as a character of its own. Matching takes time
/// in proportion to the length of the name times that of the pattern, whatever they are.
struct NamePattern: Sendable {
    /// The pattern as it was written.
    let text: String
    private let tokens: [Token]
    /// The name, if the pattern matches only one.
    let literal: [UInt8]?

    private enum Token: Sendable {
        /// Any run of characters, none included.
        case run
        /// One character of a set.
        case one(CharacterRanges)
    }

    init(_ text: String) {
        var parser = Parser(text)
        self.text = text
        tokens = parser.tokens()
        literal = parser.literal
    }

    /// A pattern that matches one name only.
    init(literal name: String) { self.init(NamePattern.quoted(name)) }

    /// Text that matches itself in a pattern.
    static func quoted(_ text: String) -> String {
        var quoted = ""
        for character in text.unicodeScalars {
            if "*?[]{},\\".unicodeScalars.contains(character) {
                quoted.append("\\")
            }
            quoted.unicodeScalars.append(character)
        }
        return quoted
    }

    /// Whether the pattern matches every name that does not begin with a full stop.
    var isAny: Bool { if tokens.count == 1, case .run = tokens[0] { true } else { false } }

    /// Whether the pattern can match a name that begins with a full stop. As in shells, only a pattern that
    /// begins with a literal full stop can; one in brackets does not count.
    private var allowsHidden: Bool { text.hasPrefix(".") || text.hasPrefix("\\.") }

    /// - Parameter hidden: whether `*`, `?` and brackets match the full stop of a hidden name too.
    func fits(_ name: [UInt8], hidden: Bool = false) -> Bool {
        if let literal { return literal == name }
        if !hidden, name.first == UInt8(ascii: "."), !allowsHidden { return false }
        let characters = NamePattern.characters(of: name)
        var offset = 0
        var next = 0
        // The run that was passed last, and the character at which it ends: the only one that must be tried
        // again.
        var last: (next: Int, offset: Int)?
        while offset < characters.count {
            if next < tokens.count, case .run = tokens[next] {
                next += 1
                last = (next, offset)
            } else if next < tokens.count, case .one(let set) = tokens[next], set.contains(characters[offset])
            {
                next = next + 1
                offset = offset + 1
            } else if let run = last {
                last = (run.next, run.offset + 1)
                next = run.next
                offset = run.offset + 1
            } else {
                return false
            }
        }
        return tokens[next...].allSatisfy { if case .run = $0 { true } else { false } }
    }

    /// Whether some name fits both patterns.
    func overlaps(_ other: NamePattern) -> Bool {
        // If only one of the patterns allows hidden names, no name fits both: a pattern that allows them
        // begins with a full stop.
        if allowsHidden != other.allowsHidden { return false }
        // `fits[n]`: whether some name fits the first n tokens of the other pattern and the tokens of this
        // one so far.
        var fits = Array(repeating: false, count: other.tokens.count + 1)
        fits[0] = true
        other.passRuns(&fits)
        for token in tokens {
            var next = Array(repeating: false, count: fits.count)
            for (index, isReached) in fits.enumerated() where isReached {
                switch token {
                case .run:
                    // A run matches whatever any number of the other pattern's tokens match.
                    for later in index..<next.count { next[later] = true }
                case .one(let set):
                    guard index < other.tokens.count else { continue }
                    switch other.tokens[index] {
                    case .run: next[index] = true
                    case .one(let otherSet): if set.overlaps(otherSet) { next[index + 1] = true }
                    }
                }
            }
            other.passRuns(&next)
            fits = next
        }
        return fits[other.tokens.count]
    }

    /// A run may also match nothing.
    private func passRuns(_ reached: inout [Bool]) {
        for (index, token) in tokens.enumerated() where reached[index] {
            if case .run = token {
                reached[index + 1] = true
            }
        }
    }

    /// Whether every name that fits the other pattern fits this one too. Only simple cases are recognised;
    /// false in doubt.
    func covers(_ other: NamePattern) -> Bool {
        isAny || text == other.text || other.literal.map { fits($0, hidden: true) } == true
    }

    /// The characters of a name. Each byte that is not UTF-8 counts as one, with a number above the Unicode
    /// range.
    static func characters(of name: some Sequence<UInt8>) -> [UInt32] {
        let bytes = Array(name)
        var characters = [UInt32]()
        var offset = 0
        characters.reserveCapacity(bytes.count)
        var parser = Unicode.UTF8.ForwardParser()
        var input = bytes.makeIterator()
        while true {
            switch parser.parseScalar(from: &input) {
            case .valid(let encoded):
                characters.append(Unicode.UTF8.decode(encoded).value)
                offset += encoded.count
            case .error(let length):
                characters += bytes[offset..<(offset + length)].map { CharacterRanges.firstByte + UInt32($0) }
                offset += length
            case .emptyInput: return characters
            }
        }
    }
}

extension NamePattern: Hashable {
    static func == (left: NamePattern, right: NamePattern) -> Bool { left.text == right.text }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// A set of characters, as ranges of their numbers in ascending order, none beside another.
struct CharacterRanges: Sendable, Equatable {
    private var ranges: [ClosedRange<UInt32>]

    /// The number that stands for the byte 0, if it is not UTF-8.
    static let firstByte: UInt32 = 0x11_0000
    private static let all: ClosedRange<UInt32> = 0...(firstByte + 255)
    static let any = CharacterRanges([all])

    init(_ character: UInt32) { ranges = [character...character] }

    init(_ ranges: [ClosedRange<UInt32>]) {
        self.ranges = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = self.ranges.last, range.lowerBound <= last.upperBound + 1 {
                self.ranges[self.ranges.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                self.ranges.append(range)
            }
        }
    }

    /// The characters that are not in it.
    var inverted: CharacterRanges {
        var inverted: [ClosedRange<UInt32>] = []
        var next = CharacterRanges.all.lowerBound
        for range in ranges {
            if next < range.lowerBound {
                inverted.append(next...(range.lowerBound - 1))
            }
            next = range.upperBound + 1
        }
        if next <= CharacterRanges.all.upperBound {
            inverted.append(next...CharacterRanges.all.upperBound)
        }
        return CharacterRanges(inverted)
    }

    func contains(_ character: UInt32) -> Bool { ranges.contains { $0.contains(character) } }

    func overlaps(_ other: CharacterRanges) -> Bool {
        ranges.contains { range in other.ranges.contains { range.overlaps($0) } }
    }
}

extension NamePattern {
    private struct Parser {
        private let characters: [UInt32]
        private var index = 0
        /// The text, while nothing but literal characters was read.
        private(set) var literal: [UInt8]? = []

        private static func code(_ character: Character) -> UInt32 {
            character.unicodeScalars.first?.value ?? 0
        }
        private static let (star, question) = (code("*"), code("?"))
        private static let (open, close, dash, colon) = (code("["), code("]"), code("-"), code(":"))
        private static let (backslash, bang, caret) = (code("\\"), code("!"), code("^"))

        init(_ text: String) { characters = text.unicodeScalars.map(\.value) }

        mutating func tokens() -> [Token] {
            var tokens: [Token] = []
            while index < characters.count {
                let character = characters[index]
                index += 1
                switch character {
                case Parser.star:
                    literal = nil
                    if case .run = tokens.last { continue }
                    tokens.append(.run)
                case Parser.question:
                    literal = nil
                    tokens.append(.one(.any))
                case Parser.open:
                    if let set = set() {
                        literal = nil
                        tokens.append(.one(set))
                    } else {
                        tokens.append(one(character))
                    }
                case Parser.backslash where index < characters.count:
                    tokens.append(one(characters[index]))
                    index += 1
                default: tokens.append(one(character))
                }
            }
            return tokens
        }

        private mutating func one(_ character: UInt32) -> Token {
            if let scalar = Unicode.Scalar(character) {
                literal? += Array(String(Character(scalar)).utf8)
            }
            return .one(CharacterRanges(character))
        }

        /// The set in brackets whose first one was read; nil, with nothing read, if it has no end.
        private mutating func set() -> CharacterRanges? {
            let start = index
            var ranges: [ClosedRange<UInt32>] = []
            let isInverted =
                index < characters.count && [Parser.bang, Parser.caret].contains(characters[index])
            if isInverted {
                index += 1
            }
            let first = index
            while index < characters.count {
                if characters[index] == Parser.close, index > first {
                    index += 1
                    let set = CharacterRanges(ranges)
                    return isInverted ? set.inverted : set
                }
                if let named = namedClass() {
                    ranges += named
                    continue
                }
                guard let low = member() else { break }
                guard index + 1 < characters.count, characters[index] == Parser.dash,
                    characters[index + 1] != Parser.close
                else {
                    ranges.append(low...low)
                    continue
                }
                index += 1
                guard let high = member() else { break }
                if low <= high {
                    ranges.append(low...high)
                }
            }
            index = start
            return nil
        }

        /// One character of a set.
        private mutating func member() -> UInt32? {
            if index < characters.count, characters[index] == Parser.backslash {
                index += 1
            }
            guard index < characters.count else { return nil }
            defer { index += 1 }
            return characters[index]
        }

        /// `[:digit:]` and its like, of ASCII.
        private mutating func namedClass() -> [ClosedRange<UInt32>]? {
            guard index + 1 < characters.count, characters[index] == Parser.open,
                characters[index + 1] == Parser.colon,
                let end = characters[(index + 2)...].firstIndex(of: Parser.colon),
                end + 1 < characters.count, characters[end + 1] == Parser.close
            else { return nil }
            let name = String(
                String.UnicodeScalarView(characters[(index + 2)..<end].compactMap { Unicode.Scalar($0) }))
            guard let ranges = Parser.classes[name] else { return nil }
            index = end + 2
            return ranges
        }

        private static let classes: [String: [ClosedRange<UInt32>]] = {
            let digit = UInt32(0x30)...0x39
            let upper = UInt32(0x41)...0x5A
            let lower = UInt32(0x61)...0x7A
            return [
                "digit": [digit], "upper": [upper], "lower": [lower], "alpha": [upper, lower],
                "alnum": [digit, upper, lower], "xdigit": [digit, 0x41...0x46, 0x61...0x66],
                "space": [9...13, 0x20...0x20], "blank": [9...9, 0x20...0x20], "cntrl": [0...31, 127...127],
                "punct": [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E], "graph": [0x21...0x7E],
                "print": [0x20...0x7E],
            ]
        }()
    }
}
