internal import CRE2

/// A pattern that needs no automaton: characters, and runs of characters of a class (`\S+`, `[^"]*`), each
/// ended by a character that is not of its class, with groups around them.
///
/// So there is one way to match, and a look at each byte finds it. RE2 keeps all places at which groups may
/// begin and end for such a pattern, if it has more than four groups: twenty times the work. Most patterns of
/// log lines are plain.
///
/// Only a match counts. A text that does not match, or has characters beyond ASCII, is for RE2 to decide, so
/// both cannot differ in what is no match.
final class PlainPattern: Sendable {
    /// What is matched next.
    private enum Step: Sendable {
        /// One byte of a class.
        case one(of: Int)
        /// As many bytes of a class as there are.
        case run(of: Int, atLeastOne: Bool)
        /// A group begins or ends here.
        case open(Int)
        case close(Int)
        /// The end of the text.
        case end
    }

    /// The classes: for each byte 1 if it belongs to the class, 256 bytes a class.
    private let classes: [UInt8]
    /// The steps in their order.
    private let steps: [Step]

    /// Most steps: a longer pattern is left to RE2.
    private static let mostSteps = 256

    /// Reads an expression.
    ///
    /// - Returns: nil if it is not plain, or is not known to be.
    init?(_ text: String) {
        var reader = Reader(text: Array(text.utf8))
        guard reader.read() else { return nil }
        classes = reader.classes.flatMap { $0 }
        steps = reader.steps
    }

    /// Matches a text.
    ///
    /// - Parameter places: gets the place of each group; as many as the expression has groups.
    /// - Returns: false if the text does not match, or has a byte beyond ASCII where one matters.
    func match(_ text: Bytes, _ places: UnsafeMutablePointer<cre2_range>) -> Bool {
        classes.withUnsafeBufferPointer { classes in
            steps.withUnsafeBufferPointer { steps in
                guard let table = classes.baseAddress else { return false }
                var p = text.start
                let end = text.end
                for step in steps {
                    switch step {
                    case .one(let index):
                        guard p < end, table[index << 8 | Int(p.pointee)] != 0 else { return false }
                        p += 1
                    case .run(let index, let atLeastOne):
                        let first = p
                        let members = table + index << 8
                        while p < end, members[Int(p.pointee)] != 0 { p += 1 }
                        if atLeastOne, p == first { return false }
                        if p < end, p.pointee >= 0x80 { return false }
                    case .open(let group): places[group].start = Int64(p - text.start)
                    case .close(let group):
                        places[group].length = Int64(p - text.start) - places[group].start
                    case .end:
                        guard p == end else { return false }
                    }
                }
                return true
            }
        }
    }

    // MARK: Reading an expression

    /// Reads the subset of RE2's syntax that is plain.
    private struct Reader {
        /// The expression.
        let text: [UInt8]
        /// Offset of the next byte.
        var index = 0
        /// The classes so far.
        var classes: [[UInt8]] = []
        /// The steps so far.
        var steps: [Step] = []
        /// Groups that are open: their numbers, or nil for one that is not captured.
        private var open: [Int?] = []
        /// Number of captured groups so far.
        private var groups = 0

        init(text: [UInt8]) { self.text = text }

        /// The next byte; 0 at the end, which no plain expression contains.
        private var next: UInt8 { index < text.count ? text[index] : 0 }

        /// Steps over a text, if it is next.
        private mutating func skip(_ word: String) -> Bool {
            guard text[index...].starts(with: word.utf8) else { return false }
            index += word.utf8.count
            return true
        }

        /// Reads the whole expression; false if it is not plain.
        mutating func read() -> Bool {
            guard text.allSatisfy({ $0 >= 0x20 && $0 < 0x80 }), skip("^") else { return false }
            while index < text.count {
                guard steps.count < PlainPattern.mostSteps, readPart() else { return false }
            }
            return open.isEmpty && steps.indices.allSatisfy { isUnique($0) }
        }

        /// Reads a group's beginning or end, or a character or class with its repetition.
        private mutating func readPart() -> Bool {
            switch next {
            case UInt8(ascii: "("):
                index += 1
                return openGroup()
            case UInt8(ascii: ")"):
                index += 1
                guard let group = open.popLast() else { return false }
                if let group {
                    steps.append(.close(group))
                }
                // A group that is repeated is matched several times.
                return !isRepetition
            case UInt8(ascii: "$"):
                index += 1
                steps.append(.end)
                return index == text.count
            case UInt8(ascii: "^"), UInt8(ascii: "|"), UInt8(ascii: "*"), UInt8(ascii: "+"),
                UInt8(ascii: "?"), UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "]"):
                return false
            default:
                guard let members = readClass() else { return false }
                return repeated(members)
            }
        }

        /// Whether a repetition is next.
        private var isRepetition: Bool {
            switch next {
            case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"): true
            default: false
            }
        }

