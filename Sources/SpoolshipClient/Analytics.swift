internal import Synchronization

/// The shared client of a process, with the names that App Center gave these calls.
///
/// ```swift
/// try Analytics.start(ClientSettings(directory: "/var/spool/spoolship/shop"))
/// try Analytics.trackEvent("Video clicked", withProperties: ["Category": "Music", "Seconds": 12], flags: .critical)
/// ```
public enum Analytics {
    private static let shared = Mutex<AnalyticsClient?>(nil)

    /// Starts the shared client, once in a process; throws `alreadyStarted`, or what `AnalyticsClient.init` throws.
    public static func start(_ settings: ClientSettings) throws(AnalyticsError) {
        let client = try AnalyticsClient(settings)
        try shared.withLock { shared throws(AnalyticsError) in
            guard shared == nil else { throw AnalyticsError(.alreadyStarted, "Analytics.start was called already") }
            shared = client
        }
    }

    /// Writes what waits and ends the shared client; another may be started after. Throws `notStarted`, or as `flush`.
    public static func stop(timeout: Duration = .seconds(5)) throws(AnalyticsError) {
        let client = try client()
        shared.withLock { $0 = nil }
        try client.close(timeout: timeout)
    }

    /// Tracks an event; see `AnalyticsClient.trackEvent`.
    public static func trackEvent(
        _ name: String, withProperties properties: EventProperties = [:], flags: Flags = .normal
    ) throws(AnalyticsError) {
        try client().trackEvent(name, withProperties: properties, flags: flags)
    }

    /// Waits until all events tracked before are in the spool; see `AnalyticsClient.flush`.
    public static func flush(timeout: Duration = .seconds(5)) throws(AnalyticsError) {
        try client().flush(timeout: timeout)
    }

    /// Keeps events back from now on; see `AnalyticsClient.pause`.
    public static func pause() throws(AnalyticsError) { try client().pause() }

    /// Releases what was kept back; see `AnalyticsClient.resume`.
    public static func resume() throws(AnalyticsError) { try client().resume() }

    /// Whether events are taken: false before `start`, as it was in App Center.
    public static var isEnabled: Bool { shared.withLock { $0 }?.isEnabled ?? false }

    /// Turns taking events on or off; see `AnalyticsClient.isEnabled`.
    public static func setEnabled(_ isEnabled: Bool) throws(AnalyticsError) { try client().isEnabled = isEnabled }

    /// Leaves sessions to the app; see `AnalyticsClient.enableManualSessionTracker`.
    public static func enableManualSessionTracker() throws(AnalyticsError) { try client().enableManualSessionTracker() }

    /// Begins a session; see `AnalyticsClient.startSession`.
    @discardableResult
    public static func startSession() throws(AnalyticsError) -> Bool { try client().startSession() }

    /// Sets the country of later events; see `AnalyticsClient.setCountryCode`.
    public static func setCountryCode(_ code: String?) throws(AnalyticsError) { try client().setCountryCode(code) }

    /// Sets how long events gather; see `AnalyticsClient.setTransmissionInterval`.
    public static func setTransmissionInterval(_ interval: Duration) throws(AnalyticsError) {
        try client().setTransmissionInterval(interval)
    }

    private static func client() throws(AnalyticsError) -> AnalyticsClient {
        guard let client = shared.withLock({ $0 }) else {
            throw AnalyticsError(.notStarted, "call Analytics.start first")
        }
        return client
    }
}
