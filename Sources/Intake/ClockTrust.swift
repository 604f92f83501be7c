internal import CLinux
package import EventLoops

/// Whether the time of day can be trusted: while it cannot, nothing expires or is quarantined for its time.
///
/// It cannot while the kernel says that the clock is not synchronised, nor within ten minutes after a step of more than
/// an hour (a machine that starts in 1970, a correction by hand). If a sandbox forbids asking the kernel (as the unit's
/// `ProtectClock=` does), a time service gets the machine's first ten minutes, and a clock that is behind a time known
/// to be past is not trusted. The kernel is asked once a minute at most.
package final class ClockTrust {
    private static let lookUpEvery = Duration.seconds(60)
    private static let timeToSynchronise = BootInstant(nanoseconds: 600_000_000_000)
    /// 2026-11-01, when this was written: a clock before it is wrong.
    private static let release = Timestamp(milliseconds: 1_793_491_200_000)

    private let past: Timestamp
    private let isSynchronised: () -> Bool?
    private var steps: ClockSteps
    private var lastLook: BootInstant?
    private var isBelieved = false

    /// Trust that begins with what the kernel says.
    ///
    /// - Parameters:
    ///   - past: a time that is known to be past, such as that of the queue's last change; nil for none.
    ///   - steps: what is known of steps of the clock.
    ///   - isSynchronised: asks the kernel, nil when that is forbidden.
    package init(
        past: Timestamp? = nil, steps: ClockSteps = ClockSteps(),
        isSynchronised: @escaping () -> Bool? = kernelClockIsSynchronised
    ) {
        self.steps = steps
        self.past = max(past ?? ClockTrust.release, ClockTrust.release)
        self.isSynchronised = isSynchronised
    }

    package func isTrusted(at time: any TimeSource) -> Bool {
        // Looked at each time: within a minute after a step much would be given up.
        let isSteady = steps.isSteady(at: time)
        let boot = time.bootTime
        if lastLook.map({ boot - $0 >= ClockTrust.lookUpEvery }) ?? true {
            lastLook = boot
            isBelieved = isSynchronised() ?? (boot >= ClockTrust.timeToSynchronise && time.wallTime >= past)
        }
        return isSteady && isBelieved
    }
}

/// What the kernel says of its clock; nil when it may not be asked. Containers see their host's.
///
/// A machine without a time service is never synchronised: its old events are kept until the cap asks for their room,
/// which loses less than a wrong year would.
package func kernelClockIsSynchronised() -> Bool? {
    switch clinux_clock_is_synchronised() {
    case 1: true
    case 0: false
    default: nil
    }
}
