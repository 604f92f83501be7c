internal import EventLoops

/// How a receiver misbehaves: a pure value that decides request by request.
package struct FaultPlan: Sendable, Equatable {
    /// What happens to a chosen request.
    package enum Fault: Sendable, Equatable {
        /// The request is answered with this status, and nothing is stored.
        case status(Int)
        /// The connection is reset while the body arrives.
        case cutInBody
        /// The connection is cut after the body was read; nothing is stored.
        case cutBeforeStoring
        /// The connection is cut after the events were stored: the sender cannot know, and must send them
        /// again.
        case cutAfterStoring
    }

    /// What happens to chosen requests; nil for nothing besides `delay`, `largestBody` and `marker`.
    package var fault: Fault?
    /// Share of requests that are chosen, from 0 to 1; default 1.
    package var probability = 1.0
    /// Seed of the choice: the same seed chooses the same requests.
    package var seed: UInt64 = 1
    /// Only the first N requests can be chosen; nil for all.
    package var first: Int?
    /// Seconds in the `Retry-After` of a status fault; nil for no header.
    package var retryAfter: Int?
    /// Time that each answer to a batch is delayed; default none.
    package var delay = Duration.zero
    /// Largest body in bytes as it comes over the wire; larger ones are answered with 413. Nil for the
    /// receiver's own bound only.
    package var largestBody: Int?
    /// A body with this text in an event is answered with 400, to test bisection; nil for none.
    package var marker: String?

    package init() {}
}

/// Draws the faults of a plan, one for each request in order.
struct FaultDice {
    /// The plan in force.
    let plan: FaultPlan
    private var random: RepeatableRandom
    /// Number of requests so far.
    private var drawn = 0

    init(_ plan: FaultPlan) {
        self.plan = plan
        random = RepeatableRandom(seed: plan.seed)
    }

    /// The fault of the next request; nil for none.
    mutating func draw() -> FaultPlan.Fault? {
        drawn += 1
        guard let fault = plan.fault, plan.first.map({ drawn <= $0 }) ?? true else { return nil }
        // 53 random bits as a number from 0 up to, but not including, 1.
        return Double(random.next() >> 11) / 9_007_199_254_740_992 < plan.probability ? fault : nil
    }
}
