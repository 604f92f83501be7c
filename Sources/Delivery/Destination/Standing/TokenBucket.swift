internal import EventLoops

/// Limits the rate of requests (token bucket): filled by time, emptied by requests, holds at most one
/// second's worth.
///
/// A batch of several requests is charged when their number is known, so the level may become negative; the
/// next batch then waits until the debt is paid. Over any time the rate is exceeded by at most one second's
/// worth and one batch. A batch that waits for the rate holds no place, so that a critical batch that comes
/// meanwhile goes first.
struct TokenBucket: Sendable {
    /// Requests per second; at least one in 10^6 s, so that waits stay finite.
    private let perSecond: Double
    /// Requests that could begin at `filledAt`; negative while a debt is paid.
    private var level: Double
    /// When requests were last taken out, and `level` was computed.
    private var filledAt: BootInstant

    /// - Parameter perSecond: may be a fraction.
    init(perSecond: Double, at now: BootInstant) {
        self.perSecond = max(1e-6, perSecond)
        level = max(1, perSecond)
        filledAt = now
    }

    /// When the next request may begin; in the past if it may now. Only requests change it: it is the same
    /// however often it is asked for.
    var readyAt: BootInstant {
        guard level < 1 else { return filledAt }
        // Plus one nanosecond, so that rounding never yields the same instant twice.
        return filledAt + .nanoseconds(Int64(min(1e18, (1 - level) / perSecond * 1e9)) + 1)
    }

    /// Takes requests out, also more than there are.
    mutating func charge(_ requests: Int, at now: BootInstant) {
        fill(at: now)
        level -= Double(requests)
    }

    /// Adds what came in since the last call.
    private mutating func fill(at now: BootInstant) {
        let seconds = Double((now - filledAt).nanosecondsClamped) / 1e9
        level = min(max(1, perSecond), level + seconds * perSecond)
        filledAt = now
    }
}
