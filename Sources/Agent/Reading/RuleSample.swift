public import Configuration
internal import Containers
internal import EventLoops
internal import Model

/// What the rules of the configuration would do to the lines of a file, worked out without an agent: for
/// `check --sample`.
///
/// Published documents do not act here. Hashes are made with a key of zeros, because the person who runs
/// `check` may not be allowed to read the agent's key. A throttle counts by the events' own times, so that a
/// result can be repeated.
public struct RuleSample: Sendable {
    /// A line on which at least one rule acts.
    public struct Line: Sendable {
        /// The line's number in the file, from 1.
        public let number: Int
        /// The rules that act, in their order; one that discards is the last.
        public let rules: [String]
        /// The event before all rules.
        public let before: String
        /// The event after all rules; nil for a discarded one.
        public let after: String?
        /// The destinations that rules name; nil leaves them to the configuration.
        public let destinations: [String]?
        /// The priority, if rules change it.
        public let priority: String?
    }

    /// The lines on which rules act, in the order of the file.
    public private(set) var lines: [Line] = []
    /// Number of lines on which each rule acts, in the order of the rules.
    public private(set) var counts: [(rule: String, lines: Int)] = []
    /// Whether a rule that acts makes digests, which are then not those of the agent.
    public private(set) var hasDigests = false

    /// Applies the rules to the accepted lines; nil if the configuration has no rules.
    public init?(_ sample: LineSample, _ settings: Settings) {
        guard let container = settings.rulesForCheck else { return nil }
        var random = RepeatableRandom()
        let engine = RuleEngine(random: { random.next() })
        engine.use([container])
        for line in sample.lines {
            guard let event = line.event else { continue }
            let fate = event.line.withUnsafeBytes {
                engine.apply(
                    to: $0, app: sample.app, file: sample.file, priority: event.priority, at: event.time,
                    results: { _ in .null })
            }
            let rules = engine.actedRules
            guard !rules.isEmpty else { continue }
            let after = fate == .kept ? String(decoding: engine.line.dropLast(), as: UTF8.self) : nil
            lines.append(
                Line(
                    number: line.number, rules: rules,
                    before: String(decoding: event.line.dropLast(), as: UTF8.self),
                    after: after, destinations: engine.destinations,
                    priority: engine.priority == event.priority ? nil : engine.priority.name))
        }
        let rules = settings.writtenRules
        counts = rules.map { rule in (rule.name, lines.count { $0.rules.contains(rule.name) }) }
        let hashing = Set(rules.filter { rule in rule.actions.contains { $0.key == "hash" } }.map(\.name))
        hasDigests = lines.contains { !hashing.isDisjoint(with: $0.rules) }
    }
}
