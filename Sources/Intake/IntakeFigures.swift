package import Containers
package import Events
package import Model
internal import Synchronization

/// The intake's counts since the start, for metrics: written by the reader's loop, read from any thread.
package final class IntakeFigures: Sendable {
    package struct Counts: Sendable {
        package var events = EventCounts()
        package var rules = RuleCounts()
        /// Different event names, by app.
        package var names: [String: NameCount] = [:]
        package var quarantined: [QuarantineRecord.Reason: Int] = [:]
        /// How many files wait for a function's answer or for a place to ask, by function and app.
        package internal(set) var waiting: [String: [String: Int]] = [:]
        package var apps: [String: AppCounts] = [:]

        /// Adds what another intake counted; names are the spool's.
        package mutating func add(_ other: Counts) {
            events.add(other.events)
            rules.fired.merge(other.rules.fired, uniquingKeysWith: +)
            rules.problems.merge(other.rules.problems, uniquingKeysWith: +)
            quarantined.merge(other.quarantined, uniquingKeysWith: +)
            for (app, counts) in other.apps { apps.note(app, counts) }
        }
    }

    private let published = Mutex(Counts())

    package init() {}

    /// The counts, as of the last commit.
    package var counts: Counts { published.withLock { $0 } }

    func update(_ change: (inout Counts) -> Void) { published.withLock { change(&$0) } }
}
