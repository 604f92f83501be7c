internal import EventLoops
internal import Logs
internal import Synchronization

/// Whether the agent makes progress, for `/readyz`, `status` and scrapes, by the same facts as the watchdog.
///
/// A check posts a message to each other loop and waits for the answers, then asks `ProgressWatch` what is
/// stuck. It runs only on demand, so that an idle agent does not wake up. It lives on the main loop.
actor Pulse: LoopActor {
    /// How long a loop may be busy with one piece of work, such as a commit to a slow disk, before it counts
    /// as hanging.
    private let patience: Duration
    nonisolated let loop: EventLoop
    /// The loops that must answer, each with a probable cause of its silence if the kernel does not name a
    /// file.
    private let others: () -> [(loop: EventLoop, hint: String)]
    private let time: any TimeSource
    private let log: Log
    /// Reads what the modules have published, for `watch`.
    private let state: @Sendable () -> ProgressWatch.State
    /// The state logged last: the names of the silent loops, `stall` if something else is stuck, or nothing.
    /// Each state is logged once, not at each check.
    private var told: [String] = []
    /// Reading may wait 10 s here, 150 s for the watchdog: a warning costs less than a restart.
    private var watch = ProgressWatch(readingPatience: .seconds(10))
    /// Loops that have not answered yet, by name, and since when.
    private var owing: [String: BootInstant] = [:]
    /// Callers of `check` that wait for the loops.
    private var waiters: [CheckedContinuation<Void, Never>] = []
    /// The result of the last judgement, for other threads.
    private nonisolated let found = Mutex<(silent: Set<String>, obstacles: [String])>(([], []))

    init(
        on loop: EventLoop, time: any TimeSource, log: Log, patience: Duration = .seconds(5),
        others: @escaping @Sendable () -> [(loop: EventLoop, hint: String)],
        state: @escaping @Sendable () -> ProgressWatch.State
    ) {
        self.loop = loop
        self.others = others
        self.time = time
        self.log = log
        self.patience = patience
        self.state = state
    }

    /// Why the agent is not ready, as of the last check. From any thread.
    nonisolated var obstacles: [String] { found.withLock { $0.obstacles } }
    /// The names of the loops that had not answered at the last judgement. From any thread.
    nonisolated var silent: Set<String> { found.withLock { $0.silent } }

    /// Asks all loops; returns when each has answered, or has been silent for the patience.
    func check() async {
        for (other, _) in others() where owing[other.name] == nil {
            owing[other.name] = time.bootTime
            other.post { self.loop.post { self.assumeIsolated { $0.answered(other.name) } } }
        }
        if isAnyInTime {
            let timer = loop.after(patience) { self.assumeIsolated { $0.endWaits() } }
            await withCheckedContinuation { waiters.append($0) }
            loop.cancel(timer)
        }
        judge()
    }

    /// True if a loop has not answered yet and may still do so in time. Loops that are silent for longer are
    /// not waited for: otherwise each `/readyz` would take the whole patience while a loop hangs.
    private var isAnyInTime: Bool { owing.values.contains { time.bootTime - $0 < patience } }

    /// Called on the main loop when a loop has answered.
    private func answered(_ name: String) {
        owing[name] = nil
        if !isAnyInTime {
            endWaits()
        }
        judge()
    }

    /// Resumes all callers of `check`.
    private func endWaits() {
        for waiter in waiters { waiter.resume() }
        waiters = []
    }

    /// Works out what is wrong now, and logs a change.
    private func judge() {
        let now = time.bootTime
        var (silent, obstacles): ([String], [String]) = ([], [])
        for (loop, hint) in others() {
            let silence: Duration = now - (owing[loop.name] ?? now)
            guard silence >= patience else { continue }
            let cause = loop.awaitedFile.map { "it waits for \($0): does that file system hang?" } ?? hint
            silent.append(loop.name)
            obstacles.append(
                "the \(loop.name) loop has not answered for \(silence.components.seconds) s: \(cause)")
        }
        // A loop that hangs publishes nothing new, which would count as a second stall: report the cause
        // only.
        if obstacles.isEmpty {
            obstacles = watch.stalls(state(), at: now, wall: time.wallTime)
        }
        found.withLock { [silent, obstacles] in $0 = (Set(silent), obstacles) }
        let news = silent.isEmpty && !obstacles.isEmpty ? ["stall"] : silent
        guard news != told else { return }
        told = news
        if !news.isEmpty {
            log.error("not ready: the agent makes no progress", ["reason": obstacles.joined(separator: "; ")])
        } else {
            log.warning("the agent makes progress again")
        }
    }
}
