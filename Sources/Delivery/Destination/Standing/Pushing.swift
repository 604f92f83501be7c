internal import Model

/// What commands (dispatch, drain) and the stop still want sent, and how it went.
///
/// A push ends exactly once, with a reason unless everything was sent. Commands wait for that end.
struct Pushing: Sendable {
    /// The events still to send; nil if no command waits for requests.
    private(set) var push: Push?
    /// Why the last push ended; nil if everything was sent.
    private(set) var reason: DestinationStateName?
    /// Whether the agent stops. Then only acknowledgements count, and failures change nothing.
    private(set) var isStopping = false
    /// How the attempts of pushes ended, until they were reported to the commands: nil for a batch that was
    /// accepted, split or given up.
    private(set) var ends: [Failure?] = []

    var isActive: Bool { push != nil }

    /// Whether all that waits and comes is wanted (drain), rather than what waited at the beginning.
    var isEverything: Bool { push?.everything == true }

    /// Whether one attempt may still pass an open breaker or a hold.
    var hasProbe: Bool { push?.probe == true }

    /// Begins a push in place of the last one.
    mutating func begin(_ new: Push) {
        push = new
        reason = nil
    }

    /// Starts nothing more for commands; requests in flight end.
    mutating func stop(_ why: DestinationStateName?) {
        push = nil
        reason = why
    }

    /// The agent stops: pushes of commands end.
    mutating func beginStop() {
        isStopping = true
        stop(nil)
    }

    /// Collection was disabled: the push ends, and the last reason stays.
    mutating func forget() { push = nil }

    /// An attempt of a push has ended.
    mutating func note(_ end: Failure?) { ends.append(end) }

    mutating func clearEnds() { ends.removeAll() }

    // MARK: When a push ends

    /// Whether a reason for which nothing is sent ends the push.
    ///
    /// A command has one probe past an open breaker or a hold: it must be able to find out that the receiver
    /// was repaired.
    ///
    /// - Parameter probes: number of probes on their way.
    func ends(at obstacle: DestinationStateName, probes: Int) -> Bool {
        guard isActive else { return false }
        let mayProbe = [.breakerOpen, .held, .waitingForRetry].contains(obstacle)
        return !(mayProbe && (hasProbe || probes > 0))
    }

    /// Whether a lane may hold more of the push than its summary shows, so that the queue is asked once more.
    func mayFindMore(in backlog: Backlog) -> Bool {
        Priority.inOrder.contains { priority in
            (wants(more: 0, priority) || wantsFree(priority)) && backlog.views[priority].mayHoldMore
        }
    }

    // MARK: What is still to go

    /// Whether a remembered batch belongs to the push.
    func concerns(_ batch: BatchID) -> Bool { isEverything || push?.batches.contains(batch) == true }

    /// Whether the push wants more waiting events of a lane than are being formed into batches already.
    func wants(more coming: Int, _ priority: Priority) -> Bool {
        push.map { $0.everything || $0.events[priority] > coming } ?? false
    }

    /// Whether the push wants a free batch of a lane.
    func wantsFree(_ priority: Priority) -> Bool {
        push.map { $0.everything || $0.free[priority] > 0 } ?? false
    }

    /// A remembered batch of the push begins.
    mutating func begun(_ batch: BatchID) { push?.batches.remove(batch) }

    /// A free batch of the push begins.
    mutating func begunFree(_ priority: Priority) { push?.free[priority] -= 1 }

    /// The push has used its one probe.
    mutating func usedProbe() { push?.probe = false }

    /// An attempt has got waiting events of a lane.
    ///
    /// - Parameter revision: that of the lane after the lease; nil if it is not known.
    mutating func got(_ events: Int, _ priority: Priority, revision: Int? = nil) {
        guard let left = push?.events[priority], let counted = push?.revisions[priority],
            revision ?? .max > counted
        else { return }
        push?.events[priority] = max(0, left - events)
    }

    /// The queue has nothing more of a lane.
    mutating func foundNothing(_ priority: Priority) {
        push?.events[priority] = 0
        push?.free[priority] = 0
    }

    /// A piece of a batch of the push is wanted too.
    mutating func add(_ batch: BatchID) { push?.batches.insert(batch) }
}
