//  SpoolshipClient: writes events into a spool of Spoolship, from any process, whether or not the agent runs.
//
//  It promises that an event whose `flush` has returned is in the spool, whole, once; that no call waits longer than the
//  settings say, nor for a file; and that every event that is not taken is reported by a typed error. It knows the spool's protocol and
//  nothing of the agent.

internal import Synchronization

/// One writer into a spool. Thread-safe; most programs use the shared one behind `Analytics`.
public final class AnalyticsClient: Sendable {
    private struct State {
        var isManual = false
        var session: String?
        var country: String?
    }

    private let settings: ClientSettings
    private let writer: SpoolWriter
    private let state = Mutex(State())

    /// A client of a spool directory; throws `spoolMissing`, `notWritable` or `invalidSetting`.
    public init(_ settings: ClientSettings) throws(AnalyticsError) {
        guard settings.bufferSize >= 1024, settings.fileSize >= 1024, settings.longestWait >= .zero else {
            throw AnalyticsError(
                .invalidSetting, "bufferSize and fileSize must be at least 1024 bytes, longestWait not negative")
        }
        self.settings = settings
        writer = try SpoolWriter(settings)
    }

    deinit {
        // What waits is written by the thread, which lives until then; there is nobody left to tell.
        try? writer.close(timeout: .zero)
    }

    // MARK: Events

    /// Tracks an event.
    ///
    /// It is in the buffer when the call returns and in the spool soon after; `flush` waits for that.
    /// - Parameters:
    ///   - name: not empty; beyond 256 UTF-16 code units it is cut by the agent.
    ///   - properties: beyond 20 the agent leaves them out.
    ///   - flags: `critical` events are sent first, and end the `transmissionInterval` of what has gathered.
    /// - Throws: `AnalyticsError`: `refused` and `onlyCritical` by what the agent says, `bufferFull` and `diskFull` after
    ///   `longestWait`, `invalidEvent`, `closed`. While disabled nothing is thrown and nothing is kept.
    public func trackEvent(
        _ name: String, withProperties properties: EventProperties = [:], flags: Flags = .normal
    ) throws(AnalyticsError) {
        let deadline = writer.deadline()
        guard let (session, country) = try admit(flags, until: deadline) else { return }
        let line = try EventLine.event(
            name, properties, flags, at: wallMilliseconds(), session: session, country: country)
        try writer.take(line, isUrgent: flags == .critical, until: deadline)
    }

    /// Whether an event may go, and what it carries; nil while disabled.
    private func admit(
        _ flags: Flags, until deadline: Int64
    ) throws(AnalyticsError) -> (session: String?, country: String?)? {
        guard isEnabled else { return nil }
        let (session, country) = state.withLock { ($0.session, $0.country) }
        let spool = writer.spoolState(until: deadline)
        switch spool.accepting {
        case .none: throw AnalyticsError(.refused, "the agent accepts no events now: \(spool.reason)")
        case .critical where flags != .critical:
            throw AnalyticsError(.onlyCritical, "the agent accepts critical events only now: \(spool.reason)")
        default: return (session, country)
        }
    }

    /// Waits until all events tracked before are in the spool, as durable as the settings say, and the switches with them. It
    /// ends a `transmissionInterval`.
    ///
    /// - Throws: `timedOut`, or why writing fails; the events stay in the buffer and are tried again each second.
    public func flush(timeout: Duration = .seconds(5)) throws(AnalyticsError) { try writer.flush(timeout: timeout) }

    /// Writes what waits and ends the client; later events throw `closed`. Throws `timedOut`, or why writing fails.
    public func close(timeout: Duration = .seconds(5)) throws(AnalyticsError) { try writer.close(timeout: timeout) }

    /// What the agent accepts now. Reads a file.
    public var spoolState: SpoolState { SpoolState.read(directory: settings.directory) }

    // MARK: Switches

    /// Whether events are taken; default true. While false they are neither kept nor refused.
    ///
    /// It outlives the process: the next client of this name and user in this directory begins with it (a file
    /// `.NAME-UID.disabled` there, which the writing thread makes; `flush` waits for it). `spoolship disable` is the agent's.
    public var isEnabled: Bool {
        get { writer.whetherEnabled() }
        set { writer.setEnabled(newValue) }
    }

    /// Keeps events back from now on: they are written, durably, under names that the agent does not read.
    ///
    /// If the process ends while paused, the next client of the same name releases them.
    public func pause() { writer.setPaused(true) }

    /// Gives the agent what was kept back, and goes on. Without a pause nothing happens.
    public func resume() { writer.setPaused(false) }

    /// Whether events are kept back.
    public var isPaused: Bool { writer.whetherPaused() }

    // MARK: Sessions and country

    /// Leaves sessions to the app: from now on `startSession` alone begins them. The agent should be told too
    /// (`[session] mode = "manual"`), or it gives events an automatic session until the first one is started.
    public func enableManualSessionTracker() { state.withLock { $0.isManual = true } }

    /// Begins a session, whose id wins over the agent's; false, and nothing is done, unless sessions are manual.
    @discardableResult
    public func startSession() throws(AnalyticsError) -> Bool {
        let (isManual, country) = state.withLock { ($0.isManual, $0.country) }
        guard isManual else { return false }
        let id = AnalyticsClient.uuid()
        let deadline = writer.deadline()
        guard try admit(.normal, until: deadline) != nil else { return false }
        let line = try EventLine.event(
            "start_session", [:], .normal, at: wallMilliseconds(), session: id, country: country, type: "start_session")
        try writer.take(line, isUrgent: false, until: deadline)
        state.withLock { $0.session = id }
        return true
    }

    /// Sets the country that later events carry: two letters by ISO 3166-1, either case; nil for none.
    ///
    /// - Throws: `invalidSetting` when it is not two letters. Whether a country has them, the agent checks.
    public func setCountryCode(_ code: String?) throws(AnalyticsError) {
        if let code {
            let isCode = code.utf8.count == 2 && code.utf8.allSatisfy { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A }
            guard isCode else {
                throw AnalyticsError(
                    .invalidSetting, "\"\(code)\" is not a country code; write two letters, such as \"IT\"")
            }
        }
        state.withLock { $0.country = code?.uppercased() }
    }

    /// How long normal events gather before the agent sees them; default 0: not at all. Up to a day.
    ///
    /// They are in the spool meanwhile, under a name that the agent does not read, and survive the end of the process: the next
    /// client of the same name releases them at once. When the agent sends is its own setting.
    public var transmissionInterval: Duration { writer.gatheringInterval() }

    /// Sets `transmissionInterval`; throws `invalidSetting` outside 0…86,400 s, and the old value stays.
    public func setTransmissionInterval(_ interval: Duration) throws(AnalyticsError) {
        guard interval >= .zero, interval <= .seconds(86_400) else {
            throw AnalyticsError(.invalidSetting, "the interval must be from 0 to 86400 seconds")
        }
        writer.setInterval(interval)
    }

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
