internal import EventLoops

/// At most so much a second for a destination.
public enum RateLimit: Sendable, Equatable {
    /// Uncompressed bytes of events a second.
    case bytes(Int)
    /// Requests a second; may be a fraction.
    case requests(Double)
}

/// Holds a rate: filled by time, emptied by what is sent, at most one second's worth.
///
/// What is sent is charged once its size is known, so the level may sink below nothing: the next waits until the debt
/// is paid. Over any stretch of time the rate is held, with one second's worth and one batch beyond it at most.
struct TokenBucket: Sendable {
    let limit: RateLimit
    private let perSecond: Double
    private var level: Double
    private var filledAt: BootInstant

    init(_ limit: RateLimit, at now: BootInstant) {
        self.limit = limit
        perSecond =
            switch limit {
            case .bytes(let bytes): max(1, Double(bytes))
            case .requests(let requests): max(1e-6, requests)
            }
        level = max(1, perSecond)
        filledAt = now
    }

    /// How long the next request must wait; zero when it may go.
    mutating func wait(at now: BootInstant) -> Duration {
        fill(at: now)
        let needed =
            switch limit {
            case .bytes: Double.leastNonzeroMagnitude
            case .requests: 1.0
            }
        guard level < needed else { return .zero }
        // A nanosecond more, so that rounding never asks twice for the same instant.
        return .nanoseconds(Int64(min(1e18, (needed - level) / perSecond * 1e9)) + 1)
    }

    /// Charges a request that begins.
    mutating func chargeRequest(at now: BootInstant) {
        guard case .requests = limit else { return }
        fill(at: now)
        level -= 1
    }

    /// Charges the bytes of a batch that is about to be sent.
    mutating func chargeBytes(_ bytes: Int, at now: BootInstant) {
        guard case .bytes = limit else { return }
        fill(at: now)
        level -= Double(bytes)
    }

    private mutating func fill(at now: BootInstant) {
        guard now > filledAt else { return }
        let seconds = Double((now - filledAt).nanosecondsClamped) / 1e9
        level = min(max(1, perSecond), level + seconds * perSecond)
        filledAt = now
    }
}
