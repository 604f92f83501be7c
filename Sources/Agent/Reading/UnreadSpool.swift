internal import EventLoops
internal import Spool
internal import Synchronization

/// What waits in the spool while nothing is read from it, for want of a destination. From any thread.
final class UnreadSpool: Sendable {
    /// Asked for often, it looks again only so much later.
    private static let patience: Duration = .seconds(5)

    private let time: any TimeSource
    private let read: [String: Int64]
    private let last = Mutex<(spool: String, at: BootInstant, found: SpoolBacklog)?>(nil)

    /// - Parameter read: how much of append files was read before, by their paths below the spool.
    init(time: any TimeSource, read: [String: Int64]) {
        self.time = time
        self.read = read
    }

    /// What waits in a spool, at most five seconds ago.
    func look(in spool: String) -> SpoolBacklog {
        last.withLock { last in
            let now = time.bootTime
            if let last, last.spool == spool, now - last.at < UnreadSpool.patience { return last.found }
            let found = SpoolBacklog.measure(in: spool, read: read)
            last = (spool, now, found)
            return found
        }
    }
}
