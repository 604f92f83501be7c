internal import Configuration
internal import Containers
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

/// Keys under which the queue stores what an operator has switched.
enum AgentSwitch {
    /// Has the value `off` while collection is disabled; absent otherwise.
    static let collecting = "agent.collecting"
    /// The country that an operator has set; absent without one.
    static let country = "agent.country"
}

/// Result of a reload, as texts for a person: settings in force now (`queue.max_size "10MiB" -> "20MiB"`),
/// settings that wait for a restart, and settings that are allowed but probably not meant.
typealias ReloadResult = (changed: [String], needRestart: [String], warnings: [String])

/// Changes while the agent runs: reload, enable and disable, country, sessions, log level.
extension AgentService {
    /// Reads the configuration again. All of it takes effect, or nothing does.
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
            if !waiting.isEmpty {
                log.warning("changes need a restart", ["settings": waiting])
            }
            log.info(
                "configuration reloaded",
                ["changed": result.changed.count, "restart": result.needRestart.count])
            return result
        } catch {
            reloads.withLock { $0.problem = error.message }
            log.error("reload failed, the old configuration stays in force", ["reason": error.message])
            throw error
        }
    }

    /// The reload itself: load, check what can fail, hold reading, apply, continue reading.
    private func applyConfiguration() async throws(ControlRefusal) -> ReloadResult {
        await configurationTurn.takeTurn(configurationTurn.drawTicket())
        defer { configurationTurn.passTurn() }
        guard let parts else { throw .starting }
        let plan = try ReloadPlan(
            path: configurationPath, replacing: configured, inForce: settings, readsSpool: task == nil,
            facts: host.agentFacts(version: program.version))
        let new = plan.new
        let before = parts.queue.snapshot
        // The new configuration may close containers or let them set less. What remains of their settings is
        // on top at once, so that no setting changes twice.
        let overlay = SettingsOverlay(new, parts.containers.states(for: new.containers))
        // No line may go to a new destination by old rules, or to an old destination without the new rules.
        await parts.containers.holdReading()
        do throws(ControlRefusal) {
            try await applyConfigured(new, overlay, parts)
        } catch {
            await parts.containers.resumeReading()
            throw error
        }
        configured = new
        parts.functions.configure(new)
        var others = await parts.containers.configure(
            new.containers, keyLengths: new.keyLengths, hashKeys: plan.hashKeys, rules: plan.rules)
        // This size was in the configuration before, and the queue had refused it for lack of room. Now it is
        // in force, so it counts as a change.
        if before.health.refusedMaxSize == new.queue.maxSize {
            others.append(
                "queue.max_size \(SizeText.print(before.maxSize)) -> \(SizeText.print(new.queue.maxSize))")
        }
        if plan.startsReading {
            await parts.containers.waitUntilOpen()
        }
        await applyContainers(parts)
        if plan.startsReading {
            await parts.reader.start()
        }
        await parts.containers.resumeReading()
        let defaults = parts.containers.states.compactMap { state in
            state.defaultProblem.map { "container.\(state.id).default_file: \($0)" }
        }
        return plan.result(
            since: reloads.withLock { $0.started }, others: others,
            warnings: warnOfOrphans(parts.queue.snapshot) + defaults)
    }

    /// The host was renamed, or its time zone was changed: what is made of these facts is made again. Rules
    /// see a new name at the next reload, macros of containers at the next start.
    func hostChanged() async {
        await configurationTurn.takeTurn(configurationTurn.drawTicket())
        defer { configurationTurn.passTurn() }
        guard let parts, !life.isStopping, machine.lookAgain(at: time.wallTime, log: log) else { return }
        do throws(ControlRefusal) {
            try await apply(settings, parts)
        } catch {
            log.error("the host's new name or zone counts from the next start", ["reason": error.message])
        }
    }

    /// Applies a new configuration with the containers' settings, or without them if it is refused with them:
    /// what a container sets must not make an operator's configuration fail.
    private func applyConfigured(
        _ new: Settings, _ overlay: SettingsOverlay, _ parts: Parts
    ) async throws(ControlRefusal) {
        do throws(ControlRefusal) {
            try await apply(overlay.settings, parts, isByPerson: true)
        } catch  where overlay.settings != new {
            try await apply(new, parts, isByPerson: true)
        }
    }

    /// Warns of destinations that the configuration no longer has although events wait for them. Returns the
    /// texts.
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

    /// Applies settings, all or none: steps that can fail come first.
    ///
    /// - Parameter isByPerson: whether an operator asked for it, and not a container.
    func apply(_ new: Settings, _ parts: Parts, isByPerson: Bool = false) async throws(ControlRefusal) {
        // What can fail comes first, so that a refused change leaves nothing half applied.
        let options = try relaying(
            (try new.deliveryOptions(of: host.installID), try senders.senders(for: new, of: parts.queue)),
            ControlRefusal.init(settings:))
        let newSchemas = try relaying(try new.schemaRules(), ControlRefusal.init(settings:))
        try await relaying(awaiting: try await parts.queue.apply(new.queueOptions)) { (error: QueueError) in
            ControlRefusal(queue: error, status: 409)
        }
        // A level that `spoolship log-level` has set stays until the setting changes.
        let hasNewLevel = new.agent.logLevel != settings.agent.logLevel
        let hasOtherPurposes = new.queueOptions.purposes != settings.queueOptions.purposes
        settings = new
        schemas.withLock { $0 = newSchemas }
        deadlines = options.0.deadlines
        await parts.unread.configure(most: new.unreadBound)
        await configureIntake(parts)
        await parts.driver.reload(options.0, senders: options.1, isByPerson: isByPerson)
        if hasOtherPurposes {
            withholdLater(parts.queue)
        }
        await parts.network.setTargets(new.networkTargets)
        if hasNewLevel {
            sink.level = new.agent.logLevel
        }
        sink.format = new.agent.logFormat
    }

    // MARK: Settings that containers change

    /// Applies the values of the containers to the settings, and publishes them to apps. Changes that arrive
    /// while a round waits for its turn are part of that round.
    func containersChanged() async {
        guard !isContainerRoundWanted else { return }
        isContainerRoundWanted = true
        await configurationTurn.takeTurn(configurationTurn.drawTicket())
        defer { configurationTurn.passTurn() }
        isContainerRoundWanted = false
        guard let parts else { return }
        await applyContainers(parts)
    }

    /// Puts the values of the containers on top of the configured settings. Called only while the caller has
    /// the configuration's turn: a reload at the same time would apply older values.
    func applyContainers(_ parts: Parts) async {
        let states = parts.containers.states
        var overlay = SettingsOverlay(configured, states)
        if overlay.settings != settings {
            do throws(ControlRefusal) {
                try await apply(overlay.settings, parts)
            } catch {
                await applySingly(&overlay, parts)
            }
        }
        containerNews.report(overlay, log)
        await parts.containers.setRefused(overlay.refused)
        containerNews.publish(states, log)
    }

    /// Applies wishes one by one, because they cannot be applied together: those that are possible take
    /// effect.
    private func applySingly(_ overlay: inout SettingsOverlay, _ parts: Parts) async {
        var reached = configured
        for wish in overlay.wishes {
            do {
                let next = try reached.setting(wish.path, to: wish.value, origin: .container(wish.container))
                try await apply(next, parts)
                reached = next
            } catch let error as ControlRefusal {
                overlay.refuse(wish, error.message)
            } catch {
                overlay.refuse(wish, "\(wish.path) conflicts with the other settings")
            }
        }
        guard settings != reached else { return }
        do throws(ControlRefusal) {
            try await apply(reached, parts)
        } catch {
            log.error("settings of containers not applied", ["reason": error.message])
        }
    }

    // MARK: What is made of the settings

    /// The settings in force, but with those that need a restart as they were at the start.
    var settingsOfReading: Settings { settings.reading(as: reloads.withLock { $0.started }) }

    /// Settings of the spool's intake.
    ///
    /// - Parameter cap: the queue's size in force, in bytes.
    func intakeSettings(cap: Int) -> IntakeSettings {
        var wanted = settingsOfReading.intakeSettings(
            cap: cap, isCollecting: collection.isOn, country: country, consent: consent, host: host)
        wanted.schemas = schemas.withLock { $0 }
        return wanted
    }

    /// Settings for the next piece of an old file. Its events get no sessions: they were those of processes
    /// that are gone.
    func backfillOptions(_ queue: QueueStore, _ reader: Reading) -> Backfill.Options {
        // Old files of an app that is read in place have the same format as its new ones.
        let settings = settingsOfReading
        var intake = settings.forPlaces(intakeSettings(cap: queue.snapshot.maxSize))
        for name in intake.events.apps.keys { intake.events.apps[name]?.isJournal = false }
        intake.events.session.mode = .off
        let gate = BackfillGate(depths: settings.backfillDepths, unread: Int64(settings.spool.maxEventSize))
        var options = Backfill.Options(intake: intake, maxEventSize: settings.spool.maxEventSize) {
            gate.obstacle(queue.snapshot, reader.figures, to: $0)
        }
        options.encodings = settings.apps.compactMapValues(\.encoding)
        return options
    }

    /// Gives all intakes the settings in force.
    func configureIntake(_ parts: Parts) async {
        let wanted = intakeSettings(cap: parts.queue.snapshot.maxSize)
        await parts.reader.configure(wanted, others: settingsOfReading.forPlaces(wanted))
    }

    /// Turns collection on or off, durably. Off deletes what is queued; the result says how much.
    func setEnabled(_ isEnabled: Bool) async throws(ControlRefusal) -> DiscardedEvents {
        guard let parts else { throw .starting }
        try collection.begin()
        defer { collection.end() }
        do throws(QueueError) {
            try await parts.queue.setSwitch(AgentSwitch.collecting, isEnabled ? nil : "off")
            collection.turn(on: isEnabled)
            parts.notice.setCollecting(isEnabled)
            await configureIntake(parts)
            guard !isEnabled else {
                await parts.driver.enable()
                log.warning("collection enabled")
                return DiscardedEvents()
            }
            // Commits that had begun become durable first, so that their events are deleted with the rest.
            await settleIntake(parts)
            // From here on nothing is sent. Requests in flight get ten seconds: what they deliver is not
            // counted as discarded.
            await parts.driver.disable(grace: .seconds(10))
            let discarded = try await discardQueue(parts.queue)
            // A warning, because events were deleted: the log has it at every level except `error`.
            log.warning(
                "collection disabled by command",
                ["discarded": discarded.all, "in_flight": discarded.inFlight])
            return discarded
        } catch {
            throw ControlRefusal(queue: error)
        }
    }

    /// Deletes all queued events.
    private func discardQueue(_ queue: QueueStore) async throws(QueueError) -> DiscardedEvents {
        collection.beginDiscarding()
        return try await queue.discardAll(reason: "disabled")
    }

    /// Deletes what is still queued if an earlier process ended while it was being disabled.
    func finishDisabling(_ queue: QueueStore) {
        guard !collection.isOn, queue.snapshot.lanes.contains(where: { $0.ledger.queued > 0 }) else { return }
        collection.beginDiscarding()
        Task(executorPreference: loop) { await self.goOnDisabling(queue) }
    }

    private func goOnDisabling(_ queue: QueueStore) async {
        defer { collection.end() }
        do throws(QueueError) {
            _ = try await discardQueue(queue)
        } catch {
            log.warning(
                "queued events could not be deleted, the next start tries again", ["reason": error.message])
        }
    }

    /// Sets what holds for an app and a purpose, durably; nil: events and settings decide. If consent is
    /// withdrawn, what waits of the app is out of the queues of the destinations with the purpose when it
    /// returns.
    func setConsent(
        of app: String, to purpose: String, _ answer: Bool?
    ) async throws(ControlRefusal) -> SiftedEvents {
        let known = Set(settings.destinations.flatMap { $0.purposes ?? [] }).sorted()
        // What was set for a purpose that is gone may be removed.
        guard known.contains(purpose) || answer == nil && consent[app, purpose] != nil else {
            let names =
                known.isEmpty ? "no destination has a purpose" : "there are \(known.joined(separator: ", "))"
            throw ControlRefusal(
                404, "unknown_purpose", "no destination has the purpose \"\(purpose)\"; \(names)")
        }
        let found = try await changeConsent(of: app, isWithdrawal: answer == false) {
            $0[app, purpose] = answer
        }
        log.warning(
            "consent set by command",
            [
                "app": app, "purpose": purpose, "state": answer.map { $0 ? "on" : "off" } ?? "default",
                "withheld": found.withheld, "in_flight": found.inFlight,
            ])
        return found
    }

    /// Turns collection of one app on or off, durably. Off deletes what is queued of it.
    func setEnabled(_ isEnabled: Bool, app: String) async throws(ControlRefusal) -> SiftedEvents {
        let found = try await changeConsent(of: app, isWithdrawal: !isEnabled) {
            $0.setDisabled(!isEnabled, app)
        }
        log.warning(
            isEnabled
                ? "collection of an app enabled by command" : "collection of an app disabled by command",
            ["app": app, "discarded": found.withheld, "in_flight": found.inFlight])
        return found
    }

    /// Changes what commands have set about consent, and applies it to reading and to what waits.
    private func changeConsent(
        of app: String, isWithdrawal: Bool, _ change: (inout ConsentStates) -> Void
    ) async throws(ControlRefusal) -> SiftedEvents {
        guard let parts else { throw .starting }
        guard (1...255).contains(app.utf8.count), app.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw ControlRefusal.bad("app is empty, too long, or has control characters")
        }
        await configurationTurn.takeTurn(configurationTurn.drawTicket())
        defer { configurationTurn.passTurn() }
        var states = consent
        change(&states)
        guard states.count <= ConsentStates.most else {
            throw ControlRefusal(409, "too_many", "\(ConsentStates.most) apps and purposes are set already")
        }
        do throws(QueueError) {
            // From here on nothing is leased that must not be sent, whatever becomes of the rest.
            try await parts.queue.setConsent(states)
            consent = states
            await configureIntake(parts)
            // Also if it was withdrawn before: an earlier command may have ended half-way.
            guard isWithdrawal else { return SiftedEvents() }
            await parts.driver.eventsWithheld()
            // Commits that had begun become durable first, so that their events leave with the others.
            if !parts.queue.storesNothing {
                await settleIntake(parts)
            }
            let found = try await parts.queue.withhold(patience: .seconds(10))
            // Lines that other readers had taken before they heard of it become durable within a moment.
            withholdLater(parts.queue, after: .seconds(2))
            return found
        } catch {
            throw ControlRefusal(queue: error)
        }
    }

    /// Takes out of the queue what commands have withheld, if an earlier process ended before it had done so,
    /// or if destinations have other purposes now. A lease would find the same events, but later.
    func withholdLater(_ queue: QueueStore, after delay: Duration = .zero) {
        guard !consent.isEmpty else { return }
        let loop = loop
        Task(executorPreference: loop) {
            if delay > .zero {
                await withUnsafeContinuation { again in _ = loop.after(delay) { again.resume() } }
            }
            do throws(QueueError) {
                _ = try await queue.withhold(patience: .zero)
            } catch {
                // The store counts and logs why it cannot write. No lease gives out such an event.
            }
        }
    }

    /// Whether anything is known of an app: it is configured, was read since the start, or has queued events;
    /// otherwise also the nearest name of one that is.
    func know(_ app: String) async throws(ControlRefusal) -> (isKnown: Bool, nearest: String?) {
        guard let parts else { throw .starting }
        var known = Set(settings.apps.keys).union(parts.intakes.all.apps.keys)
        known.remove([String: AppCounts].others)
        if known.contains(app) { return (true, nil) }
        if try await countQueued(of: app) > 0 { return (true, nil) }
        return (false, nearestName(to: app, among: known.sorted()))
    }

    /// Number of deliveries of an app that wait or are in flight.
    func countQueued(of app: String) async throws(ControlRefusal) -> Int {
        guard let parts else { throw .starting }
        do throws(QueueError) {
            return try await parts.queue.countQueued(of: app)
        } catch {
            throw ControlRefusal(queue: error)
        }
    }

    /// Makes reading forget data layers and sessions that a condition mentions. Commits that had begun and
    /// may still store them are durable when this returns; if they wait for room, the commit after them
    /// deletes them again.
    func forget(_ condition: EventCondition, in parts: Parts) async {
        await parts.reader.spool.intake.use { $0.forget { condition.isMentioned(in: $0) } }
        guard !parts.queue.storesNothing else { return }
        await settleIntake(parts)
    }

    /// Returns when all commits of the spool that had begun are durable or given up.
    private func settleIntake(_ parts: Parts) async {
        await withCheckedContinuation { continuation in
            let intake = parts.reader.spool.intake
            readerLoop.post { intake.assumeOnLoop { $0.whenSettled { continuation.resume() } } }
        }
    }

    /// Sets the country of events that do not name one, durably; nil removes it.
    func setCountry(_ code: String?) async throws(ControlRefusal) {
        guard let parts else { throw .starting }
        let wanted = code.flatMap { CountryCode($0) }
        guard wanted != nil || code == nil else {
            throw ControlRefusal(400, "out_of_range", "not an ISO 3166-1 code: give two letters, such as IT")
        }
        let queue = parts.queue
        let name = wanted?.description
        try await relaying(awaiting: try await queue.setSwitch(AgentSwitch.country, name)) {
            (error: QueueError) in
            ControlRefusal(queue: error)
        }
        country = wanted
        await configureIntake(parts)
    }

    /// Starts a session of an app, if sessions are manual. Returns a sentence for a person that says what
    /// happened.
    func startSession(app named: String?) async -> String {
        let app = named ?? "default"
        guard let parts else { return "the agent is starting; nothing changed" }
        let hasStarted = await parts.reader.spool.intake.use { $0.startSession(of: app) }
        // Without a line to read, the session's event would wait for the next one, and a crash would lose it.
        if hasStarted {
            await parts.reader.spool.commitSoon()
        }
        if hasStarted { return "a new session of \(app) has begun" }
        if settings.session.mode == .manual, let obstacle = parts.containers.obstacles.first {
            return "\(obstacle); nothing changed"
        }
        return "sessions are \(settings.session.mode.rawValue); nothing changed"
    }

    /// Changes the log's level until a restart, or until a reload changes it. `default` is the configured
    /// level.
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

    init(settings error: AgentError) {
        self.init(400, error.code.rawValue, error.message)
    }
}
