internal import EventLoops

/// How a receiver misbehaves: a pure value that decides request by request.
package struct FaultPlan: Sendable, Equatable {
    package enum Fault: Sendable, Equatable {
        /// It is answered with this status, and not stored.
        case status(Int)
        case cutInBody
        /// The connection is cut after the body was read; nothing is stored.
        case cutBeforeStoring
        /// The connection is cut after the events were stored: the sender cannot know.
        case cutAfterStoring
    }

    /// What happens to the chosen ones; nil: nothing but `delay`, `largestBody` and `marker`.
    package var fault: Fault?
    /// The share of requests that is chosen, from 0 to 1.
    package var probability = 1.0
    /// Where the choice begins: the same seed chooses the same requests.
    package var seed: UInt64 = 1
    /// Only so many of the first requests are chosen from; nil: all.
    package var first: Int?
    /// What `Retry-After` says with a status of `fault`, in seconds; nil: nothing.
    package var retryAfter: Int?
    package var delay = Duration.zero
    /// Bodies larger than that, as they come over the wire, are answered 413; nil: up to the receiver's own bound.
    package var largestBody: Int?
    /// A body with an event that holds this text is answered 400; nil: none.
    package var marker: String?

    package init() {}
}

/// Draws the faults of a plan, one request after the other.
struct FaultDice {
    let plan: FaultPlan
    private var random: RepeatableRandom
    private var drawn = 0

    init(_ plan: FaultPlan) {
        self.plan = plan
        random = RepeatableRandom(seed: plan.seed)
    }

    mutating func draw() -> FaultPlan.Fault? {
        drawn += 1
        guard let fault = plan.fault, plan.first.map({ drawn <= $0 }) ?? true else { return nil }
        // A number from 0 up to 1.
        return Double(random.next() >> 11) / 9_007_199_254_740_992 < plan.probability ? fault : nil
    }
}
