public import Configuration
public import Containers
internal import EventLoops
internal import Model

/// The rules of the configuration, ready to be applied.
struct ConfiguredRules: Sendable {
    /// One document with all rules; nil without rules.
    var container: CompiledContainer?
    /// The key of the action `hash`.
    var hashKey: HashKey?
}

extension Settings {
    /// Loads the configuration as the agent does, including the mistakes that only compiling the rules finds.
    public static func loadWithRules(path: String) throws(ConfigurationError) -> LoadedSettings {
        try load(path: path) { $0.ruleMistakes() }
    }

    /// The rules of the file, in their order. A rule without a name gets its number as a name.
    public var writtenRules: [WrittenRule] {
        rules.enumerated().map { place, rule in
            WrittenRule(
                name: rule.name ?? "rule \(place + 1)", when: rule.when, by: rule.by, actions: rule.actions)
        }
    }

    /// The mistakes in the rules. The file with the key of `hash` is not read for it.
    private func ruleMistakes() -> [SettingMistake] {
        // The key would begin OpenSSL's digests, at every start of an agent that has none.
        guard !rules.isEmpty else { return [] }
        var facts = AgentFacts()
        facts.hashKey = .trial
        return WrittenRules.mistakes(of: writtenRules, facts: facts).filter { mistake in
            // An action that was refused has its own message: the rule is not one without actions.
            guard let place = mistake.rule, mistake.key == nil, rules[place].actions.isEmpty else {
                return true
            }
            return !WrittenRule.actionKeys.contains { origins["\(path(ofRule: place)).\($0)"] != nil }
        }.map { mistake in
            let key = mistake.key.map { ".\($0)" } ?? ""
            return SettingMistake(
                path: mistake.rule.map { path(ofRule: $0) + key } ?? "rule", column: mistake.column,
                message: mistake.message, isWarning: mistake.isWarning)
        }
    }

    /// Compiles the rules.
    ///
    /// - Throws: `AgentError` with code `configuration` if the key of `hash` or a rule is invalid.
    func configuredRules(_ facts: AgentFacts) throws(AgentError) -> ConfiguredRules {
        var facts = facts
        facts.keyLengths = keyLengths
        facts.hashKey = try ruleHashKey()
        let container = try relaying(try WrittenRules.compile(writtenRules, facts: facts)) {
            (mistake: WrittenRule.Mistake) in
            let setting =
                mistake.rule.map { path(ofRule: $0) + (mistake.key.map { ".\($0)" } ?? "") } ?? "rule"
            return AgentError(.configuration, "\(setting): \(mistake.message)")
        }
        return ConfiguredRules(container: container, hashKey: facts.hashKey)
    }

    /// The key that rules hash with; nil if the configuration names no file.
    func ruleHashKey() throws(AgentError) -> HashKey? {
        guard let path = agent.hashKey?.path(credentials: environment("CREDENTIALS_DIRECTORY")) else {
            return nil
        }
        return try relaying(try HashKey(reading: path)) { (error: ContainerError) in
            AgentError(.configuration, "agent.hash_key: \(error.message)")
        }
    }

    /// What rules need a key for that the configuration does not name, for `check`.
    public var keylessRules: [DocumentFinding] {
        guard agent.hashKey == nil else { return [] }
        var facts = AgentFacts()
        facts.keyLengths = keyLengths
        let compiled = try? WrittenRules.compile(writtenRules, facts: facts)
        return compiled?.findings.filter(\.needsKey) ?? []
    }

    /// The rules as `check` compiles them, with a key of zeros instead of the agent's; nil without rules, or
    /// if one has a mistake.
    public var rulesForCheck: CompiledContainer? {
        var facts = AgentFacts()
        facts.keyLengths = keyLengths
        facts.hashKey = .trial
        do throws(WrittenRule.Mistake) {
            return try WrittenRules.compile(writtenRules, facts: facts)
        } catch {
            // Loading has reported the mistake.
            return nil
        }
    }
}
