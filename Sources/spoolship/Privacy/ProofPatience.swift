/// Decides how long `privacy prove` waits for its events, from what the agent says is on its way.
///
/// An agent that does not answer for a moment, because it is busy, says nothing: neither that events moved
/// nor that they rest. Only the wait's own times continue.
struct ProofPatience {
    /// What to do after one look at the agent.
    enum Step: Equatable {
        /// Look again.
        case wait
        /// Nothing has been on its way for a while, so nothing more will come.
        case quiet
        /// What did not pass, in words.
        case giveUp([String])
    }

    /// Time without anything on its way after which nothing more will come. Rules may keep events from a
    /// place, so the events' arrival everywhere cannot be waited for.
    private static let quiet = Duration.seconds(20)
    /// Time without progress after which the wait is given up.
    private static let stuck = Duration.seconds(60)
    /// Time after which the wait ends whatever happens. Without it a figure that changes for ever would keep
    /// the command waiting for ever.
    private static let longest = Duration.seconds(600)

    /// What was on its way at the agent's last answer; nil before the first.
    private var last: [String]?
    /// When that changed last, after the beginning of the wait.
    private var changedAt = Duration.zero

    /// Notes one look at the agent.
    ///
    /// - Parameters:
    ///   - found: what is on its way, in words; nil if the agent did not answer.
    ///   - elapsed: time since the wait began.
    mutating func step(_ found: [String]?, after elapsed: Duration) -> Step {
        if let found, found != last {
            last = found
            changedAt = elapsed
        }
        let rest = elapsed - changedAt
        let isOver = elapsed >= ProofPatience.longest
        if found == [] { return rest >= ProofPatience.quiet || isOver ? .quiet : .wait }
        guard rest >= ProofPatience.stuck || isOver else { return .wait }
        let late = last ?? []
        return .giveUp(late.isEmpty ? ["the agent's answer"] : late)
    }
}
