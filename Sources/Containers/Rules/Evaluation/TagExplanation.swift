internal import Model

/// Why a tag fires or does not, for people.
public struct TagExplanation: Sendable, Equatable {
    /// A rule of the tag.
    package struct RuleExplanation: Sendable, Equatable {
        /// Name of the rule.
        package let name: String
        /// Whether the rule blocks.
        package let isBlocking: Bool
        /// Whether the rule holds: all of its conditions, or its expression.
        package let holds: Bool
        /// The expression; nil for a list of conditions.
        package let expression: String?
        /// The conditions in order; of an expression each term once, a negated one as it is.
        package let conditions: [ConditionExplanation]
    }

    /// A condition of a rule.
    package struct ConditionExplanation: Sendable, Equatable {
        /// The condition.
        package let condition: Condition
        /// The value of its macro, as JSON: numbers as they were written.
        package let value: String
        /// The value that it is compared with, as JSON.
        package let comparand: String
        /// Whether the condition holds.
        package let holds: Bool
    }

    /// Name of the tag.
    package let tag: String
    /// Whether the tag fires.
    package internal(set) var fires: Bool
    /// Whether the tag would have fired, but the event was discarded before.
    public internal(set) var isCutOff = false
    /// The tag's rules, then its blocking rules.
    package let rules: [RuleExplanation]
}

/// Explains the tags of one container for an event that its evaluation has begun.
struct TagExplainer {
    /// The evaluation.
    let evaluation: Evaluation

    /// For each tag, why it fires or does not. No tag acts.
    func explanations() -> [TagExplanation] {
        evaluation.container.tags.map { tag in
            let rules = explanations(of: tag.rules, isBlocking: false)
            let blocking = explanations(of: tag.blockingRules, isBlocking: true)
            return TagExplanation(
                tag: tag.name, fires: rules.contains(where: \.holds) && !blocking.contains(where: \.holds),
                rules: rules + blocking)
        }
    }

    /// Explains each rule once. The alternatives of an expression follow each other.
    private func explanations(of rules: [Int], isBlocking: Bool) -> [TagExplanation.RuleExplanation] {
        let document = evaluation.container.document
        var left = rules[...]
        var found: [TagExplanation.RuleExplanation] = []
        while let first = left.first {
            let alternatives = left.prefix { document.rules[$0].name == document.rules[first].name }
            left = left.dropFirst(alternatives.count)
            var conditions: [TagExplanation.ConditionExplanation] = []
            for rule in alternatives {
                let terms = explanations(ofConditions: rule)
                conditions += terms.filter { term in !conditions.contains { $0.condition == term.condition } }
            }
            found.append(
                TagExplanation.RuleExplanation(
                    name: document.rules[first].name, isBlocking: isBlocking,
                    holds: alternatives.contains { evaluation.holds(rule: $0) },
                    expression: document.rules[first].expression, conditions: conditions))
        }
        return found
    }

    /// The value of a macro as JSON.
    private func spelled(_ macro: Int) -> String {
        String(decoding: evaluation.value(ofMacro: macro).jsonText(evaluation.base), as: UTF8.self)
    }

    /// Explains the conditions of a rule.
    private func explanations(ofConditions rule: Int) -> [TagExplanation.ConditionExplanation] {
        let definition = evaluation.container.document.rules[rule]
        return zip(definition.conditions, evaluation.container.writtenRules[rule]).map { condition, number in
            let compiled = evaluation.container.conditions[number]
            let comparand =
                compiled.comparandMacro < 0
                ? condition.comparand.constant.description : spelled(compiled.comparandMacro)
            return TagExplanation.ConditionExplanation(
                condition: condition, value: spelled(compiled.macro), comparand: comparand,
                holds: evaluation.holds(condition: number))
        }
    }
}
