internal import Glibc

/// What an event says about consent: its member `consent`.
///
/// `{"analytics": true}` names purposes one by one, `true` and `false` answer for every purpose, and a list
/// names those that are consented to; all others are refused then. In texts, `granted` and `denied` count,
/// as in Google's consent mode. Any other value refuses: a typing mistake must not send what
/// a person refused. Null says nothing.
public struct ConsentStatement: Sendable, Equatable {
    /// What one member says.
    private struct Part: Sendable, Equatable {
        /// The answer for purposes that are not named; nil if nothing is said about them.
        var others: Bool?
        /// The answers for named purposes.
        var named: [String: Bool] = [:]
    }

    /// What each member says. Of different answers for a purpose the refusal counts, whatever their forms.
    private var parts: [Part] = []

    /// Says nothing.
    public init() {}

    /// Reads a line that is a JSON object, or any other text, which says nothing.
    public init(ofLine line: UnsafeRawBufferPointer) {
        guard ConsentStatement.mayMention(line), line.first == UInt8(ascii: "{") else { return }
        // Events may have numbers beyond a double and values in the 64th level, which this reader refuses.
        guard case .object(let members)? = try? JSONValue(parsing: Array(line)) else {
            parts = [Part(others: false)]
            return
        }
        read(members)
    }

    /// Reads the members of a data layer.
    public init(members: [JSONValue.Member]) { read(members) }

    /// Takes what members say.
    private mutating func read(_ members: [JSONValue.Member]) {
        // One part for all names with dots: a part for each would make hostile lines expensive.
        var dotted = Part()
        for member in members {
            if member.key == "consent" {
                parts.append(ConsentStatement.part(member.value))
            } else if member.key.hasPrefix("consent.") {
                // A logger that writes paths with dots: `consent.analytics`.
                ConsentStatement.note(
                    ConsentStatement.answer(member.value), for: String(member.key.dropFirst(8)), in: &dotted)
            }
        }
        if !dotted.named.isEmpty {
            parts.append(dotted)
        }
    }

    /// Whether a member with this name says something about consent.
    public static func isMember(_ name: String) -> Bool { name == "consent" || name.hasPrefix("consent.") }

    /// The answer for a purpose; nil if nothing was said.
    public func answer(for purpose: String) -> Bool? {
        var answer: Bool?
        for part in parts {
            guard let said = part.named[purpose] ?? part.others else { continue }
            answer = (answer ?? true) && said
        }
        return answer
    }

    /// This statement and another one: where they differ, the refusal counts.
    package func joined(with other: ConsentStatement?) -> ConsentStatement {
        var both = self
        both.parts += other?.parts ?? []
        return both
    }

    /// Whether a line may have the member. Lines that have not, which are most, are not parsed.
    private static func mayMention(_ line: UnsafeRawBufferPointer) -> Bool {
        // In letters, or with escapes: only \u can stand for a letter.
        line.contains(run: "\"consent") || line.contains(run: "\\u")
    }

    private static func part(_ value: JSONValue) -> Part {
        var part = Part()
        switch value {
        case .object(let members):
            for member in members { note(answer(member.value), for: member.key, in: &part) }
        case .array(let purposes):
            part.others = false
            for purpose in purposes {
                guard let name = purpose.string else { continue }
                note(true, for: name, in: &part)
            }
        default: part.others = answer(value)
        }
        return part
    }

    /// Notes an answer; of two different ones for a purpose the refusal counts.
    private static func note(_ answer: Bool?, for purpose: String, in part: inout Part) {
        guard let answer else { return }
        part.named[purpose] = (part.named[purpose] ?? true) && answer
    }

    private static func answer(_ value: JSONValue) -> Bool? {
        switch value {
        case .null: nil
        case .bool(let answer): answer
        case .string("granted"): true
        default: false
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes of a text are among these.
    fileprivate func contains(run text: StaticString) -> Bool {
        let wanted = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        guard let base = baseAddress, let first = wanted.first, count >= wanted.count else { return false }
        var from = 0
        while let hit = memchr(base + from, Int32(first), count - from) {
            let place = UnsafeRawPointer(hit) - base
            guard place + wanted.count <= count else { return false }
            if memcmp(hit, text.utf8Start, wanted.count) == 0 { return true }
            from = place + 1
        }
        return false
    }
}
