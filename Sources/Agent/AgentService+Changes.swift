internal import Configuration
internal import Control
internal import Delivery
internal import EventLoops
internal import Events
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Spool
internal import Synchronization

/// The names under which the agent keeps what a person has switched.
enum AgentSwitch {
    /// Present with the value `off` while collection is disabled.
    static let collecting = "agent.collecting"
    static let country = "agent.country"
}

/// The result of a reload: settings that are in force now (`queue.max_size "10MiB" -> "20MiB"`), those that wait for a restart,
/// and what is allowed and probably not meant, each a sentence for a person.
typealias ReloadResult = (changed: [String], needRestart: [String], warnings: [String])

/// What changes while the agent runs: reload, disable, country, sessions, the log's level.
extension AgentService {
    /// Reads the configuration again: all of it comes into force, or nothing does.
    func reload() async throws(ControlRefusal) -> ReloadResult {
        manager?.notifyReloading()
        defer { manager?.notify("READY=1") }
        do throws(ControlRefusal) {
            let result = try await applyConfiguration()
            let discarded = parts?.queue.snapshot.withoutDestination ?? 0
            reloads.withLock {
                $0 = Reloads(
                    lastSuccess: time.wallTime, withoutDestination: discarded, configured: configured,
                    started: $0.started)
            }
            let waiting = result.needRestart.joined(separator: ", ")
            if !waiting.isEmpty { log.warning("changes need a restart", ["settings": waiting]) }
            log.info("configuration reloaded", ["changed": result.changed.count, "restart": result.needRestart.count])
            return result
        } catch {
            reloads.withLock { $0.problem = error.message }
            log.error("reload failed, the old configuration stays in force", ["reason": error.message])
            throw error
        }
    }

    private func applyConfiguration() async throws(ControlRefusal) -> ReloadResult {
        await configurationTurn.takeTurn(configurationTurn.drawTicket())
        defer { configurationTurn.passTurn() }
        guard let parts else { throw .starting }
        let loaded = try relaying(try Settings.load(path: configurationPath)) { (error: ConfigurationError) in
            ControlRefusal(400, "configuration", error.description)
        }
        let new = loaded.settings
        guard !new.destinations.isEmpty || settings.destinations.isEmpty else {
            throw ControlRefusal(
                400, "configuration",
                "no destination would be left; to stop shipping, stop the agent")
        }
        // As the start would: what is accepted here must not end the next one.
        if task == nil, let mistake = new.readingMistake {
            throw ControlRefusal(400, "configuration", "\(mistake.setting) \(mistake.message)")
        }
        let (changes, started) = (configured.changes(to: new), reloads.withLock { $0.started })
        let before = parts.queue.snapshot
        let hashKeys = try relaying(try new.hashKeys(), ControlRefusal.init(settings:))
        // Containers may have been closed by it, or may set less: what is left of their wishes is on top again at once.
        let overlay = SettingsOverlay(new, parts.containers.states(for: new.containers))
        // It has not been read while there was no destination.
        let startsReading = settings.destinations.isEmpty && !new.destinations.isEmpty && task == nil
        // No line goes to a new destination by old rules, nor to an old one without them.
        await parts.containers.holdReading()
        do throws(ControlRefusal) {
            try await applyConfigured(new, overlay, parts)
        } catch {
            await parts.containers.resumeReading()
            throw error
        }
        configured = new
        parts.functions.configure(new)
        var others = await parts.containers.configure(new.containers, keyLengths: new.keyLengths, hashKeys: hashKeys)
        if before.refusedMaxSize == new.queue.maxSize {
            // It was in the configuration already, and there was no room for it.
            others.append("queue.max_size \(SizeText.print(before.maxSize)) -> \(SizeText.print(new.queue.maxSize))")
        }
        if startsReading { await parts.containers.waitUntilOpen() }
        await applyContainers(parts)
        if startsReading { await parts.reader.start() }
        await parts.containers.resumeReading()
        return (
            changes.filter { !$0.needsRestart }.map(\.description) + others,
            started.changes(to: new).filter(\.needsRestart).map(\.path).filter { changes.map(\.path).contains($0) },
            loaded.warnings.map(\.message) + warnOfOrphans(parts.queue.snapshot)
                + parts.containers.states.compactMap { state in
                    state.defaultProblem.map { "container.\(state.id).default_file: \($0)" }
                }
        )
    }

