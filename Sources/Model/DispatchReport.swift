/// The state of a destination, named alike in reports, metrics, `status` and the control API.
///
/// If there are several reasons why nothing is sent, the first in this list is reported. Only in the
/// last state is everything sent.
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
    /// Retries were used up; only probes are sent.
    case breakerOpen = "breaker_open"
    /// All remaining batches have failed and wait for their next attempt.
    case waitingForRetry = "waiting_for_retry"
    /// The configuration no longer names the destination.
    case orphaned
    /// Nothing keeps events from being sent.
    case active
}

/// What `dispatch --wait` and `drain` report after each request.
///
/// The cases follow the results of Google Analytics' `dispatch`: good, no data, error.
public enum DispatchReport: Sendable, Equatable {
    /// A request succeeded; `waiting` events still wait.
    case good(DestinationName, waiting: Int)
    /// Nothing more is sent to this destination, and why; nil if nothing waits.
    case noData(DestinationName, DestinationStateName?)
    /// A request failed; its events stay queued.
    case error(DestinationName, Failure, waiting: Int)
}

/// How a command that waits has ended.
public enum CommandResult: Sendable, Equatable {
    /// Nothing waits any more (`drain`), or everything that waited was sent (`dispatch`): exit status
    /// 0.
    case done
    /// Something cannot be sent; the reasons by destination: exit status 75.
    case stuck([DestinationName: DestinationStateName])
    /// The deadline came first; `waiting` events still wait: exit status 124.
    case timedOut(waiting: Int)
    /// The client disconnected, or the agent stops.
    case cancelled

    /// The command's exit status, by sysexits.h (75, EX_TEMPFAIL) and timeout(1) (124).
    public var exitCode: Int32 {
        switch self {
        case .done: 0
        case .stuck, .cancelled: 75
        case .timedOut: 124
        }
    }
}
