internal import Model

/// What holds while a function has not answered: tags that redact or hash fire unless something else rules them out.
extension Evaluation {
    /// The first rule that makes such a tag fire: one that holds, or may hold, while no blocking rule surely does.
    func firstUnlessRuledOut(_ rules: CompiledContainer.TagRules) -> Int? {
        guard let rule = rules.rules.first(where: { mayHold(rule: Int($0)) }),
            !rules.blocking.contains(where: { surelyHolds(rule: Int($0)) })
        else { return nil }
        return Int(rule)
    }

    private func mayHold(rule: Int) -> Bool {
        container.rules[rule].allSatisfy { holds(condition: Int($0)) || isUndecided(condition: Int($0)) }
    }

    private func surelyHolds(rule: Int) -> Bool {
        container.rules[rule].allSatisfy { holds(condition: Int($0)) && !isUndecided(condition: Int($0)) }
    }

    /// Whether the condition asked a function that gave null, which failed or does not know, or reads what is hidden.
    private func isUndecided(condition: Int) -> Bool {
        container.blindConditions[condition]
            || container.conditionFunctions[condition].contains { macro in
                guard states[macro] != Evaluation.unknown else { return false }
                switch known[macro] {
                case .null, .value(.null): return true
                default: return false
                }
            }
    }
}
