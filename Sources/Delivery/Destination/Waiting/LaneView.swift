internal import EventLoops
internal import Model

/// What waits in a lane: the newest summary of the queue.
///
/// Summaries come from the queue's snapshots, which another thread publishes, and with each answer to a
/// lease. They can overtake each other, so an older revision is ignored. Without that, events that were
/// leased already would be requested again.
struct LaneView: Sendable {
    /// The queue's newest summary.
    private(set) var summary = LaneSummary()
    /// Acceptance of the oldest waiting event: the queue's time of day, and the same on the boot clock.
    private var oldest: (acceptedAt: Timestamp, boot: BootInstant)?
    /// Waiting events that are sent now whatever their age, because the wait of the lane's oldest event is
    /// over.
    private(set) var dueEvents = 0
    /// Revision of the summary by which `dueEvents` was counted.
    private var dueRevision = 0
    /// Until when nothing is requested, because the queue could not give what the summary shows.
    private(set) var refusedUntil: BootInstant?
    /// How often in a row the queue could not.
    private var refusals = 0

    // MARK: Changes

    /// The queue has published or answered a summary.
    ///
    /// - Returns: whether it is newer than the last one, and says anything else.
    mutating func show(_ new: LaneSummary, at now: Moment) -> Bool {
        guard new.revision > summary.revision else { return false }
        let wasRefused = isRefused
        let old = summary
        refusedUntil = nil
        refusals = 0
        if new.oldestAcceptedAt != oldest?.acceptedAt {
            // A time in the future (the clock was set back) starts a full wait now; otherwise the event would
            // wait until the clock reaches that time.
            oldest = new.oldestAcceptedAt.map { acceptedAt in
                let age = max(.zero, now.wall - acceptedAt)
                return (acceptedAt, now.boot + (.zero - age))
            }
        }
        summary = new
        return wasRefused || !new.saysTheSame(as: old)
    }

    /// An attempt has got events that waited. If the summary by which events were let go did not count these
    /// any more, as many others are still due.
    ///
    /// - Parameter revision: that of the lane after the lease; nil if it is not known.
    mutating func noteBatch(events: Int, revision: Int?) {
        guard revision ?? .max > dueRevision else { return }
        dueEvents = max(0, dueEvents - events)
    }

    /// The queue had nothing to give. If the summary still shows something, the queue cannot give it now, and
    /// the next request waits 1, 2, 4 … 30 s, or until the lane changes.
    ///
    /// - Parameter revision: that of the lane when the queue looked; nil if it did not say.
    /// - Returns: whether that is still so; false if the lane has changed since.
    mutating func noteEmpty(revision: Int?, at now: BootInstant) -> Bool {
        guard revision.map({ $0 >= summary.revision }) ?? true else { return false }
        dueEvents = 0
        guard offersSomething else { return true }
        refusedUntil = now + .seconds(min(30, 1 << min(5, refusals)))
        refusals += 1
        return true
    }

    /// Lets at least this number of waiting events go now.
    mutating func letGo(_ events: Int) {
        guard events > dueEvents else { return }
        dueEvents = events
        dueRevision = summary.revision
    }

    /// Lets events go only if a command wants them.
    mutating func letNoneGo() { dueEvents = 0 }

    /// Ends a wait that is over.
    mutating func passTime(at now: BootInstant) {
        if let until = refusedUntil, until <= now {
            refusedUntil = nil
        }
    }

    /// The queue was emptied: what was planned with the lane's events is forgotten.
    mutating func forget() {
        var view = LaneView()
        view.summary = summary
        self = view
    }

    // MARK: Questions

    /// Whether the queue could not give what the summary shows, and is not asked for a moment.
    var isRefused: Bool { refusedUntil != nil }

    /// Events in no batch, and those in batches that the queue has formed but not handed over.
    var waiting: Int { summary.waitingEvents }

    /// Batches that can be leased by their id.
    var freeBatches: Int { isRefused ? 0 : summary.freeBatches }

    /// Acceptance of the oldest waiting event, on the boot clock.
    var oldestAcceptedAt: BootInstant? { oldest?.boot }

    /// Whether a drain has to ask once more.
    var mayHoldMore: Bool { isRefused && waiting > 0 }

    private var offersSomething: Bool { summary.waitingEvents + summary.freeBatches > 0 }

    /// Adds the time at which these answers change by themselves.
    func addChanges(to next: inout NextPoint) {
        if offersSomething {
            next.take(refusedUntil)
        }
    }
}

extension LaneSummary {
    /// Whether two summaries differ in their revisions only.
    fileprivate func saysTheSame(as other: LaneSummary) -> Bool {
        var same = other
        same.revision = revision
        return same == self
    }
}
