internal import EventLoops
internal import Logs
internal import Metrics
internal import Model
internal import Queue
internal import Synchronization

/// Enforces `spool.when_full.max_unread`: looks at the spool while the queue is full, and lets the queue
/// evict events of dead destinations if unread files would fill the disk otherwise (`UnreadBound` decides).
///
/// It lives on the main loop, and has no timer while the queue has room.
actor UnreadGuard: MetricCollector, LoopActor {
    /// How often it looks while the queue is full.
    private static let interval = Duration.seconds(1)

    nonisolated let loop: EventLoop
    private let queue: QueueStore
    /// The bytes in the spool that are not in the queue; from any thread.
    private let unread: @Sendable () -> Int64
    private let time: any TimeSource
    private let log: Log
    /// The decision; replaced when the settings change.
    private var bound = UnreadBound(most: 0)
    /// The next look; nil while the queue has room.
    private var timer: EventLoop.TimerID?
    /// A copy of `bound.behind` for other threads.
    private nonisolated let givenUp = Mutex<Set<DestinationName>>([])

    /// - Parameters:
    ///   - loop: the main loop.
    ///   - unread: the bytes in the spool that are not in the queue; called from any thread.
    init(
        on loop: EventLoop, queue: QueueStore, time: any TimeSource, log: Log,
        unread: @escaping @Sendable () -> Int64
    ) {
        self.loop = loop
        self.queue = queue
        self.time = time
        self.log = log
        self.unread = unread
    }

    /// The destinations whose oldest events are evicted because the bound is exceeded. From any thread.
    nonisolated var behind: Set<DestinationName> { givenUp.withLock { $0 } }

    /// Sets the bound in bytes; 0 for no bound, also if a full queue evicts anyway. To be called right after
    /// the queue gets its settings.
    func configure(most: Int) {
        bound = UnreadBound(most: Int64(most))
        givenUp.withLock { $0 = [] }
        queueChanged()
    }

    /// Starts to look if the queue is full. To be called after each change of the queue.
    func queueChanged() {
        guard bound.most > 0, timer == nil, isFull || !bound.behind.isEmpty else { return }
        timer = loop.after(UnreadGuard.interval) {
            self.assumeIsolated { $0.timer = nil }
            Task(executorPreference: self.loop) { await self.look() }
        }
    }

    /// True if the queue stores nothing because it has reached its cap; other reasons, such as a full disk,
    /// are not solved by evicting.
    private var isFull: Bool { queue.snapshot.accepting == .nothing(.full) }

    /// Looks once; called by the timer and by tests.
    func look() async {
        var destinations: [DestinationName: UnreadBound.Progress] = [:]
        for lane in queue.snapshot.lanes {
            destinations[lane.destination, default: (0, 0)].acknowledged += lane.ledger.acknowledged
            destinations[lane.destination, default: (0, 0)].queued += lane.ledger.queued
        }
        let bytes = unread()
        let before = bound.behind
        let change = bound.look(unread: bytes, destinations, isFull: isFull, at: time.bootTime)
        givenUp.withLock { $0 = bound.behind }
        switch change {
        case .giveUp(let behind, let excess):
            if behind != before {
                log.warning(
                    "unread bytes exceed the bound: the oldest events of destinations that acknowledge nothing are evicted",
                    [
                        "destinations": behind.map(\.text).sorted().joined(separator: " "),
                        "unread_bytes": bytes,
                        "max_unread": bound.most, "hint": "fix the destination",
                    ])
            }
            await queue.giveUp(for: behind, atMost: Int(excess))
        case .wait:
            log.warning("eviction ends, reading waits again when the queue is full", ["unread_bytes": bytes])
            await queue.giveUp(for: [], atMost: 0)
        case nil: break
        }
        queueChanged()
    }

    nonisolated func collect(into exposition: inout Exposition) {
        exposition.set(\.spoolUnreadBoundPassed, to: !behind.isEmpty)
    }
}
