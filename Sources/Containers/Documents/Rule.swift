internal import Model

/// Conditions that must all hold. A rule that is written as an expression (`when`) becomes several of one
/// name, its alternatives: it holds if one of them holds.
public struct Rule: Sendable, Equatable {
    /// Name, unique in its document. Discarded events are counted under it in the ledger and in metrics.
    public let name: String
    /// Conditions, all of which must hold. Without any the rule always holds.
    public let conditions: [Condition]
    /// The expression that this is an alternative of; nil for a list of conditions.
    public internal(set) var expression: String?
    /// Path in the document: `rules.paid`, or `tags[2]` for the expression of a tag.
    let path: String
}

/// A comparison of a macro with a value.
public struct Condition: Sendable, Hashable {
    /// How the two operands are compared: texts by Unicode scalars, numbers by value.
    package enum Predicate: String, Sendable, CaseIterable {
        /// Both are the same value. A number or truth value equals a text that spells it.
        case equals
        /// The text contains the other one.
        case contains
        /// The text begins with the other one.
        case startsWith = "starts_with"
        /// The text ends with the other one.
        case endsWith = "ends_with"
        /// A regular expression (RE2) matches somewhere in the text.
        case matches
        /// Both are numbers, or texts that spell numbers, and the macro's is less.
        case less
        /// Both are numbers, and the macro's is less or equal.
        case lessOrEqual = "less_or_equal"
        /// Both are numbers, and the macro's is greater.
        case greater
        /// Both are numbers, and the macro's is greater or equal.
        case greaterOrEqual = "greater_or_equal"
    }

    /// Name of the macro.
    package let macro: String
    /// The comparison.
    package let predicate: Predicate
    /// What the macro is compared with.
    package let comparand: Operand
    /// Whether the condition holds if the comparison does not.
    public private(set) var negate = false
    /// Whether capital and small letters are the same; for texts only.
    public private(set) var ignoreCase = false
}

extension Rule {
    /// Reads a rule. An expression gives its alternatives, and adds the macros that its paths stand for to
    /// `macros`.
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
        // A rollout is one more condition: this machine's share is below the percentage.
        if let percent = try members.optional("rollout")?.rolloutPercent() {
            conditions.append(
                Condition(
                    macro: StandardMacro.rolloutShare.rawValue, predicate: .less,
                    comparand: .constant(.double(percent))
                ))
        }
        guard let when else { return [Rule(name: name, conditions: conditions, path: node.path)] }
        return try alternatives(name: name, when: when, and: conditions, path: node.path, macros: &macros)
    }

    /// The alternatives of an expression, each with some further conditions.
    static func alternatives(
        name: String, when node: DocumentNode, and conditions: [Condition] = [], path: String,
        macros: inout [Macro],
        in source: WhenExpression.Source = .document
    ) throws(ContainerError) -> [Rule] {
        let expression = try WhenExpression(reading: node, known: Set(macros.map(\.name)), in: source)
        macros += expression.macros
        guard macros.count <= DocumentLimits.macros else {
            throw node.error(
                "makes more than \(DocumentLimits.macros) macros of the members that it reads", .limit)
        }
        let text = try node.text()
        return expression.alternatives.map {
            Rule(name: name, conditions: $0 + conditions, expression: text, path: path)
        }
    }
}

extension Condition {
    /// The percentage of a condition that stands for a rollout; nil for other conditions.
    public var rolloutPercent: Double? {
        guard macro == StandardMacro.rolloutShare.rawValue, predicate == .less,
            case .constant(let value) = comparand
        else { return nil }
        return value.number
    }

    /// Reads a condition, which has exactly one comparison.
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

    /// The opposite condition.
    var negated: Condition {
        var other = self
        other.negate.toggle()
        return other
    }

    /// Checks that the value has a type that the comparison can use.
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
        case (.contains, .constant(.string)), (.startsWith, .constant(.string)),
            (.endsWith, .constant(.string)):
            break
        case (.contains, _), (.startsWith, _), (.endsWith, _): throw node.error("must be a string or a macro")
        case (_, .constant(let value)):
            guard value.number != nil else { throw node.error("must be a number or a macro") }
        }
    }
}
