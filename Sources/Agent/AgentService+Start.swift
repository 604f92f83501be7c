internal import Configuration
internal import Control
internal import Delivery
internal import EventLoops
internal import Events
internal import Intake
internal import Journal
internal import Logs
internal import Model
internal import Outputs
internal import Queue
internal import Spool
internal import Synchronization

extension AgentService {
    /// Starts what runs, from the disk to the network: the queue, delivery, the ports, the spool last.
    func start() async throws(AgentError) -> Parts {
        let relay = QueueRelay()
        lastChange = FileStatus("\(settings.agent.stateDirectory)/queue.sqlite")?.modified
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
        let driver = try makeDriver(queue, switches)
        let hashKeys = try settings.hashKeys()
        var intakes = AllIntakes()
        let functions = FunctionDesk(settings, on: readerLoop, time: time, log: log)
        let rules = IntakeRules(containers, functions: functions.runner, figures: intakes.spool)
        let keeper = makeKeeper(queue, driver, functions, rules)
        let tap = EventTap()
        let isNew = try takeSpool(queue)
        let reader = try makeReaders(queue, restored, &intakes, tap, rules)
        let parts = Parts(
            queue: queue, driver: driver, reader: reader, intakes: intakes,
            unreadSpool: UnreadSpool(
                time: time,
                read: Dictionary(restored.checkpoints.map { ($0.path, $0.offset) }, uniquingKeysWith: max)),
            unread: UnreadGuard(on: loop, queue: queue, time: time, log: log) { reader.figures.unreadBytes.value },
            network: makeNetworkMonitor(driver, keeper),
            notice: WritersNotice(
                in: settings.spool.directory, isCollecting: isCollecting, lock: spoolLock, isNew: isNew,
                on: readerLoop, log: log),
            backfill: Backfill(
                on: readerLoop, store: queue, memory: restored.memory, rules: rules, figures: intakes.backfill,
                time: time, log: log
            ) { await self.backfillOptions(queue, reader) },
            containers: keeper, functions: functions, recorder: StatusRecorder(),
            ports: PortWatch(on: loop, time: time, log: log),
            pulse: Pulse(on: loop, time: time, log: log) {
                [
                    (self.readerLoop, "does the disk of the spool, or of a directory in `read`, hang?"),
                    (self.storeLoop, "does the disk of the state directory hang?"),
                ] + self.assumeIsolated { $0.writingLoops.values.map { ($0, "does its disk hang?") } }
                    + reader.journals.loops
            } state: {
                (queue.snapshot, DeliverySnapshot(), reader.figures)
            },
            restart: RestartWatch(configurationPath, version: program.version, on: loop, time: time, log: log),
            started: time.bootTime)
        try await openPorts(parts, restored, rules, tap)
        let expiry = ExpiryRounds(on: loop, queue: queue)
        relay.connect(parts, expiry, mainLoop: loop, readerLoop: readerLoop, time: time)
        parts.notice.queueAccepts(queue.snapshot.accepting)
        reloads.withLock { $0.withoutDestination = queue.snapshot.withoutDestination }
        warnOfOrphans(queue.snapshot)
        await driver.start()
        watchClock(driver)
        await start(parts.network)
        await expiry.queueChanged()
        await parts.unread.configure(most: settings.unreadBound)
        finishDisabling(queue)
        await keeper.configure(settings.containers, keyLengths: settings.keyLengths, hashKeys: hashKeys)
        self.keeper = keeper
        // Writers go on; only reading waits, and no longer than the containers' timeouts (tm05).
        await keeper.waitUntilOpen()
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

    // MARK: The queue and delivery

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

    /// For whatever reads lines: each has its own, and knows of the steps of the lives before.
    func clockTrust(_ queue: QueueStore) -> sending ClockTrust {
        ClockTrust(past: lastChange, steps: queue.clockSteps)
    }

    private func makeDriver(_ queue: QueueStore, _ switches: [String: String]) throws(AgentError) -> DeliveryDriver {
        let options = try settings.deliveryOptions(of: host.installID)
        deadlines = options.deadlines
        return DeliveryDriver(
            on: loop, store: queue, senders: try senders(for: settings), options: options, switches: switches,
            isEnabled: isCollecting, time: time, log: log, summaries: { queue.lanes },
            countLate: { batch, deadline, before in
                let events = try? BatchEvents()
                return events?.count(in: batch, before: before, apps: deadline.apps) ?? batch.header.events
            }, persist: { name, value in try await queue.setSwitch(name, value) })
    }

    /// Has deadlines looked at again when the time of day was set; without that they are within the hour.
    private func watchClock(_ driver: DeliveryDriver) {
        do throws(SystemError) {
            clockWatcher = try ClockWatcher(on: loop) { driver.assumeIsolated { $0.clockStepped() } }
        } catch {
            log.warning("steps of the clock may go unnoticed for up to an hour", ["reason": error.description])
        }
    }

    private func makeNetworkMonitor(_ driver: DeliveryDriver, _ keeper: ContainerKeeper) -> NetworkMonitor {
        NetworkMonitor(on: loop, targets: settings.networkTargets) { news in
            let (delivery, containers) = news.split
            driver.assumeIsolated { $0.networkNews(delivery) }
            keeper.assumeIsolated { $0.networkNews(containers, hasChanged: news.hasChanged) }
        }
    }

    /// Watches the routes; without that, delivery finds out by its failures.
    private func start(_ network: NetworkMonitor) async {
        do throws(SystemError) {
            try await network.start()
        } catch {
            log.warning(
                "routes cannot be watched: only attempts notice that the network is down or back",
                ["reason": error.description, "hint": "add AF_NETLINK to RestrictAddressFamilies"])
        }
    }

    /// Feeds the service manager's watchdog, where it has one.
    func startWatchdog(_ parts: Parts) -> Watchdog? {
        guard let manager,
            let limit = ServiceManager.watchdogLimit(
                microseconds: environment("WATCHDOG_USEC"), process: environment("WATCHDOG_PID"))
        else { return nil }
        var watch = ProgressWatch()
        let (time, loop) = (self.time, self.loop)
        let watchdog = Watchdog(
            limit: limit, manager: manager, on: loop, others: [readerLoop, storeLoop],
            alarm: HangAlarm(for: loop, on: storeLoop, log: log), log: log
        ) {
            watch.requestTimeouts = self.assumeIsolated { $0.requestTimeouts }
            // A dead port is opened again; that is no reason to end what ships.
            Task(executorPreference: loop) { await AgentStatus(agent: self, parts: parts).notify() }
            return watch.stalls(
                (parts.queue.snapshot, parts.driver.snapshot, parts.reader.figures), at: time.bootTime,
                wall: time.wallTime)
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

    // MARK: Reading

    /// Takes the spool for this agent. True: it is new to an agent that has read before; its file system may not be mounted.
    private func takeSpool(_ queue: QueueStore) throws(AgentError) -> Bool {
        // An agent with a task leaves the spool alone.
        guard task == nil else { return false }
        if let mistake = settings.readingMistake {
            throw AgentError(.configuration, "\(mistake.setting) \(mistake.message)")
        }
        let directory = settings.spool.directory
        let isKept = settings.spool.afterRead == .keep
        if !isKept, queue.snapshot.intake.read > 0, FileStatus("\(directory)/.spoolship") == nil {
            log.warning("the spool has no .spoolship: is its file system mounted?", ["directory": directory])
            return true
        }
        spoolLock = try relaying(try SpoolLock.take(directory)) { (error: SpoolError) in
            AgentError(.inUse, error.message)
        }
        if spoolLock == nil { log.warning("spool not locked against a second agent", ["directory": directory]) }
        return false
    }

    /// Makes what reads the spool, files that are elsewhere, and journals, each with its intake.
    private func makeReaders(
        _ queue: QueueStore, _ restored: RestoredState, _ figures: inout AllIntakes, _ tap: EventTap,
        _ rules: IntakeRules
    ) throws(AgentError) -> Reading {
        let wanted = intakeSettings(cap: queue.snapshot.maxSize)
        func makeIntake(
            _ settings: IntakeSettings, of place: String? = nil, _ figures: IntakeFigures
        ) -> sending Intake {
            Intake(
                settings, ofPlace: place, store: queue, memory: restored.memory, figures: figures,
                clock: clockTrust(queue), tap: tap, rules: rules, on: readerLoop, time: time, log: log)
        }
        // An intake of lines that come from elsewhere than the spool.
        func intake(of place: String) -> sending Intake {
            let known = IntakeFigures()
            figures.places.append(known)
            return makeIntake(settings.forPlaces(wanted), of: place, known)
        }
        func reader(
            _ options: SpoolOptions, _ intake: sending Intake
        ) throws(AgentError) -> (reader: SpoolReader, intake: LoopBound<Intake>) {
            let bound = LoopBound(intake, to: readerLoop)
            let start = SpoolStart(checkpoints: restored.checkpoints, done: restored.done)
            do throws(SpoolError) {
                return (try SpoolReader(options, start: start, sink: intake, on: readerLoop, log: log), bound)
            } catch {
                throw AgentError(.cannotCreate, error.message)
            }
        }
        let spool = try reader(settings.spoolOptions, makeIntake(wanted, figures.spool))
        let places = try settings.placeOptions.map { options throws(AgentError) in
            try reader(options, intake(of: (options.place?.app ?? "") + options.directory))
        }
        let sources = try settings.journals.map { app, options throws(AgentError) in
            let name = JournalReaders.memoryName(of: app)
            let loop = try relaying(try EventLoop(name: "journal of \(app)"), AgentError.init(start:))
            try relaying(try loop.start(), AgentError.init(start:))
            return JournalReaders.Source(
                app: app, intake: LoopBound(intake(of: name), to: readerLoop),
                reader: JournalReader(options, from: JournalPlace(restored.memory, under: name), on: loop, log: log))
        }
        let journals = JournalReaders(sources, linger: settings.linger, on: readerLoop, log: log)
        return Reading(
            spool: spool.reader, places: zip(settings.places, places).map { ($0, $1.reader) }, journals: journals,
            intakes: (spool.intake, places.map(\.intake) + sources.map(\.intake)))
    }
}