    /// What a container wishes is not a reason to refuse a person's configuration: it is put on top, or refused, by itself then.
    private func applyConfigured(
        _ new: Settings, _ overlay: SettingsOverlay, _ parts: Parts
    ) async throws(ControlRefusal) {
        do throws(ControlRefusal) {
            try await apply(overlay.settings, parts, isByPerson: true)
        } catch  where overlay.settings != new {
            try await apply(new, parts, isByPerson: true)
        }
    }

    /// Says which destinations the configuration has lost while events wait for them; gives the texts.
    @discardableResult
    func warnOfOrphans(_ state: QueueSnapshot) -> [String] {
        let names = configured.destinations.map(\.name)
        return state.orphans.map { name, events in
            log.warning(
                "events wait for a destination that is not configured",
                [
                    "destination": name, "events": events,
                    "hint": OrphanText.advice(name.text, configured: names),
                ])
            return OrphanText.warning(destination: name.text, events: events, configured: names)
        }
    }

    /// Brings settings into force, all of them or none. `isByPerson`: somebody asked for it, and not a container.
    func apply(_ new: Settings, _ parts: Parts, isByPerson: Bool = false) async throws(ControlRefusal) {
        let changes = settings.changes(to: new)
        // What can fail comes first.
        let options = try relaying(
            (try new.deliveryOptions(of: host.installID), try senders(for: new)), ControlRefusal.init(settings:))
        try await relaying(awaiting: try await parts.queue.apply(new.queueOptions)) { (error: QueueError) in
            ControlRefusal(queue: error, status: 409)
        }
        settings = new
        deadlines = options.0.deadlines
        await parts.unread.configure(most: new.unreadBound)
        await configureIntake(parts)
        await parts.driver.reload(options.0, senders: options.1, isByPerson: isByPerson)
        await parts.network.setTargets(new.networkTargets)
        if changes.contains(where: { $0.path == "agent.log_level" }) { sink.level = new.agent.logLevel }
        sink.format = new.agent.logFormat
    }

    /// How lines are read until a restart.
    private var settingsOfReading: Settings { settings.reading(as: reloads.withLock { $0.started }) }

    func intakeSettings(cap: Int) -> IntakeSettings {
        settingsOfReading.intakeSettings(cap: cap, isCollecting: isCollecting, country: country, host: host)
    }

    /// What a backfill needs to know now. It makes up no sessions: its events were those of processes that are gone.
    func backfillOptions(_ queue: QueueStore, _ reader: Reading) -> Backfill.Options {
        // Old files of what is read in place are read as it is.
        let settings = settingsOfReading
        var intake = settings.forPlaces(intakeSettings(cap: queue.snapshot.maxSize))
        for name in intake.events.apps.keys { intake.events.apps[name]?.isJournal = false }
        intake.events.session.mode = .off
        let gate = BackfillGate(depths: settings.backfillDepths, unread: Int64(settings.spool.maxEventSize))
        return Backfill.Options(intake: intake, maxEventSize: settings.spool.maxEventSize) {
            gate.obstacle(queue.snapshot, reader.figures, to: $0)
        }
    }

    func configureIntake(_ parts: Parts) async {
        let wanted = intakeSettings(cap: parts.queue.snapshot.maxSize)
        await parts.reader.configure(wanted, others: settingsOfReading.forPlaces(wanted))
    }

