public import EventLoops
public import Logs
public import Model
internal import Synchronization

/// The durable queue between the spool and the destinations: one SQLite file, one owner.
///
/// Its callers rely on four properties:
/// - **Exact hand-over**: a commit's chunks, figures, checkpoints and memory become durable together or not at all.
/// - **Stable batches**: a batch keeps its id and its events through retries, restarts and crashes.
/// - **Order**: critical events first, then by acceptance; eviction in reverse.
/// - **Balance**: `Ledger.balances` for each destination and priority, at every instant that a crash may choose.
///
/// Calls that write and wait at the same time share a transaction (group commit). It lives on a separate loop, so that
/// an fsync does not stop the others.
public actor QueueStore: LoopActor, BatchStore, CommitStore {
    /// The loop that it lives on.
    public nonisolated let loop: EventLoop
    nonisolated let time: any TimeSource
    nonisolated let log: Log
    let observer: @Sendable (QueueSnapshot) -> Void
    /// Tells when an event happened, by its line and its acceptance; nil when the line does not say.
    public typealias EventTimes = @Sendable (_ line: [UInt8], _ acceptedAt: Timestamp) -> Timestamp?
    /// Whether the time of day can be trusted; asked on the store's loop, when the file is opened and before anything expires.
    public typealias ClockCheck = (any TimeSource) -> Bool
    /// What was known of steps of the clock when the file was opened.
    public nonisolated let clockSteps: ClockSteps
    let directory: StateDirectory
    let ballast: Ballast
    private nonisolated let published: Mutex<QueueSnapshot>

    /// What a transaction changes: between transactions it agrees with the file.
    var state: QueueState
    /// Nil once closed, and while a damaged database could not be replaced.
    var file: QueueFile?
    var isClosed = false

    var waiting: [Operation] = []
    var isScheduled = false
    /// The callers that wait for the next sync (`durability = "crash"`), and when the last one was.
    var syncWaiters: [UnsafeContinuation<Result<Void, QueueError>, Never>] = []
    var lastSync: BootInstant?
    var syncs = 0
    var isPublishing = false
    private var timers: [Timer: EventLoop.TimerID] = [:]
    /// The part of the snapshot that no transaction changes: counters since the start, and the failure that stands.
    var health = QueueSnapshot()

    /// Opens the queue, or makes one; the caller's thread waits for the disk.
    ///
    /// - Parameters:
    ///   - loop: the loop it lives on; running, or started later.
    ///   - time: the clock for batch ids and expiry.
    ///   - clock: while it says no, nothing expires, as for ten minutes after a large step.
    ///   - random: where batch ids get their random bits from: the kernel in the agent, a seed in tests.
    ///   - observer: told of each change, on the store's loop; to be quick.
    ///   - eventTime: asked only where some of a chunk's events have expired and others have not; without it a chunk
    ///     goes as a whole, with its newest event.
    /// - Throws: `QueueError` with code `locked` (exit 75), `newerSchema`, `foreign`, `noPermission`,
    ///   `diskFull`, `readOnly`, `misuse` or `io`.
    public init(
        _ options: QueueOptions, on loop: EventLoop, time: any TimeSource, clock: sending ClockCheck? = nil,
        random: sending any RandomNumberGenerator = KernelRandom(), log: Log,
        observer: @escaping @Sendable (QueueSnapshot) -> Void = { _ in }, eventTime: EventTimes? = nil
    ) throws(QueueError) {
        directory = try StateDirectory(options.stateDirectory, for: options.opener)
        let opened = try Opening.open(options, directory, now: time.wallTime, log)
        var options = options
        if options.opener == .agent, options.maxSize < opened.figures.totals.maxSize {
            health.refusedMaxSize = options.maxSize
        }
        options.maxSize = opened.figures.totals.maxSize
        let kept = try opened.file.statement("SELECT value FROM switch WHERE name = 'clock.steps'")
        var steps = ClockSteps(after: try kept.first { $0.text(0) })
        _ = steps.isSteady(at: time)
        clockSteps = steps
        state = QueueState(
            options, opened.figures,
            try QueueEnvironment(
                time: time, trust: clock, steps: clockSteps, random: random, eventTime: eventTime,
                lastChunk: Int64(opened.figures.totals.lastChunk)))
        state.noteAgreement(with: opened.file)
        health.recoveries = opened.recoveries
        let most = state.bounds.wal + (1 << 20)
        let ballast = Ballast(path: "\(options.stateDirectory)/ballast", most: most)
        if options.opener == .agent, !ballast.restore() || ballast.size < most {
            log.warning(
                "little room for the queue's ballast",
                ["path": ballast.path, "bytes": ballast.isWhole ? ballast.size : 0, "wanted": most])
        }
        self.ballast = ballast
        file = opened.file
        self.loop = loop
        self.time = time
        self.log = log
        self.observer = observer
        published = Mutex(health.with(state, opened.file))
    }

    /// What the queue holds now; from any thread, without waiting for the store.
    public nonisolated var snapshot: QueueSnapshot { published.withLock { $0 } }

    /// The state from which the agent continues after a start.
    public func restore() throws(QueueError) -> RestoredState {
        let restored = try reading { file throws(QueueError) in try file.restore() }
        // Answers go out together; before a transaction, which may wait for the disk, they are sent (`transact`).
        loop.gatherWakeUps()
        // Since when the oldest wait is known from here on: until then nothing that waits is ever due (ac05).
        publish()
        return restored
    }

    /// Ends the store: writes what waits to be acknowledged, and closes the file. Later calls fail with `closed`.
    public func close() {
        guard !isClosed else { return }
        transact()
        endSync()
        isClosed = true
        file?.database.close()
        file = nil
        directory.unlock()
        for operation in waiting { operation.fail(QueueError(.closed, "the queue is closed")) }
        waiting = []
        for timer in timers.values { loop.cancel(timer) }
    }

    /// What the store does by itself after a while.
    enum Timer { case acknowledgements, room, shrinking, sync }

    /// Sets a timer, unless it is set.
    func arm(_ timer: Timer, after wait: Duration) {
        guard timers[timer] == nil else { return }
        timers[timer] = loop.after(wait) {
            self.assumeIsolated {
                $0.timers[timer] = nil
                $0.ring(timer)
            }
        }
    }

    func cancel(_ timer: Timer) {
        if let id = timers.removeValue(forKey: timer) { loop.cancel(id) }
    }

    private func ring(_ timer: Timer) {
        switch timer {
        case .acknowledgements: transact()
        case .room: lookForRoom()
        case .shrinking: shrink()
        case .sync: endSync()
        }
    }

    func opened() throws(QueueError) -> QueueFile {
        guard let file else {
            throw health.failure ?? QueueError(.closed, "the queue is closed")
        }
        return file
    }

    var options: QueueOptions { state.options }

    var bounds: FileBounds { state.bounds }

    /// Publishes once the present work is done; several changes make one notice.
    func publishSoon() {
        guard !isPublishing else { return }
        isPublishing = true
        loop.post { self.assumeIsolated { $0.publish() } }
    }

    func publish() {
        isPublishing = false
        refreshOldest()
        var snapshot = health.with(state, file)
        for batch in state.held.values where batch.status != .acknowledged { snapshot.note(batch.header) }
        published.withLock { $0 = snapshot }
        observer(snapshot)
    }

    /// Reads the acceptance time of each lane's oldest waiting event again where it changed.
    private func refreshOldest() {
        guard let file else { return }
        let held = state.held
        for index in state.figures.lanes.indices where state.figures.lanes[index].oldestIsStale {
            do throws(QueueError) {
                try file.refreshOldest(
                    of: &state.figures.lanes[index], lookahead: state.options.eventTimeLookahead
                ) { held[$0] != nil }
            } catch {
                // The summary keeps the older time; the next transaction meets the same failure and handles it.
                health.count(error)
            }
        }
    }
}
