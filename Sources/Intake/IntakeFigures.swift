public import Containers
public import Events
public import Model
internal import Synchronization

/// The intake's counts since the start, for metrics: written by the reader's loop, read from any thread.
public final class IntakeFigures: Sendable {
    /// The counts at one moment.
    public struct Counts: Sendable {
        /// What the pass over each line counts.
        public var events = EventCounts()
        /// What containers' rules have done.
        public var rules = RuleCounts()
        /// Different event names, by app.
        public var names: [String: NameCount] = [:]
        /// What went to the quarantine, by reason.
        public var quarantined: [QuarantineRecord.Reason: Int] = [:]
        /// How many files wait for a function's answer or for a place to ask, by function and app.
        public internal(set) var waiting: [String: [String: Int]] = [:]
        /// What each app has written.
        public var apps: [String: AppCounts] = [:]

        /// Adds what another intake counted; names are the spool's.
        public mutating func add(_ other: Counts) {
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
    public var counts: Counts { published.withLock { $0 } }

    func update(_ change: (inout Counts) -> Void) { published.withLock { change(&$0) } }
}
