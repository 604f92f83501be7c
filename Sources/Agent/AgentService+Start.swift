internal import Configuration
internal import Control
internal import Delivery
internal import EventLoops
internal import Events
internal import Glibc
internal import Intake
internal import Journal
internal import Logs
internal import Metrics
internal import Model
internal import Outputs
internal import Queue
internal import Spool
internal import Synchronization

extension AgentService {
    /// Starts what runs, from the disk to the network: the queue, delivery, the ports, the spool last.
    func start() async throws(AgentError) -> Parts {
        let relay = QueueRelay()
        lastChange = AgentService.lastChange(ofQueueIn: settings.agent.stateDirectory)
        let queue = try openQueue(relay)
        do throws(AgentError) {
            return try await start(on: queue, relay)
        } catch {
            await queue.close()
            throw error
        }
    }

    private func start(on queue: QueueStore, _ relay: QueueRelay) async throws(AgentError) -> Parts {
        let unreadable = { (error: QueueError) in AgentError(.io, error.message) }
        let restored = try await relaying(awaiting: try await queue.restore(), unreadable)
        let switches = try await relaying(awaiting: try await queue.switches(), unreadable)
        isCollecting = switches[AgentSwitch.collecting] != "off"
        country = switches[AgentSwitch.country].flatMap { CountryCode($0) }
        let options = try settings.deliveryOptions(of: host.installID)
        let hashKeys = try settings.hashKeys()
        deadlines = options.deadlines
        let driver = DeliveryDriver(
            on: loop, store: queue, senders: try senders(for: settings), options: options, switches: switches,
            isEnabled: isCollecting, time: time, log: log, summaries: { queue.lanes },
            countLate: { batch, deadline, before in
                let events = try? BatchEvents()
                return events?.count(in: batch, before: before, apps: deadline.apps) ?? batch.header.events
            }, persist: { name, value in try await queue.setSwitch(name, value) })

        let figures = IntakeFigures()
        let recorder = StatusRecorder()
        let tap = EventTap()
        let functions = FunctionDesk(settings, on: readerLoop, time: time, log: log)
        let rules = IntakeRules(containers, functions: functions.runner, figures: figures)
        let keeper = makeKeeper(queue, functions, rules)
        try takeSpool()
        let (spool, spoolIntake) = try makeReader(queue, restored, figures, tap, rules)
        var others: [(intake: LoopBound<Intake>, figures: IntakeFigures)] = []
        // An intake of lines that come from elsewhere than the spool.
        func intake(of name: String) -> LoopBound<Intake> {
            let figures = IntakeFigures()
            let intake = Intake(
                settings.forPlaces(intakeSettings(cap: queue.snapshot.maxSize)), ofPlace: name, store: queue,
                memory: restored.memory, figures: figures, clock: ClockTrust(past: lastChange), tap: tap, rules: rules,
                on: readerLoop, time: self.time, log: log)
            let bound = LoopBound(intake, to: readerLoop)
            others.append((bound, figures))
            return bound
        }
        let places = makePlaces(restored, intake)
        let journals = try makeJournals(restored, intake)
        let reader = Reading(
            spool: spool, places: places, journals: journals, intakes: (spoolIntake, others.map(\.intake)))
        let backfillFigures = IntakeFigures()
        let backfill = Backfill(
            on: readerLoop, store: queue, memory: restored.memory, rules: rules, figures: backfillFigures, time: time,
            log: log
        ) { await self.backfillOptions(queue, reader) }
        let notice = WritersNotice(in: settings.spool.directory, isCollecting: isCollecting, on: readerLoop, log: log)
        let unreadSpool = UnreadSpool(
            time: time,
            read: Dictionary(restored.checkpoints.map { ($0.path, $0.offset) }, uniquingKeysWith: { max($0, $1) }))
        let unread = UnreadGuard(on: loop, queue: queue, time: time, log: log) { reader.figures.unreadBytes.value }
        let intakes = AllIntakes(spool: figures, backfill: backfillFigures, places: others.map(\.figures))
        let collectors: [any MetricCollector] = [
            KnownSeries(settings: { self.sharedSettings.withLock { $0 } }, queue: queue),
            notice, unread, sending, QueueCollector(queue: queue, time: time),
            IntakeCollector(figures: intakes, time: time),
            SpoolCollector(reader: reader, time: time), DeliveryCollector(driver: driver),
            ContainerCollector(keeper: keeper, functions: functions, time: time), functions.durations,
            ProgramCollector(agent: self), ProcessCollector(),
            MachineCollector(spool: settings.spool.directory, state: settings.agent.stateDirectory, on: storeLoop),
        ]
        let ports = PortWatch(on: loop, time: time, log: log)
        let pulse = Pulse(
            on: loop,
            others: [
                (readerLoop, "does the disk of the spool hang?"),
                (storeLoop, "does the disk of the state directory hang?"),
            ], time: time, log: log
        ) { ProgressWatch.State(queue: queue.snapshot, delivery: DeliverySnapshot(), spool: reader.figures) }
        let restart = RestartWatch(configurationPath, version: program.version, on: loop, time: time, log: log)
        let status = AgentStatus(
            agent: self, queue: queue, driver: driver, reader: reader, intakes: intakes, unreadSpool: unreadSpool,
            unread: unread, containers: keeper, recorder: recorder, ports: ports, pulse: pulse, restart: restart,
            started: time.bootTime)
        let rereader = Rereader(
            on: readerLoop, store: queue, memory: restored.memory, rules: rules, time: time, log: log
        ) {
            await self.intakeSettings(cap: queue.snapshot.maxSize)
        }
        let records = AgentRecords(
            queue: queue, rereader: rereader, spool: spool, maxEventSize: settings.spool.maxEventSize, time: time,
            deadlines: { await self.deadlines }, log: log)
        var routes = ControlRoutes()
        routes.addStatus { await status.status() }
        routes.addSwitches(of: self)
        routes.addSending(driver, queue, keeper)
        routes.addRecords(records)
        routes.addTap(tap)
        routes.addBackfill(backfill)
        routes.addContainers(keeper)
        let control = try await startControl(routes)
        let stats: StatsServer?
        do throws(AgentError) {
            stats = try await startStats(
                status,
                collectors + control.collectors + [
                    ports.reopened, restart, StatusCollector(status: status, loop: loop),
                ])
        } catch {
            await control.stop()
            throw error
        }
        // An agent with a task ends before anybody could ask for more than its answers.
        if task == nil { await restart.start() }
        await ports.watch(task == nil ? [control] + (stats.map { [$0] } ?? []) : [])
        let time = self.time
        let expiry = ExpiryRounds(on: loop, queue: queue)
        relay.connect(
            queue: queue, driver: driver, expiry: expiry, unread: unread, mainLoop: loop, readerLoop: readerLoop,
            reader: reader
        ) { snapshot in
            notice.queueAccepts(snapshot.accepting)
            let now = time.wallTime
            recorder.addIfDue(at: now) { StatusHistory.Sample(snapshot, at: now) }
        }
        notice.queueAccepts(queue.snapshot.accepting)
        reloads.withLock { $0.withoutDestination = queue.snapshot.withoutDestination }
        warnOfOrphans(queue.snapshot)
        await driver.start()
        watchClock(driver)
        let network = await startNetworkMonitor(driver, keeper)
        await expiry.queueChanged()
        await unread.configure(most: settings.unreadBound)
        finishDisabling(queue)
        await startContainers(keeper, driver, hashKeys)
        keep(keeper)
        // Writers go on; only reading waits, and no longer than the containers' timeouts (tm05).
        await keeper.waitUntilOpen()
        let parts = Parts(
            queue: queue, driver: driver, reader: reader, stats: stats, control: control, network: network,
            notice: notice, backfill: backfill, unread: unread, containers: keeper, functions: functions, ports: ports,
            status: status)
        self.parts = parts
        // What containers set holds for the first event.
        await containersChanged()
        if task != nil {
            // The spool waits for an agent that goes on running.
        } else if settings.destinations.isEmpty {
            log.warning("the spool is not read: there is no destination", ["hint": "add a [[destination]] and reload"])
        } else {
            await reader.start()
        }
        return parts
    }