    /// Turns collection on or off; durable. Off deletes what is queued.
    func setEnabled(_ isEnabled: Bool) async throws(ControlRefusal) -> DiscardedEvents {
        guard let parts else { throw .starting }
        // Two at a time, one in each direction, could end with events collected and none sent.
        guard !isDiscarding, !isSwitching else {
            let what = isDiscarding ? "queued events are still being deleted" : "another enable or disable is running"
            throw ControlRefusal(409, "discarding", "\(what); try again later")
        }
        isSwitching = true
        defer { isSwitching = false }
        do throws(QueueError) {
            try await parts.queue.setSwitch(AgentSwitch.collecting, isEnabled ? nil : "off")
            isCollecting = isEnabled
            parts.notice.setCollecting(isEnabled)
            await configureIntake(parts)
            guard !isEnabled else {
                await parts.driver.enable()
                log.warning("collection enabled")
                return DiscardedEvents()
            }
            // Commits that had begun become durable first, so that they are deleted with the rest.
            await settleIntake(parts)
            // Nothing more is sent, and what arrives is not counted as discarded.
            await parts.driver.disable(grace: .seconds(10))
            let discarded = try await discardQueue(parts.queue)
            // Deletes events: whoever looks for them finds here when, at every level but error.
            log.warning(
                "collection disabled by command", ["discarded": discarded.all, "in_flight": discarded.inFlight])
            return discarded
        } catch {
            throw ControlRefusal(queue: error)
        }
    }

    private func discardQueue(_ queue: QueueStore) async throws(QueueError) -> DiscardedEvents {
        isDiscarding = true
        defer { isDiscarding = false }
        return try await queue.discardAll(reason: "disabled")
    }

    /// Deletes what an agent left that ended while it was being disabled: with collection off nothing else is queued.
    func finishDisabling(_ queue: QueueStore) {
        guard !isCollecting, queue.snapshot.lanes.contains(where: { $0.ledger.queued > 0 }) else { return }
        isDiscarding = true
        Task(executorPreference: loop) {
            do throws(QueueError) {
                _ = try await self.discardQueue(queue)
            } catch {
                self.log.warning(
                    "queued events could not be deleted, the next start tries again", ["error": error.message])
            }
        }
    }

    private func settleIntake(_ parts: Parts) async {
        await withCheckedContinuation { continuation in
            let intake = parts.reader.intakes.spool
            readerLoop.post { intake.assumeOnLoop { $0.whenSettled { continuation.resume() } } }
        }
    }

    /// Overrides the country of events that name none; nil ends that. Durable.
    func setCountry(_ code: String?) async throws(ControlRefusal) {
        guard let parts else { throw .starting }
        let wanted = code.flatMap { CountryCode($0) }
        guard wanted != nil || code == nil else {
            throw ControlRefusal(400, "out_of_range", "not an ISO 3166-1 code: give two letters, such as IT")
        }
        let (queue, name) = (parts.queue, wanted?.description)
        try await relaying(awaiting: try await queue.setSwitch(AgentSwitch.country, name)) { (error: QueueError) in
            ControlRefusal(queue: error)
        }
        country = wanted
        await configureIntake(parts)
    }

    /// Starts a session of an app, where sessions are manual; says in a sentence what happened.
    func startSession(app named: String?) async -> String {
        let app = named ?? "default"
        guard let parts else { return "the agent is starting; nothing changed" }
        let hasStarted = await parts.reader.intakes.spool.use { $0.startSession(of: app) }
        // Without a line to read it would wait for the next one, and a crash would forget it.
        if hasStarted { await parts.reader.spool.commitSoon() }
        if hasStarted { return "a new session of \(app) has begun" }
        if settings.session.mode == .manual, let obstacle = parts.containers.obstacles.first {
            return "\(obstacle); nothing changed"
        }
        return "sessions are \(settings.session.mode.rawValue); nothing changed"
    }

    /// Changes the log's level until a restart, or a reload that changes it; `default` is the configured one.
    func setLogLevel(_ level: String) async throws(ControlRefusal) {
        guard let level = level == "default" ? settings.agent.logLevel : LogLevel(name: level) else {
            let names = (LogLevel.allCases.map(\.name) + ["default"]).joined(separator: ", ")
            throw ControlRefusal(400, "out_of_range", "the level must be one of \(names)")
        }
        sink.level = level
    }
}

extension ControlRefusal {
    fileprivate static let starting = ControlRefusal(409, "starting", "the agent is starting")

    fileprivate init(settings error: AgentError) {
        self.init(400, error.code.rawValue, error.message)
    }
}
