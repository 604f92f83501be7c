package import Model

/// `[[rule]]`: what happens to events for which a condition holds. Each action is a property that is nil if
/// it is not set; the engine of `Containers` gets them by their keys (`WrittenRule`).
public struct RuleSettings: SettingsSection {
    /// Name; nil if the rule is identified by its number.
    package var name: String?
    /// The condition; nil if the rule always applies.
    package var when: String?
    /// Discards the event.
    package var discard: Bool?
    /// Share of events to keep, from 0 to 1.
    package var sample: Double?
    /// Most events in a period.
    package var throttle: RuleThrottle?
    /// Name of the member whose value groups events for `sample` and `throttle`.
    package var by: String?
    /// Members with their new values.
    package var set: RuleMembers?
    /// Members with their new names.
    package var rename: RuleMembers?
    /// Members that are removed from the event.
    package var remove: [String]?
    /// Members or patterns that are hidden, also in what the agent keeps.
    package var redact: RuleRedaction?
    /// Members that are replaced by digests.
    package var hash: [String]?
    /// The event's priority.
    package var priority: Priority?
    /// The destinations that get the event.
    package var sendTo: [String]?

    /// The rows of the section, with the actions in the order of the documentation. The order in which
    /// actions are applied is the engine's, not this one.
    static let entries: [Entry<RuleSettings>] = [
        .setting(
            "name", \.name, optional: nameType,
            "Its name: in status, in metrics, and for discarded events in the ledger; by default its place, "
                + "as rule 2.",
            example: "\"no debug lines of shop\""),
        .setting(
            "when", \.when, optional: expressionType,
            "The condition; without it the rule always applies. Names: app, file, name, level, message, "
                + "properties.x, event.x; == != < > in contains starts_with ends_with matches, && || !.",
            example: "\"app == 'shop' && level < 'info'\""),
        .setting("discard", \.discard, optional: .boolean, "true discards the event.", example: "true"),
        .setting(
            "sample", \.sample, optional: .number(0...1),
            "The share of events to keep; by decides by a member, so that its events stay together.",
            example: "0.1"),
        .setting(
            "throttle", \.throttle, optional: RuleThrottle.valueType,
            "Highest number of events in a period, for each app and, with by, for each value.",
            example: "{ events = 100, per = \"1s\" }"),
        .setting(
            "by", \.by, optional: .text(), "The name whose value sample and throttle decide by.",
            example: "\"properties.user\""),
        .setting(
            "set", \.set, optional: RuleMembers.valueType, "Members by their paths, with their new values.",
            example: "{ env = \"prod\" }"),
        .setting(
            "rename", \.rename, optional: RuleMembers.valueType,
            "Members by their paths, with their new names.",
            example: "{ \"properties.usr\" = \"user\" }"),
        .setting(
            "remove", \.remove, optional: .list(of: .text(), count: 1...32, unique: true),
            "Members that are left out. What must not leave the machine in any way is for redact.",
            example: "[\"properties.debug\"]"),
        .setting(
            "redact", \.redact, optional: RuleRedaction.valueType,
            "Members that never leave the machine, or patterns: email, ipv4, ipv6, credit_card, "
                + "bearer_token, jwt, or a regular expression.",
            example: "{ patterns = [\"email\"], with = \"[redacted]\" }"),
        .setting(
            "hash", \.hash, optional: .list(of: .text(), count: 1...32, unique: true),
            "Members that are replaced by digests, made with agent.hash_key.",
            example: "[\"properties.user\"]"),
        .setting(
            "priority", \.priority, optional: .choice(by: \.name), "The event's priority.",
            example: "\"critical\""),
        .setting(
            "send_to", \.sendTo, optional: .list(of: .destinationName, count: 1...64, unique: true),
            "The destinations that get the event, and no others; if several rules name some, all that they "
                + "name.",
            example: "[\"main\", \"pager\"]"),
    ]

    /// The actions that are set, by their keys, as the engine reads them.
    package var actions: [JSONValue.Member] {
        // A list of texts; nil if the setting is not set.
        func texts(_ texts: [String]?) -> JSONValue? { texts.map { .array($0.map(JSONValue.string)) } }
        let all: [(String, JSONValue?)] = [
            // `discard = false` is not an action, like a setting that is not set.
            ("discard", discard == true ? .bool(true) : nil), ("sample", sample.map { .double($0) }),
            ("throttle", throttle?.json), ("hash", texts(hash)), ("redact", redact?.json),
            ("remove", texts(remove)),
            ("rename", rename?.json), ("set", set?.json), ("priority", priority.map { .string($0.name) }),
            ("send_to", texts(sendTo)),
        ]
        return all.compactMap { key, value in value.map { JSONValue.Member(key, $0) } }
    }
}

