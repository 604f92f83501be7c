// Agent: puts the modules together and keeps them running: start, signals, reload, stop.
//
// What the module promises:
//
// - What starts is stopped in an order that loses nothing: reading, commits, delivery, ports, database.
// - A reload takes effect completely or not at all, and a configuration that a reload accepts also starts.
// - Every problem is reported within minutes: in `status`, a metric, an alert or the log.
//
// It is the only module that imports all others, and it knows nothing of the command line.
//
// Its parts:
//
// - `AgentService` (this file): the loops, the parts, signals, stop. `+Start`: what is made, in which order.
//   `+Changes`: reload, settings that containers change, enable and disable, country, sessions, log level.
// - `PortOpener` opens the control socket and the stats port, `SenderFactory` (Sending) makes the senders of
//   destinations: each returns what it made.
// - `AgentLife`, `CollectionSwitch`, `ReloadPlan`, `ContainerNews`: values that decide for it, each with its
//   own state: start, run and stop; collection on and off; what a reload may change; what was reported.
// - Settings: the configuration, translated to the settings of each module.
// - Reading, `JournalReaders`, `MovableReader`, `MountLoops`: what reads lines, wherever they are, and what
//   guards the disk of the spool.
// - Sending: what connects queue, delivery and outputs, and measures attempts.
// - Containers: `ContainerKeeper` with the containers' documents, `FunctionDesk` with the functions.
// - API: the routes of the control socket. Status, Figures: what `status`, its page and Prometheus show.
// - Host: the machine, systemd, the watchdog, and whether the agent makes progress.
//
// Rules:
//
// - `AgentService` is an actor on the main loop. Spool, events and compression are on the reader's loop, the
//   database on the store's: a slow disk under one of them must not stop the others. What blocks for long,
//   such as a destination that writes files or a mount that may never answer, gets a loop of its own.
// - `Parts` is made once and never changes. What a reload changes has a method in its own module.
// - Settings are trusted; clients of the control socket have what its permissions grant.
// - An error at the start ends it with an `AgentError`, whose code becomes the exit status. After the start,
//   errors are logged and reported; the agent continues.
//
// Begin with `run` below, then `start` in `AgentService+Start.swift` and `stop` at the end of this file.
// Decisions are in DESIGN.md.

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

