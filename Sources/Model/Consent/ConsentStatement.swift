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

    /// Reads the members of a data layer, where a purpose without a name stands for all that are not named.
    public init(layer members: [JSONValue.Member]) { read(members, ofLayer: true) }

    /// Takes what members say.
    private mutating func read(_ members: [JSONValue.Member], ofLayer: Bool = false) {
        // One part for all names with dots: a part for each would make hostile lines expensive.
        var dotted = Part()
        for member in members {
            if member.key == "consent" {
                var part = ConsentStatement.part(member.value)
                if ofLayer, let purposes = member.value.members {
                    part.others = part.named.removeValue(forKey: "")
                    // An older version stored what an app pushed under this name: that grants nothing.
                    if part.others == true, !purposes.contains(ConsentStatement.others(true)) {
                        part.others = nil
                    }
                }
                parts.append(part)
            } else if member.key.hasPrefix("consent.") {
                // A logger that writes paths with dots: `consent.analytics`.
                let purpose = String(member.key.dropFirst(8))
                guard !purpose.isEmpty else { continue }
                ConsentStatement.note(ConsentStatement.answer(member.value), for: purpose, in: &dotted)
            }
        }
        if !dotted.named.isEmpty {
            parts.append(dotted)
        }
    }

    /// Whether a member with this name says something about consent.
    public static func isMember(_ name: String) -> Bool { name == "consent" || name.hasPrefix("consent.") }

    /// Whether it says nothing about any purpose.
    public var isSilent: Bool { parts.allSatisfy { $0.others == nil && $0.named.isEmpty } }

    /// Whether it refuses a purpose.
    private var refuses: Bool { parts.contains { $0.others == false || $0.named.values.contains(false) } }

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

    // MARK: Data layers

    /// The member that refuses every purpose.
    public static var refusal: JSONValue.Member { .init("consent", false) }

    /// A layer's own answer for all purposes that are not named, under the empty name. A grant is a text, by
    /// which it differs from `true`, which an older version may have stored.
    private static func others(_ answer: Bool) -> JSONValue.Member {
        .init("", answer ? .string("granted") : .bool(false))
    }

    /// An answer as the members of an object, in which single purposes can be changed. The empty name stands
    /// for all purposes that are not named.
    public static func byPurpose(_ value: JSONValue) -> [JSONValue.Member] {
        if let members = value.members { return members }
        let part = part(value)
        return members(of: part)
    }

    private static func members(of part: Part) -> [JSONValue.Member] {
        (part.others.map { [others($0)] } ?? []) + part.named.map { .init($0.key, .bool($0.value)) }
    }

    /// Members that a line pushes: at most one says something about consent, `consent`, without null, which
    /// says nothing, and without the empty name, which is the layer's own.
    public static func pushed(_ members: [JSONValue.Member]) -> [JSONValue.Member] {
        guard members.contains(where: { isMember($0.key) }) else { return members }
        return settled(
            members.compactMap { member in
                guard isMember(member.key) else { return member }
                if member.value == .null { return nil }
                guard member.key == "consent", let purposes = member.value.members else { return member }
                let said = purposes.filter { !$0.key.isEmpty && $0.value != .null }
                return said.isEmpty ? nil : .init(member.key, .object(said))
            })
    }

    /// Members of which at most one says something about consent: the member `consent`, in which no purpose
    /// occurs twice. Where they differ, the refusal counts.
    public static func settled(_ members: [JSONValue.Member]) -> [JSONValue.Member] {
        let said = members.filter { isMember($0.key) }
        guard let first = said.first else { return members }
        let names = (first.value.members ?? []).map(\.key)
        let isSettled = said.count == 1 && first.key == "consent" && Set(names).count == names.count
        guard !isSettled else { return members }
        let parts = ConsentStatement(layer: said).parts
        let others = parts.compactMap(\.others)
        var all = Part(others: others.isEmpty ? nil : !others.contains(false))
        // By counting, not by `answer(for:)` for each name: there may be as many parts as names.
        let refusals = others.count { !$0 }
        var spared: [String: Int] = [:]
        for part in parts {
            for (name, answer) in part.named {
                note(answer, for: name, in: &all)
                spared[name, default: 0] += part.others == false ? 1 : 0
            }
        }
        for (name, count) in spared where count < refusals { all.named[name] = false }
        let rest = members.filter { !isMember($0.key) }
        guard all.named.isEmpty else { return rest + [.init("consent", .object(self.members(of: all)))] }
        return rest + (all.others.map { [.init("consent", .bool($0))] } ?? [])
    }

    /// The members of a layer after some were removed. If anything was removed from what they say about
    /// consent, and that refused a purpose, every purpose is refused: a refusal must not go.
    public static func afterRemoval(
        from members: [JSONValue.Member], leaving left: [JSONValue.Member]
    ) -> [JSONValue.Member] {
        let said = members.filter { isMember($0.key) }
        guard said != left.filter({ isMember($0.key) }), ConsentStatement(layer: said).refuses else {
            return left
        }
        return left.filter { !isMember($0.key) } + [refusal]
    }

    /// The members that stay when a layer is erased: those about consent. If the erased text is in them, too,
    /// a refusal of every purpose stays instead, or nothing if no purpose was refused.
    public static func kept(
        of members: [JSONValue.Member], erasing isFound: ([UInt8]) -> Bool
    ) -> [JSONValue.Member] {
        let said = members.filter { isMember($0.key) }
        guard isFound(Array(JSONValue.object(said).description.utf8)) else { return said }
        return afterRemoval(from: said, leaving: [])
    }

    /// Whether a line may have the member. Lines that have not, which are most, are not parsed.
    private static func mayMention(_ line: UnsafeRawBufferPointer) -> Bool {
        // In letters, or with escapes: the codes of all letters of `consent` begin with these digits.
        line.contains(run: "\"consent") || line.contains(run: "\\u006") || line.contains(run: "\\u007")
    }

    private static func part(_ value: JSONValue) -> Part {
        var part = Part()
        switch value {
        case .object(let members):
            for member in members { note(answer(member.value), for: member.key, in: &part) }
        case .array(let purposes):
            part.others = false
            for purpose in purposes {
                guard let name = purpose.string, !name.isEmpty else { continue }
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
            let offset = UnsafeRawPointer(hit) - base
            guard offset + wanted.count <= count else { return false }
            if memcmp(hit, text.utf8Start, wanted.count) == 0 { return true }
            from = offset + 1
        }
        return false
    }
}