/// At most `events` events in a period of whole seconds.
package struct RuleThrottle: Sendable, Equatable {
    /// Most events.
    package var events: Int
    /// The period.
    package var per: Duration

    /// The setting in the form that the engine reads.
    fileprivate var json: JSONValue {
        ["events": .integer(events), "seconds": .integer(Int(per.components.seconds))]
    }
}

/// Members by their paths, with values, as they are written, in order.
package struct RuleMembers: Sendable, Equatable {
    /// Paths and values.
    package var members: [JSONValue.Member]

    /// The members in the form that the engine reads.
    fileprivate var json: JSONValue { .object(members) }
}

/// What is hidden: members, or what patterns match in texts.
package struct RuleRedaction: Sendable, Equatable {
    /// Paths of members; nil for all texts.
    package var paths: [String]?
    /// Patterns: names of ready ones, or regular expressions; nil hides whole members.
    package var patterns: [String]?
    /// The replacement; nil removes, or is the default of patterns.
    package var with: String?
    /// Whether the redaction was written as a list of paths, which is how it is printed.
    var isList = false

    /// The setting in the form that the engine reads.
    fileprivate var json: JSONValue {
        func list(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
        if isList { return list(paths ?? []) }
        let all = [
            ("paths", paths.map(list)), ("patterns", patterns.map(list)),
            ("with", with.map(JSONValue.string)),
        ]
        return .object(all.compactMap { name, value in value.map { JSONValue.Member(name, $0) } })
    }
}

/// The types of values that only rules have.
extension RuleSettings {
    /// The name of a rule. It appears in logs, metrics and tables.
    static var nameType: ValueType<String> {
        .checked("name", range: "at most 64 bytes, no quotes", mustBe: "1 to 64 bytes without quotes") {
            (1...64).contains($0.utf8.count) && !$0.contains("\"")
        }
    }

    /// A condition, perhaps on several lines. It is compiled by `Containers`, so here only its length is
    /// checked.
    static var expressionType: ValueType<String> {
        // Printable characters are not demanded: a condition can have line feeds.
        ValueType<String>("expression", range: "names, comparisons, &&, ||, !") { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
            guard text.utf8.count <= 4096 else {
                throw Problem(.outOfRange, "is \(text.utf8.count) bytes long; must be at most 4096")
            }
            return text
        }
    }
}

extension RuleThrottle {
    /// A table `{ events = 100, per = "1s" }`.
    static var valueType: ValueType<RuleThrottle> {
        let events = ValueType<Int>.count(1...1_000_000)
        let per = ValueType<Duration>.duration(.seconds(1) ... .seconds(86_400))
        return ValueType<RuleThrottle>("table", range: "events 1 to 1000000, per 1s to 1d") {
            node throws(Problem) in
            // Unknown members are mistakes: a mistyped `per` must not silently count by another period.
            let members = try node.members(
                known: ["events", "per"], example: "{ events = 100, per = \"1s\" }")
            guard let wanted = members["events"] else {
                throw Problem(.missing, "has no events", at: node.position)
            }
            guard let period = members["per"] else {
                throw Problem(.missing, "has no per", at: node.position)
            }
            let count = try wanted.parse(events, in: "events")
            let time = try period.parse(per, in: "per")
            // The engine counts in seconds. A problem here can name the place; the engine could only refuse
            // the rule.
            guard time.components.attoseconds == 0 else {
                throw Problem(.outOfRange, "has per, which must be whole seconds", at: period.position)
            }
            return RuleThrottle(events: count, per: time)
        } print: { value in
            .table([
                .init(name: "events", value: .integer(Int64(value.events))),
                .init(name: "per", value: .string(DurationText.print(value.per))),
            ])
        }
    }
}

extension RuleMembers {
    /// A table of paths with values.
    static var valueType: ValueType<RuleMembers> {
        ValueType<RuleMembers>("table of paths") { node throws(Problem) in
            guard case .table(let members) = node.value else {
                throw .wrongType("a table such as { env = \"prod\" }", node)
            }
            // An empty table would be an action that does nothing, and so a mistake.
            guard !members.isEmpty else { throw Problem(.missing, "names no member", at: node.position) }
            return RuleMembers(
                members: try members.map { member throws(Problem) in
                    JSONValue.Member(member.key, try member.node.json())
                })
        } print: {
            .table($0.members.map { SettingValue.Member(name: $0.key, value: SettingValue($0.value)) })
        }
    }
}

extension RuleRedaction {
    /// A list of paths, or a table with `paths`, `patterns` and `with`.
    static var valueType: ValueType<RuleRedaction> {
        let texts = ValueType<[String]>.list(of: .text(), count: 1...32, unique: true)
        return ValueType<RuleRedaction>("list of paths, or table", range: "paths, patterns, with") {
            node throws(Problem) in
            // The short form is kept as a list, so that printing gives back what was written.
            if case .array = node.value { return RuleRedaction(paths: try texts.parse(node), isList: true) }
            let example = "[\"properties.email\"] or { patterns = [\"email\"] }"
            let members = try node.members(known: ["paths", "patterns", "with"], example: example)
            guard members["paths"] ?? members["patterns"] != nil else {
                throw Problem(.missing, "has neither paths nor patterns", at: node.position)
            }
            // The list of a member; nil if the member is not there.
            func list(_ name: String) throws(Problem) -> [String]? {
                guard let node = members[name] else { return nil }
                return try node.parse(texts, in: name)
            }
            var with: String?
            if let node = members["with"] {
                // Not `text()`: an empty replacement is allowed, and removes what the pattern matches.
                guard case .string(let text) = node.value else {
                    throw Problem(
                        .wrongType, "has with, which must be a string, not \(node.kind)", at: node.position)
                }
                with = text
            }
            return RuleRedaction(paths: try list("paths"), patterns: try list("patterns"), with: with)
        } print: { value in
            func list(_ texts: [String]) -> SettingValue { .array(texts.map { .string($0) }) }
            if value.isList { return list(value.paths ?? []) }
            let all = [
                ("paths", value.paths.map(list)), ("patterns", value.patterns.map(list)),
                ("with", value.with.map { .string($0) }),
            ]
            return .table(
                all.compactMap { name, value in value.map { SettingValue.Member(name: name, value: $0) } })
        }
    }
}

extension TOMLNode {
    /// The members of a table by name; unknown ones are a problem.
    fileprivate func members(known: [String], example: String) throws(Problem) -> [String: TOMLNode] {
        guard case .table(let members) = value else { throw .wrongType(example, self) }
        for member in members where !known.contains(member.key) {
            throw Problem(
                .unknownKey,
                "has no member \(SettingValue.quote(member.key)); members are "
                    + "\(known.joined(separator: ", "))",
                at: member.keyPosition)
        }
        // TOML has no duplicate keys, so the choice never matters.
        return Dictionary(members.map { ($0.key, $0.node) }, uniquingKeysWith: { first, _ in first })
    }

    /// Reads a member by a type; a problem names the member.
    fileprivate func parse<Value>(_ type: ValueType<Value>, in name: String) throws(Problem) -> Value {
        try relaying(try type.parse(self)) { (error: Problem) in
            Problem(error.code, "has \(name), which \(error.message)", at: error.position ?? position)
        }
    }

    /// The value as JSON.
    ///
    /// - Throws: a problem for dates and numbers that JSON does not have.
    fileprivate func json() throws(Problem) -> JSONValue {
        switch value {
        case .string(let text): return .string(text)
        case .integer(let number): return .integer(Int(number))
        case .double(let number):
            guard number.isFinite else {
                throw Problem(.outOfRange, "has a number that is not finite", at: position)
            }
            return .double(number)
        case .boolean(let flag): return .bool(flag)
        case .date: throw Problem(.wrongType, "has a date or time; write it in quotes", at: position)
        case .array(let nodes): return .array(try nodes.map { node throws(Problem) in try node.json() })
        case .table(let members):
            return .object(
                try members.map { member throws(Problem) in
                    JSONValue.Member(member.key, try member.node.json())
                })
        }
    }
}

extension SettingValue {
    /// A JSON value as it is written in TOML. Null, which TOML does not have, becomes an empty text.
    fileprivate init(_ json: JSONValue) {
        switch json {
        case .null: self = .string("")
        case .bool(let flag): self = .boolean(flag)
        case .integer(let number): self = .integer(Int64(number))
        case .double(let number): self = .double(number)
        case .string(let text): self = .string(text)
        case .array(let values): self = .array(values.map { SettingValue($0) })
        case .object(let members):
            self = .table(members.map { Member(name: $0.key, value: SettingValue($0.value)) })
        }
    }
}
