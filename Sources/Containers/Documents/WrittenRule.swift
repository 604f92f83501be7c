public import Model

/// A rule as the configuration file has it: a condition and actions. Each action becomes a tag, so that rules
/// of the file and of documents are applied by the same engine.
public struct WrittenRule: Sendable, Equatable {
    /// Name, unique in the file. Discarded events are counted under it in the ledger.
    public var name: String
    /// The condition as an expression; nil if the rule always applies.
    public var when: String?
    /// Name of the value by which `sample` and `throttle` tell events apart; nil for all events together.
    public var by: String?
    /// The actions by their keys in the file, with their values.
    public var actions: [JSONValue.Member]

    /// A rule; the order of `actions` does not matter.
    public init(name: String, when: String? = nil, by: String? = nil, actions: [JSONValue.Member]) {
        self.name = name
        self.when = when
        self.by = by
        self.actions = actions
    }

    /// Id of the document that the file's rules become. Their reasons in the ledger begin with it:
    /// `rule/NAME`.
    public static let documentID = "rule"

    /// A mistake in the rules of a file.
    public struct Mistake: Error, Sendable, Equatable {
        /// Index of the rule; nil for all rules together.
        public var rule: Int?
        /// Key in the rule, as `when`; nil for the rule as a whole.
        public var key: String?
        /// Column in the key's text, in characters from 1; nil if the mistake concerns the whole text.
        public var column: Int?
        /// What is wrong and what to do, without the rule's name and index.
        public var message: String
        /// Whether the rules can be used nevertheless.
        public var isWarning = false
    }

    /// Keys of actions in the order in which they are done: a member is hidden before it is renamed, so that
    /// paths mean the members that the app wrote.
    public static let actionKeys = [
        "discard", "sample", "throttle", "hash", "redact", "remove", "rename", "set", "priority", "send_to",
    ]
}

/// Compiles and checks the rules of a configuration.
public enum WrittenRules {
    /// The rules as one container, in their order; nil for no rules.
    ///
    /// - Throws: the first mistake.
    public static func compile(
        _ written: [WrittenRule], facts: AgentFacts
    ) throws(WrittenRule.Mistake) -> CompiledContainer? {
        guard !written.isEmpty else { return nil }
        return try compile(try WrittenRuleDraft(written), facts)
    }

    /// Compiles a draft; errors of the document become mistakes of the file.
    private static func compile(
        _ draft: WrittenRuleDraft, _ facts: AgentFacts
    ) throws(WrittenRule.Mistake) -> CompiledContainer {
        do throws(ContainerError) {
            let document = try ContainerDocument(macros: draft.macros, rules: draft.rules, tags: draft.tags)
            return try CompiledContainer(document, facts: facts)
        } catch {
            throw draft.mistake(error)
        }
    }

    /// All mistakes: for each rule the first one, then those of the rules together.
    public static func mistakes(of written: [WrittenRule], facts: AgentFacts) -> [WrittenRule.Mistake] {
        var found: [WrittenRule.Mistake] = []
        var good: [WrittenRule] = []
        var indices: [Int] = []
        for (index, rule) in written.enumerated() {
            do throws(WrittenRule.Mistake) {
                _ = try compile([rule], facts: facts)
                good.append(rule)
                indices.append(index)
            } catch {
                found.append(error.moved(to: index))
            }
        }
        guard !good.isEmpty else { return found }
        do throws(WrittenRule.Mistake) {
            let draft = try WrittenRuleDraft(good)
            for finding in try compile(draft, facts).findings {
                var mistake = draft.mistake(ContainerError(.form, at: finding.path, finding.message))
                mistake.isWarning = !finding.isMistake
                found.append(mistake.moved(to: mistake.rule.map { indices[$0] }))
            }
        } catch {
            found.append(error.moved(to: error.rule.map { indices[$0] }))
        }
        return found
    }
}

