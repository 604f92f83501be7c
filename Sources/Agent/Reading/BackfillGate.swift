internal import Model
internal import Queue
internal import Spool

/// Whether old files may go on: everything else goes first. Pure.
///
/// Old events are let in only as fast as they leave: no more than a destination has in hand and about to go. So an event
/// that comes from the spool meanwhile waits behind a few batches at most, never behind a backlog of old ones.
struct BackfillGate: Equatable {
    /// How many events may wait for each destination: twice what it takes at a time.
    var depths: [DestinationName: Int]
    /// How many bytes of the spool may be unread: the longest event, because one may be written in pieces.
    var unread: Int64

    /// What goes first; nil when nothing does. The destinations are those that would get the old events.
    func obstacle(_ queue: QueueSnapshot, _ spool: SpoolFigures, to destinations: [DestinationName]) -> String? {
        if case .nothing(let reason) = queue.accepting { return "the queue stores nothing now: \(reason.rawValue)" }
        if spool.isHeldBack || spool.unreadBytes.value > unread { return "the spool is not read to its end" }
        for name in destinations {
            let waiting = Priority.allCases.reduce(0) { $0 + (queue.lane(name, $1)?.ledger.queued ?? 0) }
            if waiting > depths[name] ?? 0 { return "\(waiting) events wait for \(name)" }
        }
        if queue.storedBytes > queue.maxSize / 2 { return "the queue is more than half full" }
        return nil
    }
}
