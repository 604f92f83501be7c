internal import Model

/// What has happened, for `DeliveryMachine.handle`.
enum DeliveryInput: Sendable {
    /// The queue has published new summaries. A destination that is missing is not known to the queue yet.
    case lanes([DestinationName: Lanes])
    /// The queue has answered a request for a batch. `apps` has the app of each event in the batch's order;
    /// it is empty if that was not looked up. `lane` is the lane as the answer leaves it; nil if the queue
    /// did not say.
    case leased(AttemptID, LeaseResult, apps: [String] = [], lane: LaneSummary? = nil)
    /// The destination has answered an attempt. `apps` as in `leased`; empty after most good answers.
    case sent(AttemptID, Outcome, apps: [String] = [])
    /// The queue has stored how a batch ended. The headers are those of batches that a split made; nil means
    /// that the queue failed, and the settlement is sent again later.
    case settled(AttemptID, [BatchHeader]?)
    /// The time that `wakeAt` gave is reached.
    case timer
    /// The time of day was set, which deadlines follow.
    case clockSet
    /// Events of some apps must not be sent any more. What was leased ahead goes back to the queue, which
    /// takes them out.
    case eventsWithheld
    /// Send what waits now, to one destination or all (nil). Without an id no client waits for the result.
    case dispatch(CommandID?, DestinationName?)
    /// Send until nothing is left, or until the timeout; to one destination or all (nil).
    case drain(CommandID, DestinationName?, timeout: Duration)
    /// The client of a command is gone.
    case cancel(CommandID)
    /// Sending stops while the token is held. A `ttl` of nil holds it until it is released.
    case pause(token: String, DestinationName?, ttl: Duration?, untilRestart: Bool)
    /// Releases a token. A token of nil releases all tokens and ends holds, Retry-After waits and retry
    /// waits.
    case resume(token: String?, DestinationName?)
    /// Batches that are set aside are tried now: of one destination or all (nil), of one app or all (nil).
    case retrySetAside(DestinationName?, app: String?)
    /// Whether connections may be made at all.
    case network(on: Bool)
    /// The default route has changed, or a person says that the network has.
    case networkChanged
    /// A token, key or certificate file of the destination has changed.
    case newCredentials(DestinationName)
    /// Whether a route leads to each of these destinations; the others stay as they are.
    case routes([DestinationName: Bool])
    /// Sets the interval; nil returns to the configured one. A durable interval survives a restart.
    case interval(DispatchInterval?, isDurable: Bool)
    /// Whether collection is enabled. If not, nothing more is sent, and what is in flight ends.
    case enabled(Bool)
    /// The queue is about to be emptied: all batches are forgotten, and answers to those in flight are
    /// ignored.
    case forget
    /// The settings were read again: at a person's request, or because a container changed some of them. New
    /// summaries follow as a separate input.
    case reload(DeliveryOptions, isByPerson: Bool = true)
    /// The agent stops: finish what is in flight, drain until the grace is over, give the rest back.
    case stop(grace: Duration)
    /// Give everything back at once (a second SIGTERM).
    case hurry

    /// Whether the queue has changed its summaries along with this answer. The driver then reads them right
    /// after it, and ignores a separate notice.
    var isAnswerOfQueue: Bool {
        switch self {
        case .leased, .settled: true
        default: false
        }
    }

    /// Whether the input belongs to the traffic of batches. Such inputs do not make the driver publish a
    /// snapshot at once, which would cost as much as a batch.
    var isRoutine: Bool {
        switch self {
        case .lanes, .leased, .sent, .settled: true
        default: false
        }
    }
}
