// Queue: the durable store between the spool and the destinations, in one SQLite file.
//
// It promises:
// - Exact hand-over. A commit's events, counts, checkpoints and memory become durable together or not
//   at all, so after a crash each event is either in the spool or in the queue.
// - Stable batches. From its first attempt on, a batch keeps its id and its bytes through retries,
//   restarts and crashes, so that receivers can recognise a repetition.
// - Order. Critical events first, then by acceptance; eviction in reverse.
// - Balance. After each transaction the ledger of each destination and priority accounts for every
//   event.
// - Bounds. The file and its WAL stay below `FileBounds`, whatever is stored.
//
// Its parts:
// - Store/: the actor `QueueStore` with all public calls, one file for each kind: commits, leases,
//   settlements, commands, failures, a full queue. `transact` runs the calls that wait.
// - Transaction/: `Transaction` holds all changes of rows and state. `QueueState` is what the store
//   knows about the rows, `LaneSearch` chooses what is leased next, `QueueState+Invariants`
//   draws the life of a batch and states the rules that debug builds check before each COMMIT.
// - File/: `Opening` (start), `Schema` and `Migrations`, `QueueFile` (reads), `TableWriter` (writes),
//   `Database` and `Statement` (SQLite's C interface).
// - Salvage/: copies the intact rows of a damaged database, page by page, into a new one.
// - schema.sql describes each table and column.
//
// Its rules:
// - All of it runs on the store's loop, so that an fsync stops neither reading nor sending. Other loops
//   see the published `QueueSnapshot` and never wait.
// - No `await` between BEGIN and COMMIT. Rows are written only through a `TableWriter`, which rolls back
//   if it is dropped; nothing is restored by hand.
// - Leases are only in memory. After a restart every formed batch is free.
// - The file's content is checked before it is used: damage by a disk or a power cut must not crash the
//   agent, repeat events or lose more than the damaged pages held.
// - It knows nothing about HTTP, the files of the spool, or the content of events.
//
// Terms: a chunk is stored once for all of its destinations; a delivery is a run of its events that one
// destination still needs; a lane is the deliveries of one destination and priority; a batch is what is
// sent as one request. Sizes are in bytes, times in nanoseconds.
//
// Begin with `QueueStore.transact`, then `Transaction`, `QueueState` and schema.sql. DESIGN.md has the
// reasons.

internal import CLinux
public import EventLoops
public import Logs
public import Model
internal import Synchronization

