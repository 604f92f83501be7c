internal import Model

enum DeliveryInput: Sendable {
    /// The queue's figures have changed; all of them.
    case lanes([DestinationName: Lanes])
    /// The queue has answered a wish for a batch; whose its events are, one by one, where that matters.
    case leased(AttemptID, LeaseResult, apps: [String] = [])
    /// An attempt has ended; whose its events are, one by one, unless all were taken.
    case sent(AttemptID, Outcome, apps: [String] = [])
    /// The queue knows how a batch ended and has made these batches; nil if it could not be told.
    case settled(AttemptID, [BatchHeader]?)
    /// The time given by `wakeAt` has come.
    case timer
    /// Send what waits now; to all destinations when none is named. Without an id nobody waits for the end.
    case dispatch(CommandID?, DestinationName?)
    /// Send until nothing is left.
    case drain(CommandID, DestinationName?, timeout: Duration)
    /// The command's client is gone.
    case cancel(CommandID)
    /// Sending stops while the token is held.
    case pause(token: String, DestinationName?, ttl: Duration?, untilRestart: Bool)
    /// Releases a token; without one all of them, and whatever else the destination waits for.
    case resume(token: String?, DestinationName?)
    /// What is set aside goes now: of one destination or all, of one app or all.
    case retrySetAside(DestinationName?, app: String?)
    /// Whether connections may be made at all.
    case network(on: Bool)
    /// The default route has changed, or somebody says that the network has.
    case networkChanged
    /// A token, key or certificate of the destination is another one than before.
    case newCredentials(DestinationName)
    case routes([DestinationName: Bool])
    /// Another interval; nil for the configured one.
    case interval(DispatchInterval?, isDurable: Bool)
    /// Whether collection is enabled: without it nothing more is sent, and what is in flight ends.
    case enabled(Bool)
    /// The queue is emptied by others: what is in flight is nobody's any more.
    case forget
    /// The settings were read again by a person's wish, or a container has changed some. The queue's figures follow.
    case reload(DeliveryOptions, isByPerson: Bool = true)
    /// Finish what is in flight, drain for so long, give the rest back.
    case stop(grace: Duration)
    /// Give all back at once.
    case hurry

    /// Whether the queue's figures have changed with it.
    var isAnswerOfQueue: Bool {
        switch self {
        case .leased, .settled: true
        default: false
        }
    }

    /// Whether it belongs to every batch that comes and goes.
    var isRoutine: Bool {
        switch self {
        case .lanes, .leased, .sent, .settled: true
        default: false
        }
    }
}
