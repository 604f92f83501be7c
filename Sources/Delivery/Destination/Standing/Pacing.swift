internal import EventLoops

/// How soon requests follow each other at the start and after failures.
///
/// An overloaded receiver then gets one request at a time from each agent instead of three at once. One
/// that refuses a single batch gets the others a moment later.
struct Pacing: Sendable {
    /// Failures since the last acknowledgement. Meanwhile one request at a time is in flight.
    struct Trouble: Sendable, Equatable {
        /// Time of day of the first failure.
        let since: Timestamp
        /// End of the pause after the last failure.
        fileprivate(set) var pauseUntil: BootInstant?
    }

    /// Present after failures until something is acknowledged.
    private(set) var trouble: Trouble?
    /// Logged failures since the last acknowledgement.
    private(set) var failuresInARow = 0
    /// When the first request may begin. Spreads the first connections of a fleet that starts together.
    private var firstStart: BootInstant?

    init(firstStart: BootInstant? = nil) { self.firstStart = firstStart }

    /// When the next request may begin after a start or a failure; nil for now.
    var startNotBefore: BootInstant? {
        guard let pause = trouble?.pauseUntil else { return firstStart }
        return max(pause, firstStart ?? pause)
    }

    /// Ends the pauses that are over by now.
    mutating func passTime(at now: BootInstant) {
        if let at = firstStart, at <= now {
            firstStart = nil
        }
        if let at = trouble?.pauseUntil, at <= now {
            trouble?.pauseUntil = nil
        }
    }

    /// Counts a failure that is logged but needs no pause.
    mutating func countFailure() { failuresInARow += 1 }

    /// Counts a failure, and begins nothing for 1 s after the first one in a row, then 2 s, then 4 s, less
    /// jitter.
    mutating func pause(
        _ retry: RetrySchedule, using random: inout some RandomNumberGenerator, at now: Moment
    ) {
        countFailure()
        let wait = retry.shortened(.seconds(1 << min(failuresInARow - 1, 2)), using: &random)
        let pause = max(startNotBefore ?? now.boot, now.boot + wait)
        trouble = Trouble(since: trouble?.since ?? now.wall, pauseUntil: pause)
    }

    /// The destination asked for a wait, which takes the place of a pause.
    mutating func noteTrouble(at now: Timestamp) { trouble = trouble ?? Trouble(since: now) }

    /// Something was acknowledged; returns the number of logged failures before it.
    mutating func recover() -> Int {
        defer { (failuresInARow, trouble, firstStart) = (0, nil, nil) }
        return failuresInARow
    }

    /// Ends waits after failures, because their cause may be gone.
    mutating func endTrouble() { if trouble != nil { (trouble, firstStart) = (nil, nil) } }
}
