internal import EventLoops

/// What the agent is in: its start, its run, or its stop.
enum AgentLife {
    /// The parts are being made. Commands are refused with `starting`. A stop ends the keeper's wait for the
    /// containers' documents.
    case starting(ContainerKeeper?)
    case running(Running)
    /// A signal, or the end of the task, stops the agent. Without a value the start is still under way, and
    /// is completed first. A second signal ends the drain.
    case stopping(Running?)

    /// The parts that exist once the start is complete.
    struct Running {
        let parts: AgentService.Parts
        /// Feeds systemd's watchdog; nil if the unit has none.
        var watchdog: Watchdog?
        /// Thread of the task; nil without one.
        var taskLoop: EventLoop?
        /// Resumed when the agent must stop.
        var waiter: CheckedContinuation<Void, Never>?
    }

    /// What runs; nil until the start is complete.
    var running: Running? {
        switch self {
        case .starting: nil
        case .running(let running): running
        case .stopping(let running): running
        }
    }

    var isStopping: Bool { if case .stopping = self { true } else { false } }

    /// The start waits for this keeper's documents. Returns false if the agent stops meanwhile: then the
    /// keeper must not wait.
    mutating func waits(for keeper: ContainerKeeper) -> Bool {
        guard case .starting = self else { return false }
        self = .starting(keeper)
        return true
    }

    /// The start is complete.
    mutating func started(_ parts: AgentService.Parts) {
        let running = Running(parts: parts)
        self = isStopping ? .stopping(running) : .running(running)
    }

    /// Notes what runs beside the parts.
    mutating func note(watchdog: Watchdog? = nil, taskLoop: EventLoop? = nil) {
        guard var running else { return }
        running.watchdog = watchdog ?? running.watchdog
        running.taskLoop = taskLoop ?? running.taskLoop
        self = isStopping ? .stopping(running) : .running(running)
    }

    /// Resumes `waiter` when the agent must stop; at once if that is so already.
    mutating func waitForStop(_ waiter: CheckedContinuation<Void, Never>) {
        guard case .running(var running) = self else { return waiter.resume() }
        running.waiter = waiter
        self = .running(running)
    }

    /// Begins the stop. Returns the keeper whose wait ends; nil if the stop had begun before.
    mutating func beginStopping() -> (isFirst: Bool, keeper: ContainerKeeper?) {
        switch self {
        case .stopping: return (false, nil)
        case .starting(let keeper):
            self = .stopping(nil)
            return (true, keeper)
        case .running(var running):
            let waiter = running.waiter
            running.waiter = nil
            self = .stopping(running)
            waiter?.resume()
            return (true, running.parts.containers)
        }
    }
}
