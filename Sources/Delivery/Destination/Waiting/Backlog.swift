internal import EventLoops
internal import Model

/// What waits for a destination, and how large its next batches may be. A read-only view.
///
/// What was requested and not answered yet is subtracted from the lanes' summaries. Otherwise the same
/// events would be requested twice.
struct Backlog: Sendable {
    let options: DestinationOptions
    let views: PerPriority<LaneView>
    let attempts: Attempts.Counts
    let kept: Kept.Counts
    /// Most events of a batch. Smaller if many events are refused, so that one cut makes pieces of the best
    /// size (see `Cut`).
    let mostEvents: Int
    /// Largest batch to form, in uncompressed bytes.
    let maxBytes: Int
    /// Whether free batches may have been rejected before a restart. Then they alternate with new events
    /// instead of preceding them: hundreds of rejected ones would delay good events by minutes.
    let suspectsFree: Bool

    // MARK: Events and batches

    /// Events that are in no batch, and those in batches that the queue has formed but not handed over.
    func waiting(_ priority: Priority) -> Int { views[priority].waiting }

    /// Batches of a lane that the queue is forming now.
    func asked(_ priority: Priority) -> Int { attempts.askingForNew[priority] }

    /// Waiting events that no request to the queue has been made for. The queue was asked for batches, not
    /// events, so each request counts as a full batch.
    func available(_ priority: Priority) -> Int {
        guard !views[priority].isRefused else { return 0 }
        let waiting = waiting(priority)
        return waiting > 0 ? max(0, waiting - asked(priority) * largestBatch(priority)) : 0
    }

    /// Lanes with events that were not requested yet.
    var lanesWithNew: [Priority] { Priority.inOrder.filter { available($0) > 0 } }

    /// Free batches of a lane that were not requested yet.
    func freeToTake(_ priority: Priority) -> Int {
        let unclaimed = views[priority].freeBatches
        guard unclaimed > 0 else { return 0 }
        // The queue counts the batches remembered by delivery as free too, as well as those that a
        // settlement is just making.
        return max(0, unclaimed - kept.batches[priority] - attempts.known[priority])
    }

    /// Whether anything could be sent, now or later.
    var hasSomething: Bool {
        Priority.inOrder.contains { kept.batches[$0] > 0 || waiting($0) > 0 || freeToTake($0) > 0 }
    }

    /// Events that have not reached the destination, as far as is known; the figure that drain reports.
    ///
    /// - Parameter underWay: those of the attempts.
    func eventsLeft(underWay: Int) -> Int {
        let known = kept.events + underWay
        let left = Priority.inOrder.reduce(known) { $0 + waiting($1) }
        guard Priority.inOrder.contains(where: { freeToTake($0) > 0 }) else { return left }
        // For free batches only the queue's figure is known, which still counts what was acknowledged just
        // now. At least one event is left: otherwise a drain would end too early.
        let batched = views.critical.summary.batchedEvents + views.normal.summary.batchedEvents
        return left + max(1, batched - known)
    }

    // MARK: Sizes

    /// Most events of a lane's batch, estimated from the mean size of those that wait.
    func largestBatch(_ priority: Priority) -> Int {
        let lane = views[priority].summary
        guard lane.waitingBytes > 0 else { return mostEvents }
        let fitting = maxBytes.multipliedReportingOverflow(by: lane.waitingEvents)
        return fitting.overflow
            ? mostEvents : min(mostEvents, max(1, fitting.partialValue / lane.waitingBytes))
    }

    /// Whether a lane's batches have no more uncompressed bytes than a number.
    func isSmall(_ priority: Priority, atMost most: Int) -> Bool {
        let lane = views[priority].summary
        guard lane.waitingEvents > 0 else { return false }
        return min(lane.waitingBytes / lane.waitingEvents * options.mostEvents, maxBytes) <= most
    }

    // MARK: When

    /// Whether a request may begin: at most `parallelBatches` are in flight, and one critical batch more if
    /// normal ones hold all places. With an order one per lane.
    ///
    /// - Parameter isTroubled: whether requests fail; then one at a time begins.
    func hasPlace(_ priority: Priority, isTroubled: Bool) -> Bool {
        let places = attempts.places
        let taken = places.critical + places.normal
        if isTroubled, taken > 0 { return false }
        if options.order != .free, places[priority] > 0 { return false }
        if taken < options.parallelBatches { return true }
        return priority == .critical && taken == options.parallelBatches && places.critical == 0
    }

    /// Whether waiting events of a lane are due: a command wants them, their wait is over, or they
    /// fill a batch. Events that the queue is forming into batches already are not counted.
    func isDue(_ priority: Priority, _ gate: Gate, _ pushing: Pushing) -> Bool {
        let events = available(priority)
        guard events > 0 else { return false }
        let asked = asked(priority)
        let coming = asked * largestBatch(priority)
        if pushing.wants(more: coming, priority) { return true }
        guard let automatic = gate.automatic else { return false }
        if views[priority].dueEvents > coming { return true }
        return automatic.batchOnSize
            && (events >= options.dueEvents
                || views[priority].summary.waitingBytes - asked * maxBytes >= maxBytes)
    }

    /// When a lane's oldest event will have waited long enough; nil if nothing waits or sending is not
    /// automatic.
    func dueAt(_ priority: Priority, _ gate: Gate) -> BootInstant? {
        guard let automatic = gate.automatic, let oldest = views[priority].oldestAcceptedAt,
            available(priority) > 0
        else {
            return nil
        }
        return automatic.due(priority, since: oldest)
    }

    /// When the earliest waiting event of a lane comes close to a deadline; nil without deadlines or events.
    func atRisk(_ priority: Priority) -> Timestamp? {
        guard !options.deadlines.isEmpty, available(priority) > 0 else { return nil }
        return options.deadlines.atRisk(views[priority].summary)
    }
}
