internal import Control
internal import EventLoops
internal import Model

extension StatusReport {
    /// When events go by themselves: `every 6s; archive every 1m`.
    var dispatchText: String {
        func text(_ interval: String) -> String { interval == "off" ? "only by command" : "every \(interval)" }
        let origin = intervalOrigin == "configuration" ? "" : " (set by \(intervalOrigin))"
        let own = destinations.compactMap { destination in
            destination.interval.map { "; \(destination.name) \(text($0))" }
        }
        return text(interval) + origin + own.joined()
    }

    /// How long a destination may take what it wants to before it counts as standing still.
    static let patience: Duration = .seconds(600)

    /// Which destinations make no progress although they should: a reason for each, for readiness.
    ///
    /// What a person ordered (paused, network off, disabled) is no standstill; a destination that is held is one at once;
    /// any other when something waits and nothing was acknowledged for `patience` and an interval.
    /// - Parameter interval: a destination's dispatch interval, by its name; nil when periodic dispatch is off, and then nothing
    ///   is judged but what fails.
    func standstills(interval: (String) -> Duration?) -> [String] {
        destinations.compactMap { destination in
            guard destination.queued > 0 else { return nil }
            let interval = interval(destination.name)
            switch destination.state {
            case .disabled, .networkOff, .paused, .stopping, .orphaned: return nil
            case .held:
                let message = destination.lastFailure?.failure.message
                return "\(destination.name) is held: \(message ?? "see the log")"
            case .active where interval == nil: return nil
            case .active, .retryAfter, .offline, .breakerOpen, .waitingForRetry: break
            }
            let quietSince = max(destination.lastAcknowledged ?? started, started)
            let waitsSince = destination.oldest ?? now
            guard now - max(quietSince, waitsSince) > StatusReport.patience + (interval ?? .zero) else { return nil }
            let events = HumanText.plural(destination.queued, "event")
            return "\(destination.name): nothing was acknowledged for \(HumanText.duration(now - quietSince)) "
                + "although \(events) wait\(destination.queued == 1 ? "s" : "")"
        }
    }
}
