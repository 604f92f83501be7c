internal import Glibc

/// What an event says about consent: its member `consent`.
///
/// `{"analytics": true}` names purposes one by one, `true` and `false` answer for every purpose, and a list
/// names those that are consented to; all others are refused then. In texts, `granted` and `denied` count,
/// as in Google's consent mode. Any other value refuses: a typing mistake must not send what
/// a person refused. Null says nothing.
public struct ConsentStatement: Sendable, Equatable {
    /// The answer for purposes that are not named; nil if the event says nothing about them.
    private var others: Bool?
    /// The answers for named purposes.
    private var named: [String: Bool] = [:]

    /// Says nothing.
    public init() {}

    /// Reads a line that is a JSON object, or any other text, which says nothing.
    public init(ofLine line: UnsafeRawBufferPointer) {
        guard ConsentStatement.mayMention(line), let object = try? JSONValue(parsing: Array(line)),
            case .object(let members) = object
        else { return }
        for member in members {
            if member.key == "consent" {
                read(member.value)
            } else if member.key.hasPrefix("consent.") {
                // A logger that writes paths with dots: `consent.analytics`.
                note(ConsentStatement.answer(member.value), for: String(member.key.dropFirst(8)))
            }
        }
    }

    /// The answer for a purpose; nil if nothing was said.
    public func answer(for purpose: String) -> Bool? { named[purpose] ?? others }

    /// Whether a line may have the member. Lines that have not, which are most, are not parsed.
    private static func mayMention(_ line: UnsafeRawBufferPointer) -> Bool {
        // In letters, or with escapes: only \u can stand for a letter.
        line.contains(run: "\"consent") || line.contains(run: "\\u")
    }

    private mutating func read(_ value: JSONValue) {
        switch value {
        case .object(let members):
            for member in members { note(ConsentStatement.answer(member.value), for: member.key) }
        case .array(let purposes):
            others = false
            for purpose in purposes {
                guard let name = purpose.string else { continue }
                note(true, for: name)
            }
        default:
            guard let answer = ConsentStatement.answer(value) else { return }
            others = (others ?? true) && answer
        }
    }

    /// Notes an answer; of two different ones for a purpose the refusal counts.
    private mutating func note(_ answer: Bool?, for purpose: String) {
        guard let answer else { return }
        named[purpose] = (named[purpose] ?? true) && answer
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
