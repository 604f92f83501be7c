public import Model

/// An action on an event, done if one of the tag's rules holds and none of its blocking rules does.
public struct Tag: Sendable, Equatable {
    /// Name, unique in its document.
    public let name: String
    /// Names of the rules, at least one. The tag fires if one of them holds.
    public let rules: [String]
    /// Names of the blocking rules. The tag does not fire while one of them holds.
    public let blockingRules: [String]
    /// What the tag does.
    package let action: Action

    /// The kinds of actions. Tags act in order, and each sees the event as those before it left it.
    public enum Action: Sendable, Equatable {
        /// Sends the event to these destinations only. The lists of several tags are joined.
        case ship(destinations: [String])
        /// Discards the event. No later tag acts.
        case discard
        /// Keeps this share of the events (0 to 1). Events with the same key are kept or discarded together.
        case sample(rate: Double, key: Operand?)
        /// Gives a member a value, and makes the objects on its path.
        case set(path: MemberPath, value: Operand)
        /// Renames a member where it is. Another member that has the new name is removed.
        case rename(path: MemberPath, to: String)
        /// Removes members from the event. The agent's own copies may still have them: `redact` hides members
        /// there too.
        case remove(paths: [MemberPath])
        /// Removes members, or replaces them by a text, in the event and in all that the agent keeps.
        case redact(paths: [MemberPath], with: String?)
        /// Replaces what patterns match in texts, at any depth in the members, by another text.
        case scrub(paths: [MemberPath], patterns: [String], with: String)
        /// Replaces members by digests: with the machine's key, or, as in older documents, with a salt.
        case hash(paths: [MemberPath], salt: String?)
        /// Sets the priority.
        case prioritise(Priority)
        /// Keeps at most `events` events in `seconds` seconds, for each key.
        case throttle(events: Int, seconds: Int, key: Operand?)
        /// Calls a function when the event is durable.
        case function(name: String, parameters: [Value], by: FunctionHome)
    }
}

extension Tag {
    /// The words for actions, with their members.
    private static let types: [(name: String, members: [String])] = [
        ("ship", ["destinations"]), ("discard", []), ("sample", ["rate", "key"]), ("set", ["path", "value"]),
        ("rename", ["path", "to"]), ("remove", ["paths"]), ("redact", ["paths", "with", "pattern"]),
        ("hash", ["paths", "salt"]),
        ("prioritise", ["priority"]), ("throttle", ["events", "seconds", "key"]),
        ("function", ["function", "parameters", "by"]),
    ]

    /// Reads a tag.
    init(reading node: DocumentNode) throws(ContainerError) {
        let word = try node.type()
        guard let type = Tag.types.first(where: { $0.name == word }) else {
            let known = Tag.types.map(\.name).joined(separator: ", ")
            throw node.error("there is no tag type \(quoted(word)); known are \(known)")
        }
        let members = try node.members(
            known: ["name", "type", "rules", "blocking_rules", "when", "description"] + type.members)
        switch word {
        case "ship": action = .ship(destinations: try members.required("destinations").names(atLeast: 1))
        case "sample":
            action = .sample(
                rate: try members.required("rate").number(0...1), key: try members.optional("key")?.operand())
        case "set":
            action = .set(
                path: try members.required("path").memberPath(),
                value: try members.required("value").operand())
        case "rename":
            action = .rename(
                path: try members.required("path").memberPath(), to: try members.required("to").name())
        case "remove": action = .remove(paths: try members.required("paths").memberPaths())
        case "redact":
            let text = try members.optional("with")?.text()
            if let pattern = members.optional("pattern") {
                if text == "" { throw node.error("with must not be empty beside a pattern") }
                action = .scrub(
                    paths: try members.optional("paths")?.memberPaths() ?? [MemberPath(names: ["**"])],
                    patterns: try pattern.patterns(), with: text ?? "[redacted]")
            } else {
                action = .redact(paths: try members.required("paths").memberPaths(), with: text)
            }
        case "hash":
            action = .hash(
                paths: try members.required("paths").memberPaths(), salt: try members.optional("salt")?.text()
            )
        case "prioritise": action = .prioritise(try members.required("priority").priority())
        case "throttle":
            action = .throttle(
                events: try members.required("events").integer(1...1_000_000),
                seconds: try members.required("seconds").integer(1...86_400),
                key: try members.optional("key")?.operand())
        case "function":
            action = .function(
                name: try members.required("function").name(),
                parameters: try members.optional("parameters")?.values(limit: DocumentLimits.parameters)
                    ?? [],
                by: try members.functionHome())
        default: action = .discard
        }
        try Tag.check(action, node)
        name = try members.required("name").name()
        // The expression becomes a rule with the tag's name.
        if members.optional("when") != nil {
            guard members.optional("rules") == nil else {
                throw node.error("has when and rules; write one of them")
            }
            rules = [name]
        } else {
            rules = try members.required("rules").names(atLeast: 1)
        }
        blockingRules = try members.optional("blocking_rules")?.names() ?? []
    }

    /// Checks that an action leaves an event's name a text that is not empty, and its id unchanged: a line
    /// without a name is not an event, and receivers recognise a repeated event by its id.
    private static func check(_ action: Action, _ node: DocumentNode) throws(ContainerError) {
        let changed: [MemberPath]
        var mayTakeName = false
        switch action {
        case .set(let path, let value):
            changed = [path]
            mayTakeName = value.mayBeName
        case .rename(let path, let name):
            changed = [path, MemberPath(names: path.names.dropLast() + [name])]
        case .remove(let paths): changed = paths
        case .redact(let paths, let text):
            changed = paths
            mayTakeName = text.map { !$0.isEmpty } ?? false
        case .hash(let paths, _), .scrub(let paths, _, _):
            changed = paths
            mayTakeName = true
        default: return
        }
        for path in changed where path.names.count == 1 {
            if path.names[0] == "id" { throw node.error("an event's id cannot be changed") }
            if path.names[0] == "name", !mayTakeName {
                throw node.error("an event's name must stay a text, not empty")
            }
        }
    }
}

extension Operand {
    /// Whether the value can be a name. That of a macro is only known with an event.
    fileprivate var mayBeName: Bool {
        switch self {
        case .constant(.string(let text)): !text.isEmpty
        case .constant: false
        case .macro: true
        }
    }
}

extension DocumentNode {
    /// A list of patterns, or one.
    func patterns() throws(ContainerError) -> [String] {
        let nodes = value.string == nil ? try elements(limit: DocumentLimits.parameters) : [self]
        let patterns = try nodes.map { node throws(ContainerError) in
            try node.text(limit: DocumentLimits.expressionBytes)
        }
        guard patterns.allSatisfy({ !$0.isEmpty }), !patterns.isEmpty else {
            throw error("must name at least one pattern")
        }
        return patterns
    }

    /// A list of paths, at least one.
    func memberPaths() throws(ContainerError) -> [MemberPath] {
        let paths = try elements(limit: DocumentLimits.parameters).map { node throws(ContainerError) in
            try node.memberPath()
        }
        guard !paths.isEmpty else { throw error("must name at least one member") }
        return paths
    }
}
