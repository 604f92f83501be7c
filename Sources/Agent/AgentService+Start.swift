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

/// The start: what is made, in which order.
///
/// The queue is first: it restores what the others need, and its lock keeps a second agent out. Ports open
/// before reading starts, so that `status` answers during a long start. The spool's reader is last: by then
/// delivery runs, and the containers' rules are known or have been waited for.
extension AgentService {
    /// Starts everything; on an error the queue is closed again.
    func start() async throws(AgentError) -> Parts {
        // The queue needs its listener before the listeners exist.
        let relay = QueueRelay()
        // Read before the queue is opened, because opening may write to the file and change the time.
        lastChange = FileStatus("\(settings.agent.stateDirectory)/queue.sqlite")?.modified
        let queue = try openQueue(relay)
        do throws(AgentError) {
            return try await start(on: queue, relay)
        } catch {
            await queue.close()
            throw error
        }
    }

    /// Makes all parts, opens the ports, and starts delivery and then reading.
    private func start(on queue: QueueStore, _ relay: QueueRelay) async throws(AgentError) -> Parts {
        let unreadable = { (error: QueueError) in AgentError(.io, error.message) }
        // Checkpoints, done records and memory of earlier processes, and what an operator has switched: both
        // outlive a restart.
        let restored = try await relaying(awaiting: try await queue.restore(), unreadable)
        let switches = try await relaying(awaiting: try await queue.switches(), unreadable)
        collection = CollectionSwitch(isOn: switches[AgentSwitch.collecting] != "off")
        country = switches[AgentSwitch.country].flatMap { CountryCode($0) }
        consent = queue.snapshot.consent
        // What the configuration can have wrong is found before the spool is touched.
        let driver = try makeDriver(queue, switches)
        let hashKeys = try settings.hashKeys()
        let schemaRules = try settings.schemaRules()
        schemas.withLock { $0 = schemaRules }
        let configuredRules = try settings.configuredRules(host.agentFacts(version: program.version))
        var intakes = AllIntakes()
        let functions = FunctionDesk(settings, on: readerLoop, time: time, log: log)
        let board = CallBoard()
        let rules = IntakeRules(
            containers, functions: functions.runner, apps: board, figures: intakes.spool)
        let keeper = makeKeeper(queue, driver, functions, rules)
        let tap = EventTap()
        // An agent with a task does not read the spool. The same check as at a reload.
        if task == nil, let mistake = settings.readingMistake {
            throw AgentError(.configuration, "\(mistake.setting) \(mistake.message)")
        }
        let claim = SpoolClaim()
        let reader = try await makeReaders(queue, restored, &intakes, tap, rules, claim)
        let parts = Parts(
            queue: queue, driver: driver, reader: reader, intakes: intakes,
            unreadSpool: UnreadSpool(
                time: time,
                // With a destination it is never asked, and the paths of 70,000 files took 11 MB.
                read: settings.destinations.isEmpty
                    ? Dictionary(
                        restored.checkpoints.map { ($0.restoringPath.path, $0.offset) },
                        uniquingKeysWith: max)
                    : [:]),
            unread: UnreadGuard(on: loop, queue: queue, time: time, log: log) {
                reader.figures.unreadBytes.value
            },
            network: makeNetworkMonitor(driver, keeper),
            notice: WritersNotice(
                in: settings.spool.directory, isCollecting: collection.isOn,
                // Without an answer of the spool's file system nothing is made there.
                lock: claim.taken?.lock, isNew: claim.taken?.isNew ?? true,
                on: reader.spool.home?.loop ?? readerLoop, log: log),
            backfill: Backfill(
                on: readerLoop, store: queue, memory: restored.memory, rules: rules,
                figures: intakes.backfill,
                time: time, log: log
            ) { await self.backfillOptions(queue, reader) },
            containers: keeper, functions: functions, recorder: StatusRecorder(),
            ports: PortWatch(on: loop, time: time, log: log),
            hostWatch: HostWatch(on: readerLoop, sharing: reader.shared) {
                Task(executorPreference: self.loop) { await self.hostChanged() }
            },
            pulse: Pulse(on: loop, time: time, log: log, silenced: { reader.mounts.note(silent: $0) }) {
                [
                    WatchedLoop(
                        self.readerLoop,
                        hint: "does the disk of the spool, or of a directory in `read`, hang?"),
                    WatchedLoop(self.storeLoop, hint: "does the disk of the state directory hang?"),
                ]
                    + self.senders.loops.map { WatchedLoop($0, hint: "does its disk hang?") }
                    + reader.watchedLoops
            } state: {
                (queue.snapshot, DeliverySnapshot(), reader.figures)
            },
            restart: RestartWatch(
                configurationPath, version: program.version, on: loop, time: time, log: log),
            started: time.bootTime)
        reader.mounts.whenUsed { parts.pulse.beginRounds() }
        claim.whenTaken { parts.notice.adopt($0) }
        // A port that is in use ends the start here, before delivery and reading begin.
        let rereader = Rereader(
            on: readerLoop, store: queue, memory: restored.memory, rules: rules, time: time,
            clock: clockTrust(queue), log: log,
            ofPlaces: { await self.settingsOfReading.forPlaces($0) }
        ) { await self.intakeSettings(cap: queue.snapshot.maxSize) }
        ports = try await PortOpener(agent: self, settings: settings, parts: parts).open(tap, board, rereader)
        let expiry = ExpiryRounds(on: loop, queue: queue)
        // From here on, changes of the queue reach delivery and the intakes. Changes before were not passed
        // on, so its present state is taken over below.
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
        withholdLater(queue)
        await keeper.configure(
            settings.containers, keyLengths: settings.keyLengths, hashKeys: hashKeys, rules: configuredRules)
        // Reading waits for the containers' documents, so that the first event meets their rules, but no
        // longer than their timeouts. Apps can write meanwhile.
        await waitForDocuments(keeper)
        started(parts)
        // Settings that containers change are in force before the first event.
        await containersChanged()
        if task != nil {
            // An agent with a task leaves the spool to a service that keeps running.
        } else if settings.destinations.isEmpty {
            log.warning(
                "the spool is not read: there is no destination", ["hint": "add a [[destination]] and reload"]
            )
        } else {
            await reader.start()
        }
        return parts
    }

