//  SpoolshipClient: writes events into a spool of Spoolship, from any process, whether or not the agent runs.
//
//  What it promises. An event whose `flush` has returned is in the spool, whole and once. No call of an app
//  waits longer than the settings say, and none waits for a file. An event that is not accepted is reported
//  by a typed error. The module knows the spool's protocol (docs/writing-events.md), and nothing of the
//  agent; it depends on no other module and no library, so that any program can link it. It runs on Linux,
//  with glibc or musl, and on macOS.
//
//  Parts:
//  - `Analytics`: the shared client of a process, with the names of App Center's SDK. `AnalyticsClient` is
//    behind it. Begin reading here, with `trackEvent`.
//  - `SpoolWriter`: the buffer, and the thread that writes it. `SpoolFiles`: the files, used by that thread
//    alone.
//  - `EventLine`, `EventProperties`, `DataLayerValue`: values in, a line of JSON out.
//  - `SpoolState`: what the agent accepts, read from a file beside the app's directories.
//  - `Dispatcher` and `DispatchReport`: sending now, by the agent's control socket (`AgentSocket`).
//  - `AgentContainer`, `ContainerValues`: values of the agent's containers, by the socket or from a file.
//  - `Platform`: what differs between systems; `JSONText`: a small reader of JSON.
//
//  Rules. All public types may be used from any thread. The caller's thread only takes locks for moments;
//  files, syncs and directories are the writing thread's, sockets the dispatching thread's. The buffer is
//  bounded (`bufferSize`). What the files of a drop box say is not trusted, because everybody may write
//  there. Waits use the monotonic clock, times of events the wall clock.

internal import Synchronization

/// One writer into a spool. Thread-safe. Most programs use the shared one behind `Analytics`.
public final class AnalyticsClient: Sendable {
    /// The values that new events get.
    private struct State {
        /// Whether sessions begin by `startSession` only.
        var isManual = false
        /// Id of the session that the app began; nil before the first.
        var session: String?
        /// Country in capitals; nil for none.
        var country: String?
    }

    /// The settings, checked.
    private let settings: ClientSettings
    /// The buffer and its thread.
    private let writer: SpoolWriter
    /// Dispatches, one at a time.
    private let dispatcher: Dispatcher
    /// The switches; guarded by the mutex, which is never held while waiting.
    private let state = Mutex(State())

    /// Opens a client of a spool directory, and starts its writing thread. Files that ended processes of the
    /// same name left behind are given to the agent.
    ///
    /// - Throws: `spoolMissing`, `notWritable` or `invalidSetting`.
    public init(_ settings: ClientSettings) throws(AnalyticsError) {
        guard settings.bufferSize >= 1024, settings.fileSize >= 1024, settings.longestWait >= .zero else {
            throw AnalyticsError(
                .invalidSetting,
                "bufferSize and fileSize must be at least 1024 bytes, longestWait not negative")
        }
        self.settings = settings
        writer = try SpoolWriter(settings)
        dispatcher = Dispatcher(writer: writer, socket: settings.controlSocket)
    }

    deinit {
        // The writing thread keeps itself alive until it has written the gathered events; there is no caller
        // left for an error.
        try? writer.close(timeout: .zero)
    }

    // MARK: Events

    /// Tracks an event.
    ///
    /// It is in the buffer when the call returns and in the spool soon after; `flush` waits for that.
    /// - Parameters:
    ///   - name: not empty; beyond 256 UTF-16 code units it is cut by the agent.
    ///   - properties: beyond 20 the agent leaves them out.
    ///   - flags: a `critical` event is sent first, and with it at once all events that wait for the
    ///     `transmissionInterval`.
    /// - Throws: `AnalyticsError`: `refused` or `onlyCritical` if the agent accepts no events, or only
    ///   critical ones; `bufferFull` or `diskFull` after `longestWait`; `invalidEvent`; `closed`. While the
    ///   client is disabled nothing is thrown, and events are discarded.
    public func trackEvent(
        _ name: String, withProperties properties: EventProperties? = nil, flags: Flags = .normal
    ) throws(AnalyticsError) {
        let deadline = writer.deadline()
        guard let (session, country) = try admit(flags, until: deadline) else { return }
        let line = try EventLine.event(
            name, properties ?? [:], flags, at: wallMilliseconds(), session: session, country: country)
        try writer.take(line, isUrgent: flags == .critical, until: deadline)
    }

    /// `trackEvent` under its short name.
    public func track(
        _ name: String, properties: EventProperties? = nil, flags: Flags = .normal
    ) throws(AnalyticsError) {
        try trackEvent(name, withProperties: properties, flags: flags)
    }

