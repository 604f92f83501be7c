internal import CLinux
internal import Glibc

/// Signals that are read from a descriptor (signalfd(2)) instead of interrupting a thread.
///
/// The signals are blocked for the thread that creates the watcher, which must be the thread of the
/// loop that receives them. Create it before any other thread: threads inherit the mask, and a signal
/// that any thread does not block takes its default action, which ends the process.
public final class SignalWatcher {
    private let loop: EventLoop
    private let descriptor: Descriptor

    /// Blocks the signals and calls `handler` with the number of each that arrives, on the loop's
    /// thread.
    ///
    /// - Throws: `SystemError` if the process has no descriptors left.
    public init(_ signals: [Int32], on loop: EventLoop, _ handler: @escaping (Int32) -> Void)
        throws(SystemError)
    {
        var mask = sigset_t()
        sigemptyset(&mask)
        for signal in signals { sigaddset(&mask, signal) }
        pthread_sigmask(SIG_BLOCK, &mask, nil)
        let raw = signalfd(-1, &mask, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
        descriptor = try Descriptor(checking: raw, "signalfd")
        self.loop = loop
        try loop.watch(raw, for: .readable) { _ in
            var information = signalfd_siginfo()
            while read(raw, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {
                handler(Int32(information.ssi_signo))
            }
        }
    }

    /// Stops watching; the signals stay blocked. On the loop's thread.
    public func cancel() {
        loop.forget(descriptor.raw)
    }
}
