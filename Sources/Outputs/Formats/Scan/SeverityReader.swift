internal import Events
internal import Model

/// The severity of an event, found in its bytes.
struct FoundSeverity {
    let value: Severity
    /// The name or path that gave it.
    let path: EventName
    /// The event's own word for it; nil if it gave a number.
    let text: TextBytes?
}

/// Reads severities, and remembers the words that it has read: a log has few of them, and to look one up
/// costs more than all else about an event.
struct SeverityReader: ~Copyable {
    /// A word of at most eight bytes in a member.
    private struct Word: Equatable {
        let bytes: UInt64
        let count: Int
        let path: EventName
        /// Whether the number is on the scale of a GELF record.
        let isGELF: Bool
    }

    /// What a word means.
    private struct Meaning {
        let severity: Severity?
        /// Whether the word is a whole number.
        let isInteger: Bool
    }

    /// The ways to a severity, in order of precedence, with how to read each.
    private let paths: [(path: EventPath, reading: Severity.Reading)]
    /// The members that any of the ways begins with.
    private let names: EventNames
    /// Words that were read lately, by their hash.
    private var remembered: [(word: Word, meaning: Meaning)?] = Array(repeating: nil, count: 64)

    init() {
        paths = Severity.usualMembers.compactMap { text in
            EventPath(text).map { ($0, Severity.reading(of: text)) }
        }
        var names: EventNames = []
        for (path, _) in paths {
            names.insert(path.name)
            path.outer.map { names.insert($0) }
        }
        self.names = names
    }

    /// The severity of an event; nil if no member gives a known one.
    mutating func read(_ event: borrowing EventScan) -> FoundSeverity? {
        guard event.members.present.meets(names) else { return nil }
        for index in paths.indices {
            let name = paths[index].path.name
            guard event.members.present.contains(name) || paths[index].path.outer != nil else { continue }
            guard let value = event.value(at: paths[index].path), value.isString || value.isNumber else {
                continue
            }
            let words = value.words
            let meaning = meaning(of: words, name, paths[index].reading, event)
            guard let severity = meaning.severity else { continue }
            return FoundSeverity(
                value: severity, path: name, text: value.isString && !meaning.isInteger ? words : nil)
        }
        return nil
    }

    private mutating func meaning(
        of text: TextBytes, _ path: EventName, _ reading: Severity.Reading, _ event: borrowing EventScan
    ) -> Meaning {
        guard !text.isEscaped, text.count <= 8 else {
            return SeverityReader.meaning(of: text.string, reading, SeverityReader.isGELF(event))
        }
        let isGELF = reading == .level && text.count == 1 && SeverityReader.isGELF(event)
        var bytes: UInt64 = 0
        for index in 0..<text.count { bytes = bytes &<< 8 | UInt64(text.start[index]) }
        let word = Word(bytes: bytes, count: text.count, path: path, isGELF: isGELF)
        let hash = (bytes &+ UInt64(path.rawValue)) &* 0x9E37_79B9_7F4A_7C15
        let slot = Int(truncatingIfNeeded: hash &>> 58)
        if let known = remembered[slot], known.word == word { return known.meaning }
        let meaning = SeverityReader.meaning(of: text.string, reading, isGELF)
        remembered[slot] = (word, meaning)
        return meaning
    }

    private static func meaning(of text: String, _ reading: Severity.Reading, _ isGELF: Bool) -> Meaning {
        Meaning(severity: Severity(text: text, as: reading, isGELF: isGELF), isInteger: Int(text) != nil)
    }

    /// Whether the record is in Graylog's extended log format.
    private static func isGELF(_ event: borrowing EventScan) -> Bool {
        Severity.isGELF(version: event[.version]?.text?.string)
    }
}
