internal import CLinux
internal import Glibc

/// Reports that the time of day was set: by a person, by a time service that steps the clock, or after
/// a suspend.
///
/// It uses a kernel timer that never expires and is cancelled when the clock is set (timerfd_create(2),
/// TFD_TIMER_CANCEL_ON_SET). So nothing runs until then.
public final class ClockWatcher {
    private let loop: EventLoop
    private let descriptor: Descriptor

    /// Calls `handler` after each step, on the loop's thread.
    ///
    /// - Throws: `SystemError` if the process has no descriptors left.
    public init(on loop: EventLoop, _ handler: @escaping () -> Void) throws(SystemError) {
        let raw = timerfd_create(CLOCK_REALTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
        descriptor = try Descriptor(checking: raw, "timerfd")
        self.loop = loop
        ClockWatcher.arm(raw)
        try loop.watch(raw, for: .readable) { _ in
            var expirations: UInt64 = 0
            // ECANCELED means that the clock was set; any other wake-up is not a step.
            let isStep = read(raw, &expirations, MemoryLayout<UInt64>.size) < 0 && errno == ECANCELED
            ClockWatcher.arm(raw)
            if isStep {
                handler()
            }
        }
    }

    /// Stops watching. On the loop's thread.
    public func cancel() {
        loop.forget(descriptor.raw)
    }

    /// Sets the timer to the year 2262, the end of the range of nanoseconds, so that only a step wakes
    /// the loop.
    private static func arm(_ raw: Int32) {
        var never = itimerspec()
        // bounded: our own number.
        never.it_value.tv_sec = Int(Int64.max / 1_000_000_000)
        // This fails only for an invalid descriptor.
        timerfd_settime(raw, Int32(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET), &never, nil)
    }
}
