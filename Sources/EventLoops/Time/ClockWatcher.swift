internal import CLinux
internal import Glibc

/// Reports when the time of day was set: by a person, by a time service that steps, or after a suspended machine's correction.
///
/// A kernel timer that never fires, but is cancelled when the clock is set: nothing runs meanwhile.
///
/// Source: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET.
public final class ClockWatcher {
    private let loop: EventLoop
    private let descriptor: Descriptor

    /// Calls `handler` after each step, on the loop's thread. Throws if the process has no descriptors left.
    public init(on loop: EventLoop, _ handler: @escaping () -> Void) throws(SystemError) {
        let raw = timerfd_create(CLOCK_REALTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
        descriptor = try Descriptor(checking: raw, "timerfd")
        self.loop = loop
        ClockWatcher.arm(raw)
        try loop.watch(raw, for: .readable) { _ in
            var expirations: UInt64 = 0
            // ECANCELED says that the clock was set; anything else that woke us is no step.
            let isStep = read(raw, &expirations, MemoryLayout<UInt64>.size) < 0 && errno == ECANCELED
            ClockWatcher.arm(raw)
            if isStep { handler() }
        }
    }

    /// Stops watching. On the loop's thread.
    public func cancel() {
        loop.forget(descriptor.raw)
    }

    /// An appointment in the year 2262, as far ahead as nanoseconds reach: only a step is ever told.
    private static func arm(_ raw: Int32) {
        var never = itimerspec()
        // bounded: our own number.
        never.it_value.tv_sec = Int(Int64.max / 1_000_000_000)
        // It can only fail for a bad descriptor, and this one is ours.
        timerfd_settime(raw, Int32(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET), &never, nil)
    }
}