/// The running agent: three loops and what lives on them.
///
/// *reader*: spool, events, compression. *store*: the database, so that a sync does not stop the others.
/// *main*: delivery, the stats port, the control socket, signals. A destination that writes files, each
/// journal, and each mount that may never answer and is read have one more loop each.
public actor AgentService: LoopActor {
    /// The main loop.
    public nonisolated let loop: EventLoop
    /// Name and version of the program.
    nonisolated let program: ProgramIdentity
    /// Standard error, as the log's sink.
    nonisolated let sink: StandardErrorLog
    nonisolated let time = SystemTime()
    /// Path of the configuration file, which a reload reads again.
    let configurationPath: String
    /// Settings as the configuration files say them.
    var configured: Settings
    /// Settings in force: those of the files with what containers have set on top.
    var settings: Settings {
        didSet { sharedSettings.withLock { $0 = settings } }
    }
    /// Copy of the settings in force for other threads.
    nonisolated let sharedSettings: Mutex<Settings>
    /// Lets one change of settings in at a time: a reload and a container's values could otherwise apply
    /// parts of both.
    let configurationTurn = Turnstile()
    /// Whether a round that applies the containers' values waits for its turn. News meanwhile need no second
    /// round.
    var isContainerRoundWanted = false
    /// Reports the containers' values to people and apps.
    var containerNews: ContainerNews
    /// Start, run or stop, with what each has.
    private(set) var life = AgentLife.starting(nil)

    /// Reads the spool, on a thread of its own: a slow disk of the spool stops neither status nor sending.
    nonisolated let readerLoop: EventLoop
    /// Commits to the queue, on a thread of its own, for the same reason.
    nonisolated let storeLoop: EventLoop
    /// Loops for directories on file systems that may never answer.
    nonisolated let mounts = MountLoops()
    /// systemd, by `sd_notify(3)`; nil if the agent does not run under it.
    nonisolated let manager: ServiceManager?
    /// Results of reloads, for `status` and metrics on any thread.
    nonisolated let reloads: Mutex<Reloads>
    /// Facts about the machine.
    nonisolated let machine: Machine
    /// How the last run ended.
    nonisolated let lastRun: LastRun
    /// Makes the senders of destinations.
    nonisolated let senders: SenderFactory
    /// Work that the agent does instead of reading the spool, such as shipping old files without a running
    /// agent; nil for a service. The agent ends with it.
    nonisolated let task: (@Sendable () -> Void)?
    /// Containers that are in force, for the reader's loop.
    nonisolated let containers = ContainersInForce.opening()
    /// Whether events are collected, and whether that is being changed.
    var collection = CollectionSwitch()
    /// Country that an operator has set; stored in the queue.
    var country: CountryCode? {
        didSet { sharedCountry.withLock { $0 = country } }
    }
    /// Copy of the country for other threads.
    nonisolated let sharedCountry = Mutex<CountryCode?>(nil)
    /// What commands have set about consent; stored in the queue.
    var consent = ConsentStates()
    /// Time at which an earlier process last wrote to the queue. A clock that is before it is wrong.
    var lastChange: Timestamp?
    /// Deadlines by destination, for commands that look into the queue.
    var deadlines: [DestinationName: [Deadline]] = [:]
    /// Signals and steps of the clock.
    var watches = Watches()
    /// Schemas of the directory, and what happens to events that a schema does not allow.
    nonisolated let schemas = Mutex(SchemaRules())
    /// The ports at which the agent answers.
    var ports = OpenPorts()

    /// What the kernel reports to the agent.
    struct Watches {
        /// SIGTERM, SIGINT and SIGHUP.
        var signals: SignalWatcher?
        /// Reports that the time of day was set.
        var clock: ClockWatcher?

        func cancel() {
            clock?.cancel()
            signals?.cancel()
        }
    }

    /// The ports at which the agent answers.
    struct OpenPorts {
        /// The control socket; nil before it is open.
        var control: ControlServer?
        /// The stats port; nil if it is not configured.
        var stats: StatsServer?
    }

    /// What runs once the agent has started. Values and actors that never change, so that a copy can be used
    /// on any loop.
    struct Parts: Sendable {
        /// The queue on disk; lives on the store's loop.
        let queue: QueueStore
        /// Takes batches from the queue to the destinations.
        let driver: DeliveryDriver
        /// What reads the spool, files in place and journals.
        let reader: Reading
        /// Figures of all intakes.
        let intakes: AllIntakes
        /// Measures the spool while nothing reads it.
        let unreadSpool: UnreadSpool
        /// Keeps unread files from filling the disk (`spool.when_full.max_unread`).
        let unread: UnreadGuard
        /// Watches the routes.
        let network: NetworkMonitor
        /// Tells apps, in a file in the spool, what the agent accepts now.
        let notice: WritersNotice
        /// Takes old files over the control socket.
        let backfill: Backfill
        /// The documents that change rules and settings from outside.
        let containers: ContainerKeeper
        /// The programs that rules and containers call.
        let functions: FunctionDesk
        /// History for the status page.
        let recorder: StatusRecorder
        /// Reopens a port that does not answer.
        let ports: PortWatch
        /// Reports a new name of the host, and a new time zone.
        let hostWatch: HostWatch
        /// Whether the agent makes progress, for `/readyz` and `status`.
        let pulse: Pulse
        /// Reports files that the next start would refuse.
        let restart: RestartWatch
        /// Time of the start by the boot clock: the time of day may have been wrong then.
        let started: BootInstant
    }

    nonisolated var log: Log { Log(sink) }
    nonisolated var host: HostFacts { machine.facts }
    /// Figures of the attempts; they outlive reloads.
    nonisolated var sending: SendingFigures { senders.figures }

    /// The parts; nil until the start is complete. Commands that come earlier are refused with `starting`.
    var parts: Parts? { life.running?.parts }

    /// Runs the agent until a signal or its task ends it. `path` is read again at a reload.
    ///
    /// - Parameter task: runs on its own thread once the control socket answers. With it the spool is not
    ///   read, the stats port stays closed, the log is limited to warnings, and the agent ends when the task
    ///   returns.
    /// - Throws: if the agent cannot start; everything is stopped then.
    public static func run(
        _ loaded: LoadedSettings, path: String, program: ProgramIdentity, task: (@Sendable () -> Void)? = nil
    ) throws(AgentError) {
        let level = loaded.settings.agent.logLevel
        let sink = StandardErrorLog(
            level: task != nil && level == .info ? .warning : level,
            format: loaded.settings.agent.logFormat)
        defer { sink.finish() }
        // A peer that closes its connection must be an error of the write (EPIPE), not the end of the
        // process.
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
        containerNews = ContainerNews(in: settings.agent.runtimeDirectory)
        configurationPath = path
        self.program = program
        self.sink = sink
        self.task = task
        self.loop = loop
        reloads = Mutex(Reloads(lastSuccess: time.wallTime, configured: settings, started: settings))
        machine = Machine(HostFacts(settings, version: program.version, log: Log(sink)))
        senders = SenderFactory(program, machine, on: loop, log: Log(sink), time: SystemTime())
        lastRun = LastRun(in: settings.agent.stateDirectory)
        manager = ServiceManager(socket: environment("NOTIFY_SOCKET"))
        readerLoop = try relaying(try EventLoop(name: "reader"), AgentError.init(start:))
        storeLoop = try relaying(try EventLoop(name: "store"), AgentError.init(start:))
    }

    /// Starts everything, waits for the stop, and stops everything.
    private func run() async throws(AgentError) {
        do throws(SystemError) {
            // Before other threads are started: they inherit the mask with these signals blocked. A signal
            // that is delivered to a thread with its default action would end the process without a drain.
            watches.signals = try SignalWatcher([SIGTERM, SIGINT, SIGHUP], on: loop) { signal in
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
            for loop in senders.loops { loop.stop() }
            mounts.stop()
        }
        let alarm = HangAlarm(for: loop, on: storeLoop, log: log)
        // The start reads many files. If a file system hangs, the log says which one.
        alarm.expect(within: .seconds(10))
        // In a task of its own, whose memory ends with it: the start's frames take 40 KB.
        let parts = try await Task(executorPreference: loop) {
            do throws(AgentError) {
                return Result<Parts, AgentError>.success(try await self.start())
            } catch {
                return .failure(error)
            }
        }.value.get()
        alarm.expect(within: nil)
        lastRun.begin(log)
        manager?.notify("READY=1")
        await AgentStatus(agent: self, parts: parts).notify()
        life.note(watchdog: startWatchdog(parts))
        if await !parts.hostWatch.start() {
            log.warning("host name and time zone are not watched; a change counts from the next start")
        }
        log.info(
            "agent started",
            [
                "version": program.version, "spool": settings.spool.directory,
                "state": settings.agent.stateDirectory,
            ])
        if let task {
            try begin(task)
        }
        await withCheckedContinuation { life.waitForStop($0) }
        await stop(parts)
        lastRun.end()
        life.running?.taskLoop?.stop()
    }

    /// Runs the task on its own thread, because it blocks.
    private func begin(_ task: @escaping @Sendable () -> Void) throws(AgentError) {
        let taskLoop = try relaying(try EventLoop(name: "task"), AgentError.init(start:))
        try relaying(try taskLoop.start(), AgentError.init(start:))
        life.note(taskLoop: taskLoop)
        let main = loop
        taskLoop.post {
            task()
            main.post { self.assumeIsolated { $0.beginStopping() } }
        }
    }

    /// SIGHUP reloads. The first SIGTERM or SIGINT stops with a drain, the second one without.
    private func received(_ signal: Int32) {
        switch signal {
        case SIGHUP:
            Task(executorPreference: loop) {
                // A refusal is in the log and in `status` by then; a signal has no answer.
                _ = try? await self.reload()
            }
        case _ where life.isStopping:
            log.warning("second signal: ending at once")
            guard let parts else { return }
            Task(executorPreference: loop) { await parts.driver.hurry() }
        default:
            beginStopping()
        }
    }

    /// Begins the stop, once.
    private func beginStopping() {
        let stop = life.beginStopping()
        guard stop.isFirst else { return }
        // Beyond the drain, running requests end and the database is closed: systemd must not kill the agent
        // meanwhile.
        manager?.notifyStopping(within: settings.agent.shutdownDrainTimeout + .seconds(60))
        // The start may be waiting for the containers' documents.
        stop.keeper?.assumeIsolated { $0.stop() }
    }

    /// Waits for the containers' documents before reading begins; a stop ends the wait.
    func waitForDocuments(_ keeper: ContainerKeeper) async {
        if !life.waits(for: keeper) {
            await keeper.stop()
        }
        await keeper.waitUntilOpen()
    }

    /// Commands are taken from now on.
    func started(_ parts: Parts) { life.started(parts) }

    /// Stops in an order that loses nothing: first what reads, with its last commits; then delivery, which
    /// may drain; then the ports, so that `status` answers during the drain; the database last, because all
    /// others write to it.
    func stop(_ parts: Parts) async {
        log.info("agent stopping")
        await parts.backfill.stop()
        var left = Commit()
        left.memory = await parts.reader.stop()
        do {
            // Function calls that were answered after the last commit. Without this row the next start would
            // make them again.
            if !left.memory.isEmpty {
                _ = try await parts.queue.store(left)
            }
        } catch {
            log.warning("completed function calls will be repeated", ["reason": "\(error)"])
        }
        parts.functions.stop()
        await parts.network.stop()
        await parts.driver.stop(grace: settings.agent.shutdownDrainTimeout)
        await ports.control?.stop()
        await ports.stats?.stop()
        await parts.queue.close()
        life.running?.watchdog?.stop()
        watches.cancel()
        await parts.hostWatch.stop()
        let waiting = parts.queue.snapshot.lanes.reduce(0) { $0 + $1.ledger.queued }
        log.info("agent stopped", ["queued": waiting])
    }
}
