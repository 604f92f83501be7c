internal import Model

/// Turns a document's names into numbers and its texts into bytes, and finds the tags that each event name
/// may fire.
struct ContainerCompiler {
    /// The document.
    let document: ContainerDocument
    /// Functions that the document may call.
    private let mayCall: Set<String>
    /// The facts of the machine.
    private let facts: AgentFacts
    /// Macros by name.
    private let definitions: [String: Macro]
    /// Numbers of rules by name; an expression has several.
    private let ruleNumbers: [String: [Int]]

    /// Compiled macros, by number.
    private(set) var macros: [CompiledMacro] = []
    /// Numbers of macros by name.
    private(set) var macroNumbers: [String: Int] = [:]
    /// Conditions without duplicates, by number.
    private(set) var conditions: [ConditionDraft] = []
    /// Numbers of conditions.
    private var conditionNumbers: [Condition: Int] = [:]
    /// Numbers of each rule's conditions.
    private(set) var rules: [[Int]] = []
    /// Compiled tags.
    private(set) var tags: [CompiledTag] = []
    /// The container's own values.
    private(set) var values: [(key: String, operand: CompiledOperand)] = []
    /// Numbers of the macros that are collections.
    private(set) var collections: [Int] = []
    /// Functions that the document names but may not call.
    private(set) var deniedFunctions: Set<String> = []
    /// Number of throttling tags.
    private(set) var throttles = 0
    /// Number of regular expressions, for the limit.
    private var expressions = 0

    /// A condition, with numbers instead of names.
    struct ConditionDraft {
        /// The condition.
        let condition: Condition
        /// Number of its macro.
        let macro: Int
        /// Number of the macro that gives the comparand; nil for a constant.
        let comparandMacro: Int?
        /// The regular expression; nil for other comparisons.
        let expression: Expression?
    }

    /// Compiles a document.
    init(
        _ document: ContainerDocument, mayCall: Set<String>, facts: AgentFacts
    ) throws(ContainerError) {
        self.document = document
        self.mayCall = mayCall
        self.facts = facts
        definitions = Dictionary(uniqueKeysWithValues: document.macros.map { ($0.name, $0) })
        ruleNumbers = Dictionary(grouping: document.rules.indices) { document.rules[$0].name }
        for macro in document.macros {
            let number = number(ofMacro: macro.name)
            if case .valueCollection = macro.kind {
                collections.append(number)
            }
        }
        for rule in document.rules {
            var numbers: [Int] = []
            for (index, condition) in rule.conditions.enumerated() {
                let member =
                    rule.expression == nil ? "conditions[\(index)].\(condition.predicate.rawValue)" : "when"
                numbers.append(try number(of: condition, at: "\(rule.path).\(member)"))
            }
            rules.append(numbers)
        }
        values = document.values.map { ($0.key, operand($0.operand)) }
        for (index, tag) in document.tags.enumerated() { tags.append(try compile(tag, at: index)) }
    }

    // MARK: Macros

    /// The number of a macro, which is compiled if it is new.
    private mutating func number(ofMacro name: String) -> Int {
        if let known = macroNumbers[name] { return known }
        let number = macros.count
        macroNumbers[name] = number
        // Take the number first: macros that it needs get later ones. That it does not need itself was
        // checked before.
        macros.append(.constant(.null))
        let kind = definitions[name]?.kind ?? StandardMacro(rawValue: name).map { .standard($0) }
        if let kind {
            macros[number] = compile(kind)
        }
        return number
    }

    /// Compiles an operand.
    private mutating func operand(_ operand: Operand) -> CompiledOperand {
        switch operand {
        case .constant(let value): .constant(value)
        case .macro(let name): .macro(number(ofMacro: name))
        }
    }

    /// Compiles values by key.
    private mutating func compile(_ values: [Value]) -> [(key: String, operand: CompiledOperand)] {
        values.map { ($0.key, operand($0.operand)) }
    }

