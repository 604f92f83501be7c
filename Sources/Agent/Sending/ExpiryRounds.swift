internal import EventLoops
internal import Model
internal import Queue

/// Takes out what has grown too old for a destination that is down, once an hour while anything waits; an empty queue
/// wakes nobody.
///
/// What is sent is looked at by itself before it is sent. It lives on the main loop.
actor ExpiryRounds: LoopActor {
    private static let interval = Duration.seconds(3600)

    nonisolated let loop: EventLoop
    private let queue: QueueStore
    private var timer: EventLoop.TimerID?

    init(on loop: EventLoop, queue: QueueStore) {
        self.loop = loop
        self.queue = queue
    }

    func queueChanged() {
        guard timer == nil, queue.snapshot.lanes.contains(where: { $0.ledger.queued > 0 }) else { return }
        timer = loop.after(ExpiryRounds.interval) { Task(executorPreference: self.loop) { await self.expire() } }
    }

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
