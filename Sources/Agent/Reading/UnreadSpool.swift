internal import EventLoops
internal import Spool
internal import Synchronization

/// Measures the backlog in the spool while nothing is read because no destination is configured: then there
/// is no reader with figures. From any thread.
final class UnreadSpool: Sendable {
    /// How long a measurement is valid, because it lists the whole directory.
    private static let patience: Duration = .seconds(5)

    private let time: any TimeSource
    /// How many bytes of append files were read before, by their paths below the spool.
    private let read: [String: Int64]
    /// The last measurement, with the directory and the time.
    private let last = Mutex<(spool: String, at: BootInstant, found: SpoolBacklog)?>(nil)

    /// - Parameter read: how many bytes of append files were read before, by their paths below the spool.
    init(time: any TimeSource, read: [String: Int64]) {
        self.time = time
        self.read = read
    }

    /// What waits in a spool; at most five seconds old.
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