    // MARK: The queue and delivery

    /// Opens the queue's database, and with it takes the state directory for this process.
    private func openQueue(_ relay: QueueRelay) throws(AgentError) -> QueueStore {
        let clock = ClockTrust(past: lastChange)
        do throws(QueueError) {
            return try QueueStore(
                settings.queueOptions, on: storeLoop, time: time, clock: { clock.isTrusted(at: $0) },
                log: log,
                observer: { relay.changed($0) }, eventTime: StoredEventTime.time)
        } catch {
            throw AgentError(error)
        }
    }

    /// Trust in the clock for one reader of lines. Each has a value of its own, because it is not Sendable;
    /// all know the clock's steps that earlier processes have seen.
    func clockTrust(_ queue: QueueStore) -> sending ClockTrust {
        ClockTrust(past: lastChange, steps: queue.clockSteps)
    }

    /// Makes delivery, with the pauses and other switches that the queue has stored.
    private func makeDriver(_ queue: QueueStore, _ switches: [String: String]) throws(AgentError)
        -> DeliveryDriver
    {
        let options = try settings.deliveryOptions(of: host.installID)
        deadlines = options.deadlines
        return DeliveryDriver(
            on: loop, store: queue, senders: try senders.senders(for: settings, of: queue), options: options,
            switches: switches,
            isEnabled: collection.isOn, time: time, log: log, summaries: { queue.lanes },
            countLate: { batch, deadline, before in
                let events = try? BatchEvents()
                return events?.count(in: batch, before: before, apps: deadline.apps) ?? batch.header.events
            }, persist: { name, value in try await queue.setSwitch(name, value) })
    }

    /// Makes the keeper of the containers; opens none yet.
    private func makeKeeper(
        _ queue: QueueStore, _ driver: DeliveryDriver, _ functions: FunctionDesk, _ rules: IntakeRules
    ) -> ContainerKeeper {
        ContainerKeeper(
            store: queue, inForce: containers, userAgent: "spoolship/\(program.version)",
            facts: host.agentFacts(version: program.version), on: loop, time: time, log: log,
            isNetworkOn: { driver.snapshot.isNetworkOn },
            published: { [readerLoop] in readerLoop.post { rules.documentsChanged() } },
            changed: { Task(executorPreference: self.loop) { await self.containersChanged() } }
        ) { call, answer in functions.ask(call, answer: answer) }
    }

    /// Lets delivery check deadlines again when the time of day was set. Without the watcher it notices
    /// within the hour.
    private func watchClock(_ driver: DeliveryDriver) {
        do throws(SystemError) {
            watches.clock = try ClockWatcher(on: loop) { driver.assumeIsolated { $0.clockStepped() } }
        } catch {
            log.warning(
                "steps of the clock may go unnoticed for up to an hour", ["reason": error.description])
        }
    }

