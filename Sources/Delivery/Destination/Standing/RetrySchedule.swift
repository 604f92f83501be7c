/// How long a batch waits before each of its retries.
///
/// A pure value: it draws randomness from the caller's generator and reads no clock. One schedule serves all
/// batches of a destination; each batch counts its own failures.
///
/// Jitter only shortens waits, so that agents that failed together do not come back together. With the
/// default of 10 s, 5 min and 20 min the waits are 5–10 s, 2.5–5 min and 10–20 min, as in App Center's SDK.
public struct RetrySchedule: Sendable, Equatable {
    /// Longest wait before each retry, in order; the count is the number of retries. Empty: no retries.
    public var intervals: [Duration]

    /// Share of a wait that is random: 0 keeps each wait whole, 1 may shorten it to nothing.
    ///
    /// Default 0.5. Without jitter a fleet retries in step and overloads the receiver that comes back.
    public var jitter: Double

    /// Three retries by default, after at most 10 s, 5 min and 20 min. Values are not checked here; the
    /// settings bound them.
    public init(intervals: [Duration] = [.seconds(10), .seconds(300), .seconds(1200)], jitter: Double = 0.5) {
        self.intervals = intervals
        self.jitter = jitter
    }

    /// The wait before the next attempt.
    ///
    /// - Parameters:
    ///   - failures: failed attempts so far, at least 1.
    ///   - random: source of the jitter; tests pass a seeded one.
    /// - Returns: nil if the retries are used up.
    public func wait(afterFailures failures: Int, using random: inout some RandomNumberGenerator) -> Duration?
    {
        guard failures >= 1, failures <= intervals.count else { return nil }
        return shortened(intervals[failures - 1], using: &random)
    }

    /// A wait, shortened by its random share.
    func shortened(_ wait: Duration, using random: inout some RandomNumberGenerator) -> Duration {
        wait * (1 - jitter * Double.random(in: 0...1, using: &random))
    }
}
