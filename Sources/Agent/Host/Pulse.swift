internal import EventLoops
internal import Logs
internal import Synchronization

/// Whether the agent makes progress, for `/readyz`, `status` and scrapes, by the same facts as the watchdog.
///
/// The other loops are asked to answer, and what is stuck is looked at. Nothing wakes up for it. It lives on the main loop.
actor Pulse: LoopActor {
    /// How long a loop may be at one piece of work, such as a commit to a slow disk, before it counts as hanging.
    private let patience: Duration
    nonisolated let loop: EventLoop
    /// The loops that must answer, each with what may keep it where the kernel does not say.
    private let others: () -> [(loop: EventLoop, hint: String)]
    private let time: any TimeSource
    private let log: Log
    private let state: @Sendable () -> ProgressWatch.State
    /// What the log was told last: the loops that were silent, or that nothing moved.
    private var told: [String] = []
    private var watch = ProgressWatch(readingPatience: .seconds(10))
    /// Since when loops owe an answer, by their names.
    private var owing: [String: BootInstant] = [:]
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private nonisolated let found = Mutex<(silent: Set<String>, obstacles: [String])>(([], []))

    init(
        on loop: EventLoop, time: any TimeSource, log: Log, patience: Duration = .seconds(5),
        others: @escaping @Sendable () -> [(loop: EventLoop, hint: String)],
        state: @escaping @Sendable () -> ProgressWatch.State
    ) {
        (self.loop, self.others, self.time) = (loop, others, time)
        (self.log, self.patience, self.state) = (log, patience, state)
    }

    /// Why the agent is not ready, as of the last check. From any thread.
    nonisolated var obstacles: [String] { found.withLock { $0.obstacles } }
    /// The loops that did not answer then. From any thread.
    nonisolated var silent: Set<String> { found.withLock { $0.silent } }

    /// Asks all loops; returns when each has answered, or has had its time.
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

    private var isAnyInTime: Bool { owing.values.contains { time.bootTime - $0 < patience } }

    private func answered(_ name: String) {
        owing[name] = nil
        if !isAnyInTime { endWaits() }
        judge()
    }

    private func endWaits() {
        for waiter in waiters { waiter.resume() }
        waiters = []
    }

    private func judge() {
        let now = time.bootTime
        var (silent, obstacles): ([String], [String]) = ([], [])
        for (loop, hint) in others() {
            let silence: Duration = now - (owing[loop.name] ?? now)
            guard silence >= patience else { continue }
            let cause = loop.awaitedFile.map { "it waits for \($0): does that file system hang?" } ?? hint
            silent.append(loop.name)
            obstacles.append("the \(loop.name) loop has not answered for \(silence.components.seconds) s: \(cause)")
        }
        // A loop that hangs publishes nothing: what it did last is no second complaint.
        if obstacles.isEmpty { obstacles = watch.stalls(state(), at: now, wall: time.wallTime) }
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
