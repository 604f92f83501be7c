public import Model

/// Requests to a destination and its answers, since the start of the agent.
public struct DeliveryCounters: Sendable, Equatable {
    /// How an attempt ended, with its kind of failure and status.
    public struct Answer: Sendable, Hashable {
        /// The outcome: `acknowledged`, `partial`, `retry`, `retry_after`, `too_large`, `rejected`, `held`,
        /// `offline`.
        public let outcome: String
        /// The kind of failure; nil for good answers.
        public let kind: Failure.Kind?
        /// The HTTP status of a failure, from 100 to 599; nil without one.
        public let status: Int?
    }

    /// Number of attempts for each answer.
    public var answers: [Answer: Int] = [:]
    /// Events in all attempts. Exceeds the acknowledged events if some were sent again.
    public var sentEvents = 0
    /// Attempts after which the same batch waits for a retry.
    public var retries = 0
    /// Events that the destination rejected without naming them. They count as acknowledged and are in no
    /// dead letter.
    public var unnamedRejections = 0
    /// Answer to the last batch with unnamed rejections.
    public var lastUnnamedRejection: Failure?
    /// Events acknowledged after a deadline, by its name.
    public var late: [String: Int] = [:]
    /// Calls of the queue that failed.
    public var storeFailures = 0

    /// All counters at zero.
    public init() {}

    /// A request with a number of events begins.
    mutating func noteSent(_ events: Int) { sentEvents += events }

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
        // Other numbers are not statuses (RFC 9110, section 15). Without the check, a receiver could create
        // any number of counters.
        status = failure?.status.flatMap { (100...599).contains($0) ? $0 : nil }
    }
}
