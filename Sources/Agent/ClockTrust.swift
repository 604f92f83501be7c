internal import CLinux
internal import EventLoops

/// Whether the time of day can be trusted: nothing expires or is quarantined by its time while it cannot.
///
/// It cannot while the kernel says that the clock is not synchronised, nor within ten minutes after a step of more than
/// an hour (a machine that starts in 1970, a correction by hand). Looked up once a minute at most.
final class ClockTrust {
    private static let largeStep = Duration.seconds(3600)
    private static let quarantineAfterStep = Duration.seconds(600)
    private static let lookUpEvery = Duration.seconds(60)

    private let isSynchronised: () -> Bool
    private var lastLook: (boot: BootInstant, wall: Timestamp)?
    private var trusted = false
    private var distrustUntil = BootInstant(nanoseconds: .min)

    /// - Parameter isSynchronised: asks the kernel; tests pass another.
    init(isSynchronised: @escaping () -> Bool = kernelClockIsSynchronised) {
        self.isSynchronised = isSynchronised
    }

    /// Whether the time of day can be trusted now.
    func isTrusted(at time: any TimeSource) -> Bool {
        let boot = time.bootTime
        if let lastLook, boot - lastLook.boot < ClockTrust.lookUpEvery { return trusted }
        let wall = time.wallTime
        if let lastLook {
            let step = (wall - lastLook.wall) - (boot - lastLook.boot)
            if step > ClockTrust.largeStep || step < .zero - ClockTrust.largeStep {
                distrustUntil = boot + ClockTrust.quarantineAfterStep
            }
        }
        lastLook = (boot, wall)
        trusted = isSynchronised() && boot >= distrustUntil
        return trusted
    }
}

/// What the kernel says of its clock. Containers see their host's.
///
/// A machine without a time service is never synchronised: its old events are kept until the cap asks for their room,
/// which loses less than a wrong year would.
func kernelClockIsSynchronised() -> Bool { clinux_clock_is_synchronised() != 0 }