    /// Makes the monitor of routes. It informs delivery and containers when their servers may be reachable
    /// again.
    private func makeNetworkMonitor(_ driver: DeliveryDriver, _ keeper: ContainerKeeper) -> NetworkMonitor {
        NetworkMonitor(on: loop, targets: settings.networkTargets) { news in
            let (delivery, containers) = news.split
            driver.assumeIsolated { $0.networkNews(delivery) }
            keeper.assumeIsolated { $0.networkNews(containers, hasChanged: news.hasChanged) }
        }
    }

    /// Starts to watch the routes. Without that, delivery learns from its failures.
    private func start(_ network: NetworkMonitor) async {
        do throws(SystemError) {
            try await network.start()
        } catch {
            log.warning(
                "routes cannot be watched: only attempts notice that the network is down or back",
                ["reason": error.description, "hint": "add AF_NETLINK to RestrictAddressFamilies"])
        }
    }

    /// Starts to feed the service manager's watchdog; nil if it has none for this process (`WatchdogSec=`).
    func startWatchdog(_ parts: Parts) -> Watchdog? {
        guard let manager,
            let limit = ServiceManager.watchdogLimit(
                microseconds: environment("WATCHDOG_USEC"), process: environment("WATCHDOG_PID"))
        else { return nil }
        var watch = ProgressWatch()
        let time = self.time
        let loop = self.loop
        let watchdog = Watchdog(
            limit: limit, manager: manager, on: loop, others: [readerLoop, storeLoop],
            alarm: HangAlarm(for: loop, on: storeLoop, log: log), log: log
        ) {
            watch.requestTimeouts = self.assumeIsolated { $0.requestTimeouts }
            // A port that does not answer is reopened here. That is not a stall: the agent still ships.
            Task(executorPreference: loop) { await AgentStatus(agent: self, parts: parts).notify() }
            return watch.stalls(
                (parts.queue.snapshot, parts.driver.snapshot, parts.reader.figures), at: time.bootTime,
                wall: time.wallTime)
        }
        watchdog.start()
        return watchdog
    }

    /// Longest time of a request to each destination, connecting included. The watchdog takes a longer one
    /// for stuck.
    private var requestTimeouts: [DestinationName: Duration] {
        Dictionary(
            settings.destinations.map { (DestinationName($0.name), $0.connectTimeout + $0.requestTimeout) },
            uniquingKeysWith: { $1 })
    }

    // MARK: Reading

    /// Locks the spool for this agent; no lock if the spool cannot be written. `isNew`, without a lock, if
    /// the spool looks new although this agent has read before: its file system may not be mounted.
    ///
    /// It asks the spool's file system, and runs on the loop of its mount if that may never answer.
    private nonisolated static func takeSpool(
        _ settings: Settings, hasRead: Bool, log: Log
    ) throws(AgentError) -> SpoolClaim.Taken {
        let directory = settings.spool.directory
        if let mistake = settings.foreignSpool {
            throw AgentError(.configuration, "\(mistake.setting) \(mistake.message)")
        }
        let isKept = settings.spool.afterRead == .keep
        // The ledger says that this agent has read events, and a spool that was read has this directory. With
        // `after_read = "keep"` it may be missing: the spool is not written to.
        if !isKept, hasRead, FileStatus("\(directory)/.spoolship") == nil {
            log.warning("the spool has no .spoolship: is its file system mounted?", ["directory": directory])
            return SpoolClaim.Taken(lock: nil, isNew: true)
        }
        let lock = try relaying(try SpoolLock.take(directory)) { (error: SpoolError) in
            AgentError(.inUse, error.message)
        }
        if lock == nil {
            log.warning("spool not locked against a second agent", ["directory": directory])
        }
        return SpoolClaim.Taken(lock: lock, isNew: false)
    }

