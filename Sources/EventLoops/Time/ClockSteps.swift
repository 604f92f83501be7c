/// Notices when the time of day was set by more than an hour, also between two processes: then nothing should be given up for
/// its age for ten minutes, because the clock may be set again.
public struct ClockSteps: Sendable {
    private static let large = Duration.seconds(3600)
    private static let distrust = Duration.seconds(600)

    /// When the machine started, in time of day: it changes with the next start, and when the clock is set.
    private var started: Timestamp?
    private var steadyFrom = BootInstant(nanoseconds: .min)

    /// - Parameter text: what an earlier process has kept.
    package init(after text: String? = nil) {
        let kept = text?.split(separator: " ").compactMap { Int64($0) } ?? []
        guard kept.count == 2 else { return }
        (started, steadyFrom) = (Timestamp(milliseconds: kept[0]), BootInstant(nanoseconds: kept[1]))
    }

    /// Whether there was no large step within the last ten minutes, as far back as this was asked.
    public mutating func isSteady(at time: any TimeSource) -> Bool {
        let boot = time.bootTime
        let now = time.wallTime - .nanoseconds(boot.nanoseconds)
        let step = now - (started ?? now)
        if step > ClockSteps.large || step < .zero - ClockSteps.large { steadyFrom = boot + ClockSteps.distrust }
        started = now
        return boot >= steadyFrom
    }

    /// What a later process has to know, to the second: it is the same as long as nobody sets the clock.
    package var text: String { "\((started?.milliseconds ?? 0) / 1000 * 1000) \(steadyFrom.nanoseconds)" }
}
