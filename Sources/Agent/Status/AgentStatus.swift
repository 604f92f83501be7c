internal import Configuration
internal import Control
internal import Delivery
internal import EventLoops
internal import Events
internal import Glibc
internal import Intake
internal import Logs
internal import Metrics
internal import Model
internal import Outputs
internal import Queue
internal import Spool
internal import Synchronization

/// Reports the agent's state, from what the modules have published.
struct AgentStatus: Sendable {
    let agent: AgentService
    let parts: AgentService.Parts

    private var time: SystemTime { agent.time }

    /// Asks the ports and loops first.
    func status() async -> StatusReport {
        await parts.ports.check()
        await parts.pulse.check()
        await parts.restart.check(olderThan: .zero)
        var report = report()
        (report.edits, report.restartEdits) = agent.reloads.withLock { parts.restart.edits(since: $0) }
        return report
    }

    /// Tells systemd the agent's state, if it has changed.
    func notify() async {
        await parts.ports.check()
        await parts.pulse.check()
        _ = report()
    }

    /// The state at this moment. From any thread.
    func report() -> StatusReport {
        let now = time.wallTime
        var report = StatusReport(started: now - (time.bootTime - parts.started), now: now)
        let state = parts.queue.snapshot
        let delivery = parts.driver.snapshot
        report.version = agent.program.version
        report.processID = Int(getpid())
        report.host = hostName()
        report.isEnabled = delivery.isEnabled
        report.isNetworkOn = delivery.isNetworkOn
        report.pauseTokens = delivery.pauseTokens
        report.interval = delivery.interval.text
        let settings = agent.sharedSettings.withLock { $0 }
        report.overrides = settings.overrides
        if let country = agent.sharedCountry.withLock({ $0 }) {
            report.overrides.append(("country.code", "\"\(country)\"", "command"))
        }
        let setByContainer = report.overrides.first { $0.setting == "dispatch.interval" }?.origin
        report.intervalOrigin = delivery.isIntervalOverridden ? "command" : setByContainer ?? "configuration"
        report.containers = parts.containers.states.map { $0.report(by: time) }
        report.logLevel = agent.sink.level.name
        report.reloadProblem = agent.reloads.withLock { $0.problem }
        report.restartProblem = parts.restart.problem
        report.apps = parts.intakes.all.apps
        report.destinations = destinations(state, delivery, settings)
        report.queue = state
        report.spool = spoolFigures(state, settings)
        report.spool.complaints += cuts + beyondTemplates(settings)
        parts.recorder.add(StatusHistory.Sample(state, at: now))
        report.growth = parts.recorder.history.growth
        let standstills = report.standstills { name in
            let known = delivery.destinations.first { $0.name.text == name }
            return (known?.interval ?? delivery.interval).duration
        }
        report.standstills = standstills.count
        report.obstacles =
            noDestination(state, settings) + parts.queue.obstacles + parts.ports.obstacles + parts.pulse.obstacles
            + parts.containers.obstacles + lostSpool(settings) + spoolObstacles + standstills
        // An agent with a task is no service.
        if agent.task == nil { agent.manager?.notifyStatus(report.obstacles) }
        return report
    }

    /// What limits have cut since the start.
    private var cuts: [String] {
        let events = parts.intakes.read.events
        let count = HumanText.count(events.cuts)
        return events.lastCut.map {
            ["limits cut \(count) names and values, of app \($0.app) \($0.member) (limits.\($0.limit.rawValue))"]
        } ?? []
    }

    /// Where templates have had more values than they may, since the start.
    private func beyondTemplates(_ settings: Settings) -> [String] {
        settings.destinations.compactMap { destination in
            let count = agent.sending.templates[destination.name, EventTemplates.beyond]
            guard count > 0 else { return nil }
            return
                "\(HumanText.plural(count, "event")) sent to \(destination.name) as \"other\": events have more values than"
                + " its template_values (\(destination.templateValues))"
        }
    }

    /// Events without anywhere to go: all of them, or those of some apps.
    private func noDestination(_ state: QueueSnapshot, _ settings: Settings) -> [String] {
        guard !settings.destinations.isEmpty else {
            return ["no destination is configured: nothing is read from the spool; add a [[destination]] and reload"]
        }
        let discarded = state.withoutDestination - agent.reloads.withLock { $0.withoutDestination }
        guard discarded > 0 else { return [] }
        return [
            "\(HumanText.plural(discarded, "event")) discarded since the last reload: no destination wants"
                + " \(discarded == 1 ? "it" : "them") (by_default, [apps.NAME] destinations)"
        ]
    }

