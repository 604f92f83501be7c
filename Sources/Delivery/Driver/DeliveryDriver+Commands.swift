public import EventLoops
public import Model

/// What people, signals and others ask of delivery: of one destination (`unknownDestination` is thrown where there is none), or of all (nil).
extension DeliveryDriver {
    /// Sends what waits now and returns; the interval is not touched (ga04).
    public func dispatch(to destination: DestinationName? = nil) throws(DeliveryError) {
        try check(destination)
        handle(.lanes(summaries()), .dispatch(nil, destination))
    }

    /// Sends what waits now and tells how each request ended; periodic dispatch stops meanwhile (ga05).
    /// Cancelling the task (its client is gone) restores periodic dispatch; what is in flight ends.
    public func dispatchAndWait(
        to destination: DestinationName? = nil, report: @escaping Report
    ) async throws(DeliveryError) -> CommandResult {
        try check(destination)
        return await command(report) { .dispatch($0, destination) }
    }

    /// Sends until nothing is left, an error occurs or time runs out (ga06); cancelled like `dispatchAndWait`.
    ///
    /// - Parameter timeout: how long new requests are made; zero makes none.
    public func drain(
        timeout: Duration, to destination: DestinationName? = nil, report: @escaping Report = { _ in }
    ) async throws(DeliveryError) -> CommandResult {
        try check(destination)
        return await command(report) { .drain($0, destination, timeout: timeout) }
    }

    /// Sending stops while the token is held; collecting goes on (ac16).
    ///
    /// - Parameters:
    ///   - ttl: after which the token is released by itself; nil for never.
    ///   - untilRestart: whether a restart releases it.
    public func pause(
        token: String, destination: DestinationName? = nil, ttl: Duration? = nil, untilRestart: Bool = false
    ) throws(DeliveryError) {
        try check(destination)
        handle(.pause(token: token, destination, ttl: ttl, untilRestart: untilRestart))
    }

    /// Releases a token; one that nobody holds changes nothing.
    ///
    /// - Parameters:
    ///   - token: nil releases all tokens, lifts holds, closes breakers and begins retries anew: a person says that all
    ///     has recovered.
    ///   - destination: what holds back this one alone; nil: all that is held, for all destinations and for single ones.
    public func resume(token: String? = nil, destination: DestinationName? = nil) throws(DeliveryError) {
        try check(destination)
        handle(.resume(token: token, destination))
    }

    /// Sends what is set aside now, of a destination or all, of an app or all; gives how many events that are.
    public func retrySetAside(for destination: DestinationName?, app: String?) -> Int {
        let concerned = snapshot.destinations.filter { destination == nil || $0.name == destination }
        handle(.retrySetAside(destination, app: app))
        return concerned.flatMap(\.setAside).reduce(0) { app == nil || app == $1.key ? $0 + $1.value : $0 }
    }

    /// Allows or forbids connections; durable.
    public func setNetwork(on: Bool) { handle(.network(on: on)) }

    /// The default route has changed, or somebody says that the network has (ac15).
    public func networkChanged() { handle(.networkChanged) }

    /// The time of day was set: deadlines are looked at again. Waits go by another clock.
    public func clockStepped() { handle(.timer) }

    /// What the network monitor has found (ac15); destinations that are not named stay as they are.
    public func networkNews(_ news: NetworkNews) {
        handle(.routes(news.routes))
        if news.hasChanged { networkChanged() }
    }

    /// Changes the interval (ga10) until a restart, or beyond it; nil for the configured one.
    public func setInterval(_ interval: DispatchInterval?, isDurable: Bool = false) {
        handle(.interval(interval, isDurable: isDurable))
    }

    /// Collection was enabled; durable elsewhere.
    public func enable() { handle(.enabled(true), .lanes(summaries())) }

    /// Collection was disabled: nothing more is sent, and all is forgotten before the queue is emptied.
    /// Returns when nothing is in flight, or after the grace: whether what is in flight then arrives will not be known.
    public func disable(grace: Duration) async {
        handle(.enabled(false), .lanes(summaries()))
        await ending(of: grace)
        handle(.forget)
    }

    /// The settings were read again. What changed in a destination's settings lifts its hold and resets its retries.
    ///
    /// - Parameter isByPerson: whether somebody asked for it: then all holds are lifted and learned ceilings forgotten.
    public func reload(
        _ options: DeliveryOptions, senders: [DestinationName: any BatchSender], isByPerson: Bool = true
    ) {
        // Destinations that are gone keep their senders for what is in flight.
        self.senders.merge(senders) { $1 }
        handle(.reload(options, isByPerson: isByPerson), .lanes(summaries()))
    }
}
