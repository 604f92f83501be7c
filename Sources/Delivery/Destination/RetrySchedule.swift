/// How long a request waits before each of its retries.
///
/// A pure value: it draws no randomness and reads no clock of its own. One schedule serves all requests of a
/// destination; each request counts its own attempts.
///
/// Waits are jittered downwards, so that agents that failed together do not come back together. With the default
/// of 10 s, 5 min and 20 min they fall in 5–10 s, 2.5–5 min and 10–20 min.
///
/// Source: App Center's retry intervals (ac13).
public struct RetrySchedule: Sendable, Equatable {
    /// The longest wait before each retry, in order; its count is the number of retries. Empty means none.
    public var intervals: [Duration]

    /// The random share of a wait: 0 keeps every wait whole, 1 may shorten it to nothing.
    ///
    /// Default 0.5. Without jitter a fleet retries in step, and the receiver that comes back is knocked over again.
    public var jitter: Double

    /// By default three retries, after at most 10 s, 5 min and 20 min. The bounds are those of the settings.
    public init(intervals: [Duration] = [.seconds(10), .seconds(300), .seconds(1200)], jitter: Double = 0.5) {
        self.intervals = intervals
        self.jitter = jitter
    }

    /// The wait before the next attempt.
    ///
    /// - Parameters:
    ///   - failures: failed attempts so far, at least 1.
    ///   - random: where the jitter comes from; tests pass a seeded one.
    /// - Returns: nil when the retries are used up.
    public func wait(afterFailures failures: Int, using random: inout some RandomNumberGenerator) -> Duration? {
        guard failures >= 1, failures <= intervals.count else { return nil }
        return shortened(intervals[failures - 1], using: &random)
    }

    /// A wait with a share of it taken away at random.
    func shortened(_ wait: Duration, using random: inout some RandomNumberGenerator) -> Duration {
        wait * (1 - jitter * Double.random(in: 0...1, using: &random))
    }
}
