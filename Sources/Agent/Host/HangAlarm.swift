internal import EventLoops
internal import Logs
internal import Synchronization

/// Says in the log for which file the main loop waits when it does not come back in time, because it cannot do so itself.
final class HangAlarm: Sendable {
    private let main: EventLoop
    private let other: EventLoop
    private let log: Log
    private let timer = Mutex<EventLoop.TimerID?>(nil)

    init(for main: EventLoop, on other: EventLoop, log: Log) {
        (self.main, self.other, self.log) = (main, other, log)
    }

    /// Waits so long for the next call; nil: no longer.
    func expect(within limit: Duration?) {
        other.post { [self] in
            timer.withLock { timer in
                if let timer { other.cancel(timer) }
                timer = limit.map { other.after($0) { self.tell() } }
            }
        }
    }

    private func tell() {
        guard let file = main.awaitedFile else { return }
        log.error("the main loop does not answer", ["reason": "it waits for \(file): does that file system hang?"])
    }
}
