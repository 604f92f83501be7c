internal import EventLoops
internal import Logs
internal import Synchronization

/// A loop that must answer.
struct WatchedLoop: Sendable {
    let loop: EventLoop
    /// A probable cause of its silence, if the kernel does not name a file.
    let hint: String
    /// The mount whose files it reads, if that alone is delayed by its silence; nil for others.
    var mount: String?

    init(_ loop: EventLoop, hint: String, mount: String? = nil) {
        self.loop = loop
        self.hint = hint
        self.mount = mount
    }

    /// What its silence means.
    func obstacle(after silence: Duration) -> String {
        let seconds = silence.components.seconds
        let file = loop.awaitedFile
        if let mount {
            let cause = file.map { ": the agent waits for \($0)" } ?? ""
            return "\(mount): its file system does not answer, for \(seconds) s now\(cause); "
                + "everything else is read"
        }
        let cause = file.map { "it waits for \($0): does that file system hang?" } ?? hint
        return "the \(loop.name) loop has not answered for \(seconds) s: \(cause)"
    }
}

/// Whether the agent makes progress, for `/readyz`, `status` and scrapes, by the same facts as the watchdog.
///
/// A check posts a message to each other loop and waits for the answers, then asks `ProgressWatch` what is
/// stuck. It runs only on demand, so that an idle agent does not wake up, and every 15 s once something is
/// read whose file system may never answer (`beginRounds`). It lives on the main loop.
actor Pulse: LoopActor {
    /// How long a loop may be busy with one piece of work, such as a commit to a slow disk, before it counts
    /// as hanging.
    private let patience: Duration
    nonisolated let loop: EventLoop
    /// The loops that must answer.
    private let others: () -> [WatchedLoop]
    /// Called with the names of the loops that do not answer, after each judgement.
    private let silenced: @Sendable (Set<String>) -> Void
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
        silenced: @escaping @Sendable (Set<String>) -> Void = { _ in },
        others: @escaping @Sendable () -> [WatchedLoop], state: @escaping @Sendable () -> ProgressWatch.State
    ) {
        self.loop = loop
        self.others = others
        self.time = time
        self.log = log
        self.patience = patience
        self.state = state
        self.silenced = silenced
    }

    /// How often it is asked whether file systems answer that may hang. Their directories are polled more
    /// often than that, so this wakes no idle agent.
    private static let round = Duration.seconds(15)

    /// Checks from now on from time to time, so that the log names a file system that hangs even if nobody
    /// asks.
    nonisolated func beginRounds() {
        loop.post {
            self.assumeIsolated { pulse in
                _ = pulse.after(Pulse.round) { _ in
                    Task(executorPreference: self.loop) { await self.check() }
                    self.beginRounds()
                }
            }
        }
    }

    /// Why the agent is not ready, as of the last check. From any thread.
    nonisolated var obstacles: [String] { found.withLock { $0.obstacles } }
    /// The names of the loops that had not answered at the last judgement. From any thread.
    nonisolated var silent: Set<String> { found.withLock { $0.silent } }

    /// Asks all loops; returns when each has answered, or has been silent for the patience.
    func check() async {
        for other in others().map(\.loop) where owing[other.name] == nil {
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
        var isAgentSilent = false
        for other in others() {
            let silence: Duration = now - (owing[other.loop.name] ?? now)
            guard silence >= patience else { continue }
            silent.append(other.loop.name)
            obstacles.append(other.obstacle(after: silence))
            isAgentSilent = isAgentSilent || other.mount == nil
        }
        silenced(Set(silent))
        // A loop that hangs publishes nothing new, which would count as a second stall: report the cause
        // only.
        let stalls = isAgentSilent ? [] : watch.stalls(state(), at: now, wall: time.wallTime)
        obstacles += stalls
        found.withLock { [silent, obstacles] in $0 = (Set(silent), obstacles) }
        let news = silent + (stalls.isEmpty ? [] : ["stall"])
        guard news != told else { return }
        told = news
        if !news.isEmpty {
            let text: StaticString =
                isAgentSilent || !stalls.isEmpty
                ? "not ready: the agent makes no progress" : "not ready: a file system does not answer"
            log.error(text, ["reason": obstacles.joined(separator: "; ")])
        } else {
            log.warning("the agent makes progress again")
        }
    }
}