    /// Has deadlines looked at again when the time of day was set; without that they are within the hour.
    private func watchClock(_ driver: DeliveryDriver) {
        do throws(SystemError) {
            clockWatcher = try ClockWatcher(on: loop) { driver.assumeIsolated { $0.clockStepped() } }
        } catch {
            log.warning("steps of the clock go unnoticed for up to an hour", ["reason": error.description])
        }
    }

    /// Watches the routes; without that, delivery finds out by its failures.
    private func startNetworkMonitor(_ driver: DeliveryDriver, _ keeper: ContainerKeeper) async -> NetworkMonitor {
        let monitor = NetworkMonitor(on: loop, targets: settings.networkTargets) { news in
            let (delivery, containers) = news.split
            driver.assumeIsolated { $0.networkNews(delivery) }
            keeper.assumeIsolated { $0.networkNews(containers, hasChanged: news.hasChanged) }
        }
        do throws(SystemError) {
            try await monitor.start()
        } catch {
            log.warning(
                "routes cannot be watched: a network that is gone or back is noticed by attempts only",
                ["reason": error.description, "hint": "let RestrictAddressFamilies name AF_NETLINK"])
        }
        return monitor
    }

    /// Feeds the service manager's watchdog, where it has one.
    func startWatchdog(_ parts: Parts) -> Watchdog? {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        guard let manager,
            let limit = ServiceManager.watchdogLimit(
                microseconds: variable("WATCHDOG_USEC"), process: variable("WATCHDOG_PID"))
        else { return nil }
        var watch = ProgressWatch()
        let (queue, driver, reader, time) = (parts.queue, parts.driver, parts.reader, self.time)
        let (status, loop) = (parts.status, self.loop)
        let watchdog = Watchdog(
            limit: limit, manager: manager, on: loop, others: [readerLoop, storeLoop], log: log
        ) {
            watch.requestTimeouts = self.assumeIsolated { $0.requestTimeouts }
            // A dead port is opened again; that is no reason to end what ships.
            Task(executorPreference: loop) { await status.notify() }
            return watch.stalls(
                ProgressWatch.State(queue: queue.snapshot, delivery: driver.snapshot, spool: reader.figures),
                at: time.bootTime, wall: time.wallTime)
        }
        watchdog.start()
        return watchdog
    }

