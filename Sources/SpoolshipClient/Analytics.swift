internal import Synchronization

/// The shared client of a process, with the names that these calls have in App Center's SDK.
///
/// ```swift
/// try Analytics.start(ClientSettings(directory: "/var/spool/spoolship/shop"))
/// try Analytics.trackEvent("Video clicked", withProperties: ["Category": "Music"], flags: .critical)
/// ```
public enum Analytics {
    /// Settings that were made before `start`, which applies them.
    private struct Prepared {
        /// Whether `enableManualSessionTracker` was called.
        var isManual = false
        /// The country, checked.
        var country: String?
        /// The transmission interval, checked.
        var transmissionInterval: Duration?
        /// The dispatch interval; the outer nil means that it was not set.
        var dispatchInterval: Duration??

        /// Sets what was prepared, before the first event.
        func apply(to client: AnalyticsClient) throws(AnalyticsError) {
            if isManual {
                client.enableManualSessionTracker()
            }
            if let country {
                try client.setCountryCode(country)
            }
            if let transmissionInterval {
                try client.setTransmissionInterval(transmissionInterval)
            }
            if let dispatchInterval {
                client.dispatchInterval = dispatchInterval
            }
        }
    }

    /// Whether the shared client exists.
    private enum Phase {
        /// Settings that were given before the start.
        case notStarted(Prepared)
        /// The client.
        case started(AnalyticsClient)
    }

    /// The shared client or what was prepared for it. Its lock is not held during calls of the client, except
    /// in `start`.
    private static let phase = Mutex(Phase.notStarted(Prepared()))

    /// Starts the shared client, once in a process.
    ///
    /// - Throws: `alreadyStarted`, or what `AnalyticsClient.init` throws; then nothing has started.
    public static func start(_ settings: ClientSettings) throws(AnalyticsError) {
        try phase.withLock { phase throws(AnalyticsError) in
            guard case .notStarted(let prepared) = phase else {
                throw AnalyticsError(.alreadyStarted, "Analytics.start was called already")
            }
            let client = try AnalyticsClient(settings)
            try prepared.apply(to: client)
            phase = .started(client)
        }
    }

    /// Writes gathered events, and ends the shared client. Another one may be started afterwards.
    ///
    /// - Throws: `notStarted`, or as `flush`.
    public static func stop(timeout: Duration = .seconds(5)) throws(AnalyticsError) {
        let client = try client()
        phase.withLock { $0 = .notStarted(Prepared()) }
        try client.close(timeout: timeout)
    }

    /// Tracks an event; see `AnalyticsClient.trackEvent`.
    public static func trackEvent(
        _ name: String, withProperties properties: EventProperties? = nil, flags: Flags = .normal
    ) throws(AnalyticsError) {
        try client().trackEvent(name, withProperties: properties, flags: flags)
    }

    /// Tracks an event; see `AnalyticsClient.trackEvent`.
    public static func track(
        _ name: String, properties: EventProperties? = nil, flags: Flags = .normal
    ) throws(AnalyticsError) {
        try client().trackEvent(name, withProperties: properties, flags: flags)
    }

    /// Pushes values into the data layer; see `AnalyticsClient.push`.
    public static func push(_ members: DataLayerValue) throws(AnalyticsError) { try client().push(members) }

    /// Pushes one value into the data layer; see `AnalyticsClient.push`.
    public static func push(_ value: DataLayerValue, forKey name: String) throws(AnalyticsError) {
        try client().push(value, forKey: name)
    }

    /// Asks the agent to send all tracked events; see `AnalyticsClient.dispatch`.
    public static func dispatch() throws(AnalyticsError) { try client().dispatch() }

    /// Asks the agent to send all tracked events; see `AnalyticsClient.dispatch(timeout:completion:)`.
    public static func dispatch(
        timeout: Duration = .seconds(30), completion: @escaping @Sendable (DispatchReport) -> Void
    ) throws(AnalyticsError) {
        try client().dispatch(timeout: timeout, completion: completion)
    }

    /// Asks the agent to send all tracked events, and waits for the result; see
    /// `AnalyticsClient.dispatchAndWait`.
    public static func dispatchAndWait(
        timeout: Duration = .seconds(30)
    ) async throws(AnalyticsError) -> DispatchReport {
        try await client().dispatchAndWait(timeout: timeout)
    }

    /// Waits until all events tracked before are in the spool; see `AnalyticsClient.flush`.
    public static func flush(timeout: Duration = .seconds(5)) throws(AnalyticsError) {
        try client().flush(timeout: timeout)
    }

    /// Keeps events back from now on; see `AnalyticsClient.pause`.
    public static func pause() throws(AnalyticsError) { try client().pause() }

    /// Releases what was kept back; see `AnalyticsClient.resume`.
    public static func resume() throws(AnalyticsError) { try client().resume() }

    /// Whether events are accepted; false before `start`, as in App Center.
    public static var isEnabled: Bool { (try? client())?.isEnabled ?? false }

    /// Turns accepting events on or off; see `AnalyticsClient.isEnabled`.
    public static func setEnabled(_ isEnabled: Bool) throws(AnalyticsError) {
        try client().isEnabled = isEnabled
    }

    /// Leaves sessions to the app; see `AnalyticsClient.enableManualSessionTracker`. If it is called before
    /// `start`, it concerns the first event too.
    public static func enableManualSessionTracker() {
        change({ $0.isManual = true }, { $0.enableManualSessionTracker() })
    }

    /// Begins a session; see `AnalyticsClient.startSession`.
    @discardableResult
    public static func startSession() throws(AnalyticsError) -> Bool { try client().startSession() }

    /// Sets the country of later events; see `AnalyticsClient.setCountryCode`. May be called before `start`.
    public static func setCountryCode(_ code: String?) throws(AnalyticsError) {
        let checked = try AnalyticsClient.checkedCountry(code)
        try change(
            { $0.country = checked }, { client throws(AnalyticsError) in try client.setCountryCode(checked) })
    }

    /// Sets how long events gather; see `AnalyticsClient.setTransmissionInterval`. May be called before
    /// `start`.
    public static func setTransmissionInterval(_ interval: Duration) throws(AnalyticsError) {
        let checked = try AnalyticsClient.checkedInterval(interval)
        try change(
            { $0.transmissionInterval = checked },
            { client throws(AnalyticsError) in try client.setTransmissionInterval(checked) })
    }

    /// How long events gather; see `AnalyticsClient.dispatchInterval`. May be set before `start`.
    public static var dispatchInterval: Duration? {
        get {
            phase.withLock { phase in
                switch phase {
                case .notStarted(let prepared): prepared.dispatchInterval ?? nil
                case .started(let client): client.dispatchInterval
                }
            }
        }
        set { change({ $0.dispatchInterval = .some(newValue) }, { $0.dispatchInterval = newValue }) }
    }

    /// Changes what `start` will apply, or the client that has started.
    private static func change<Failure: Error>(
        _ prepare: (inout Prepared) -> Void, _ apply: (AnalyticsClient) throws(Failure) -> Void
    ) throws(Failure) {
        let client = phase.withLock { phase -> AnalyticsClient? in
            switch phase {
            case .started(let client): return client
            case .notStarted(var prepared):
                prepare(&prepared)
                phase = .notStarted(prepared)
                return nil
            }
        }
        if let client {
            try apply(client)
        }
    }

    /// The started client.
    private static func client() throws(AnalyticsError) -> AnalyticsClient {
        guard case .started(let client) = phase.withLock({ $0 }) else {
            throw AnalyticsError(.notStarted, "call Analytics.start first")
        }
        return client
    }
}
