/// One request while it is being read and answered. Touched by one thread at a time: the server's, for its connection.
final class Exchange {
    enum Kind {
        case events, stats, other
    }

    let kind: Kind
    var body: [UInt8] = []
    /// What was decided, once the body was read.
    var verdict: Verdict?
    var fault: FaultPlan.Fault?
    /// The body is too large; what is left of it is thrown away.
    var isTooLarge = false

    init(_ kind: Kind) {
        self.kind = kind
    }
}

enum Verdict {
    case answer(status: Int, body: String, retryAfter: Int?)
    case cut
}