    /// Pushes names and values into the data layer of the app, which the agent's containers read: maps merge,
    /// lists merge by index, anything else is replaced. With an `event` it also fires the tags that call
    /// functions; it is never shipped.
    ///
    /// - Throws: as `trackEvent`. The pushes and events of a client reach the agent in their order.
    public func push(_ members: DataLayerValue) throws(AnalyticsError) {
        let deadline = writer.deadline()
        guard try admit(.normal, until: deadline) != nil else { return }
        try writer.take(try EventLine.push(members), isUrgent: false, until: deadline)
    }

    /// Pushes one value; see `push(_:)`.
    public func push(_ value: DataLayerValue, forKey name: String) throws(AnalyticsError) {
        try push(DataLayerValue(name, value))
    }

    /// Whether an event may go, and what it carries; nil while disabled.
    ///
    /// - Throws: `refused` or `onlyCritical` by what the agent accepts.
    private func admit(
        _ flags: Flags, until deadline: Int64
    ) throws(AnalyticsError) -> (session: SessionMark, country: String?)? {
        guard isEnabled else { return nil }
        let (session, country) = state.withLock { state -> (SessionMark, String?) in
            (state.session.map(SessionMark.id) ?? (state.isManual ? .none : .automatic), state.country)
        }
        let spool = writer.spoolState(until: deadline)
        switch spool.accepting {
        case .none: throw AnalyticsError(.refused, "the agent accepts no events now: \(spool.reason)")
        case .critical where flags != .critical:
            throw AnalyticsError(.onlyCritical, "the agent accepts critical events only now: \(spool.reason)")
        default: return (session, country)
        }
    }

    /// Waits until all events that were tracked before are in the spool, as durable as the settings say, and
    /// with them the state of `isEnabled`. It ends a `transmissionInterval`.
    ///
    /// - Throws: `timedOut`, or why writing fails. The events stay in the buffer, and writing is tried again
    ///   each second.
    public func flush(timeout: Duration = .seconds(5)) throws(AnalyticsError) {
        try writer.flush(timeout: timeout)
    }

    /// Writes gathered events, and ends the client; later events throw `closed`.
    ///
    /// - Parameter timeout: default 5 s.
    /// - Throws: `timedOut`, or why writing fails; the thread then keeps trying.
    public func close(timeout: Duration = .seconds(5)) throws(AnalyticsError) {
        try writer.close(timeout: timeout)
    }

    /// What the agent accepts now. Reads a file, so it may block.
    public var spoolState: SpoolState { SpoolState.read(directory: settings.directory) }

    // MARK: Dispatch

    /// Asks the agent to send all events tracked so far, and returns at once. If no agent runs, it is sent
    /// when one starts.
    public func dispatch() { dispatcher.dispatch(timeout: AnalyticsClient.dispatchTimeout) { _ in } }

    /// Asks the agent to send all events tracked so far. `completion` is called once, on another thread.
    ///
    /// It waits until the agent has queued the events (one to two seconds for an append file, which is
    /// finished for this), then asks over the control socket for sending all that waits. An app that may not
    /// use the socket only learns that the events are queued, and the agent sends them by its own interval;
    /// `confirmedBy` says which.
    ///
    /// - Parameter timeout: default 30 s; then the result is `error`, and what was not sent waits.
    public func dispatch(
        timeout: Duration = .seconds(30), completion: @escaping @Sendable (DispatchReport) -> Void
    ) {
        dispatcher.dispatch(timeout: timeout, completion)
    }

    /// Asks the agent to send all events tracked so far, and waits for the result; see
    /// `dispatch(timeout:completion:)`.
    public func dispatchAndWait(timeout: Duration = .seconds(30)) async -> DispatchReport {
        await withCheckedContinuation { continuation in
            dispatcher.dispatch(timeout: timeout) { continuation.resume(returning: $0) }
        }
    }

    /// Time limit of a dispatch whose result goes unseen.
    private static let dispatchTimeout = Duration.seconds(30)

    /// How long events of this client gather before the agent sees them; nil (default) does not gather. Less
    /// than a second means that only `dispatch`, `flush` or the end of the client release them, critical ones
    /// too. More than a day counts as a day.
    ///
    /// When the agent sends what it has is a setting of the agent (`dispatch.interval`).
    public var dispatchInterval: Duration? {
        get {
            // The writer has nil for "until asked" and zero for "no gathering"; here it is the other way
            // round.
            switch writer.gatheringInterval() {
            case nil: Duration.zero
            case .zero?: nil
            case let interval?: interval
            }
        }
        set {
            guard let newValue else { return writer.setInterval(.zero) }
            writer.setInterval(newValue < .seconds(1) ? nil : min(newValue, AnalyticsClient.longestInterval))
        }
    }

