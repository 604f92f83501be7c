internal import Model

/// Conditions that must all hold (tm12). A rule that is an expression (`when`) is several with one name, one of which must hold.
public struct Rule: Sendable, Equatable {
    /// Its name, unique in its document: discards stand under it in the ledger and in metrics.
    public let name: String
    /// All must hold; without any the rule always holds.
    public let conditions: [Condition]
    /// The expression that it is an alternative of; nil for a list of conditions.
    public internal(set) var expression: String?
    /// Its place in the document: `rules.paid`, or `tags[2]` for the expression of a tag.
    let path: String
}

/// A macro compared with something.
public struct Condition: Sendable, Hashable {
    /// How they are compared. Texts are compared character by character (Unicode scalars), numbers by value.
    package enum Predicate: String, Sendable, CaseIterable {
        /// The same value; a number or truth value equals the text that spells it.
        case equals
        case contains
        case startsWith = "starts_with"
        case endsWith = "ends_with"
        /// A regular expression (RE2) is found in the text.
        case matches
        /// Both are numbers, or texts that spell some, and the macro's is the smaller one.
        case less
        case lessOrEqual = "less_or_equal"
        case greater
        case greaterOrEqual = "greater_or_equal"
    }

    package let macro: String
    package let predicate: Predicate
    package let comparand: Operand
    /// Whether the condition holds when the predicate does not.
    public private(set) var negate = false
    /// Whether capitals do not matter; for texts only.
    public private(set) var ignoreCase = false
}

extension Rule {
    /// Reads a rule; an expression gives its alternatives, and the macros that its paths stand for go to `macros`.
    static func alternatives(
        name: String, reading node: DocumentNode, macros: inout [Macro]
    ) throws(ContainerError) -> [Rule] {
        let members = try node.members(known: ["conditions", "when", "rollout", "description"])
        var conditions: [Condition] = []
        let when = members.optional("when")
        let listed = try when == nil ? members.required("conditions") : members.optional("conditions")
        for element in try listed?.elements(limit: DocumentLimits.conditions) ?? [] {
            conditions.append(try Condition(reading: element))
        }
        if let percent = try members.optional("rollout")?.rolloutPercent() {
            conditions.append(
                Condition(
                    macro: StandardMacro.rolloutShare.rawValue, predicate: .less, comparand: .constant(.double(percent))
                ))
        }
        guard let when else { return [Rule(name: name, conditions: conditions, path: node.path)] }
        return try alternatives(name: name, when: when, and: conditions, path: node.path, macros: &macros)
    }

    /// The alternatives of an expression, each with these conditions besides.
    static func alternatives(
        name: String, when node: DocumentNode, and conditions: [Condition] = [], path: String, macros: inout [Macro]
    ) throws(ContainerError) -> [Rule] {
        let expression = try WhenExpression(reading: node, known: Set(macros.map(\.name)))
        macros += expression.macros
        guard macros.count <= DocumentLimits.macros else {
            throw node.error("makes more than \(DocumentLimits.macros) macros of the members that it reads", .limit)
        }
        let text = try node.text()
        return expression.alternatives.map {
            Rule(name: name, conditions: $0 + conditions, expression: text, path: path)
        }
    }
}

extension Condition {
    /// The share of the machines that a rollout lets it hold on; nil for other conditions.
    public var rolloutPercent: Double? {
        guard macro == StandardMacro.rolloutShare.rawValue, predicate == .less, case .constant(let value) = comparand
        else { return nil }
        return value.number
    }

    init(reading node: DocumentNode) throws(ContainerError) {
        let words = Predicate.allCases.map(\.rawValue)
        let members = try node.members(known: ["macro"] + words + ["negate", "ignore_case"])
        let found = words.filter { members.value[$0] != nil }
        guard found.count == 1, let word = found.first, let predicate = Predicate(rawValue: word) else {
            throw node.error("needs exactly one of \(words.joined(separator: ", "))")
        }
        self.predicate = predicate
        macro = try members.required("macro").name()
        negate = try members.optional("negate")?.bool() ?? false
        ignoreCase = try members.optional("ignore_case")?.bool() ?? false
        let node = try members.required(word)
        comparand = try node.operand()
        try check(node)
    }

    var negated: Condition {
        var other = self
        other.negate.toggle()
        return other
    }

    /// Whether the predicate can be compared with what it is.
    func check(_ node: DocumentNode) throws(ContainerError) {
        switch (predicate, comparand) {
        case (.matches, .constant(.string(let expression))):
            guard expression.utf8.count <= DocumentLimits.expressionBytes else {
                throw node.error("is longer than \(DocumentLimits.expressionBytes) bytes", .limit)
            }
        case (.matches, _): throw node.error("must be a regular expression as a string")
        case (_, .macro): break
        case (.equals, .constant(.object)), (.equals, .constant(.array)):
            throw node.error("must be a string, a number, true, false, null or a macro")
        case (.equals, .constant): break
        case (.contains, .constant(.string)), (.startsWith, .constant(.string)), (.endsWith, .constant(.string)): break
        case (.contains, _), (.startsWith, _), (.endsWith, _): throw node.error("must be a string or a macro")
        case (_, .constant(let value)):
            guard value.number != nil else { throw node.error("must be a number or a macro") }
        }
    }
}
