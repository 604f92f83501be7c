public import Model

/// The requests to a destination and its answers, since the start.
public struct DeliveryCounters: Sendable, Equatable {
    /// How an attempt ended; each case with its status, where there was one.
    public struct Answer: Sendable, Hashable {
        /// The outcome: `acknowledged`, `partial`, `retry`, `retry_after`, `too_large`, `rejected`, `held`, `offline`.
        public let outcome: String
        /// The kind of failure; nil for good answers.
        public let kind: Failure.Kind?
        /// The HTTP status of a failure, from 100 to 599; nil without one.
        public let status: Int?
    }

    /// Attempts by how they ended.
    public var answers: [Answer: Int] = [:]
    /// Events in all attempts: more than were acknowledged when something was sent again.
    public var sentEvents = 0
    /// Attempts that wait for a retry of the same batch.
    public var retries = 0
    /// Events that a destination said to have rejected without saying which: acknowledged, and in no dead letter.
    public var unnamedRejections = 0
    /// What it said with the last of them.
    public var lastUnnamedRejection: Failure?
    /// Events that were acknowledged after their deadline, by its name.
    public var late: [String: Int] = [:]
    /// Calls that the queue could not answer.
    public var storeFailures = 0

    /// All figures are zero.
    public init() {}

    mutating func note(_ outcome: Outcome) { answers[Answer(outcome), default: 0] += 1 }
}

extension DeliveryCounters.Answer {
    init(_ end: Outcome) {
        let (word, failure): (String, Failure?) =
            switch end {
            case .acknowledged: ("acknowledged", nil)
            case .acknowledgedWithLoss, .partial: ("partial", nil)
            case .retry(let failure): ("retry", failure)
            case .retryAfter(_, let failure): ("retry_after", failure)
            case .tooLarge(_, let failure): ("too_large", failure)
            case .rejected(let failure): ("rejected", failure)
            case .held(let failure): ("held", failure)
            case .offline: ("offline", nil)
            }
        outcome = word
        kind = failure?.kind
        status = failure?.status.flatMap { (100...599).contains($0) ? $0 : nil }
    }
}