    // MARK: Switches

    /// Whether events are accepted; default true. While it is false, `trackEvent` does nothing and throws
    /// nothing.
    ///
    /// The value outlives the process: the next client of this name and user in this directory begins with
    /// it. It is a file `.NAME-UID.disabled` there, made by the writing thread; `flush` waits for it. It
    /// concerns this client only; `spoolship disable` concerns the agent.
    public var isEnabled: Bool {
        get { writer.whetherEnabled() }
        set { writer.setEnabled(newValue) }
    }

    /// Keeps events back from now on: they are written, durably, under names that the agent does not read.
    ///
    /// If the process ends while it is paused, the next client of the same name releases them.
    public func pause() { writer.setPaused(true) }

    /// Releases to the agent what was kept back. Does nothing without a pause.
    public func resume() { writer.setPaused(false) }

    /// Whether events are kept back now.
    public var isPaused: Bool { writer.whetherPaused() }

    // MARK: Sessions and country

    /// Leaves sessions to the app: from now on only `startSession` begins them. Events before the first one
    /// belong to no session, whatever the agent's session mode is.
    public func enableManualSessionTracker() { state.withLock { $0.isManual = true } }

    /// Begins a session, and tracks an event of type `start_session`. Later events carry its id, which the
    /// agent keeps.
    ///
    /// - Returns: false, and nothing is done, if sessions are not manual or the client is disabled.
    /// - Throws: as `trackEvent`; the session before stays.
    @discardableResult
    public func startSession() throws(AnalyticsError) -> Bool {
        let (isManual, country) = state.withLock { ($0.isManual, $0.country) }
        guard isManual else { return false }
        let id = AnalyticsClient.uuid()
        let deadline = writer.deadline()
        guard try admit(.normal, until: deadline) != nil else { return false }
        let line = try EventLine.event(
            "start_session", [:], .normal, at: wallMilliseconds(), session: .id(id), country: country,
            type: "start_session")
        try writer.take(line, isUrgent: false, until: deadline)
        state.withLock { $0.session = id }
        return true
    }

    /// Sets the country of later events: two letters by ISO 3166-1, capital or small; nil for none.
    ///
    /// - Throws: `invalidSetting` if no country has the code; the country before stays.
    public func setCountryCode(_ code: String?) throws(AnalyticsError) {
        let checked = try AnalyticsClient.checkedCountry(code)
        state.withLock { $0.country = checked }
    }

    /// A country's code in capitals, or an error.
    static func checkedCountry(_ code: String?) throws(AnalyticsError) -> String? {
        guard let code else { return nil }
        // ASCII letters only: "ß" in capitals is "SS", South Sudan.
        guard code.utf8.count == 2, code.utf8.allSatisfy({ $0 < 0x80 }),
            CountryCodes.contains(code.uppercased())
        else {
            throw AnalyticsError(
                .invalidSetting,
                "\"\(code)\" is not a country code by ISO 3166-1; write two letters, such as \"IT\"")
        }
        return code.uppercased()
    }

    /// How long normal events gather before the agent sees them; default 0, which does not gather. At most a
    /// day.
    ///
    /// Meanwhile they are in the spool, under a name that the agent does not read. They survive the end of
    /// the process: the next client of the same name releases them at once. When the agent sends is a setting
    /// of the agent. While `dispatchInterval` is less than a second, this is a day.
    public var transmissionInterval: Duration {
        writer.gatheringInterval() ?? AnalyticsClient.longestInterval
    }

    /// Sets `transmissionInterval`.
    ///
    /// - Throws: `invalidSetting` outside 0 to 86,400 s; the interval before stays.
    public func setTransmissionInterval(_ interval: Duration) throws(AnalyticsError) {
        writer.setInterval(try AnalyticsClient.checkedInterval(interval))
    }

    /// A day: longer intervals would look like a client that has stopped.
    private static let longestInterval = Duration.seconds(86_400)

    /// An interval in range, or an error.
    static func checkedInterval(_ interval: Duration) throws(AnalyticsError) -> Duration {
        guard interval >= .zero, interval <= longestInterval else {
            throw AnalyticsError(.invalidSetting, "the interval must be from 0 to 86400 seconds")
        }
        return interval
    }

    /// A random UUID (version 4, RFC 9562, section 5.4) in small letters.
    private static func uuid() -> String {
        var random = SystemRandomNumberGenerator()
        let halves = [random.next() & ~0xF000 | 0x4000, random.next() & ~(3 << 62) | 1 << 63] as [UInt64]
        let digits = halves.flatMap { half in
            let text = String(half, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }
}
