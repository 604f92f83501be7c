internal import Model

/// A condition for a command on stored events, written like the `when` of a rule: `properties.user ==
/// '4711'`.
///
/// An event is judged by the whole condition. A text that cannot be read as an event (a cut line, a
/// destination's answer) is judged by the condition's constant values: it matches if it mentions all values
/// that an alternative compares members with.
public struct EventCondition: Sendable {
    /// The condition as a rule of a container.
    private let container: CompiledContainer
    /// Values with which each alternative compares members, other than names of events and apps.
    private let values: [[MentionedValue]]

    /// Compiles a condition.
    ///
    /// - Throws: `WrittenRule.Mistake` with the column in the text.
    public init(_ text: String) throws(WrittenRule.Mistake) {
        let rule = WrittenRule(name: "condition", when: text, actions: [.init("discard", true)])
        guard let container = try WrittenRules.compile([rule], facts: AgentFacts()) else {
            throw WrittenRule.Mistake(message: "is empty")
        }
        self.container = container
        let members = container.document.macros.filter(\.isMember).map(\.name)
        values = container.document.rules.map { rule in
            rule.conditions.compactMap { condition in
                members.contains(condition.macro) ? MentionedValue(condition) : nil
            }
        }
    }

    /// Whether texts that are not events can be judged. A condition without a constant value matches no such
    /// text.
    public var namesValues: Bool { values.contains { !$0.isEmpty } }

    /// Makes a judge of events, for use by one thread. It says whether the condition holds for a line, which
    /// must be a JSON object. If a member's name occurs more than once, each of the values counts: another
    /// reader of the line may choose another one than the rules do.
    public func makeJudge() -> (_ line: UnsafeRawBufferPointer, _ app: String) -> Bool {
        let evaluation = Evaluation(container)
        // Without a constant value nothing can be searched for before the members are looked at.
        let namesAll = values.allSatisfy { !$0.isEmpty }
        return { line, app in
            func holds(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
                guard let base = line.baseAddress else { return false }
                evaluation.begin(
                    Evaluation.Subject(base: base, count: line.count), app: app, layer: nil,
                    results: { _ in .null },
                    random: { 0 })
                return evaluation.container.rules.indices.contains { evaluation.holds(rule: $0) }
            }
            if holds(line.bindMemory(to: UInt8.self)) { return true }
            let bytes = Array(line)
            guard !namesAll || isMentioned(in: bytes) else { return false }
            return DoubledMembers.contains(bytes, holds)
        }
    }

    /// Whether a text mentions the condition's values, written plainly or with the escapes of JSON, C, URLs
    /// or HTML.
    public func isMentioned(in text: [UInt8]) -> Bool {
        guard namesValues else { return false }
        return SpelledText.decodings(of: text).contains { text in
            values.contains { all in !all.isEmpty && all.allSatisfy { $0.isIn(text) } }
        }
    }
}

extension Macro {
    /// Whether the macro reads a member other than the event's name.
    fileprivate var isMember: Bool {
        switch kind {
        case .member(let path, _): path.names != ["name"]
        case .dataLayer: true
        default: false
        }
    }
}

/// A value that a text must contain to mention what a condition asks for.
private struct MentionedValue {
    /// The value as text.
    private let bytes: [UInt8]
    /// Whether capital and small letters are the same.
    private let ignoresCase: Bool

    /// The value of a condition; nil if the condition has no constant value, or holds for events without the
    /// value.
    init?(_ condition: Condition) {
        guard !condition.negate, case .constant(let value) = condition.comparand else { return nil }
        switch condition.predicate {
        case .equals, .contains, .startsWith, .endsWith: break
        case .matches, .less, .lessOrEqual, .greater, .greaterOrEqual: return nil
        }
        switch value {
        case .string(let text) where !text.isEmpty: bytes = Array(text.utf8)
        case .integer, .double: bytes = Array(value.description.utf8)
        default: return nil
        }
        ignoresCase = condition.ignoreCase
    }

    /// Whether the value is in a text.
    func isIn(_ text: [UInt8]) -> Bool {
        let wanted = ignoresCase ? String(decoding: bytes, as: UTF8.self).lowercased().utf8.map { $0 } : bytes
        let text = ignoresCase ? String(decoding: text, as: UTF8.self).lowercased().utf8.map { $0 } : text
        return text.withUnsafeBufferPointer { text in
            wanted.withUnsafeBufferPointer { text.contains(run: $0) }
        }
    }
}
