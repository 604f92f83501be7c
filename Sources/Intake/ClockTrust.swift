internal import CLinux
package import EventLoops

/// Whether the time of day can be trusted. While it cannot, no event expires or is quarantined for its time:
/// a clock that is wrong by years would discard everything.
///
/// It is not trusted while the kernel says that the clock is not synchronised, nor within ten minutes after a
/// step of more than an hour (a machine that starts in 1970, a correction by hand). If a sandbox forbids
/// asking the kernel (as the unit's `ProtectClock=` does), a time service gets the machine's first ten
/// minutes, and a clock that is behind a time known to be past is not trusted. The kernel is asked once a
/// minute at most.
package final class ClockTrust {
    /// Time between two questions to the kernel.
    private static let lookUpEvery = Duration.seconds(60)
    /// Time after boot that a time service gets if the kernel cannot be asked.
    private static let timeToSynchronise = BootInstant(nanoseconds: 600_000_000_000)
    /// 2026-11-01, the date of this code: a clock before it is wrong.
    private static let release = Timestamp(milliseconds: 1_793_491_200_000)

    /// A time that is known to be past; at least `release`.
    private let past: Timestamp
    /// Asks the kernel; nil if that is forbidden.
    private let isSynchronised: () -> Bool?
    /// Steps of the clock, found by comparison with the boot clock.
    private var steps: ClockSteps
    /// Time of the last question to the kernel, and its answer.
    private var lastLook: BootInstant?
    private var isBelieved = false

    /// Trust that begins with what the kernel says.
    ///
    /// - Parameters:
    ///   - past: a time that is known to be past, such as the queue's last change; nil for none.
    ///   - steps: steps of the clock that earlier processes have seen.
    ///   - isSynchronised: asks the kernel; nil if that is forbidden.
    package init(
        past: Timestamp? = nil, steps: ClockSteps = ClockSteps(),
        isSynchronised: @escaping () -> Bool? = kernelClockIsSynchronised
    ) {
        self.steps = steps
        self.past = max(past ?? ClockTrust.release, ClockTrust.release)
        self.isSynchronised = isSynchronised
    }

    /// Whether the time of day can be trusted now.
    package func isTrusted(at time: any TimeSource) -> Bool {
        // Checked on each call, not once a minute: within a minute after a step many events could expire.
        let isSteady = steps.isSteady(at: time)
        let boot = time.bootTime
        if lastLook.map({ boot - $0 >= ClockTrust.lookUpEvery }) ?? true {
            lastLook = boot
            isBelieved = isSynchronised() ?? (boot >= ClockTrust.timeToSynchronise && time.wallTime >= past)
        }
        return isSteady && isBelieved
    }
}

/// Whether the kernel takes its clock for synchronised; nil if it must not be asked (`adjtimex(2)`).
/// Containers see the host's clock.
///
/// A machine without a time service is never synchronised. Its old events are then kept until the queue's cap
/// needs their room, which loses less than a wrong year would.
package func kernelClockIsSynchronised() -> Bool? {
    switch clinux_clock_is_synchronised() {
    case 1: true
    case 0: false
    default: nil
    }
}
