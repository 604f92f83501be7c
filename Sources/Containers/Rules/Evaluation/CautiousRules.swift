internal import Model

/// Which rules hold while a condition is undecided: a function did not answer, or the condition reads what is
/// hidden. Tags that redact or hash then fire unless something else excludes it (DESIGN.md, "Redaction fails
/// closed").
struct CautiousRules {
    /// The evaluation of the event.
    let evaluation: Evaluation

    private var container: CompiledContainer { evaluation.container }

    /// The first rule by which a hiding tag fires: one that holds or may hold, while no blocking rule
    /// certainly holds.
    func firstUnlessRuledOut(_ rules: CompiledContainer.TagRules) -> Int? {
        guard let rule = rules.rules.first(where: { mayHold(rule: Int($0)) }),
            !rules.blocking.contains(where: { surelyHolds(rule: Int($0)) })
        else { return nil }
        return Int(rule)
    }

    /// The first rule by which another tag fires: one that holds without hidden members, while no blocking
    /// rule may hold.
    func firstKnownToHold(_ rules: CompiledContainer.TagRules) -> Int? {
        let isBlind = { (rule: Int32) in
            container.rules[Int(rule)].contains { container.blindConditions[Int($0)] }
        }
        guard let rule = rules.rules.first(where: { !isBlind($0) && evaluation.holds(rule: Int($0)) }),
            !rules.blocking.contains(where: {
                isBlind($0) ? mayHold(rule: Int($0)) : evaluation.holds(rule: Int($0))
            })
        else { return nil }
        return Int(rule)
    }

    /// Whether a rule holds, or would hold with some decision of its undecided conditions.
    private func mayHold(rule: Int) -> Bool {
        container.rules[rule].allSatisfy {
            evaluation.holds(condition: Int($0)) || isUndecided(condition: Int($0))
        }
    }

    /// Whether a rule holds, however its undecided conditions are decided.
    private func surelyHolds(rule: Int) -> Bool {
        container.rules[rule].allSatisfy {
            evaluation.holds(condition: Int($0)) && !isUndecided(condition: Int($0))
        }
    }

    /// Whether a condition needs a function that gave null, because it failed or does not know, or reads what
    /// is hidden.
    private func isUndecided(condition: Int) -> Bool {
        container.blindConditions[condition]
            || container.conditionFunctions[condition].contains { evaluation.isUnanswered(macro: $0) }
    }
}