        /// Reads what follows the parenthesis of a group.
        private mutating func openGroup() -> Bool {
            if skip("?:") {
                open.append(nil)
                return true
            }
            if skip("?P<") {
                let start = index
                while index < text.count, next != UInt8(ascii: ">") { index += 1 }
                guard index > start, skip(">") else { return false }
            } else if next == UInt8(ascii: "?") {
                // Flags, which change what the rest means.
                return false
            }
            open.append(groups)
            steps.append(.open(groups))
            groups += 1
            return true
        }

        /// Adds a class, once or as a run.
        private mutating func repeated(_ members: [UInt8]) -> Bool {
            let number = classes.firstIndex(of: members) ?? classes.count
            if number == classes.count {
                classes.append(members)
            }
            switch next {
            case UInt8(ascii: "+"): steps.append(.run(of: number, atLeastOne: true))
            case UInt8(ascii: "*"): steps.append(.run(of: number, atLeastOne: false))
            case UInt8(ascii: "?"), UInt8(ascii: "{"): return false
            default:
                steps.append(.one(of: number))
                return true
            }
            index += 1
            // `+?` takes as few as possible.
            return !isRepetition
        }

        /// Whether no other number of bytes could be in a run: what may follow it is not of its class.
        private func isUnique(_ index: Int) -> Bool {
            guard case .run(let number, _) = steps[index] else { return true }
            for step in steps[(index + 1)...] {
                switch step {
                case .open, .close: continue
                case .end: return true
                case .one(let other): return areDisjoint(number, other)
                case .run(let other, let atLeastOne):
                    guard areDisjoint(number, other) else { return false }
                    if atLeastOne { return true }
                }
            }
            return true
        }

        /// Whether two classes have no byte in common.
        private func areDisjoint(_ one: Int, _ other: Int) -> Bool {
            zip(classes[one], classes[other]).allSatisfy { $0 == 0 || $1 == 0 }
        }

        // MARK: Classes

        /// Reads a character, an escape or a class in brackets; nil if it is not plain.
        private mutating func readClass() -> [UInt8]? {
            let byte = next
            index += 1
            switch byte {
            case UInt8(ascii: "."): return Reader.all
            case UInt8(ascii: "\\"): return readEscape()
            case UInt8(ascii: "["): return readBrackets()
            default: return Reader.only(byte)
            }
        }

        /// Reads what follows a backslash.
        private mutating func readEscape() -> [UInt8]? {
            let byte = next
            index += 1
            switch byte {
            case UInt8(ascii: "s"): return Reader.space
            case UInt8(ascii: "S"): return Reader.complement(of: Reader.space)
            case UInt8(ascii: "d"): return Reader.digit
            case UInt8(ascii: "D"): return Reader.complement(of: Reader.digit)
            case UInt8(ascii: "w"): return Reader.word
            case UInt8(ascii: "W"): return Reader.complement(of: Reader.word)
            case UInt8(ascii: "t"): return Reader.only(0x09)
            default:
                // Before a sign a backslash takes its meaning away; other letters and digits have meanings.
                guard byte > 0x20, byte < 0x7F, Reader.word[Int(byte)] == 0 else { return nil }
                return Reader.only(byte)
            }
        }

        /// Reads a class after its bracket.
        private mutating func readBrackets() -> [UInt8]? {
            let isNegated = skip("^")
            var members = [UInt8](repeating: 0, count: 256)
            var isEmpty = true
            while next != UInt8(ascii: "]") {
                // Classes with names, and signs whose meaning depends on their place.
                guard index < text.count, next != UInt8(ascii: "["), next != UInt8(ascii: "-"),
                    next != UInt8(ascii: "^")
                else { return nil }
                let byte = next
                index += 1
                var found = byte == UInt8(ascii: "\\") ? readEscape() : Reader.only(byte)
                if next == UInt8(ascii: "-") {
                    index += 1
                    let last = next
                    index += 1
                    // A range of letters or of digits; `-` at the end is a sign.
                    if last == UInt8(ascii: "]"), byte != UInt8(ascii: "\\") {
                        index -= 1
                        members[Int(UInt8(ascii: "-"))] = 1
                    } else {
                        guard Reader.word[Int(byte)] != 0, Reader.word[Int(last)] != 0, byte <= last else {
                            return nil
                        }
                        found = Reader.of { $0 >= byte && $0 <= last }
                    }
                }
                guard let found else { return nil }
                for byte in 0..<256 where found[byte] != 0 { members[byte] = 1 }
                isEmpty = false
            }
            index += 1
            guard !isEmpty else { return nil }
            return isNegated ? Reader.complement(of: members) : members
        }

        /// The class of the bytes of ASCII that fulfil a condition.
        private static func of(_ isMember: (UInt8) -> Bool) -> [UInt8] {
            (0...255).map { $0 < 0x80 && isMember($0) ? 1 : 0 }
        }

        private static func only(_ byte: UInt8) -> [UInt8] { of { $0 == byte } }
        private static func complement(of members: [UInt8]) -> [UInt8] { of { members[Int($0)] == 0 } }

        private static let all = of { _ in true }
        private static let digit = of { $0 &- 0x30 < 10 }
        private static let word = of { $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 26 || $0 == 0x5F }
        /// What RE2 takes for white space: no vertical tab.
        private static let space = of { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0C || $0 == 0x0D }
    }
}
