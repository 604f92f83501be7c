internal import EventLoops
internal import Model

/// What waits in a lane: the queue's last summary, corrected by the batches leased since.
///
/// The queue publishes its summaries from another thread, so they lag behind. Without the correction, the
/// same events would be requested twice. Corrections end by themselves: if an answer of the queue is lost,
/// the summary is believed again after 10 s.
struct LaneView: Sendable {
    /// How long this machine's count of leased events is preferred to the queue's after the queue's count has
    /// changed. After that the queue's count is taken.
    private static let countsSettle = Duration.seconds(10)
    /// How long after a lease the summaries may still count the batch as free.
    private static let summaryLag = Duration.milliseconds(100)

    /// The queue's last summary.
    private(set) var summary = LaneSummary()
    /// Acceptance of the oldest waiting event: the queue's time of day, and the same on the boot clock.
    private var oldest: (acceptedAt: Timestamp, boot: BootInstant)?
    /// Waiting events that are sent now whatever their age, because the wait of the lane's oldest event is
    /// over.
    private(set) var dueEvents = 0
    /// Until when nothing is requested, because the queue had nothing to give.
    private var emptyUntil: BootInstant?
    /// Empty answers of the queue in a row.
    private var emptyAnswers = 0
    /// Events of all leases so far, by this machine's count. The queue counts the same
    /// (`LaneSummary.handedOut`); the difference is what the summary does not show yet, or shows before the
    /// batch has arrived. Nil before the first summary.
    private var leasedEvents: Int?
    /// Last change of the queue's count. Long after it the queue is right, so that no lane stalls because an
    /// answer was lost.
    private var countedAt: BootInstant?
    /// Free batches leased since the last summary, which may still count them as free.
    private var leasedFree = 0
    /// Until when `leasedFree` counts. If the summary showed those leases already, it would not change any
    /// more.
    private var lagsUntil: BootInstant?

    // MARK: Changes

    /// The queue has published another summary.
    mutating func show(_ new: LaneSummary, at now: Moment) {
        guard new != summary else { return }
        emptyUntil = nil
        emptyAnswers = 0
        endLag()
        // Without a count, or if the queue was created again (a damaged file was replaced), the queue's count
        // is right.
        if leasedEvents == nil || new.handedOut < summary.handedOut {
            leasedEvents = new.handedOut
        }
        if new.handedOut != summary.handedOut {
            countedAt = now.boot
        }
        if new.oldestAcceptedAt != oldest?.acceptedAt {
            // A time in the future (the clock was set back) starts a full wait now; otherwise the event would
            // wait until the clock reaches that time.
            oldest = new.oldestAcceptedAt.map { acceptedAt in
                let age = max(.zero, now.wall - acceptedAt)
                return (acceptedAt, now.boot + (.zero - age))
            }
        }
        summary = new
    }

    /// The queue has leased a batch. Leases whose attempt is gone count too, because the queue counts them.
    mutating func noteLease(events: Int) { leasedEvents = (leasedEvents ?? 0) + events }

    /// An attempt has got a batch: a new one, or a free one.
    mutating func noteBatch(events: Int, isNew: Bool, at now: BootInstant) {
        lagsUntil = now + LaneView.summaryLag
        if isNew {
            dueEvents = max(0, dueEvents - events)
        } else {
            leasedFree += 1
        }
    }

    /// The queue had nothing to give, although the summary says otherwise: the summary is about to change, or
    /// the queue cannot give a batch now. The next request waits 1, 2, 4 … 30 s.
    ///
    /// - Returns: whether it was empty before too: once may be a misunderstanding.
    mutating func noteEmpty(at now: BootInstant) -> Bool {
        emptyUntil = now + .seconds(min(30, 1 << min(5, emptyAnswers)))
        emptyAnswers += 1
        dueEvents = 0
        return emptyAnswers > 1
    }

    /// Lets at least this number of waiting events go now.
    mutating func letGo(_ events: Int) { dueEvents = max(dueEvents, events) }

    /// Lets events go only if a command wants them.
    mutating func letNoneGo() { dueEvents = 0 }

    /// Ends corrections that are over.
    ///
    /// - Parameter isAsked: whether the queue is being asked for a batch of the lane. Then its count may yet
    ///   change.
    mutating func passTime(at now: BootInstant, isAsked: Bool) {
        if let until = lagsUntil, until <= now {
            endLag()
        }
        if let until = emptyUntil, until <= now {
            emptyUntil = nil
        }
        if let at = countedAt, at + LaneView.countsSettle <= now, !isAsked {
            countedAt = nil
            leasedEvents = summary.handedOut
        }
    }

    /// The queue was emptied: corrections are forgotten, and its count continues.
    mutating func forget() {
        var view = LaneView()
        view.summary = summary
        view.leasedEvents = leasedEvents
        self = view
    }

    private mutating func endLag() {
        leasedFree = 0
        lagsUntil = nil
    }

    // MARK: Questions

    /// Whether the queue had nothing to give and is not asked for a moment.
    var isSaidEmpty: Bool { emptyUntil != nil }

    /// Events in no batch, and those in batches that the queue has formed but not handed over.
    var waiting: Int {
        max(0, summary.waitingEvents + summary.handedOut - (leasedEvents ?? summary.handedOut))
    }

    /// Free batches without those leased since the summary.
    var freeBatches: Int { isSaidEmpty ? 0 : max(0, summary.freeBatches - leasedFree) }

    /// Whether the queue's count of leases may differ from this one without an error.
    var isCountUncertain: Bool { countedAt != nil }

    /// Whether the summary is older than the last leases.
    var isAheadOfSummary: Bool { (leasedEvents ?? 0) > summary.handedOut }

    /// Acceptance of the oldest waiting event, on the boot clock.
    var oldestAcceptedAt: BootInstant? { oldest?.boot }

    /// Whether the lane may hold more than is known, so that a command asks once more.
    var mayHoldMore: Bool {
        if isAheadOfSummary { return true }
        if isSaidEmpty && waiting > 0 { return true }
        // It is unknown whether the summary is from before or after the last batch.
        return lagsUntil != nil && waiting + summary.freeBatches > 0
    }

    /// Adds the times at which these answers change by themselves.
    func addChanges(to next: inout NextPoint) {
        if summary.waitingEvents + summary.freeBatches > 0 {
            next.take(lagsUntil)
            next.take(emptyUntil)
        }
        if (leasedEvents ?? 0) != summary.handedOut {
            next.take(countedAt.map { $0 + LaneView.countsSettle })
        }
    }
}