    /// Makes what reads the spool, files in place and journals, each with an intake of its own.
    private func makeReaders(
        _ queue: QueueStore, _ restored: RestoredState, _ figures: inout AllIntakes, _ tap: EventTap,
        _ rules: IntakeRules, _ claim: SpoolClaim
    ) async throws(AgentError) -> Reading {
        let wanted = intakeSettings(cap: queue.snapshot.maxSize)
        let repeats = RepeatWindow(figures: figures.spool)
        let compressors = LoopBound(Compressors(), to: readerLoop)
        let names = SharedNames()
        func makeIntake(
            _ settings: IntakeSettings, of place: String? = nil, _ figures: IntakeFigures
        ) -> sending Intake {
            Intake(
                settings, ofPlace: place, store: queue, memory: restored.memory, figures: figures,
                clock: clockTrust(queue), tap: tap, rules: rules, repeats: repeats, sharing: compressors,
                names, on: readerLoop, time: time, log: log)
        }
        // Made once: a copy of all apps' settings for each of 150 apps took 14 MB.
        let wantedOfPlaces = settings.forPlaces(wanted)
        // An intake for lines that do not come from the spool.
        func intake(of place: String) -> sending Intake {
            let known = IntakeFigures()
            figures.places.append(known)
            return makeIntake(wantedOfPlaces, of: place, known)
        }
        let log = log
        let readerLoop = readerLoop
        let mounts = mounts
        let shared = LoopBound(mounts.sharedReading(on: readerLoop), to: readerLoop)
        let restore = { @Sendable in
            let now = try await queue.restore()
            return SpoolStart(checkpoints: now.checkpoints, done: now.done, memory: now.memory)
        }
        let start = SpoolStart(
            checkpoints: restored.checkpoints, done: restored.done, memory: restored.memory)
        func reader(
            _ options: SpoolOptions, _ intake: sending Intake
        ) throws(AgentError) -> (reader: SpoolReader, intake: LoopBound<Intake>) {
            let bound = LoopBound(intake, to: readerLoop)
            do throws(SpoolError) {
                let reader = try SpoolReader(
                    options, start: start, sink: intake, on: readerLoop, log: log, sharing: shared)
                return (reader, bound)
            } catch {
                throw AgentError(.cannotCreate, error.message)
            }
        }
        /// A reader on the loop of a mount.
        func distant(_ options: SpoolOptions, _ intake: LoopBound<Intake>) -> MovableReader.Maker {
            { home, start in
                try SpoolReader(
                    options, start: start, sink: DistantSink(intake, on: readerLoop, for: home.loop),
                    on: home.loop, log: log, sharing: home.shared)
            }
        }
        let spool: MovableReader
        let known = settings
        let hasRead = queue.snapshot.intake.read > 0
        if task == nil, let mount = DistantMount.onTheWay(of: known.spool.directory) {
            let intake = LoopBound(makeIntake(wanted, figures.spool), to: readerLoop)
            let make = distant(known.spoolOptions, intake)
            spool = MovableReader(
                nil, intake: intake, on: readerLoop, loops: mounts, log: log, restore: restore
            ) { home, start in
                if claim.taken == nil {
                    claim.take(try AgentService.takeSpool(known, hasRead: hasRead, log: log))
                }
                return try make(home, start)
            }
            do {
                try await spool.open(on: mount, from: start, atMost: .seconds(5))
            } catch {
                throw error as? AgentError ?? AgentError(.cannotCreate, "\(error)")
            }
        } else {
            // An agent with a task does not read the spool.
            claim.take(
                task == nil
                    ? try AgentService.takeSpool(known, hasRead: hasRead, log: log)
                    : SpoolClaim.Taken(lock: nil, isNew: false))
            let made = try reader(known.spoolOptions, makeIntake(wanted, figures.spool))
            spool = MovableReader(
                made.reader, intake: made.intake, on: readerLoop, loops: mounts, log: log, restore: restore,
                make: distant(known.spoolOptions, made.intake))
        }
        let places = try settings.placeOptions.map { options throws(AgentError) in
            let made = try reader(options, intake(of: (options.place?.app ?? "") + options.directory))
            let place = MovableReader(
                made.reader, of: options.place, intake: made.intake, on: readerLoop, loops: mounts, log: log,
                restore: restore, make: distant(options, made.intake))
            mounts.add(place)
            return place
        }
        let sources = try settings.journals.map { app, options throws(AgentError) in
            let name = JournalReaders.memoryName(of: app)
            let loop = try relaying(try EventLoop(name: "journal of \(app)"), AgentError.init(start:))
            try relaying(try loop.start(), AgentError.init(start:))
            return JournalReaders.Source(
                app: app, intake: LoopBound(intake(of: name), to: readerLoop),
                reader: JournalReader(
                    options, from: JournalPlace(restored.memory, under: name), on: loop, log: log))
        }
        let journals = JournalReaders(sources, linger: settings.linger, on: readerLoop, log: log)
        return Reading(
            spool: spool, places: places, journals: journals, journalIntakes: sources.map(\.intake),
            mounts: mounts, shared: shared)
    }
}
