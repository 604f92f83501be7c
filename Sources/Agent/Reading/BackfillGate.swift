internal import Model
internal import Queue
internal import Spool

/// Decides whether old files may be read on, as all other events go first. A pure value.
///
/// Old events enter only as fast as they leave: no more wait for a destination than it sends now and next. So
/// a new event from the spool waits behind a few batches at most, never behind a backlog of old events.
struct BackfillGate: Equatable {
    /// How many events may wait for each destination: twice as many as it sends at a time.
    var depths: [DestinationName: Int]
    /// How many bytes of the spool may be unread: the size of the longest event, because an app may write an
    /// event in pieces and the unfinished line counts as unread.
    var unread: Int64

    /// The reason to wait; nil if old files may be read on.
    ///
    /// - Parameter destinations: the destinations that would get the old events.
    func obstacle(_ queue: QueueSnapshot, _ spool: SpoolFigures, to destinations: [DestinationName])
        -> String?
    {
        if case .nothing(let reason) = queue.accepting {
            return "the queue stores nothing now: \(reason.rawValue)"
        }
        if spool.isHeldBack || spool.unreadBytes.value > unread { return "the spool is not read to its end" }
        for name in destinations {
            let waiting = Priority.allCases.reduce(0) { $0 + (queue.lane(name, $1)?.ledger.queued ?? 0) }
            if waiting > depths[name] ?? 0 { return "\(waiting) events wait for \(name)" }
        }
        // The other half stays free for new events: a full queue would stop reading the spool.
        if queue.storedBytes > queue.maxSize / 2 { return "the queue is more than half full" }
        return nil
    }
}
