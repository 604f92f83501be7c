internal import Model

/// A mistake or a weakness of a document that can be read.
public struct DocumentFinding: Sendable, Equatable, CustomStringConvertible {
    /// Whether the document does not do what it says; otherwise it is advice.
    public let isMistake: Bool
    /// Path in the document: `tags[2].salt`.
    public let path: String
    /// What is wrong and what to do.
    public let message: String
    /// Whether a key for digests is missing.
    public var needsKey = false

    /// Path and message, in one line.
    public var description: String { path.isEmpty ? message : "\(path): \(message)" }
}

extension CompiledContainer {
    /// What is wrong with the document on this machine, in the document's order.
    public var findings: [DocumentFinding] {
        var found = unusedRules + appFunctions
        // After a tag that discards all events nothing acts.
        let end = document.tags.firstIndex { tag in
            tag.action == .discard && tag.blockingRules.isEmpty
                && tag.rules.contains { name in
                    document.rules.contains { $0.name == name && $0.conditions.isEmpty }
                }
        }
        func add(_ index: Int, at member: String = "", isMistake: Bool = true, _ message: String) {
            found.append(
                DocumentFinding(isMistake: isMistake, path: "tags[\(index)]\(member)", message: message))
        }
        for (index, tag) in tags.enumerated() {
            let name = quoted(isOfConfiguration ? document.tags[index].rules.first ?? tag.name : tag.name)
            if let end, index > end {
                add(
                    index, isMistake: tag.action.hides,
                    "\(name) never acts: \(quoted(tags[end].name)) discards every event before it")
            }
            if Set(tag.rules).isSubset(of: tag.blockingRules) {
                add(
                    index, at: ".blocking_rules", isMistake: tag.action.hides,
                    "\(name) never acts: each of its rules blocks it")
            }
            if let later = taker(of: copies(by: tag), behind: index) {
                add(
                    index, isMistake: false,
                    "\(name) copies what \(quoted(later)) removes after it, and the copy stays: move it "
                        + "after that tag"
                )
            }
            if blindTags.contains(tag.name) {
                let untilThen =
                    tag.action.hides ? "acts whatever these rules say" : "does not act by these rules"
                let ofDocument =
                    "rules of \(name) read from the data layer what tags hide, which is never there: "
                    + "use event_property; until then the tag \(untilThen)"
                // A rule of the file has no macros, so its message names a path.
                let ofFile =
                    "\(name) reads from the data layer what rules hide there, so its value is unknown: "
                    + "name the event's own member, such as properties.x"
                add(index, at: ".rules", isOfConfiguration ? ofFile : ofDocument)
            }
            // Patterns that search ids need a key for the digests that take the ids' place.
            if case .hide(_, .scrub(let scrubber)) = tag.action, scrubber.hasOwnKey,
                document.tags[index].searchesIDs
            {
                add(
                    index, isMistake: false,
                    "\(name) makes digests of ids with a key that is drawn at each start: name "
                        + "\(keySetting), or receivers do not recognise repeats across a restart")
                found[found.count - 1].needsKey = true
            }
            guard case .hide(_, .hash(let hashing)) = tag.action else { continue }
            switch hashing {
            case .keyed: break
            case .salted:
                add(
                    index, at: ".salt", isMistake: false,
                    "\(name) hashes with a salt, so anyone with the document can find values by trying: "
                        + "remove salt, and name a hash_key in [[container]]")
            case .withoutKey:
                add(
                    index,
                    "\(name) hashes without a key: name \(keySetting); until then (no hash key) takes the "
                        + "place of the values")
                found[found.count - 1].needsKey = true
            }
        }
        return found
    }

    /// The setting that names the key.
    private var keySetting: String { isOfConfiguration ? "agent.hash_key" : "a hash_key in [[container]]" }

