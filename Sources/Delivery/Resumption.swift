package import Model

/// What a `resume` ended and what still holds destinations back, as one answer to the person who gave it.
///
/// Without this answer a person cannot tell whether the command addressed the cause of the wait.
public struct Resumption: Sendable, Equatable {
    /// The obstacles that ended, for example `pause deploy of all destinations` or `hold of main`.
    public private(set) var ended: [String] = []
    /// The obstacles that need another command, for example `main: the network is switched off (spoolship
    /// network on)`.
    public private(set) var remaining: [String] = []

    /// Compares the command with the state before it.
    ///
    /// - Parameters:
    ///   - before: the state when the command was given.
    ///   - token: the only token to release; nil releases all and ends all waits.
    ///   - destination: the only destination concerned; nil for all.
    package init(of before: DeliverySnapshot, token: String?, destination: DestinationName?) {
        let concerned = before.destinations.filter { destination == nil || $0.name == destination }
        if destination == nil {
            let released = before.pauseTokens.filter { token == nil || $0 == token }
            ended += released.map { "pause \($0) of all destinations" }
        }
        for state in concerned {
            let own = state.pauseTokens.filter { !before.pauseTokens.contains($0) }
            ended += own.filter { token == nil || $0 == token }.map { "pause \($0) of \(state.name)" }
        }
        if token == nil {
            ended += concerned.flatMap(Resumption.waits)
        }
        for state in concerned {
            if let obstacle = Resumption.obstacle(state, before, isForAll: destination == nil, token: token) {
                remaining.append("\(state.name): \(obstacle)")
            }
        }
    }

    /// The waits of a destination that the command ends: after failures, and of events that are set aside.
    private static func waits(_ state: DeliverySnapshot.Destination) -> [String] {
        var waits = state.waits.compactMap { wait -> String? in
            switch wait {
            case .held: "hold of \(state.name)"
            case .breakerOpen: "suspension of \(state.name) after failures"
            case .retryAfter: "wait of \(state.name) that its receiver asked for"
            case .offline: "wait of \(state.name) for a route"
            default: nil
            }
        }
        if waits.isEmpty, state.waitingForRetry > 0 {
            waits.append("wait of \(state.name) for its next retry")
        }
        let events = state.setAside.values.reduce(0, +)
        if events > 0 {
            waits.append("wait of \(events) set aside events of \(state.name)")
        }
        return waits
    }

    /// Why a destination does not send after the command either; nil if no reason is known.
    private static func obstacle(
        _ state: DeliverySnapshot.Destination, _ before: DeliverySnapshot, isForAll: Bool, token: String?
    ) -> String? {
        switch state.obstacle {
        case .disabled: return "collection is disabled (spoolship enable)"
        case .networkOff: return "the network is switched off (spoolship network on)"
        case .stopping: return "the agent is stopping"
        default: break
        }
        // A command for one destination does not release the tokens that hold back all of them.
        let left = state.pauseTokens.filter { held in
            let isNamed = token == nil || held == token
            let isMeant = isForAll || !before.pauseTokens.contains(held)
            return !(isNamed && isMeant)
        }
        guard !left.isEmpty else { return state.hasNoRoute ? "no route leads there" : nil }
        return "paused by \(left.joined(separator: ", ")) (spoolship resume --token \(left[0]))"
    }
}