    /// Compiles a macro.
    private mutating func compile(_ kind: Macro.Kind) -> CompiledMacro {
        switch kind {
        case .constant(let value): return .constant(value)
        case .valueCollection(let rules, let values):
            return .collection(rules: rules.flatMap { ruleNumbers[$0] ?? [] }, values: compile(values))
        case .value(let key): return .value(key: key)
        case .dataLayer(let path, let standard): return .dataLayer(names: path.names, default: standard)
        case .member(let path, let standard): return .member(names: path.bytes, default: standard)
        case .functionCall(let function, let parameters, .app, let standard):
            return .appFunction(name: function, parameters: compile(parameters), default: standard)
        case .functionCall(let function, let parameters, .agent, let standard):
            guard mayCall.contains(function) else {
                deniedFunctions.insert(function)
                return .denied(default: standard)
            }
            return .function(name: function, parameters: compile(parameters), default: standard)
        case .standard(let macro): return compile(macro)
        }
    }

    /// Compiles a standard macro. Facts of the machine become constants.
    private func compile(_ macro: StandardMacro) -> CompiledMacro {
        switch macro {
        case .event: .event
        case .app: .app
        case .appVersion: .member(names: ["device".bytes, "app_version".bytes], default: .null)
        case .platform: .constant("linux")
        case .country: .member(names: ["country".bytes], default: .null)
        case .language: .language
        case .level: .level
        case .severity: .severity
        case .message: .message
        case .file: .file
        case .timestamp: .member(names: ["timestamp".bytes], default: .null)
        case .osVersion: .constant(JSONValue(facts.osVersion))
        case .agentVersion: .constant(JSONValue(facts.agentVersion))
        case .hostName: .constant(JSONValue(facts.hostName))
        case .containerID: .constant(.string(document.id))
        case .containerVersion: .constant(.integer(document.version))
        case .rolloutShare: .constant(.double(facts.share(of: document.id)))
        case .randomNumber: .random
        }
    }

    // MARK: Conditions

    /// The number of a condition. A condition that occurs in several rules is evaluated once for each event.
    private mutating func number(of condition: Condition, at path: String) throws(ContainerError) -> Int {
        if let known = conditionNumbers[condition] { return known }
        var expression: Expression?
        if condition.predicate == .matches, case .constant(.string(let text)) = condition.comparand {
            try countExpression(at: path)
            expression = try Expression(text, ignoreCase: condition.ignoreCase, at: path)
        }
        let comparandMacro = condition.comparand.macroName.map { self.number(ofMacro: $0) }
        let number = conditions.count
        conditionNumbers[condition] = number
        conditions.append(
            ConditionDraft(
                condition: condition, macro: self.number(ofMacro: condition.macro),
                comparandMacro: comparandMacro,
                expression: expression))
        return number
    }

    /// Counts a regular expression for the limit.
    private mutating func countExpression(at path: String) throws(ContainerError) {
        expressions += 1
        guard expressions > DocumentLimits.expressions else { return }
        throw ContainerError(
            .limit, at: path,
            "there are more than \(DocumentLimits.expressions) different regular expressions")
    }

    // MARK: Tags

