internal import EventLoops
internal import Model
internal import Queue

/// Removes events that are too old for their destination, once an hour while anything waits; with an empty
/// queue there is no timer.
///
/// Only destinations that are down need it: before events are sent, their age is checked anyway. It lives on
/// the main loop.
actor ExpiryRounds: LoopActor {
    /// An hour is often enough: events expire after days, and what is sent is checked anyway.
    private static let interval = Duration.seconds(3600)

    nonisolated let loop: EventLoop
    private let queue: QueueStore
    /// The next round; nil while the queue is empty.
    private var timer: EventLoop.TimerID?

    init(on loop: EventLoop, queue: QueueStore) {
        self.loop = loop
        self.queue = queue
    }

    /// Sets the timer if something waits. To be called after each change of the queue.
    func queueChanged() {
        guard timer == nil, queue.snapshot.lanes.contains(where: { $0.ledger.queued > 0 }) else { return }
        timer = loop.after(ExpiryRounds.interval) {
            Task(executorPreference: self.loop) { await self.expire() }
        }
    }

    /// Removes what has expired, and sets the timer again if something is left.
    private func expire() async {
        timer = nil
        do throws(QueueError) {
            try await queue.expire()
        } catch {
            // The store counts and logs why it cannot write; the next round tries again.
        }
        queueChanged()
    }
}
