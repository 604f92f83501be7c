/// What rules have done, as it is counted for each event: tags by index, because finding a name costs more
/// than most tags.
struct RuleTally {
    /// What is counted by name already.
    private var counts = RuleCounts()
    /// What the tags of each container have done since.
    private var containers: [Firings] = []

    /// How often the tags of a container have fired.
    private struct Firings {
        let container: CompiledContainer
        /// Tags that fired.
        var tags = 0
        /// Events on which a rule of the configuration acted, by the index of the first of its tags that
        /// fired.
        var events: [Int]

        init(_ container: CompiledContainer) {
            self.container = container
            events = Array(repeating: 0, count: container.isOfConfiguration ? container.tags.count : 0)
        }

        /// Name of the configuration's rule that a tag belongs to.
        func rule(ofTag tag: Int) -> String { container.document.tags[tag].rules[0] }

        mutating func count(_ firings: ArraySlice<RuleEngine.Firing>) {
            tags += firings.count
            guard container.isOfConfiguration, let first = firings.first else { return }
            events[first.tag] += 1
            // Tags of one rule follow each other.
            for (before, next) in zip(firings, firings.dropFirst())
            where rule(ofTag: before.tag) != rule(ofTag: next.tag) {
                events[next.tag] += 1
            }
        }
    }

    /// Counts by name what was counted by index, and returns all.
    mutating func total() -> RuleCounts {
        for index in containers.indices where containers[index].tags > 0 {
            let firings = containers[index]
            counts.fired[firings.container.document.id, default: 0] += firings.tags
            for (tag, events) in firings.events.enumerated() where events > 0 {
                counts.byRule[firings.rule(ofTag: tag), default: 0] += events
            }
            containers[index] = Firings(firings.container)
        }
        return counts
    }

    /// Counts for these containers from now on.
    mutating func begin(_ containers: [CompiledContainer]) {
        _ = total()
        self.containers = containers.map { Firings($0) }
    }

    /// Goes back to earlier counts of the same containers.
    mutating func restore(_ earlier: RuleCounts) {
        counts = earlier
        containers = containers.map { Firings($0.container) }
    }

    /// Counts something that a tag could not do.
    mutating func note(_ problem: RuleProblem) { counts.problems[problem, default: 0] += 1 }

    /// Notes how many pushes were refused so far.
    mutating func note(refusedPushes: Int) { counts.problems[.refusedPush] = refusedPushes }

    /// Counts tags of a container that fired for an event, in order.
    mutating func count(_ firings: ArraySlice<RuleEngine.Firing>, of container: Int) {
        containers[container].count(firings)
    }
}
