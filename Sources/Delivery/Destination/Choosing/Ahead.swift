internal import EventLoops
internal import Model

/// Whether a small batch is requested ahead of a free place, and of which lane.
///
/// With batches of 50 events, the queue's thread and this one would wake each other for every batch, which
/// costs as much as sending it. Batches leased ahead hold no place, never precede waiting critical events,
/// and are given back as soon as anything but the lack of a place stops them.
struct Ahead: Sendable {
    /// Most batches that wait for a place. They hold at most 5 × 64 KiB of lines.
    private static let most = 5
    /// More are requested only when at most this many are left, so that several requests go to the queue
    /// together.
    private static let few = 1
    /// Largest batch requested ahead, in uncompressed bytes. Larger batches cost memory and cause few
    /// wake-ups anyway.
    private static let largest = 64 << 10

    /// The lane whose full batches are requested ahead; nil unless nothing is wrong and all places are taken.
    static func lane(_ view: Chooser) -> Priority? {
        guard isAllWell(view), view.attempts.counts.sending > 0, view.attempts.counts.ahead <= few,
            !view.hasPlace(.normal)
        else { return nil }
        let lane: Priority = view.backlog.available(.critical) > 0 ? .critical : .normal
        return view.backlog.isSmall(lane, atMost: largest) ? lane : nil
    }

    /// Whether one more batch of the lane may be requested.
    static func wantsMore(_ backlog: Backlog, _ lane: Priority, _ gate: Gate, _ pushing: Pushing) -> Bool {
        backlog.attempts.ahead < most && backlog.available(lane) >= backlog.options.mostEvents
            && backlog.isDue(lane, gate, pushing)
    }

    /// Whether nothing but the lack of a place stops sending, and nothing waits for a retry or a command.
    private static func isAllWell(_ view: Chooser) -> Bool {
        view.options.order == .free && view.gate.block == nil && view.gate.automatic != nil
            && view.standing.obstacle == nil && view.standing.storeRetryAt == nil && !view.pushing.isActive
            && !view.pushing.isStopping && !view.turns.isLimited && view.kept.isEmpty
            && !view.blame.hasSuspects
    }
}