/// The durable queue: one SQLite file with one owner.
///
/// Calls that write and wait at the same time share a transaction (group commit), because an fsync
/// costs more than all of their rows.
public actor QueueStore: LoopActor, BatchStore, CommitStore {
    /// The loop that executes the actor.
    public nonisolated let loop: EventLoop
    /// Clock for batch ids, expiry and syncs.
    nonisolated let time: any TimeSource
    nonisolated let log: Log
    /// Called with each published snapshot.
    let observer: @Sendable (QueueSnapshot) -> Void
    /// Reads when an event happened, from its line and the time of its acceptance; nil if the line does
    /// not say.
    public typealias EventTimes = @Sendable (_ line: [UInt8], _ acceptedAt: Timestamp) -> Timestamp?
    /// Whether the time of day can be trusted; called on the store's loop, when the file is opened and
    /// before anything expires.
    public typealias ClockCheck = (any TimeSource) -> Bool
    /// Steps of the clock that were known when the file was opened, those of earlier processes
    /// included.
    public nonisolated let clockSteps: ClockSteps
    /// Holds the lock on the state directory.
    let directory: StateDirectory
    /// Reserved disk space, for writing when the disk is full.
    let ballast: Ballast
    /// The last published snapshot. Behind a mutex, because every thread may read it.
    private nonisolated let published: Mutex<QueueSnapshot>

    /// What the store knows about the rows. Between transactions it agrees with the file.
    var state: QueueState
    /// The open database; nil after `close`, and while a damaged database could not be replaced.
    var file: QueueFile?
    /// Distinguishes a closed store from one whose database could not be replaced.
    var isClosed = false

    /// Writing calls that wait for the next transaction, in order.
    var waiting: [Operation] = []
    /// Whether a transaction is scheduled on the loop, so that waiting calls share it.
    var isScheduled = false
    /// Callers that wait for the next sync (`durability = "crash"`).
    var syncWaiters: [UnsafeContinuation<Result<Void, QueueError>, Never>] = []
    /// Time of the last sync: there is at most one a second.
    var lastSync: BootInstant?
    /// Number of syncs, for tests.
    var syncs = 0
    /// Whether a snapshot will be published when the loop has done its present work.
    var isPublishing = false
    /// Timers that are set, by their purpose.
    private var timers: [Timer: EventLoop.TimerID] = [:]
    /// The part of the snapshot that no transaction changes: counters since the start, and the present
    /// failure.
    var health = QueueHealth()

    /// Opens the queue, or creates it. Blocks the calling thread while it reads the disk.
    ///
    /// - Parameters:
    ///   - loop: the loop that executes the actor; it may be started later.
    ///   - time: clock for batch ids and expiry.
    ///   - clock: while it returns false, nothing expires. The same holds for ten minutes after a large
    ///     step of the clock.
    ///   - random: source of the batch ids' random bits: the kernel in the agent, a seed in tests.
    ///   - observer: called on the store's loop after each change; must return quickly.
    ///   - eventTime: called only if some events of a chunk have expired and others have not. Without
    ///     it a chunk expires as a whole, with its newest event.
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
        let consent = try opened.file.statement("SELECT value FROM switch WHERE name = ?")
            .with(QueueStore.consentSwitch).first { $0.text(0) }
        state = QueueState(
            options, opened.figures,
            QueueEnvironment(
                time: time, trust: clock, steps: clockSteps, random: random, eventTime: eventTime,
                lastChunk: Int64(opened.figures.totals.lastChunk)),
            consent: ConsentStates(consent ?? ""))
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
        published = Mutex(QueueSnapshot(&state, opened.file, health))
    }

    /// What the queue holds at present; callable from any thread, without waiting for the store.
    public nonisolated var snapshot: QueueSnapshot { published.withLock { $0 } }

    /// Returns the state from which the agent continues after a start.
    public func restore() throws(QueueError) -> RestoredState {
        let restored = try reading { file throws(QueueError) in try RestoredState(file) }
        // From now on, wake-ups of other loops are gathered; `transact` sends them before it may wait
        // for the disk.
        loop.gatherWakeUps()
        // Delivery must learn since when the oldest events wait: until then it considers none of them
        // due.
        publish()
        restLater()
        return restored
    }

    /// How far each file of the spool was read, as of the last commit.
    package func checkpoints() throws(QueueError) -> [Checkpoint] {
        try reading { file throws(QueueError) in try RestoredState(file).checkpoints }
    }

    /// Ends the store: makes acknowledgements durable and closes the file. Later calls fail with
    /// `closed`.
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

    /// What the store does by itself after a delay.
    enum Timer { case acknowledgements, rest, room, shrinking, sync }

    /// Sets a timer, unless it is set already.
    func arm(_ timer: Timer, after wait: Duration) {
        guard timers[timer] == nil else { return }
        timers[timer] = loop.after(wait) {
            self.assumeIsolated {
                $0.timers[timer] = nil
                $0.timerFired(timer)
            }
        }
    }

    /// Cancels a timer, if it is set.
    func cancel(_ timer: Timer) {
        if let id = timers.removeValue(forKey: timer) {
            loop.cancel(id)
        }
    }

    /// Does what a timer was set for.
    private func timerFired(_ timer: Timer) {
        switch timer {
        case .acknowledgements: transact()
        case .rest: rest()
        case .room: lookForRoom()
        case .shrinking: shrink()
        case .sync: endSync()
        }
    }

    /// Lets the store rest in two seconds, unless a transaction comes before: a stream of events costs no
    /// wake-up, and its pages are not read again for each of its transactions.
    func restLater() {
        cancel(.rest)
        arm(.rest, after: .seconds(2))
    }

    /// Frees SQLite's pages and most of its statements, some 0.45 MB, and returns to the system what all
    /// threads have freed. An idle agent holds neither.
    private func rest() {
        do throws(QueueError) {
            try file?.releaseMemory()
        } catch {
            // The next transaction meets the same failure and handles it.
            health.count(error)
        }
        clinux_release_memory()
    }

    /// The open file. Throws the present failure, or `closed`.
    func opened() throws(QueueError) -> QueueFile {
        guard let file else {
            throw health.failure ?? QueueError(.closed, "the queue is closed")
        }
        return file
    }

    var options: QueueOptions { state.options }

    var bounds: FileBounds { state.bounds }

    /// Publishes a snapshot after the present work, so that several changes cause one notification.
    func publishSoon() {
        guard !isPublishing else { return }
        isPublishing = true
        loop.post { self.assumeIsolated { $0.publish() } }
    }

    /// Publishes a snapshot and notifies the observer.
    func publish() {
        isPublishing = false
        refreshOldest()
        let snapshot = QueueSnapshot(&state, file, health)
        published.withLock { $0 = snapshot }
        observer(snapshot)
    }

    /// Reads since when the oldest event of each lane waits, if that has changed.
    func refreshOldest() {
        guard let file else { return }
        let held = state.held
        for index in state.figures.lanes.indices where state.figures.lanes[index].ages.isStale {
            do throws(QueueError) {
                try file.refreshOldest(
                    of: &state.figures.lanes[index], lookahead: state.options.eventTimeLookahead
                ) { held[$0] != nil }
            } catch {
                // The summary keeps the older time; the next transaction meets the same failure and
                // handles it.
                health.count(error)
            }
        }
    }
}
