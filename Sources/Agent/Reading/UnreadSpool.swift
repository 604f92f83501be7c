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

    /// What waits in a spool; at most five seconds old, unless its file system does not answer.
    func look(in spool: String) -> SpoolBacklog {
        let known = last.withLock(\.self)
        if let known, known.spool == spool, time.bootTime - known.at < UnreadSpool.patience {
            return known.found
        }
        guard DistantMount.onTheWay(of: spool) != nil else { return measure(spool) }
        return SilentFiles.answer(about: spool) { self.measure(spool) } ?? known?.found ?? SpoolBacklog()
    }

    private func measure(_ spool: String) -> SpoolBacklog {
        let found = SpoolBacklog.measure(in: spool, read: read)
        last.withLock { $0 = (spool, time.bootTime, found) }
        return found
    }
}
