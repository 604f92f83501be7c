internal import Model

/// What a format's answer says of single events, each with its own status.
struct ItemTally {
    private var rejected: [RejectedEvent] = []
    private var retry: [Int] = []
    private var held: Failure?
    private var again: Failure?
    private var acknowledged = 0

    /// Notes what happened to an event, by the table of statuses.
    ///
    /// - Parameter isOfEvent: whether what would hold the destination is wrong with this event alone.
    mutating func add(_ index: Int, status: Int, isOfEvent: Bool = false, type: String, reason: String) {
        let meaning = AnswerTable().meaning(of: status)
        if meaning == .acknowledge {
            acknowledged += 1
            return
        }
        let failure = Failure(
            kind: .status, status: status,
            message:
                "an event was answered \(status)\(type.isEmpty ? "" : ": \(ErrorWords.known(type))")",
            excerpt: AnswerReader.excerpt(Array(reason.utf8)))
        switch meaning {
        case .acknowledge: break
        case .hold where isOfEvent, .bisect, .split: rejected.append(RejectedEvent(index: index, failure: failure))
        case .retry:
            again = again ?? failure
            retry.append(index)
        case .hold:
            // Of the destination, not of the event: an index that is missing, read-only, or not allowed.
            held = held ?? failure
            retry.append(index)
        }
    }

    /// What happened to the batch. When nothing of it was settled, it is tried again or held as a whole.
    func outcome(of events: Int) -> Outcome {
        if acknowledged == events { return .acknowledged }
        if acknowledged == 0, rejected.isEmpty {
            if let held { return .held(held) }
            if let again { return .retry(again) }
        }
        return .partial(rejected: rejected, retry: retry)
    }
}
