internal import EventLoops
internal import Logs
internal import Synchronization

/// Logs which file the main loop waits for if the loop does not come back in time.
///
/// The timer runs on another loop, because a main loop that is blocked in a system call cannot log itself.
/// Without the alarm, systemd's watchdog would restart the agent and the log would not say which file system
/// hangs.
final class HangAlarm: Sendable {
    /// The loop that is watched.
    private let main: EventLoop
    /// The loop of the timer; `timer` is set and cancelled on this loop only.
    private let other: EventLoop
    private let log: Log
    /// The pending alarm; nil if no call is expected.
    private let timer = Mutex<EventLoop.TimerID?>(nil)

    init(for main: EventLoop, on other: EventLoop, log: Log) {
        self.main = main
        self.other = other
        self.log = log
    }

    /// Restarts the timer: the alarm fires unless `expect` is called again within `limit`. With nil the watch
    /// ends.
    func expect(within limit: Duration?) {
        other.post { [self] in
            timer.withLock { timer in
                if let timer {
                    other.cancel(timer)
                }
                timer = limit.map { other.after($0) { self.tell() } }
            }
        }
    }

    /// Logs the file; logs nothing if the main loop is only busy, and waits for no file.
    private func tell() {
        guard let file = main.awaitedFile else { return }
        log.error(
            "the main loop does not answer", ["reason": "it waits for \(file): does that file system hang?"])
    }
}