    private func destinations(_ state: QueueSnapshot, _ delivery: DeliverySnapshot, _ settings: Settings)
        -> [StatusReport.Destination]
    {
        var names: [DestinationName] = []
        for lane in state.lanes where !names.contains(lane.destination) && (lane.isConfigured || state.waits(lane)) {
            names.append(lane.destination)
        }
        return names.map { name in
            let known = delivery.destinations.first { $0.name == name }
            var destination = StatusReport.Destination(
                name: name.text, state: known.map { DestinationStateName($0) } ?? .orphaned)
            let configured = settings.destinations.first { $0.name == name.text }
            destination.address = configured?.address?.place ?? configured?.path
            if let known {
                if known.interval != delivery.interval { destination.interval = known.interval.text }
                destination.since = known.since
                destination.nextAttempt = known.nextAttempt
                destination.lastAcknowledged = known.lastSuccess
                destination.lastFailure = known.lastFailure
                destination.pauseTokens = known.pauseTokens
                destination.inFlight = known.inFlight
                destination.retryWaiting = known.waitingForRetry
                destination.setAside = known.setAside
                destination.failingApps = known.failingApps.mapValues(\.message)
                destination.unnamedRejections = known.counters.lastUnnamedRejection.map {
                    (known.counters.unnamedRejections, $0.words)
                }
            }
            destination.lanes = [Priority.critical, .normal].compactMap { state.lane(name, $0) }
            return destination
        }
    }

    /// What apps write where the agent does not look is not read, and nothing else would say so.
    private func lostSpool(_ settings: Settings) -> [String] {
        guard !settings.destinations.isEmpty, let root = parts.reader.figures.root else { return [] }
        if root.hasItsName, access(root.path, R_OK | X_OK) != 0 {
            return [
                "the spool: \(root.path) cannot be read: \(SystemError.message(errno)); `spoolship check` says what to do"
            ]
        }
        if root.hasItsName {
            let room = FileSystemRoom(root.path)
            let isFull = room?.freeBytes == 0 || room?.freeInodes == 0
            let full = isFull ? "its disk is full (df, df -i \(root.path)): apps cannot write" : nil
            return [full, parts.notice.checkLock(hasBeenRead: parts.reader.spool.figures.bytesRead.value > 0)]
                .compactMap { $0.map { "the spool: \($0)" } }
        }
        return [
            "the spool: \(root.path) is not the directory that is read; was it removed, moved, replaced or mounted over? "
                + "Bring it back, or restart the agent"
        ]
    }

    private var spoolObstacles: [String] {
        let waiting = parts.reader.figures.secondTries.filter { !$0.key.isOwners }
        guard !waiting.isEmpty else { return [] }
        let reasons = waiting.keys.map(\.rawValue).sorted().joined(separator: ", ")
        let count = HumanText.count(waiting.values.reduce(0, +))
        let text =
            "the spool: \(count) of its files or directories cannot be read or removed now, and will be tried again"
        return ["\(text) (\(reasons))"]
    }

    private func spoolFigures(_ state: QueueSnapshot, _ settings: Settings) -> StatusReport.Spool {
        let figures = parts.reader.figures
        var spool = StatusReport.Spool()
        spool.directory = agent.reloads.withLock { $0.started }.spool.directory
        if settings.destinations.isEmpty {
            let backlog = parts.unreadSpool.look(in: settings.spool.directory)
            spool.lagBytes = Int(backlog.bytes.value)
            spool.lagSeconds = backlog.oldest.map { max(0, Int((time.wallTime - $0) / .seconds(1))) } ?? 0
            spool.files = backlog.files
            spool.waits = "no destination"
            return spool
        }
        spool.lagBytes = Int(figures.unreadBytes.value)
        spool.lagSeconds = figures.oldestUnread.map { max(0, Int((time.wallTime - $0) / .seconds(1))) } ?? 0
        // Those that are read in place are beside their places.
        let own = parts.reader.spool.figures
        spool.files = own.appendFiles + own.waitingDropFiles
        if figures.isHeldBack, case .nothing(let reason) = state.accepting { spool.waits = reason.rawValue }
        if spool.waits == nil { spool.waits = waitsForFunctions }
        spool.secondTries = Dictionary(uniqueKeysWithValues: figures.secondTries.map { ($0.key.rawValue, $0.value) })
        spool.passedOver = figures.passedOver
        spool.places = parts.reader.places.map { ($0.place, $0.reader.figures) }
        spool.journals = parts.reader.journals.states(parts.pulse.silent)
        spool.complaints =
            figures.complaints.map { "\($0.path) (owner \($0.ownerName)): \($0.advice)" }
            + complaints(figures, state).compactMap { $0 }
        return spool
    }

