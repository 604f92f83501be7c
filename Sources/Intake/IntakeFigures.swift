package import Containers
package import Events
package import Model
internal import Synchronization

/// Counts of one intake since the start, for metrics. The reader's loop writes them, any thread reads them.
package final class IntakeFigures: Sendable {
    /// Counts as of a commit.
    package struct Counts: Sendable {
        package var events = EventCounts()
        package var rules = RuleCounts()
        /// Number of different event names of the day, by app.
        package var names: [String: NameCount] = [:]
        package var quarantined: [QuarantineRecord.Reason: Int] = [:]
        /// Number of files that wait for a function's answer, or for a free place to ask, by function and
        /// app.
        package internal(set) var waiting: [String: [String: Int]] = [:]
        package var apps: [String: AppCounts] = [:]
        /// Events that have a schema, by schema.
        package internal(set) var schemas: [SchemaName: SchemaCounts] = [:]
        /// The window for repeats; only the spool's figures have it, because all intakes share it.
        package internal(set) var repeats = RepeatFigures()

        /// Adds the counts of another intake. Names, waiting files and the window are in the spool's counts
        /// only.
        package mutating func add(_ other: Counts) {
            events.add(other.events)
            rules.fired.merge(other.rules.fired, uniquingKeysWith: +)
            rules.byRule.merge(other.rules.byRule, uniquingKeysWith: +)
            rules.problems.merge(other.rules.problems, uniquingKeysWith: +)
            quarantined.merge(other.quarantined, uniquingKeysWith: +)
            for (app, counts) in other.apps { apps.note(app, counts) }
            for (name, counts) in other.schemas { schemas[name, default: SchemaCounts()].add(counts) }
        }
    }

    private let published = Mutex(Counts())

    package init() {}

    /// Counts as of the last commit.
    package var counts: Counts { published.withLock { $0 } }

    /// Changes the counts; on the reader's loop.
    func update(_ change: (inout Counts) -> Void) { published.withLock { change(&$0) } }
}
