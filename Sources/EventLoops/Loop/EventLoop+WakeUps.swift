internal import CLinux
internal import Glibc

extension EventLoop {
    /// From now on, wakes other loops for tasks that hop to them from here once per round of its own, not for each.
    ///
    /// To wake a thread costs more than most of what it is asked for. For a loop whose rounds are short, or that calls
    /// `wakeOthers` before it waits for anything: what it asks of others begins no sooner. On the loop's thread.
    public func gatherWakeUps() {
        precondition(isCurrent, "not on the thread of loop \(name)")
        gathersWakeUps = true
    }

    /// Wakes now whom this round has asked for something. On the loop's thread.
    public func wakeOthers() {
        precondition(isCurrent, "not on the thread of loop \(name)")
        guard !toWake.isEmpty else { return }
        for loop in toWake { loop.wakeUp() }
        toWake.removeAll(keepingCapacity: true)
    }

    static var current: EventLoop? {
        clinux_thread_marked().map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    func wakeUp() {
        var one: UInt64 = 1
        // Cannot fail: nobody writes often enough to fill the counter, which nobody reads.
        _ = write(wakeup.raw, &one, 8)
    }
}