    /// Whose files wait for which function, those of most first; nil for none.
    private var waitsForFunctions: String? {
        let waits = parts.intakes.spool.counts.waiting.flatMap { function, apps in
            apps.map {
                (files: $0.value, text: "\(HumanText.plural($0.value, "file")) of \($0.key) for function \(function)")
            }
        }.sorted { ($1.files, $0.text) < ($0.files, $1.text) }
        return waits.isEmpty ? nil : waits.prefix(4).map(\.text).joined(separator: ", ")
    }

    /// What else a person should fix.
    private func complaints(_ figures: SpoolFigures, _ state: QueueSnapshot) -> [String?] {
        let passedOver = HumanText.plural(figures.passedOver, "file")
        let behind = parts.unread.behind.map(\.text).sorted().joined(separator: ", ")
        return [
            StartupRehearsal.clockComplaint,
            figures.polledDirectories == 0
                ? nil
                : "directories that are polled: \(figures.polledDirectories): "
                    + (figures.pollReason ?? "they cannot be read"),
            figures.passedOver == 0
                ? nil
                : "\(passedOver) ignored because of their names (.json, .jsonl, .ndjson and .log are read): "
                    + figures.passedOverNames.joined(separator: ", "),
            figures.refusedFiles == 0
                ? nil
                : "\(HumanText.plural(figures.refusedFiles, "file")) never opened (of links, name what they lead to): "
                    + figures.refusedNames.joined(separator: ", "),
            figures.loweredOpenFiles.map {
                "\($0.files) files are held open at most, because the process may open \($0.limit): raise LimitNOFILE"
            },
            state.refusedMaxSize.map {
                "queue.max_size is \($0) bytes, less than is stored: the old one, \(state.maxSize) bytes, stays in force"
            },
            state.unknownLosses == 0
                ? nil
                : "the queue was damaged \(state.unknownLosses) times, with an unknown number of events lost: see the log",
            behind.isEmpty
                ? nil
                : "more is unread than spool.max_unread allows: the oldest events for \(behind), which acknowledge nothing, are evicted",
        ]
    }
}

extension DispatchInterval {
    /// The interval's length; nil when it is off.
    var duration: Duration? {
        if case .every(let duration) = self { duration } else { nil }
    }
}

extension StatusHistory.Sample {
    init(_ snapshot: QueueSnapshot, at now: Timestamp) {
        func sum(_ figure: (Ledger) -> Int) -> Int { snapshot.lanes.reduce(0) { $0 + figure($1.ledger) } }
        self.init(
            at: now, accepted: sum(\.accepted), acknowledged: sum(\.acknowledged), queued: sum(\.queued),
            bytes: snapshot.storedBytes)
    }
}

extension QueueSnapshot {
    /// Events that were discarded because no destination wants them, ever.
    var withoutDestination: Int {
        discarded.reduce(0) { $0 + ($1.reason == "no_destination" ? $1.events : 0) }
    }

    /// Whether anything is left of a lane's destination that a person may want to look at.
    func waits(_ lane: LaneState) -> Bool {
        lanes.contains { $0.destination == lane.destination && ($0.ledger.queued > 0 || $0.deadLetters > 0) }
    }

    /// Destinations that the configuration does not name and events wait for, with how many.
    var orphans: [(name: DestinationName, events: Int)] {
        var found: [(name: DestinationName, events: Int)] = []
        for lane in lanes where !lane.isConfigured && lane.ledger.queued > 0 {
            if let index = found.firstIndex(where: { $0.name == lane.destination }) {
                found[index].events += lane.ledger.queued
            } else {
                found.append((lane.destination, lane.ledger.queued))
            }
        }
        return found
    }
}
