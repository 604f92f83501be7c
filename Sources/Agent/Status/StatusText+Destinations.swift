internal import Control
internal import EventLoops
internal import Model

/// The state of a destination in one or a few lines.
extension StatusText {
    /// The line of a destination: name, state and backlog.
    func destinationLine(_ destination: StatusReport.Destination) -> String {
        let style: Style =
            switch destination.state {
            case .active: destination.isFailing ? .warning : .good
            case .held, .breakerOpen, .offline: .bad
            default: .warning
            }
        let waits = waiting(destination)
        return "\(styled(destination.name, .heading)): \(styled(reason(destination), style)); \(waits)"
    }

    /// What the receiver answered, if its last answer was a refusal, and how many events it rejected without
    /// naming them. Only for clients of the control socket, because an answer may quote an event.
    func answerLines(_ destination: StatusReport.Destination) -> [String] {
        let isFailing = [.held, .breakerOpen, .waitingForRetry, .retryAfter].contains(destination.state)
        // In a failing state the last failure counts, even if a batch was acknowledged after it.
        let failure = isFailing ? destination.lastFailure : destination.standingFailure
        let said = failure?.failure.words.map { ["  it says: \($0)"] } ?? []
        guard let (count, words) = destination.unnamedRejections else { return said }
        let lost =
            "\(HumanText.plural(count, "event")) rejected without being named, and lost since the start"
        return said + ["  " + styled(lost, .bad) + (words.map { "; it says: \($0)" } ?? "")]
    }

    /// The events that are set aside, the app with most first.
    func setAsideLines(_ destination: StatusReport.Destination) -> [String] {
        guard !destination.setAside.isEmpty else { return [] }
        let most = destination.setAside.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let apps = most.filter { !$0.key.isEmpty }.prefix(3).map { "\($0.value) of \($0.key)" }.joined(
            separator: ", ")
        let all = destination.setAside.values.reduce(0, +)
        // Apps with the same reason share a line.
        let failing = Dictionary(grouping: destination.failingApps.keys.sorted()) {
            destination.failingApps[$0] ?? ""
        }
        let reasons = failing.sorted { $0.key < $1.key }.map {
            "  only batches with events of \($1.joined(separator: ", ")): \($0)"
        }
        return reasons + [
            "  \(all) set aside, rejected or failing alone\(apps.isEmpty ? "" : " (\(apps))"): retried from "
                + "time to time, at once after `spoolship resume`"
        ]
    }

    /// Why a destination is in its state, and what comes next.
    func reason(_ destination: StatusReport.Destination) -> String {
        let next = next(destination)
        switch destination.state {
        case .active: return active(destination)
        case .held:
            let failure = destination.lastFailure?.failure.message ?? "failed before the agent's start"
            return "held\(standing(destination))\(next): \(failure); fix it or its settings, then reload"
        case .breakerOpen:
            return failing(
                destination,
                next.isEmpty
                    ? ", suspended until a restart, a network change or `spoolship resume`" : next)
        case .waitingForRetry: return failing(destination, next)
        case .retryAfter:
            return "asked to wait (\(why(destination)))\(standing(destination))\(next)"
        case .offline: return "offline\(standing(destination)): there is no route to it"
        case .paused:
            let held = Set(destination.pauseTokens + report.pauseTokens).sorted()
            let tokens = held.joined(separator: ", ")
            // Several tokens are released by one command without a token.
            let command = held.count == 1 ? "spoolship resume --token \(tokens)" : "spoolship resume"
            return "paused by \(tokens.isEmpty ? "a command" : tokens)\(standing(destination)) (`\(command)`)"
        case .networkOff: return "the network is switched off (`spoolship network on`)"
        case .disabled: return "collection is disabled (`spoolship enable`)"
        case .stopping: return "the agent is stopping"
        case .orphaned:
            if destination.queued > 0 {
                return
                    "not in the configuration: \(OrphanText.advice(destination.name, configured: configured))"
            }
            let command = "spoolship dead-letters purge --destination \(destination.name)"
            return "not in the configuration: `\(command)` removes what is left"
        }
    }

    /// Since when a destination fails, for programs: in absolute time, so that two answers can be compared.
    /// Between two attempts only the last failure is known.
    func failingSince(_ destination: StatusReport.Destination) -> String {
        if let since = destination.since { return "since \(since)" }
        // Without a route nothing is tried, and an older failure says nothing about it.
        if destination.state == .offline { return "(no route)" }
        return destination.lastFailure.map { "(last failure \($0.at))" } ?? "since before the agent's start"
    }

    /// How long a destination has failed, what comes next, and the reason. The reason comes last, because it
    /// may be a sentence or a question.
    private func failing(_ destination: StatusReport.Destination, _ next: String) -> String {
        if destination.lastFailure != nil {
            return "failing\(standing(destination))\(next): \(why(destination))"
        }
        let since = destination.since == nil ? " since before the agent's start" : standing(destination)
        return "failing\(since)\(next)"
    }

    /// The time of the next attempt, as the end of a clause.
    private func next(_ destination: StatusReport.Destination) -> String {
        destination.nextAttempt.map { ", next try in \(until($0))" }
            ?? (destination.inFlight > 0 ? ", being tried now" : "")
    }

    /// Names of the destinations to which events of an orphan can be moved.
    private var configured: [String] { report.destinations.filter { $0.state != .orphaned }.map(\.name) }

    /// The state of a destination without an obstacle.
    private func active(_ destination: StatusReport.Destination) -> String {
        if let (failure, at) = destination.standingFailure {
            return "failed \(since(at)) ago\(next(destination)): \(failure.message)"
        }
        guard let last = destination.lastAcknowledged else { return "active, nothing was sent yet" }
        return "active, acknowledged \(since(last)) ago"
    }

    /// The last failure in a few words: the answer of a receiver without the word "answered".
    private func why(_ destination: StatusReport.Destination) -> String {
        guard let message = destination.lastFailure?.failure.message else {
            return "failed before the agent's start"
        }
        let answered = "answered "
        return message.hasPrefix(answered) ? String(message.dropFirst(answered.count)) : message
    }

    /// How long the state has lasted, as part of a sentence.
    private func standing(_ destination: StatusReport.Destination) -> String {
        destination.since.map { " for \(since($0))" } ?? ""
    }

    /// What waits for a destination, and when the queue reaches its cap if the destination does not recover.
    private func waiting(_ destination: StatusReport.Destination) -> String {
        let queued = destination.queued
        guard queued > 0 else { return "nothing waits" }
        let critical = destination.ledger(.critical).queued
        var text = "\(HumanText.count(queued)) waiting"
        if critical > 0 {
            text += " (\(HumanText.count(critical)) critical)"
        }
        if let oldest = destination.oldest {
            text += ", oldest \(since(oldest))"
        }
        if destination.state == .active, destination.retryWaiting > 0, let next = destination.nextAttempt {
            text += "; next retry in \(until(next))"
        }
        // While a destination works, the queue may grow for a moment without ever reaching its cap.
        if destination.state != .active, let cap = report.capReachedIn {
            text += ", cap reached in about \(HumanText.roughly(cap))"
        }
        return text
    }
}
