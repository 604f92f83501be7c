/// A request under way. Used by one thread at a time: the server's thread for its connection.
final class Exchange {
    /// What is asked: to accept events, to return the figures, or something else.
    enum Kind {
        case events, stats, other
    }

    let kind: Kind
    /// The body so far.
    var body: [UInt8] = []
    /// The decision, once the body is complete. Kept, because a delayed answer is asked for a second time.
    var verdict: Verdict?
    /// The fault that was drawn for the request.
    var fault: FaultPlan.Fault?
    /// Whether the body exceeds a bound; the rest of it is dropped.
    var isTooLarge = false

    init(_ kind: Kind) {
        self.kind = kind
    }
}

/// The decision about a request.
enum Verdict {
    /// An answer; `retryAfter` in seconds, nil for no header.
    case answer(status: Int, body: String, retryAfter: Int?)
    /// The connection is cut without an answer.
    case cut
}