extension WrittenRule.Mistake {
    /// The mistake at the index of a rule in the file.
    fileprivate func moved(to index: Int?) -> WrittenRule.Mistake {
        var mistake = self
        mistake.rule = index
        return mistake
    }
}

/// The document that rules of a configuration become, while it is built.
private struct WrittenRuleDraft {
    /// Macros that stand for paths in expressions.
    private(set) var macros: [Macro] = []
    /// The rules; alternatives share a name.
    private(set) var rules: [Rule] = []
    /// The tags, in the order in which they act.
    private(set) var tags: [Tag] = []
    /// Index of the rule and key of the action that each tag was made of. Turns a mistake in the document
    /// into one of the configuration.
    private var origins: [(rule: Int, key: String)] = []

    /// Makes a container document of the rules, so that the engine treats `[[rule]]` and containers alike.
    init(_ written: [WrittenRule]) throws(WrittenRule.Mistake) {
        for (index, rule) in written.enumerated() {
            do throws(ContainerError) { try add(rule, index) } catch { throw mistake(error) }
        }
    }

    /// Adds a rule: its condition, and a tag for each action.
    private mutating func add(_ rule: WrittenRule, _ index: Int) throws(ContainerError) {
        func node(_ key: String, _ value: JSONValue) -> DocumentNode {
            DocumentNode(value: value, path: "\(index).\(key)")
        }
        try node("name", .string(rule.name)).checkName(rule.name)
        guard !rules.contains(where: { $0.name == rule.name }) else {
            throw node("name", .null).error("is the name of an earlier rule; give this one another name")
        }
        guard !rule.actions.isEmpty else {
            throw DocumentNode(value: .null, path: "\(index)").error(
                "does nothing; add an action: \(WrittenRule.actionKeys.joined(separator: ", "))")
        }
        if rule.actions.count > 1, rule.actions.contains(where: { $0.key == "discard" }) {
            throw node("discard", .null).error("leaves nothing for the other actions; make two rules")
        }
        if rule.by != nil, !rule.actions.contains(where: { $0.key == "sample" || $0.key == "throttle" }) {
            throw node("by", .null).error("is for sample and throttle only")
        }
        if let when = rule.when {
            rules += try Rule.alternatives(
                name: rule.name, when: node("when", .string(when)), path: "\(index)", macros: &macros,
                in: .configuration)
        } else {
            rules.append(Rule(name: rule.name, conditions: [], path: "\(index)"))
        }
        let key = try rule.by.map { by throws(ContainerError) -> JSONValue in
            [
                "macro": .string(
                    try WhenExpression.macro(
                        named: node("by", .string(by)), macros: &macros, in: .configuration))
            ]
        }
        for name in WrittenRule.actionKeys {
            guard let value = rule.actions.first(where: { $0.key == name })?.value else { continue }
            for (number, members) in try WrittenRuleDraft.tags(name, node(name, value), key).enumerated() {
                let tag = number == 0 ? "\(rule.name)/\(name)" : "\(rule.name)/\(name) \(number + 1)"
                let head: [JSONValue.Member] = [.init("name", "x"), .init("rules", [.string(rule.name)])]
                let read = try Tag(reading: node(name, .object(head + members)))
                tags.append(Tag(name: tag, rules: read.rules, blockingRules: [], action: read.action))
                origins.append((index, name))
            }
        }
    }

