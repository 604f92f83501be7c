public import Model

/// What happens to an event when one of its rules holds and none of its blocking rules does (tm15).
public struct Tag: Sendable, Equatable {
    /// Its name, unique in its document.
    public let name: String
    /// It fires when one of them holds; at least one.
    public let rules: [String]
    /// It does not fire while one of them holds.
    public let blockingRules: [String]
    package let action: Action

    /// What a tag does. Tags act in order; each sees the event as those before left it.
    public enum Action: Sendable, Equatable {
        /// The event goes to these destinations only; what several tags name adds up.
        case ship(destinations: [String])
        /// The event is discarded, and nothing after it happens.
        case discard
        /// Only that share of the events is kept (0…1), the same ones for the same key.
        case sample(rate: Double, key: Operand?)
        /// A member gets a value; objects on the way are made.
        case set(path: MemberPath, value: Operand)
        /// A member gets another name in its place; a member that had it goes.
        case rename(path: MemberPath, to: String)
        /// Members are taken out, or replaced by a text.
        case redact(paths: [MemberPath], with: String?)
        /// What patterns find in texts of members, however deep, becomes another text.
        case scrub(paths: [MemberPath], patterns: [String], with: String)
        /// Members are replaced by digests: with the machine's key, or, the old way, by a salt.
        case hash(paths: [MemberPath], salt: String?)
        case prioritise(Priority)
        /// At most so many events in so many seconds are kept, for each key of its own.
        case throttle(events: Int, seconds: Int, key: Operand?)
        /// A function is called once the event is durable.
        case function(name: String, parameters: [Value])
    }
}

extension Tag {
    private static let types: [(name: String, members: [String])] = [
        ("ship", ["destinations"]), ("discard", []), ("sample", ["rate", "key"]), ("set", ["path", "value"]),
        ("rename", ["path", "to"]), ("redact", ["paths", "with", "pattern"]), ("hash", ["paths", "salt"]),
        ("prioritise", ["priority"]), ("throttle", ["events", "seconds", "key"]),
        ("function", ["function", "parameters"]),
    ]

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
                path: try members.required("path").memberPath(), value: try members.required("value").operand())
        case "rename":
            action = .rename(path: try members.required("path").memberPath(), to: try members.required("to").name())
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
                paths: try members.required("paths").memberPaths(), salt: try members.optional("salt")?.text())
        case "prioritise": action = .prioritise(try members.required("priority").priority())
        case "throttle":
            action = .throttle(
                events: try members.required("events").integer(1...1_000_000),
                seconds: try members.required("seconds").integer(1...86_400),
                key: try members.optional("key")?.operand())
        case "function":
            action = .function(
                name: try members.required("function").name(),
                parameters: try members.optional("parameters")?.values(limit: DocumentLimits.parameters) ?? [])
        default: action = .discard
        }
        try Tag.check(action, node)
        name = try members.required("name").name()
        // An expression is a rule of the tag's name.
        if members.optional("when") != nil {
            guard members.optional("rules") == nil else { throw node.error("has when and rules; write one of them") }
            rules = [name]
        } else {
            rules = try members.required("rules").names(atLeast: 1)
        }
        blockingRules = try members.optional("blocking_rules")?.names() ?? []
    }

    /// An event without its name would be none, and its id is what receivers know it by when it comes twice.
    private static func check(_ action: Action, _ node: DocumentNode) throws(ContainerError) {
        let changed: [MemberPath]
        var mayTakeName = false
        switch action {
        case .set(let path, let value):
            changed = [path]
            mayTakeName = value.mayBeName
        case .rename(let path, let name):
            changed = [path, MemberPath(names: path.names.dropLast() + [name])]
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
            if path.names[0] == "name", !mayTakeName { throw node.error("an event's name must stay a text, not empty") }
        }
    }
}

extension Operand {
    fileprivate var mayBeName: Bool {
        switch self {
        case .constant(.string(let text)): !text.isEmpty
        case .constant: false
        case .macro: true
        }
    }
}

extension DocumentNode {
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

    func memberPaths() throws(ContainerError) -> [MemberPath] {
        let paths = try elements(limit: DocumentLimits.parameters).map { node throws(ContainerError) in
            try node.memberPath()
        }
        guard !paths.isEmpty else { throw error("must name at least one member") }
        return paths
    }
}