    /// Compiles a tag.
    private mutating func compile(_ tag: Tag, at index: Int) throws(ContainerError) -> CompiledTag {
        let action: CompiledTag.Action
        switch tag.action {
        case .ship(let destinations): action = .ship(destinations)
        case .discard: action = .discard
        case .sample(let rate, let key): action = .sample(rate: rate, key: key.map { operand($0) })
        case .set(let path, let value):
            let text: [UInt8]? = if case .constant(let value) = value { value.description.bytes } else { nil }
            action = .set(names: path.bytes, value: operand(value), text: text)
        case .rename(let path, let name): action = .rename(names: path.bytes, to: name)
        case .remove(let paths): action = .remove(paths.flatMap { spellings($0) })
        case .redact(let paths, let text):
            action = .hide(
                paths.flatMap { spellings($0) },
                .redact(with: text.map { JSONValue.string($0).description.bytes }))
        case .hash(let paths, let salt):
            let hashing: Hashing =
                salt.map { .salted($0.bytes) } ?? facts.hashKey.map { .keyed($0) } ?? .withoutKey
            action = .hide(paths.flatMap { spellings($0) }, .hash(hashing))
        case .scrub(let paths, let patterns, let text):
            var made: [TextPattern] = []
            for pattern in patterns {
                let path = "tags[\(index)].pattern"
                try countExpression(at: path)
                made.append(try TextPattern(pattern, at: path))
            }
            let hashing: Hashing = .keyed(facts.hashKey ?? .ofThisProcess)
            let scrubber = Scrubber(patterns: made, other: text.bytes, hashing: hashing)
            action = .hide(paths.flatMap { spellings($0) }, .scrub(scrubber))
        case .prioritise(let priority): action = .prioritise(priority)
        case .throttle(let events, let seconds, let key):
            action = .throttle(
                throttle: throttles, events: events, seconds: seconds, key: key.map { operand($0) })
            throttles += 1
        case .function(let name, let parameters, .app):
            action = .offer(name: name, parameters: compile(parameters))
        case .function(let name, let parameters, .agent):
            if mayCall.contains(name) {
                action = .function(name: name, parameters: compile(parameters))
            } else {
                deniedFunctions.insert(name)
                action = .denied
            }
        }
        return CompiledTag(
            name: tag.name, rules: tag.rules.flatMap { ruleNumbers[$0] ?? [] },
            blockingRules: tag.blockingRules.flatMap { ruleNumbers[$0] ?? [] }, action: action)
    }

    /// The path, and the path as limits leave it in events, because tags see names of properties after they
    /// are cut. With `*` and `**` any name may be that of a property.
    private func spellings(_ path: MemberPath) -> [PathSteps] {
        let steps = PathSteps(path)
        var all = [steps]
        for index in path.names.indices where PathSteps.mayBeProperty(index, of: steps.names) {
            // With dots, further names may be in the property's name: what the cut leaves is hidden with
            // everything in it.
            let rest = path.names[index...].prefix { $0 != "*" && $0 != "**" }
            let written = path.isDotted ? rest.joined(separator: ".") : path.names[index]
            for length in facts.keyLengths.sorted(by: >) where written.utf16.count > length {
                var name = ""
                for scalar in written.unicodeScalars {
                    guard name.utf16.count + UTF16.width(scalar) <= length else { break }
                    name.unicodeScalars.append(scalar)
                }
                let below = path.isDotted ? [] : steps.names[(index + 1)...]
                all.append(steps.with(Array(steps.names[..<index]) + [name.bytes] + below))
            }
        }
        return all
    }

    // MARK: Names of events

    /// The tags that may fire, by the names of events that their rules ask for.
    func makeIndex() -> NameIndex {
        let asked = document.rules.map { namesAsked($0) }
        var names: Set<[UInt8]> = []
        for rule in asked { names.formUnion(rule ?? []) }
        var tags: [[UInt8]: [Int]] = [:]
        for name in names { tags[name] = [] }
        var others: [Int] = []
        for (index, tag) in self.tags.enumerated() {
            let open = tag.rules.contains { asked[$0] == nil }
            if open {
                others.append(index)
            }
            for name in names where open || tag.rules.contains(where: { asked[$0]?.contains(name) ?? true }) {
                tags[name]?.append(index)
            }
        }
        return NameIndex(tags, others: others)
    }

    /// The event names of which one is needed for the rule to hold; nil if any name will do.
    private func namesAsked(_ rule: Rule) -> Set<[UInt8]>? {
        var asked: Set<[UInt8]>?
        for condition in rule.conditions {
            guard condition.predicate == .equals, !condition.negate, !condition.ignoreCase,
                definitions[condition.macro].map({ $0.kind == .standard(.event) })
                    ?? (condition.macro == "event"),
                case .constant(.string(let name)) = condition.comparand
            else { continue }
            asked = asked.map { $0.intersection([name.bytes]) } ?? [name.bytes]
        }
        return asked
    }
}

extension String {
    /// The bytes in UTF-8.
    var bytes: [UInt8] { Array(utf8) }
}

extension MemberPath {
    /// The names as bytes.
    var bytes: [[UInt8]] { names.map(\.bytes) }
}
