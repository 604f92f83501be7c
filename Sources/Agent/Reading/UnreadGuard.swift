internal import EventLoops
internal import Logs
internal import Metrics
internal import Model
internal import Queue
internal import Synchronization

/// Holds `spool.max_unread`: looks at the spool while the queue is full, and lets the queue give up the events of dead destinations
/// where they would fill the disk. It wakes nobody while there is room.
///
/// It lives on the main loop.
actor UnreadGuard: MetricCollector, LoopActor {
    /// How often it looks while the queue is full.
    private static let interval = Duration.seconds(1)

    nonisolated let loop: EventLoop
    private let queue: QueueStore
    private let unread: @Sendable () -> Int64
    private let time: any TimeSource
    private let log: Log
    private var bound = UnreadBound(most: 0)
    private var timer: EventLoop.TimerID?
    private nonisolated let givenUp = Mutex<Set<DestinationName>>([])

    /// `loop` is the main loop; `unread` gives the bytes in the spool that are not in the queue, from any thread.
    init(
        on loop: EventLoop, queue: QueueStore, time: any TimeSource, log: Log, unread: @escaping @Sendable () -> Int64
    ) {
        (self.loop, self.queue, self.time, self.log, self.unread) = (loop, queue, time, log, unread)
    }

    /// The destinations whose old events are given up because the bound is passed. From any thread.
    nonisolated var behind: Set<DestinationName> { givenUp.withLock { $0 } }

    /// Takes up the bound in bytes, right after the queue has its settings; 0: none, or a full queue evicts anyway.
    func configure(most: Int) {
        bound = UnreadBound(most: Int64(most))
        givenUp.withLock { $0 = [] }
        queueChanged()
    }

    func queueChanged() {
        guard bound.most > 0, timer == nil, isFull || !bound.behind.isEmpty else { return }
        timer = loop.after(UnreadGuard.interval) {
            self.assumeIsolated { $0.timer = nil }
            Task(executorPreference: self.loop) { await self.look() }
        }
    }

    private var isFull: Bool { queue.snapshot.accepting == .nothing(.full) }

    /// Looks once; on the timer, and in tests.
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
                        "destinations": behind.map(\.text).sorted().joined(separator: " "), "unread_bytes": bytes,
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
