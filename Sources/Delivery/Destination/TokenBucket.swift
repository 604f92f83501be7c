internal import EventLoops

/// Holds a rate of requests: filled by time, emptied by what is sent, at most one second's worth.
///
/// A batch that took several requests is charged for them once that is known, so the level may sink below nothing: the
/// next waits until the debt is paid. Over any stretch of time the rate is held, with one second's worth and one batch
/// beyond it at most. An attempt that waits for it holds no place in flight, and a critical batch that comes meanwhile goes first.
struct TokenBucket: Sendable {
    private let perSecond: Double
    private var level: Double
    private var filledAt: BootInstant

    /// - Parameter perSecond: may be a fraction.
    init(perSecond: Double, at now: BootInstant) {
        self.perSecond = max(1e-6, perSecond)
        level = max(1, perSecond)
        filledAt = now
    }

    /// How long the next request must wait; zero when it may go.
    mutating func wait(at now: BootInstant) -> Duration {
        fill(at: now)
        guard level < 1 else { return .zero }
        // A nanosecond more, so that rounding never asks twice for the same instant.
        return .nanoseconds(Int64(min(1e18, (1 - level) / perSecond * 1e9)) + 1)
    }

    mutating func charge(_ requests: Int, at now: BootInstant) {
        fill(at: now)
        level -= Double(requests)
    }

    private mutating func fill(at now: BootInstant) {
        let seconds = Double((now - filledAt).nanosecondsClamped) / 1e9
        level = min(max(1, perSecond), level + seconds * perSecond)
        filledAt = now
    }
}
