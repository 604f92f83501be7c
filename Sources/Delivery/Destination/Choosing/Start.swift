internal import EventLoops
internal import Model

/// What a destination attempts next.
enum Start: Sendable, Equatable {
    /// A batch that was given back.
    case again(BatchID, isProbe: Bool)
    /// The next waiting events of a lane, or a free batch.
    case next(Priority, takesFree: Bool, isProbe: Bool)
    /// A batch that was leased ahead; the number is its attempt's.
    case ready(UInt64)
}

/// Which attempts a destination's state allows to send; determined once for many attempts.
struct Permission: Sendable {
    /// Whether anything may be sent.
    private let isOpen: Bool
    /// Whether only probes may be sent: held, or breaker open.
    private let isForProbesOnly: Bool
    /// Whether only attempts of commands may be sent.
    private let isForCommandsOnly: Bool

    init(_ gate: Gate, _ standing: Standing, isPushing: Bool) {
        isOpen =
            gate.block == nil && standing.retryAfterUntil == nil && standing.offline == nil
            && (gate.automatic != nil || isPushing)
        isForProbesOnly = standing.isForProbesOnly
        isForCommandsOnly = gate.automatic == nil
    }

    func allows(_ attempt: Attempt) -> Bool {
        isOpen && (attempt.isProbe || !isForProbesOnly) && (attempt.isPushed || !isForCommandsOnly)
    }
}
