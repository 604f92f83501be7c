internal import Delivery
internal import EventLoops
internal import Queue
internal import Spool
internal import Synchronization

/// Tells delivery and the intake that the queue has changed; there is a queue before there is either.
final class QueueRelay: Sendable {
    private let target = Mutex<(@Sendable (QueueSnapshot) -> Void)?>(nil)

    /// To be called by the queue after each change, on the store's loop.
    func changed(_ snapshot: QueueSnapshot) {
        target.withLock { $0 }?(snapshot)
    }

    /// Says whom to tell from now on.
    ///
    /// - Parameter watch: told of every change, on the store's loop; must be quick.
    func connect(
        queue: QueueStore, driver: DeliveryDriver, expiry: ExpiryRounds, reader: SpoolReader, mainLoop: EventLoop,
        readerLoop: EventLoop, watch: @escaping @Sendable (QueueSnapshot) -> Void
    ) {
        // Several changes while a loop is busy make one call.
        let isMainTold = Mutex(false)
        let isReaderTold = Mutex(false)
        target.withLock { target in
            target = { snapshot in
                watch(snapshot)
                if isMainTold.withLock({ told in
                    defer { told = true }; return !told
                }) {
                    mainLoop.post {
                        isMainTold.withLock { $0 = false }
                        driver.assumeIsolated { $0.summariesChanged() }
                        expiry.assumeIsolated { $0.queueChanged() }
                    }
                }
                if case .nothing = snapshot.accepting { return }
                if isReaderTold.withLock({ told in
                    defer { told = true }; return !told
                }) {
                    readerLoop.post {
                        isReaderTold.withLock { $0 = false }
                        let accepting = queue.snapshot.accepting
                        reader.assumeIsolated { reader in
                            reader.withSink { ($0 as? Intake)?.queueChanged(accepting) }
                        }
                    }
                }
            }
        }
    }
}
