internal import Delivery
internal import EventLoops
internal import Queue
internal import Synchronization

/// Tells delivery and the intake that the queue has changed; there is a queue before there is either.
final class QueueRelay: Sendable {
    /// A closure in a generic container (a `Mutex` of an optional, here) is wrapped again each time that it is taken out and
    /// put back, and the wrappings stay: calls would grow deeper and slower until the stack ends. So it is in an object.
    private final class Listener: Sendable {
        let tell: @Sendable (QueueSnapshot) -> Void
        init(_ tell: @escaping @Sendable (QueueSnapshot) -> Void) { self.tell = tell }
    }

    private let listener = Mutex<Listener?>(nil)

    /// To be called by the queue after each change, on the store's loop.
    func changed(_ snapshot: QueueSnapshot) {
        listener.withLock { $0 }?.tell(snapshot)
    }

    /// Has changes told to a closure from now on.
    func connect(_ tell: @escaping @Sendable (QueueSnapshot) -> Void) {
        let new = Listener(tell)
        listener.withLock { $0 = new }
    }

    /// Has the agent's parts told from now on.
    func connect(
        _ parts: AgentService.Parts, _ expiry: ExpiryRounds, mainLoop: EventLoop, readerLoop: EventLoop,
        time: any TimeSource
    ) {
        // Several changes while the main loop is busy make one call.
        let isMainTold = Atomic(false)
        let wasOpen = Atomic(parts.queue.snapshot.isOpen)
        connect { snapshot in
            parts.notice.queueAccepts(snapshot.accepting)
            let now = time.wallTime
            parts.recorder.addIfDue(at: now) { StatusHistory.Sample(snapshot, at: now) }
            if !isMainTold.exchange(true, ordering: .acquiringAndReleasing) {
                mainLoop.post {
                    isMainTold.store(false, ordering: .releasing)
                    parts.driver.assumeIsolated { $0.summariesChanged() }
                    expiry.assumeIsolated { $0.queueChanged() }
                    parts.unread.assumeIsolated { $0.queueChanged() }
                }
            }
            // Whoever waits for room wants to know when there is some again, not of every batch that goes.
            let isOpen = snapshot.isOpen
            if !wasOpen.exchange(isOpen, ordering: .relaxed), isOpen { readerLoop.post { parts.reader.queueChanged() } }
        }
    }
}

extension QueueSnapshot {
    /// Whether it can store something.
    var isOpen: Bool {
        if case .nothing = accepting { return false }
        return failure == nil
    }
}
