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

    /// Says whom to tell from now on.
    ///
    /// - Parameter watch: told of every change, on the store's loop; must be quick.
    func connect(
        queue: QueueStore, driver: DeliveryDriver, expiry: ExpiryRounds, unread: UnreadGuard, mainLoop: EventLoop,
        readerLoop: EventLoop, reader: Reading,
        watch: @escaping @Sendable (QueueSnapshot) -> Void
    ) {
        // Several changes while the main loop is busy make one call.
        let isMainTold = Mutex(false)
        let wasOpen = Mutex(queue.snapshot.isOpen)
        connect { snapshot in
            watch(snapshot)
            let isNews = isMainTold.withLock { told in
                defer { told = true }
                return !told
            }
            if isNews {
                mainLoop.post {
                    isMainTold.withLock { $0 = false }
                    driver.assumeIsolated { $0.summariesChanged() }
                    expiry.assumeIsolated { $0.queueChanged() }
                    unread.assumeIsolated { $0.queueChanged() }
                }
            }
            // Whoever waits for room wants to know when there is some again, not of every batch that goes.
            let hasOpened = wasOpen.withLock { open in
                defer { open = snapshot.isOpen }
                return snapshot.isOpen && !open
            }
            if hasOpened { readerLoop.post { reader.queueChanged() } }
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