    /// The members of the tags that an action stands for, without name and rules. `set` and `rename` have a
    /// tag for each member.
    private static func tags(
        _ name: String, _ node: DocumentNode, _ key: JSONValue?
    ) throws(ContainerError) -> [[JSONValue.Member]] {
        func tag(_ type: String, _ members: (String, JSONValue?)...) -> [JSONValue.Member] {
            [.init("type", .string(type))]
                + members.compactMap { name, value in value.map { JSONValue.Member(name, $0) } }
        }
        switch name {
        case "discard": return [tag("discard")]
        case "sample": return [tag("sample", ("rate", node.value), ("key", key))]
        case "throttle":
            return [
                tag(
                    "throttle", ("events", node.value["events"]), ("seconds", node.value["seconds"]),
                    ("key", key))
            ]
        case "set":
            return leaves(of: node.value).map { tag("set", ("path", .string($0.path)), ("value", $0.value)) }
        case "rename":
            return try leaves(of: node.value).map { path, value throws(ContainerError) in
                tag(
                    "rename", ("path", .string(path)),
                    ("to", .string(try WrittenRuleDraft.name(value, inPlaceOf: path, node))))
            }
        case "remove": return [tag("remove", ("paths", node.value))]
        case "hash": return [tag("hash", ("paths", node.value))]
        case "redact":
            guard node.value.array == nil else {
                try refusePatterns(node)
                return [tag("redact", ("paths", node.value))]
            }
            return [
                tag(
                    "redact", ("paths", node.value["paths"]), ("pattern", node.value["patterns"]),
                    ("with", node.value["with"]))
            ]
        case "priority": return [tag("prioritise", ("priority", node.value))]
        default: return [tag("ship", ("destinations", node.value))]
        }
    }

    /// The values in nested objects, each with its path. An empty object is a value.
    private static func leaves(of value: JSONValue) -> [(path: String, value: JSONValue)] {
        func leaves(_ value: JSONValue, _ path: [String]) -> [(String, JSONValue)] {
            guard let members = value.members, !members.isEmpty else {
                return [(path.joined(separator: "."), value)]
            }
            return members.flatMap { leaves($0.value, path + [$0.key]) }
        }
        return (value.members ?? []).flatMap { leaves($0.value, [$0.key]) }
    }

    /// The new name of a member. It may be written with the objects that the member is in, but they must be
    /// the same.
    private static func name(
        _ value: JSONValue, inPlaceOf path: String, _ node: DocumentNode
    ) throws(ContainerError) -> String {
        guard let text = value.string else {
            throw node.error("needs a new name as a text for \(quoted(path))")
        }
        let holder = path.lastIndex(of: ".").map { String(path[...$0]) } ?? ""
        let name = text.hasPrefix(holder) ? String(text.dropFirst(holder.count)) : text
        guard !name.contains("."), !name.isEmpty else {
            throw node.error(
                "cannot move \(quoted(path)) to \(quoted(text)): a member is renamed where it is")
        }
        return name
    }

    /// Refuses a list of members that has the name of a ready pattern: the author may have meant the pattern.
    private static func refusePatterns(_ node: DocumentNode) throws(ContainerError) {
        for text in (node.value.array ?? []).compactMap(\.string)
        where TextPattern.Ready(rawValue: text) != nil {
            throw node.error(
                "\(quoted(text)) is a member here; write { patterns = [\(quoted(text))] } for what looks "
                    + "like one in any text, { paths = [\(quoted(text))] } for the member")
        }
    }

    /// Translates an error of the document to the rule and key in the file.
    func mistake(_ error: ContainerError) -> WrittenRule.Mistake {
        var parts = error.path.split(separator: ".").map(String.init)
        var mistake = WrittenRule.Mistake(column: error.column, message: error.message)
        // The column is a field of the mistake, so it is removed from the text.
        if let column = error.column {
            mistake.message = String(error.message.dropFirst("column \(column): ".count))
        }
        guard let first = parts.first else { return mistake }
        if first.hasPrefix("tags["), let index = Int(first.dropFirst(5).dropLast()), index < origins.count {
            mistake.rule = origins[index].rule
            mistake.key = parts.dropFirst().first == "rules" ? "when" : origins[index].key
        } else if let index = Int(first) {
            parts.removeFirst()
            mistake.rule = index
            mistake.key = parts.first.map { String($0.prefix { $0 != "[" }) }
        }
        return mistake
    }
}
