internal import EventLoops
internal import Model

extension Outcome {
    /// The outcome of a batch whose events were sent as separate messages: acknowledged if all were,
    /// otherwise partial, with the rejected events and those to send again.
    ///
    /// If every event is to be sent again, the batch has the outcome of the first event. A partial outcome
    /// would only make a new batch of the same events, and lose the reason (`held`, `offline`).
    init(of events: [Outcome]) {
        var rejected: [RejectedEvent] = []
        var retry: [Int] = []
        for (index, outcome) in events.enumerated() {
            switch outcome {
            case .acknowledged: continue
            case .partial(let own, _):
                rejected += own.map { RejectedEvent(index: index, failure: $0.failure, isFinal: $0.isFinal) }
            default: retry.append(index)
            }
        }
        if let first = events.first, retry.count == events.count {
            self = first
        } else {
            self =
                rejected.isEmpty && retry.isEmpty ? .acknowledged : .partial(rejected: rejected, retry: retry)
        }
    }

    /// The outcome of a batch that was sent in parts, each under an id made from the batch's id.
    ///
    /// Events that move to another batch get other ids, so that the receiver would not recognise a repeat.
    /// Therefore only events of parts that were certainly not stored, because they were too large, leave the
    /// batch. If anything else fails, the whole batch is sent again under the same ids.
    init(ofParts parts: [(events: [Int], outcome: Outcome)]) {
        let open = parts.filter { $0.outcome != .acknowledged }
        // Parts that failed for another reason than their size.
        let others = open.filter { if case .tooLarge = $0.outcome { false } else { true } }
        if let first = others.first ?? (open.count == parts.count ? open.first : nil) {
            self = first.outcome
        } else {
            self =
                open.isEmpty ? .acknowledged : .partial(rejected: [], retry: open.flatMap(\.events).sorted())
        }
    }
}

extension Failure {
    /// The outcome of a batch that failed for this reason: a failure on this machine needs a person, so it
    /// holds the destination; all others are retried.
    var outcome: Outcome { kind == .local ? .held(self) : .retry(self) }
}

extension OutputError {
    /// The error as the failure of an attempt: always local, because it arose before anything was sent.
    var failure: Failure { Failure(kind: .local, message: message) }
}