    /// Macros of functions that only apps have, where nobody can be asked, or no default takes their place.
    private var appFunctions: [DocumentFinding] {
        document.macros.compactMap { macro in
            guard case .functionCall(let function, _, .app, let standard) = macro.kind else { return nil }
            let path = "macros.\(macro.name)"
            if appFunctionsOfTags.contains(macro.name) {
                return DocumentFinding(
                    isMistake: false, path: path,
                    message: "nobody asks an app for \(quoted(function)) when an event is read: tags get "
                        + (standard == .null ? "null, as it has no default" : "its default"))
            }
            guard standard == .null else { return nil }
            return DocumentFinding(
                isMistake: false, path: path,
                message: "an app without \(quoted(function)), and values.json, get null: give it a default")
        }
    }

    /// Rules that no tag and no collection uses.
    private var unusedRules: [DocumentFinding] {
        var used: Set<String> = []
        for tag in document.tags { used.formUnion(tag.rules + tag.blockingRules) }
        for macro in document.macros {
            if case .valueCollection(let rules, _) = macro.kind {
                used.formUnion(rules)
            }
        }
        return document.rules.filter { used.insert($0.name).inserted }.map {
            DocumentFinding(
                isMistake: false, path: "rules.\($0.name)", message: "no tag and no collection uses the rule")
        }
    }

    /// The members of events that a tag copies elsewhere.
    private func copies(by tag: CompiledTag) -> [[[UInt8]]] {
        let operands: [CompiledOperand]
        switch tag.action {
        case .set(_, let value, _): operands = [value]
        case .function(_, let parameters), .offer(_, let parameters): operands = parameters.map(\.operand)
        default: return []
        }
        return operands.flatMap { operand -> [[[UInt8]]] in
            guard case .macro(let number) = operand else { return [] }
            return macros[number].members
        }
    }

    /// The tag after an index that hides one of these members.
    private func taker(of members: [[[UInt8]]], behind index: Int) -> String? {
        tags.dropFirst(index + 1).first { tag in
            guard case .hide(let paths, let hiding) = tag.action, hiding.scrubber == nil else { return false }
            return paths.contains { path in members.contains { path.meets($0) } }
        }?.name
    }

    /// All mistakes, in one line; nil if there is no mistake.
    public var mistake: String? {
        let mistakes = findings.filter(\.isMistake)
        return mistakes.isEmpty ? nil : mistakes.map(\.description).joined(separator: "; ")
    }
}

extension Tag {
    /// Whether the tag's patterns search the ids of events.
    fileprivate var searchesIDs: Bool {
        guard case .scrub(let paths, _, _) = action else { return false }
        // `**`, all texts, is what a tag without paths has.
        return paths.contains { $0.names == ["id"] || $0.names == ["**"] }
    }
}

extension CompiledContainer {
    /// A tag that redacts or hashes only some events.
    public struct ConditionalHiding: Sendable, Equatable {
        /// Name of the tag; for a rule of the configuration, of the rule.
        public let name: String
        /// The condition, written for a person.
        public let condition: String
    }

    /// Each tag that redacts or hashes only some events: others keep the values, which the author may not
    /// expect.
    public var conditionalHiding: [ConditionalHiding] {
        document.tags.indices.filter { tags[$0].action.hides }.compactMap { index in
            let tag = document.tags[index]
            let named = tag.rules.map { name in document.rules.filter { $0.name == name } }
            let isAlways = named.contains { alternatives in alternatives.contains { $0.conditions.isEmpty } }
            guard !isAlways || !tag.blockingRules.isEmpty else { return nil }
            var parts =
                isAlways ? [] : [named.map { CompiledContainer.text(of: $0) }.joined(separator: " or ")]
            if !tag.blockingRules.isEmpty {
                parts.append("none of \(tag.blockingRules.joined(separator: ", ")) holds")
            }
            return ConditionalHiding(
                name: isOfConfiguration ? tag.rules[0] : tag.name, condition: parts.joined(separator: " and ")
            )
        }
    }

    /// The conditions of a rule, as a person reads them.
    private static func text(of alternatives: [Rule]) -> String {
        if let expression = alternatives.first?.expression { return expression }
        let conditions = alternatives.flatMap(\.conditions).map { condition in
            let value = condition.comparand.macroName ?? "\(condition.comparand.constant)"
            return
                "\(condition.macro) \(condition.negate ? "not " : "")\(condition.predicate.rawValue) \(value)"
        }
        return conditions.joined(separator: " and ")
    }
}
