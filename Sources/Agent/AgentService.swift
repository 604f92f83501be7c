//  Agent: puts the modules together and keeps them running: start, signals, reload, stop.
//  Promise: what starts is stopped in the order that loses nothing. It knows nothing of the command line.

public import Configuration
internal import Containers
internal import Control
internal import Delivery
public import EventLoops
internal import Events
internal import Glibc
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Spool
internal import Synchronization

/// The running agent: three loops, and what lives on them.
///
/// *reader*: spool, events, compression. *store*: the database, so that a sync does not stop the others. *main*:
/// delivery, the stats port, the control socket, signals.
public actor AgentService: LoopActor {
    /// The main loop.
    public nonisolated let loop: EventLoop
    nonisolated let program: ProgramIdentity
    nonisolated let sink: StandardErrorLog
    nonisolated let time = SystemTime()
    let configurationPath: String
    /// What the files say.
    var configured: Settings
    /// What is in force: the files', with what containers have set.
    var settings: Settings {
        didSet { sharedSettings.withLock { $0 = settings } }
    }
    /// What is in force, for other threads.
    nonisolated let sharedSettings: Mutex<Settings>
    let configurationTurn = Turnstile()
    var isContainerRoundWanted = false
    var toldRefusals: [String: [String: String]] = [:]
    var valuesFile: ValuesFile
    var valuesProblem = false
    var keeper: ContainerKeeper? {
        didSet { if isStopping { keeper?.assumeIsolated { $0.stop() } } }
    }

    nonisolated let readerLoop: EventLoop
    nonisolated let storeLoop: EventLoop
    nonisolated let manager: ServiceManager?
    /// How reloading went; for other threads too.
    nonisolated let reloads: Mutex<Reloads>
    nonisolated let host: HostFacts
    nonisolated let sending = SendingFigures()
    /// What is done instead of reading the spool; the agent ends with it.
    nonisolated let task: (@Sendable () -> Void)?
    nonisolated let containers = ContainersInForce.opening()
    var parts: Parts?
    /// The spool is ours until this process ends; nil where it is not read, or cannot be written.
    var spoolLock: SpoolLock?
    /// Whether events are collected; durable in the queue.
    var isCollecting = true
    /// Whether what was queued is being deleted because collection was turned off: minutes, after a large backlog.
    var isDiscarding = false
    /// Whether a command to enable or disable is at work.
    var isSwitching = false
    /// The country that a person has set; durable in the queue.
    var country: CountryCode? {
        didSet { sharedCountry.withLock { $0 = country } }
    }
    /// The same, for other threads.
    nonisolated let sharedCountry = Mutex<CountryCode?>(nil)
    /// When an earlier process last wrote to the queue.
    var lastChange: Timestamp?
    /// When events must have arrived, by destination; for people who look into the queue.
    var deadlines: [DestinationName: [Deadline]] = [:]
    var clockWatcher: ClockWatcher?
    /// The loops of destinations that block, by name; kept over reloads.
    var writingLoops: [String: EventLoop] = [:]
    private var signals: SignalWatcher?
    private var watchdog: Watchdog?
    private var stopWaiter: CheckedContinuation<Void, Never>?
    private var isStopping = false
    private var taskLoop: EventLoop?
    var control: ControlServer?
    var stats: StatsServer?

    /// What runs once the agent has started.
    struct Parts: Sendable {
        let queue: QueueStore
        let driver: DeliveryDriver
        let reader: Reading
        let intakes: AllIntakes
        let unreadSpool: UnreadSpool
        let unread: UnreadGuard
        let network: NetworkMonitor
        let notice: WritersNotice
        let backfill: Backfill
        let containers: ContainerKeeper
        let functions: FunctionDesk
        let recorder: StatusRecorder
        let ports: PortWatch
        let pulse: Pulse
        let restart: RestartWatch
        /// By the clock that nobody sets: the time of day may have been wrong at the start.
        let started: BootInstant
    }

    nonisolated var log: Log { Log(sink) }

    /// Runs the agent until it is told to stop; reads `path` again for a reload. Throws if it cannot start, all stopped.
    ///
    /// A task runs on its own thread once the control socket answers. With it the spool is not read, the stats port stays
    /// closed, the log keeps to warnings, and the agent ends when it returns.
    public static func run(
        _ loaded: LoadedSettings, path: String, program: ProgramIdentity, task: (@Sendable () -> Void)? = nil
    ) throws(AgentError) {
        let level = loaded.settings.agent.logLevel
        let sink = StandardErrorLog(
            level: task != nil && level == .info ? .warning : level,
            format: loaded.settings.agent.logFormat)
        defer { sink.finish() }
        // A destination or a client that goes away must be an error, not the end.
        signal(SIGPIPE, SIG_IGN)
        try EventLoop.runProgram(name: "main", failure: AgentError.init(start:)) { loop throws(AgentError) in
            sink.attach(to: loop)
            let agent = try AgentService(
                loaded.settings, path: path, program: program, sink: sink, task: task, on: loop)
            try await agent.run()
        }
    }

    init(
        _ settings: Settings, path: String, program: ProgramIdentity, sink: StandardErrorLog,
        task: (@Sendable () -> Void)?, on loop: EventLoop
    ) throws(AgentError) {
        configured = settings
        self.settings = settings
        sharedSettings = Mutex(settings)
        valuesFile = ValuesFile(in: settings.agent.runtimeDirectory)
        configurationPath = path
        self.program = program
        self.sink = sink
        self.task = task
        self.loop = loop
        reloads = Mutex(Reloads(lastSuccess: time.wallTime, configured: settings, started: settings))
        host = HostFacts(settings, version: program.version, log: Log(sink))
        manager = ServiceManager(socket: environment("NOTIFY_SOCKET"))
        readerLoop = try relaying(try EventLoop(name: "reader"), AgentError.init(start:))
        storeLoop = try relaying(try EventLoop(name: "store"), AgentError.init(start:))
    }

    private func run() async throws(AgentError) {
        do throws(SystemError) {
            // Before the threads: they inherit the mask.
            signals = try SignalWatcher([SIGTERM, SIGINT, SIGHUP], on: loop) { signal in
                self.assumeIsolated { $0.received(signal) }
            }
            try readerLoop.start()
            try storeLoop.start()
        } catch {
            throw AgentError(start: error)
        }
        defer {
            readerLoop.stop()
            storeLoop.stop()
            for loop in writingLoops.values { loop.stop() }
        }
        let alarm = HangAlarm(for: loop, on: storeLoop, log: log)
        alarm.expect(within: .seconds(10))
        let parts = try await start()
        alarm.expect(within: nil)
        manager?.notify("READY=1")
        await AgentStatus(agent: self, parts: parts).notify()
        watchdog = startWatchdog(parts)
        log.info(
            "agent started",
            ["version": program.version, "spool": settings.spool.directory, "state": settings.agent.stateDirectory])
        if let task { try begin(task) }
        await withCheckedContinuation { continuation in
            if isStopping { return continuation.resume() }
            stopWaiter = continuation
        }
        await stop(parts)
        taskLoop?.stop()
    }

    /// Runs the task on its own thread, because it blocks.
    private func begin(_ task: @escaping @Sendable () -> Void) throws(AgentError) {
        let taskLoop = try relaying(try EventLoop(name: "task"), AgentError.init(start:))
        try relaying(try taskLoop.start(), AgentError.init(start:))
        self.taskLoop = taskLoop
        let main = loop
        taskLoop.post {
            task()
            main.post { self.assumeIsolated { $0.beginStopping() } }
        }
    }

    private func received(_ signal: Int32) {
        switch signal {
        case SIGHUP:
            Task(executorPreference: loop) {
                // A refusal is in the log and in `status` already; nobody else waits for it.
                _ = try? await self.reload()
            }
        case _ where isStopping:
            log.warning("second signal: ending at once")
            guard let parts else { return }
            Task(executorPreference: loop) { await parts.driver.hurry() }
        default:
            beginStopping()
        }
    }

    private func beginStopping() {
        guard !isStopping else { return }
        isStopping = true
        // Besides what is sent while it lasts, requests end and the database is closed.
        manager?.notifyStopping(within: settings.agent.shutdownDrainTimeout + .seconds(60))
        stopWaiter?.resume()
        stopWaiter = nil
        // It may be in the middle of its start, which waits for the containers.
        keeper?.assumeIsolated { $0.stop() }
    }

    /// Stops reading, commits, drains, closes: in this order nothing is lost, and what can still go goes.
    func stop(_ parts: Parts) async {
        log.info("agent stopping")
        await parts.backfill.stop()
        var left = Commit()
        left.memory = await parts.reader.stop()
        do {
            if !left.memory.isEmpty { _ = try await parts.queue.store(left) }
        } catch {
            log.warning("completed function calls will be repeated", ["reason": "\(error)"])
        }
        parts.functions.stop()
        await parts.network.stop()
        await parts.driver.stop(grace: settings.agent.shutdownDrainTimeout)
        await control?.stop()
        await stats?.stop()
        await parts.queue.close()
        watchdog?.stop()
        clockWatcher?.cancel()
        signals?.cancel()
        let waiting = parts.queue.snapshot.lanes.reduce(0) { $0 + $1.ledger.queued }
        log.info("agent stopped", ["queued": waiting])
    }
}
