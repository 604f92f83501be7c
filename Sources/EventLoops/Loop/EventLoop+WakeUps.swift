internal import CLinux
internal import Glibc

extension EventLoop {
    /// From now on, wakes other loops once per round, rather than for each task that hops to them from
    /// this loop and each `postSoon`.
    ///
    /// Waking a thread costs more than most tasks. Suited to a loop whose rounds are short, or which
    /// calls `wakeOthers` before it blocks: tasks for other loops start only then. On the loop's
    /// thread.
    public func gatherWakeUps() {
        precondition(isCurrent, "not on the thread of loop \(name)")
        gathersWakeUps = true
    }

    /// Wakes the loops that this round has given tasks. On the loop's thread.
    public func wakeOthers() {
        precondition(isCurrent, "not on the thread of loop \(name)")
        guard !toWake.isEmpty else { return }
        for loop in toWake { loop.wakeUp() }
        toWake.removeAll(keepingCapacity: true)
    }

    /// The loop whose thread this is; nil on other threads.
    static var current: EventLoop? {
        clinux_thread_marked().map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Makes `epoll_wait` return. From any thread.
    func wakeUp() {
        var one: UInt64 = 1
        // The write cannot fail: its counter is 64 bits wide (eventfd(2)), and never fills.
        _ = write(wakeup.raw, &one, 8)
    }
}
