/// How a dispatch ended: the three results of Google Analytics' SDK, and how far the events are known to have
/// got.
public struct DispatchReport: Sendable, Equatable {
    /// The outcome for the events.
    public enum Result: String, Sendable, CaseIterable {
        /// There was nothing to send, or nothing may be sent now; `reason` says which.
        case noData = "no_data"
        /// Events were passed on; `confirmedBy` says how far.
        case good
        /// The events stay where they are and are tried again; `reason` says what failed.
        case error
    }

    /// How far the events are known to have got.
    public enum Stage: String, Sendable, CaseIterable {
        /// The spool's files. In a directory that this user may not list, as the drop box, no more can be
        /// known.
        case spool
        /// The agent's queue, because the agent has removed the files. Without the control socket no more can
        /// be known.
        case queue
        /// The destinations have acknowledged what waited for them.
        case destinations
    }

    /// The outcome for the events.
    public let result: Result
    /// How far they are known to have got.
    public let confirmedBy: Stage
    /// For a person: why nothing was sent, or what failed, by destination; empty if all went well.
    public let reason: String

    /// A report, for the tests of an app.
    public init(result: Result, confirmedBy: Stage, reason: String) {
        self.result = result
        self.confirmedBy = confirmedBy
        self.reason = reason
    }
}

extension DispatchReport {
    /// The report for an answer of `POST /v1/dispatch` with `wait`, which has a line of JSON for each
    /// destination.
    ///
    /// One failure makes the whole an error; otherwise one destination that acknowledged events makes it
    /// good.
    init(answer: AgentSocket.Answer) {
        guard answer.status == 200 else {
            self.init(
                result: .error, confirmedBy: .queue, reason: "the agent refused to dispatch: \(answer.status)"
            )
            return
        }
        var results: Set<Result> = []
        var reasons: [String] = []
        for case .object(let report) in answer.lines {
            guard case .string(let word)? = report["outcome"], let result = Result(rawValue: word) else {
                continue
            }
            results.insert(result)
            if case .string(let reason)? = report["reason"], case .string(let name)? = report["destination"] {
                reasons.append("\(name): \(reason)")
            }
        }
        let result: Result = results.contains(.error) ? .error : results.contains(.good) ? .good : .noData
        self.init(result: result, confirmedBy: .destinations, reason: reasons.joined(separator: ", "))
    }
}
