/// Notices when the time of day was set by more than an hour: then nothing should be given up for its age for ten
/// minutes, because the clock may be set again.
public struct ClockSteps {
    private static let large = Duration.seconds(3600)
    private static let distrust = Duration.seconds(600)

    private var last: (boot: BootInstant, wall: Timestamp)
    private var steadyFrom = BootInstant(nanoseconds: .min)

    package init(at time: any TimeSource) {
        last = (time.bootTime, time.wallTime)
    }

    /// Whether there was no large step within the last ten minutes, as far back as this was asked.
    public mutating func isSteady(at time: any TimeSource) -> Bool {
        let (boot, wall) = (time.bootTime, time.wallTime)
        let step = (wall - last.wall) - (boot - last.boot)
        if step > ClockSteps.large || step < .zero - ClockSteps.large { steadyFrom = boot + ClockSteps.distrust }
        last = (boot, wall)
        return boot >= steadyFrom
    }
}
