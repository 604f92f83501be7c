/// The state of a destination, as reports, metrics, status and the control API call it.
///
/// Of several reasons why nothing is sent, the first in this list is reported; only in the last state is everything sent.
public enum DestinationStateName: String, Sendable, CaseIterable {
    case disabled
    case networkOff = "network_off"
    /// A pause token is held.
    case paused
    case stopping
    /// The destination or its settings are wrong: a person must look.
    case held
    case retryAfter = "retry_after"
    /// No route leads to the destination.
    case offline
    /// Retries were used up: only probes go.
    case breakerOpen = "breaker_open"
    /// What is left failed and waits for its next try.
    case waitingForRetry = "waiting_for_retry"
    /// The configuration does not name it any more.
    case orphaned
    /// Nothing keeps its events from going.
    case active
}

/// What `dispatch --wait` and `drain` report after each request.
///
/// Source: Google Analytics' dispatch results good, no data and error (ga05).
public enum DispatchReport: Sendable, Equatable {
    /// A request ended well; so many events still wait.
    case good(DestinationName, waiting: Int)
    /// Nothing (more) goes to this destination, and why; nil: nothing waits.
    case noData(DestinationName, DestinationStateName?)
    /// A request failed; its events stay queued.
    case error(DestinationName, Failure, waiting: Int)
}

/// How a waiting command ended.
public enum CommandResult: Sendable, Equatable {
    /// Nothing waits any more (`drain`), or all that waited went (`dispatch`): exit code 0.
    case done
    /// Something cannot go; why, by destination: exit code 75.
    case stuck([DestinationName: DestinationStateName])
    /// The deadline came first; so many events still wait: exit code 124.
    case timedOut(waiting: Int)
    /// Its client is gone, or the agent stops.
    case cancelled

    /// The exit code of the command, by sysexits and `timeout`.
    public var exitCode: Int32 {
        switch self {
        case .done: 0
        case .stuck, .cancelled: 75
        case .timedOut: 124
        }
    }
}
