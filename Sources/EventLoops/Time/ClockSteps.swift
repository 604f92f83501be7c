/// Notices that the time of day was set by more than an hour, also while no process ran. For ten
/// minutes after that nothing should expire, because the clock may be set again: a wrong clock at boot
/// would otherwise expire a whole backlog.
public struct ClockSteps: Sendable {
    /// Least step that counts: a smaller one lets events expire an hour early at most.
    private static let large = Duration.seconds(3600)
    /// Time after a step during which the clock is not trusted.
    private static let distrust = Duration.seconds(600)

    /// When the machine booted, by the time of day. It changes with the next boot and when the clock is
    /// set.
    private var started: Timestamp?
    /// When the clock is trusted again.
    private var steadyFrom = BootInstant(nanoseconds: .min)

    /// - Parameter text: `text` of an earlier process; nil if there was none.
    package init(after text: String? = nil) {
        let kept = text?.split(separator: " ").compactMap { Int64($0) } ?? []
        guard kept.count == 2 else { return }
        started = Timestamp(milliseconds: kept[0])
        steadyFrom = BootInstant(nanoseconds: kept[1])
    }

    /// Whether no large step occurred within the last ten minutes. Steps are seen from the first call
    /// on.
    public mutating func isSteady(at time: any TimeSource) -> Bool {
        let boot = time.bootTime
        let now = time.wallTime - .nanoseconds(boot.nanoseconds)
        let step = now - (started ?? now)
        if step > ClockSteps.large || step < .zero - ClockSteps.large {
            steadyFrom = boot + ClockSteps.distrust
        }
        started = now
        return boot >= steadyFrom
    }

    /// What a later process must know, to the second, so that it stays equal until the clock is set.
    package var text: String { "\((started?.milliseconds ?? 0) / 1000 * 1000) \(steadyFrom.nanoseconds)" }
}
