internal import EventLoops

/// Failures of the queue: it is not asked for 1, 2, 4 … 30 s.
struct StoreTrouble: Sendable {
    /// Longest wait in seconds.
    private static let longest = 30

    /// When the queue may be asked again.
    private(set) var retryAt: BootInstant?
    /// Failures in a row.
    private var failures = 0

    /// The queue has answered.
    mutating func recover() { failures = 0 }

    mutating func passTime(at now: BootInstant) { if let at = retryAt, at <= now { retryAt = nil } }

    /// A call failed. Calls that fail during the wait count as the same failure: they were under way when the
    /// first one failed.
    ///
    /// - Returns: when the queue may be asked again, and the wait if it has to be logged.
    mutating func fail(at now: BootInstant) -> (again: BootInstant, wait: Duration?) {
        if let again = retryAt, again > now { return (again, nil) }
        failures += 1
        let wait = Duration.seconds(min(StoreTrouble.longest, 1 << min(5, failures - 1)))
        retryAt = now + wait
        return (now + wait, wait)
    }
}
