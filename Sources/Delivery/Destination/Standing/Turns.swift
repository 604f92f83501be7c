internal import EventLoops

/// What is next among the batches that may be sent, and how soon the rate allows a request.
///
/// Rejected batches and everything else alternate. Without that, thousands of pieces of rejected batches
/// would delay good events, or be delayed by them for ever.
struct Turns: Sendable {
    /// Limits the rate of requests; nil for no limit.
    private var bucket: TokenBucket?
    /// When the rate allows the next request; nil if it does now, or if no request was tried.
    private(set) var rateRetryAt: BootInstant?
    /// Whether a rejected batch or a piece of one is next.
    private(set) var prefersPieces = false
    /// When the queue is searched for events of an app that was not tried yet; nil if not planned.
    private(set) var lookAt: BootInstant?

    init(requestsPerSecond: Double?, at now: BootInstant) { limit(to: requestsPerSecond, at: now) }

    var isLimited: Bool { bucket != nil }

    /// Sets the limit; nil removes it. The bucket begins full.
    mutating func limit(to requestsPerSecond: Double?, at now: BootInstant) {
        bucket = requestsPerSecond.map { TokenBucket(perSecond: $0, at: now) }
    }

    /// Forgets `rateRetryAt`; the next request sets it again if it is still too early.
    mutating func passTime() { rateRetryAt = nil }

    /// Whether the rate allows a request now. If not, `rateRetryAt` says when.
    mutating func allowsRequest(at now: BootInstant) -> Bool {
        guard let ready = bucket?.readyAt, ready > now else { return true }
        rateRetryAt = ready
        return false
    }

    mutating func charge(_ requests: Int, at now: BootInstant) { bucket?.charge(requests, at: now) }

    /// A batch begins, and the other kind is next.
    mutating func begun(isPiece: Bool) { prefersPieces = !isPiece }

    /// Notes that no new event was left to try, so that the next new one goes before any piece.
    mutating func giveTurnBack() { prefersPieces = false }

    /// Whether it is time to search the queue.
    func looks(at now: BootInstant) -> Bool { lookAt.map { $0 <= now } ?? false }

    /// Plans a search, unless an earlier one is planned.
    mutating func look(at then: BootInstant) { lookAt = min(lookAt ?? then, then) }

    /// The search was made, or is no longer needed.
    mutating func endLook() { lookAt = nil }
}
