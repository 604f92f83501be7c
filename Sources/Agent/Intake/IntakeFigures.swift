internal import Containers
internal import Events
internal import Model
internal import Synchronization

/// What the intake counts since the start, for metrics: written by the reader's loop, read from any thread.
final class IntakeFigures: Sendable {
    /// The counts at one moment.
    struct Counts: Sendable {
        /// What the pass over each line counts.
        var events = EventCounts()
        /// What containers' rules have done.
        var rules = RuleCounts()
        /// Events that a tag sent to destinations that are not configured: they went where the configuration says.
        var unknownDestinations = 0
        /// Different event names, by app.
        var names: [String: NameCount] = [:]
        /// What went to the quarantine, by reason.
        var quarantined: [QuarantineRecord.Reason: Int] = [:]
    }

    private let published = Mutex(Counts())

    /// The counts, as of the last commit.
    var counts: Counts { published.withLock { $0 } }

    func update(_ change: (inout Counts) -> Void) { published.withLock { change(&$0) } }
}
