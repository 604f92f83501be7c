public import EventLoops
internal import Logs
public import Model

/// What people, signals and other modules ask of delivery: of one destination, or of all (nil). A name that
/// is not configured throws `unknownDestination`.
extension DeliveryDriver {
    /// Sends what waits now and returns at once; the interval stays as it is.
    public func dispatch(to destination: DestinationName? = nil) throws(DeliveryError) {
        try check(destination)
        handle(.lanes(summaries()), .dispatch(nil, destination))
    }

    /// Sends what waits now and reports how each request ended. Automatic sending stops meanwhile, so that
    /// only these requests count.
    ///
    /// Cancelling the task (its client is gone) restores automatic sending; requests in flight end normally.
    public func dispatchAndWait(
        to destination: DestinationName? = nil, report: @escaping Report
    ) async throws(DeliveryError) -> CommandResult {
        try check(destination)
        return await command(report) { .dispatch($0, destination) }
    }

    /// Sends until nothing is left, an error occurs or time runs out; cancelled like `dispatchAndWait`.
    ///
    /// - Parameter timeout: how long new requests are begun; zero begins none and reports what waits.
    public func drain(
        timeout: Duration, to destination: DestinationName? = nil, report: @escaping Report = { _ in }
    ) async throws(DeliveryError) -> CommandResult {
        try check(destination)
        return await command(report) { .drain($0, destination, timeout: timeout) }
    }

    /// Stops sending while the token is held; collecting continues.
    ///
    /// - Parameters:
    ///   - ttl: after which the token is released by itself; nil for never.
    ///   - untilRestart: whether a restart releases it; otherwise it is durable.
    public func pause(
        token: String, destination: DestinationName? = nil, ttl: Duration? = nil, untilRestart: Bool = false
    ) throws(DeliveryError) {
        try check(destination)
        handle(.pause(token: token, destination, ttl: ttl, untilRestart: untilRestart))
    }

    /// Releases a token; one that is not held changes nothing.
    ///
    /// - Parameters:
    ///   - token: nil releases all tokens, lifts holds, closes breakers, resets retries and has credentials
    ///     issued again, because the command says that the cause is gone.
    ///   - destination: releases only what holds back this destination alone; nil releases everything.
    /// - Returns: what the command ended, as of a snapshot that is at most 50 ms old.
    @discardableResult
    public func resume(
        token: String? = nil, destination: DestinationName? = nil
    ) throws(DeliveryError) -> Resumption {
        try check(destination)
        let before = snapshot
        if token == nil {
            // Before the machine's next attempts, which are tasks of the same loop. A token that was refused
            // within its first minute would be sent again otherwise.
            for (name, sender) in senders where destination == nil || name == destination {
                Task(executorPreference: loop) { await sender.dropIssuedCredentials() }
            }
        }
        handle(.resume(token: token, destination))
        return Resumption(of: before, token: token, destination: destination)
    }

    /// Sends set-aside batches now, of a destination or all (nil), of an app or all (nil).
    ///
    /// - Returns: the number of their events, by a snapshot that is at most 50 ms old.
    public func retrySetAside(for destination: DestinationName?, app: String?) -> Int {
        let concerned = snapshot.destinations.filter { destination == nil || $0.name == destination }
        handle(.retrySetAside(destination, app: app))
        return concerned.flatMap(\.setAside).reduce(0) { app == nil || app == $1.key ? $0 + $1.value : $0 }
    }

    /// Allows or forbids connections, durably.
    public func setNetwork(on: Bool) { handle(.network(on: on)) }

    /// The default route has changed, or a person says that the network has: waits after failures end.
    public func networkChanged() { handle(.networkChanged) }

    /// The time of day was set: deadlines are computed again. Other waits use the boot clock.
    public func clockStepped() { handle(.clockSet) }

    /// Events of some apps must not be sent any more: no batch begins that was leased before.
    public func eventsWithheld() { handle(.eventsWithheld) }

    /// The network monitor's findings; destinations that are not named stay as they are.
    public func networkNews(_ news: NetworkNews) {
        handle(.routes(news.routes))
        if news.hasChanged {
            networkChanged()
        }
    }

    /// Sets the interval until a restart, or durably; nil returns to the configured one.
    public func setInterval(_ interval: DispatchInterval?, isDurable: Bool = false) {
        handle(.interval(interval, isDurable: isDurable))
    }

    /// Collection was enabled. The switch itself is stored elsewhere.
    public func enable() { handle(.enabled(true), .lanes(summaries())) }

    /// Collection was disabled: sends nothing more, and forgets all batches before the queue is emptied.
    ///
    /// Returns when nothing is in flight, or after the grace. Whether what is then in flight arrives stays
    /// unknown.
    public func disable(grace: Duration) async {
        handle(.enabled(false), .lanes(summaries()))
        await ending(of: grace)
        handle(.forget)
    }

    /// The settings were read again. Changed settings of a destination lift its hold and reset its retries.
    ///
    /// - Parameter isByPerson: whether a person asked for it. Then all holds are lifted and learned ceilings
    ///   forgotten, since the person says that causes are fixed.
    public func reload(
        _ options: DeliveryOptions, senders: [DestinationName: any BatchSender], isByPerson: Bool = true
    ) {
        // Removed destinations keep their senders for requests in flight.
        self.senders.merge(senders) { $1 }
        handle(.reload(options, isByPerson: isByPerson), .lanes(summaries()))
    }
}

/// Tries a held destination, or one with an open breaker, as soon as its token, key or certificate file
/// changes. Otherwise a rotated token would take effect only after the probe interval of 20 minutes.
extension DeliveryDriver {
    /// How often the files are checked, and only while such a destination waits: otherwise the agent would
    /// wake up for nothing.
    private static let credentialInterval = Duration.seconds(10)

    /// Destinations that new credentials may help and that have credential files.
    private var stuckWithFiles: [DestinationName] {
        machine.stuck.filter { senders[$0]?.followsFiles ?? false }
    }

    /// Plans the next check if a destination needs one.
    func lookForCredentialsLater() {
        guard credentialTimer == nil, !ends.isStopped, !stuckWithFiles.isEmpty else { return }
        credentialTimer = loop.after(DeliveryDriver.credentialInterval) {
            Task(executorPreference: self.loop) { await self.lookForCredentials() }
        }
    }

    /// Checks the files, and plans the next check.
    private func lookForCredentials() async {
        for name in stuckWithFiles where await senders[name]?.hasNewCredentials() ?? false {
            log.warning("credentials have changed: trying the destination again", ["destination": name])
            handle(.newCredentials(name))
        }
        credentialTimer = nil
        lookForCredentialsLater()
    }
}
