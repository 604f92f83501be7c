public import Model

/// Why the agent refuses a request.
public struct ControlRefusal: Error, Sendable, Equatable {
    /// The HTTP status: 400 what was asked makes no sense, 404 there is no such thing, 409 not now, 500 it failed.
    public let status: Int
    /// A word for programs.
    public let code: String
    /// One line for a person: what is wrong and what to do.
    public let message: String

    package init(status: Int, code: String, message: String) {
        self.status = status
        self.code = code
        self.message = message
    }
}

/// Reports the agent's state.
public protocol StatusSource: Sendable {
    /// The state at this moment, from published figures.
    func status() async -> StatusReport
}

/// Requests that concern sending.
public protocol SendingControl: Sendable {
    /// Sends what waits now and returns; nil: to all destinations.
    func dispatch(to destination: DestinationName?) async throws(ControlRefusal)

    /// Sends what waits now; reports after each request. Cancelled when the client goes away.
    func dispatchAndWait(
        to destination: DestinationName?, report: @escaping @Sendable (DispatchReport) -> Void
    ) async throws(ControlRefusal) -> CommandResult

    /// Sends until nothing is left, an error occurs or time runs out. Cancelled when the client goes away.
    func drain(
        timeout: Duration, to destination: DestinationName?, report: @escaping @Sendable (DispatchReport) -> Void
    ) async throws(ControlRefusal) -> CommandResult

    /// Holds sending back while the token is held; durable unless `untilRestart`.
    func pause(
        token: String, destination: DestinationName?, ttl: Duration?, untilRestart: Bool
    ) async throws(ControlRefusal)

    /// Releases a token, or all of them, lifts holds and closes breakers when it is nil.
    func resume(token: String?, destination: DestinationName?) async throws(ControlRefusal)

    /// Allows or forbids connections; durable.
    func setNetwork(on: Bool) async throws(ControlRefusal)

    /// The network has changed: retries begin again.
    func networkChanged() async throws(ControlRefusal)

    /// Changes the dispatch interval; nil: back to the configured one, zero: off.
    ///
    /// - Returns: the interval in force, as in the configuration.
    func setInterval(_ interval: Duration?, persist: Bool) async throws(ControlRefusal) -> String
}

/// Requests that concern the agent as a whole.
public protocol CollectionControl: Sendable {
    /// Turns collection on or off; durable. Off deletes what is queued.
    ///
    /// - Returns: how many deliveries were discarded.
    func setEnabled(_ isEnabled: Bool) async throws(ControlRefusal) -> DiscardedEvents

    /// Starts a new session; nil: of every app.
    ///
    /// - Returns: what happened, in a sentence: in automatic mode nothing does.
    func startSession(app: String?) async throws(ControlRefusal) -> String

    /// Overrides the country code; nil ends the override.
    func setCountry(_ code: String?) async throws(ControlRefusal)

    /// Changes the log's level until a restart or reload; a word of the settings, or `default`.
    func setLogLevel(_ level: String) async throws(ControlRefusal)

    /// Reads the configuration again, as a whole or not at all.
    func reload() async throws(ControlRefusal) -> ReloadResult
}

/// The result of a reload; a configuration with mistakes is a refusal instead.
public struct ReloadResult: Sendable, Equatable {
    /// Settings that are in force now: `queue.max_size: 10MiB → 20MiB`.
    public let changed: [String]
    /// Settings that wait for a restart.
    public let needRestart: [String]
    /// What is allowed and probably not meant, each a sentence for a person.
    public let warnings: [String]

    package init(changed: [String], needRestart: [String], warnings: [String] = []) {
        self.changed = changed
        self.needRestart = needRestart
        self.warnings = warnings
    }
}

/// Requests that concern the stores. They run on the store's loop and may take a while.
public protocol RecordControl: Sendable {
    /// Records in the order of the queue, or the oldest first; never their content.
    ///
    /// - Parameters:
    ///   - after: the `next` of the page before.
    ///   - limit: at most so many, 1 to 1,000.
    func list(
        _ store: RecordStore, _ filter: RecordSelection, after: String?, limit: Int
    ) async throws(ControlRefusal) -> (records: [JSONValue], next: String?)

    /// One record, its content included.
    func show(_ store: RecordStore, id: String) async throws(ControlRefusal) -> JSONValue

    /// The next events or records as lines, each ended, at most about 1 MiB; empty at the end.
    func export(
        _ store: RecordStore, _ filter: RecordSelection, after: String?
    ) async throws(ControlRefusal) -> (lines: [UInt8], next: String?)

    /// Sends dead letters again, or reads quarantined lines again.
    ///
    /// - Returns: how many.
    func retry(_ store: RecordStore, _ filter: RecordSelection) async throws(ControlRefusal) -> Int

    /// Removes records; of the queue they count as discarded.
    ///
    /// - Returns: how many.
    func purge(_ store: RecordStore, _ filter: RecordSelection) async throws(ControlRefusal) -> Int

    /// Lets what is queued for one destination wait for another instead.
    ///
    /// - Returns: how many events did, and how many stay (in flight, or queued there already).
    func move(
        from source: String, to target: String, _ priority: Priority?
    ) async throws(ControlRefusal) -> (moved: Int, kept: Int)
}