    /// How long a request to each destination may take in all.
    private var requestTimeouts: [DestinationName: Duration] {
        Dictionary(
            settings.destinations.map { (DestinationName($0.name), $0.connectTimeout + $0.requestTimeout) },
            uniquingKeysWith: { $1 })
    }

    private func openQueue(_ relay: QueueRelay) throws(AgentError) -> QueueStore {
        let clock = ClockTrust(past: lastChange)
        do throws(QueueError) {
            return try QueueStore(
                settings.queueOptions, on: storeLoop, time: time, clock: { clock.isTrusted(at: $0) }, log: log,
                observer: { relay.changed($0) }, eventTime: StoredEventTime.time)
        } catch {
            throw AgentError(error)
        }
    }

    private func takeSpool() throws(AgentError) {
        // An agent with a task leaves the spool alone.
        guard task == nil else { return }
        if let mistake = settings.readingMistake {
            throw AgentError(.configuration, "\(mistake.setting) \(mistake.message)")
        }
        do throws(SpoolError) {
            spoolLock = try SpoolLock.take(settings.spool.directory)
        } catch {
            throw AgentError(.inUse, error.message)
        }
        if spoolLock == nil {
            log.warning("spool not locked against a second agent", ["directory": settings.spool.directory])
        }
    }

    private func makeReader(
        _ queue: QueueStore, _ restored: RestoredState, _ figures: IntakeFigures, _ tap: EventTap,
        _ rules: IntakeRules
    ) throws(AgentError) -> (SpoolReader, LoopBound<Intake>) {
        let intake = Intake(
            intakeSettings(cap: queue.snapshot.maxSize), store: queue,
            memory: restored.memory, figures: figures, clock: ClockTrust(past: lastChange), tap: tap,
            rules: rules, on: readerLoop, time: time, log: log)
        let bound = LoopBound(intake, to: readerLoop)
        do throws(SpoolError) {
            let reader = try SpoolReader(
                settings.spoolOptions, start: SpoolStart(checkpoints: restored.checkpoints, done: restored.done),
                sink: intake, on: readerLoop, log: log)
            return (reader, bound)
        } catch {
            throw AgentError(.cannotCreate, error.message)
        }
    }

    /// What reads files that are elsewhere.
    private func makePlaces(_ restored: RestoredState, _ intake: (String) -> LoopBound<Intake>) -> PlaceReaders {
        let pairs = settings.placeOptions.map { ($0, intake(($0.place?.app ?? "") + $0.directory)) }
        return PlaceReaders(pairs, checkpoints: restored.checkpoints, on: readerLoop, time: time, log: log)
    }

    /// What reads journals.
    private func makeJournals(
        _ restored: RestoredState, _ intake: (String) -> LoopBound<Intake>
    ) throws(AgentError) -> JournalReaders {
        let sources = settings.journals.map { app, options in
            let name = JournalReaders.memoryName(of: app)
            return JournalReaders.Source(
                app: app, options: options, intake: intake(name),
                place: restored.memory[name].flatMap { JournalPlace(bytes: $0) })
        }
        return try relaying(
            try JournalReaders(sources, linger: settings.linger, on: readerLoop, log: log), AgentError.init(start:))
    }

    /// When an earlier process last wrote to the queue: a time that is past.
    private static func lastChange(ofQueueIn directory: String) -> Timestamp? {
        var status = stat()
        guard stat("\(directory)/queue.sqlite", &status) == 0 else { return nil }
        // bounded: by the type that they become.
        return Timestamp(seconds: status.st_mtim.tv_sec, nanoseconds: 0)
    }
}
