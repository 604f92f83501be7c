internal import Delivery
internal import EventLoops
internal import Queue
internal import Synchronization

/// Passes on to delivery and the intake that the queue has changed. The queue is made first and its listeners
/// later; until they are connected, changes are not passed on.
final class QueueRelay: Sendable {
    /// Holds the closure in an object. A closure in a generic container (a `Mutex` of an optional, here) is
    /// wrapped again each time it is taken out and put back, and the wrappings stay: calls would grow deeper
    /// and slower until the stack overflows.
    private final class Listener: Sendable {
        let tell: @Sendable (QueueSnapshot) -> Void
        init(_ tell: @escaping @Sendable (QueueSnapshot) -> Void) { self.tell = tell }
    }

    /// The listener; nil until the agent's parts are made.
    private let listener = Mutex<Listener?>(nil)

    /// Passes a change on. To be called by the queue after each change, on the store's loop.
    func changed(_ snapshot: QueueSnapshot) {
        listener.withLock { $0 }?.tell(snapshot)
    }

    /// Sets the closure that gets all changes from now on.
    func connect(_ tell: @escaping @Sendable (QueueSnapshot) -> Void) {
        let new = Listener(tell)
        listener.withLock { $0 = new }
    }

    /// Connects the parts of the agent: each change reaches the writers' notice and the history, and the
    /// actors of the main loop and the reader's loop if it concerns them.
    func connect(
        _ parts: AgentService.Parts, _ expiry: ExpiryRounds, mainLoop: EventLoop, readerLoop: EventLoop,
        time: any TimeSource
    ) {
        // Several changes while the main loop is busy cause one call. The flag is cleared before the work, so
        // that a change during the work causes another call.
        let isMainTold = Atomic(false)
        let wasOpen = Atomic(parts.queue.snapshot.isOpen)
        connect { snapshot in
            parts.notice.queueAccepts(snapshot.accepting)
            let now = time.wallTime
            parts.recorder.addIfDue(at: now) { StatusHistory.Sample(snapshot, at: now) }
            if !isMainTold.exchange(true, ordering: .acquiringAndReleasing) {
                // The answers to the calls of this commit follow in the same round: one wake-up for all.
                mainLoop.postSoon {
                    isMainTold.store(false, ordering: .releasing)
                    parts.driver.assumeIsolated { $0.summariesChanged() }
                    expiry.assumeIsolated { $0.queueChanged() }
                    parts.unread.assumeIsolated { $0.queueChanged() }
                }
            }
            // An intake that waits for room needs to know when there is room again, not each batch that
            // leaves.
            let isOpen = snapshot.isOpen
            if !wasOpen.exchange(isOpen, ordering: .relaxed), isOpen {
                readerLoop.post { parts.reader.queueChanged() }
            }
        }
    }
}

extension QueueSnapshot {
    /// True if the queue can store something.
    var isOpen: Bool {
        if case .nothing = accepting { return false }
        return health.failure == nil
    }
}
