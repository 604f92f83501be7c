package import Model

/// `[retry]`: what happens after a failed attempt. The default intervals are those of App Center's SDKs.
public struct RetrySettings: SettingsSection {
    /// Longest wait before each retry. There are as many retries as waits.
    package var intervals: [Duration] = [.seconds(10), .seconds(300), .seconds(1200)]
    /// Share of each wait that is random, from 0 to 1.
    package var jitter = 0.5
    /// What happens after the last retry.
    package var whenExhausted = WhenExhausted.probe
    /// Longest wait between attempts at a destination that is held, or whose breaker is open.
    package var probeInterval = Duration.seconds(1200)

    static let entries: [Entry<RetrySettings>] = [
        .pair(
            "intervals",
            .init("waits", \.intervals, intervalsType),
            .init("jitter", \.jitter, .number(0...1)),
            "The longest wait before each retry; there are as many retries as waits. jitter is the share of"
                + " each wait that is random, so that agents that failed together do not return together."),
        .setting("jitter", \.jitter, .number(0...1), "Now intervals.jitter.")
            .renamed(to: "intervals.jitter"),
        .pair(
            "when_exhausted", .init("then", \.whenExhausted, .choice),
            .init("interval", \.probeInterval, probeIntervalType),
            "probe recovers by itself; suspend waits for a restart, a network change or `spoolship resume`."
                + " interval is the longest wait between two attempts at a destination that is held or whose"
                + " breaker is open."),
        .setting("probe_interval", \.probeInterval, probeIntervalType, "Now when_exhausted.interval.")
            .renamed(to: "when_exhausted.interval"),
    ]

    private static let intervalsType = ValueType<[Duration]>.list(
        of: .duration(.milliseconds(100) ... .seconds(86_400)), count: 0...20)
    private static let probeIntervalType = ValueType<Duration>.duration(.seconds(1) ... .seconds(86_400))
}
