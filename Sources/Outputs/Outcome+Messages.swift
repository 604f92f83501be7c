internal import EventLoops
internal import Model

extension Outcome {
    /// What happened to a batch whose events were judged one by one: all of it, or those that were rejected and those that go again.
    ///
    /// Where nothing of it is stored or rejected, it shares the fate of the first.
    init(of events: [Outcome]) {
        var rejected: [RejectedEvent] = []
        var retry: [Int] = []
        for (place, outcome) in events.enumerated() {
            switch outcome {
            case .acknowledged: continue
            case .partial(let own, _):
                rejected += own.map { RejectedEvent(index: place, failure: $0.failure, isFinal: $0.isFinal) }
            default: retry.append(place)
            }
        }
        if let first = events.first, retry.count == events.count {
            self = first
        } else {
            self = rejected.isEmpty && retry.isEmpty ? .acknowledged : .partial(rejected: rejected, retry: retry)
        }
    }

    /// What happened to a batch that went in parts, each under an id that is made of the batch's.
    ///
    /// Events that go on in another batch have other ids. So only those do of which it is known that they are not stored, because
    /// their part was too large; where anything else fails, all of it goes again under the same ids.
    init(ofParts parts: [(events: [Int], outcome: Outcome)]) {
        let open = parts.filter { $0.outcome != .acknowledged }
        let others = open.filter { if case .tooLarge = $0.outcome { false } else { true } }
        if let first = others.first ?? (open.count == parts.count ? open.first : nil) {
            self = first.outcome
        } else {
            self = open.isEmpty ? .acknowledged : .partial(rejected: [], retry: open.flatMap(\.events).sorted())
        }
    }
}

extension Failure {
    /// What it means for the batch: it goes again, or a person must look at this machine first.
    var outcome: Outcome { kind == .local ? .held(self) : .retry(self) }
}

extension OutputError {
    var failure: Failure { Failure(kind: .local, message: message) }
}
