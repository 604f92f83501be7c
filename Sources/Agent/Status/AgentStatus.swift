internal import Configuration
internal import Containers
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
internal import Schemas
internal import Spool
internal import TextFormats
internal import Synchronization

/// Makes the status report from what the modules have published. Commands, the page, `/readyz` and scrapes
/// all use it, so that they agree.
struct AgentStatus: Sendable {
    /// The agent, for its settings and the results of reloads.
    let agent: AgentService
    /// The running parts, for their snapshots. Only `status` and `notify` wait for a part.
    let parts: AgentService.Parts

    /// The agent's clocks.
    private var time: SystemTime { agent.time }

    /// The report, after the ports, the loops and the configuration files were checked: a person waits for
    /// it, so it may take longer than a scrape.
    func status() async -> StatusReport {
        await parts.ports.check()
        await parts.pulse.check()
        // A person who has just edited a file wants to see the effect, so read the files even if they were
        // read seconds ago.
        await parts.restart.check(olderThan: .zero)
        var report = report()
        (report.edits, report.restartEdits) = agent.reloads.withLock { parts.restart.edits(since: $0) }
        return report
    }

    /// Reports the state to systemd, if it has changed.
    func notify() async {
        await parts.ports.check()
        await parts.pulse.check()
        _ = report()
    }

    /// The report as of this moment, with the results of the last checks. From any thread.
    func report() -> StatusReport {
        let now = time.wallTime
        // The start by the boot clock, so that a changed time of day does not change the age.
        var report = StatusReport(started: now - (time.bootTime - parts.started), now: now)
        let state = parts.queue.snapshot
        let delivery = parts.driver.snapshot
        report.version = agent.program.version
        report.processID = Int(getpid())
        report.host = hostName()
        report.hostNews = agent.machine.news
        report.isEnabled = delivery.isEnabled
        report.isNetworkOn = delivery.isNetworkOn
        report.pauseTokens = delivery.pauseTokens
        report.interval = delivery.interval.text
        let settings = agent.sharedSettings.withLock { $0 }
        report.overrides = settings.overrides
        // The override by command is not part of the settings.
        if let country = agent.sharedCountry.withLock({ $0 }) {
            report.overrides.append(("country.code", "\"\(country)\"", "command"))
        }
        let setByContainer = report.overrides.first { $0.setting == "dispatch.interval" }?.origin
        report.intervalOrigin = delivery.isIntervalOverridden ? "command" : setByContainer ?? "configuration"
        report.containers = parts.containers.states.map { $0.report(by: time) }
        let acted = parts.intakes.all.rules.byRule
        report.rules = settings.writtenRules.map { ($0.name, acted[$0.name] ?? 0) }
        report.checks = schemaLines(settings) + repeatLines(state, settings) + consentLines(state, settings)
        report.logLevel = agent.sink.level.name
        report.reloadProblem = agent.reloads.withLock { $0.problem }
        report.restartProblem = parts.restart.problem
        report.apps = parts.intakes.all.apps
        report.apps.add(state.expiredByApp)
        report.destinations = destinations(state, delivery, settings)
        report.queue = state
        report.spool = spoolFigures(state, settings)
        report.spool.complaints += cuts + texts + beyondTemplates(settings)
        report.spool.complaints += agent.lastRun.complaints + [agent.host.volatileState].compactMap { $0 }
        // Each report adds a sample, so that the plots end at the moment of the report.
        parts.recorder.add(StatusHistory.Sample(state, at: now))
        report.growth = parts.recorder.history.growth
        // A destination with a long interval is quiet for long without standing still.
        let standstills = report.standstills { name in
            // The interval in force, which a command may have changed.
            let known = delivery.destinations.first { $0.name.text == name }
            return (known?.interval ?? delivery.interval).duration
        }
        // A destination that stands still is reported already; do not name it twice.
        let blockers = report.blockers.filter { blocker in !standstills.contains { $0.name == blocker.name } }
        report.standingStill = Set(standstills.map(\.name) + blockers.map(\.name))
        report.obstacles =
            noDestination(state, settings) + parts.queue.obstacles + parts.ports.obstacles
            + parts.pulse.obstacles
            + parts.containers.obstacles + lostSpool(settings) + spoolObstacles + standstills.map(\.reason)
            + blockers.map(\.reason)
        // An agent that runs a task instead of reading the spool is not started by systemd.
        if agent.task == nil {
            agent.manager?.notifyStatus(report.obstacles)
        }
        return report
    }

    /// Lines about events that schemas did not allow, since the start.
    private func schemaLines(_ settings: Settings) -> [String] {
        let counts = parts.intakes.all.schemas
        let documents = parts.containers.states.compactMap { $0.current?.schemas }
        guard settings.schemas.directory != nil || !documents.isEmpty || !counts.isEmpty else { return [] }
        let all = counts.values.reduce(into: SchemaCounts()) { $0.add($1) }
        let fate = settings.schemas.mode == .report ? "sent" : "in quarantine"
        let invalid = counts.sorted { $0.key < $1.key }.filter { $0.value.invalid > 0 }
        let names = invalid.prefix(3).map { name, found in
            let version = name.version.isEmpty ? "" : " (\(name.version))"
            return "\(HumanText.count(found.invalid)) of \(name.event)\(version)"
        }
        let details = names.isEmpty ? "" : ", \(fate): \(names.joined(separator: ", "))"
        let unused = agent.schemas.withLock { $0.set }.followed(by: documents).unused
        let more = unused.count > 3 ? " and \(unused.count - 3) more" : ""
        let match = all.valid == 1 ? "that matches its schema" : "that match their schemas"
        return [
            "schemas: \(HumanText.plural(all.valid, "event")) \(match),"
                + " \(HumanText.count(all.invalid)) not\(details)"
        ]
            + (unused.isEmpty
                ? []
                : [
                    "schemas: not used, because \(SchemaSet.winner) has one for these events:"
                        + " \(unused.prefix(3).joined(separator: ", "))\(more)"
                ])
    }

    /// Lines about consent: what was withheld from whom, and what commands have set.
    private func consentLines(_ state: QueueSnapshot, _ settings: Settings) -> [String] {
        let states = state.consent
        let off = few(states.disabled.sorted())
        var lines = off.isEmpty ? [] : ["collection is off for \(off) (`spoolship enable --app APP`)"]
        var withheld: [String: Int] = [:]
        for entry in state.discarded where entry.reason == NotStored.withheldReason {
            withheld[entry.destination?.text ?? "nobody", default: 0] += entry.events
        }
        let set = few(states.all.map { "\($0.key.app) \($0.key.purpose) \($0.isGiven ? "on" : "off")" })
        let hasPurpose = settings.destinations.contains { $0.purposes != nil }
        guard hasPurpose || !withheld.isEmpty || !set.isEmpty else { return lines }
        let sum = HumanText.plural(withheld.values.reduce(0, +), "event")
        let names = few(
            withheld.sorted { $0.key < $1.key }.map { "\(HumanText.count($0.value)) from \($0.key)" })
        lines.append(
            "consent: \(sum) withheld\(names.isEmpty ? "" : ", \(names)")"
                + (set.isEmpty ? "" : "; by command: \(set)"))
        return lines
    }

    /// The first eight of some texts, and how many more there are.
    private func few(_ texts: [String]) -> String {
        let more = texts.count > 8 ? " and \(texts.count - 8) more" : ""
        return texts.prefix(8).joined(separator: ", ") + more
    }

    /// Lines about the ids that are remembered to find repeats.
    private func repeatLines(_ state: QueueSnapshot, _ settings: Settings) -> [String] {
        let found = parts.intakes.spool.counts.repeats
        guard settings.dedup.window > .zero else { return [] }
        let discarded = state.discarded.reduce(0) { $0 + ($1.reason == "repeat" ? $1.events : 0) }
        let early =
            found.forgottenEarly > 0
            ? "; \(HumanText.count(found.forgottenEarly)) forgotten too early (raise dedup.window.max_ids)"
            : ""
        let window = HumanText.duration(settings.dedup.window)
        return [
            "repeats: \(HumanText.count(discarded)) \(discarded == 1 ? "delivery" : "deliveries") discarded,"
                + " \(HumanText.plural(found.ids, "id")) remembered for \(window)\(early)"
        ]
    }

    /// A complaint about the names and values that limits have cut since the start.
    private var cuts: [String] {
        let events = parts.intakes.read.events
        let count = HumanText.count(events.cuts)
        return events.lastCut.map {
            [
                "limits cut \(count) names and values, of app \($0.app) \($0.member) "
                    + "(limits.\($0.limit.rawValue))"
            ]
        } ?? []
    }

    /// A complaint about each app with lines that do not match its format, or are broken JSON, since the
    /// start.
    private var texts: [String] {
        parts.intakes.all.events.texts.sorted { $0.key < $1.key }.flatMap { app, counts in
            var lines: [String] = []
            if counts.notParsed > 0 {
                let place =
                    counts.last.map { "; the last at column \($0.column), where \($0.expected) was expected" }
                    ?? ""
                lines.append("\(HumanText.plural(counts.notParsed, "line")) of \(app) not parsed\(place)")
            }
            if counts.brokenJSON > 0 {
                let count = HumanText.plural(counts.brokenJSON, "line")
                lines.append("\(count) of \(app) begin with { and are not JSON: sent as text")
            }
            return lines
        }
    }

    /// A complaint about each destination whose templates had more values than `template_values` permits,
    /// since the start.
    private func beyondTemplates(_ settings: Settings) -> [String] {
        settings.destinations.compactMap { destination in
            let count = agent.sending.templates[destination.name, EventTemplates.beyond]
            guard count > 0 else { return nil }
            return
                "\(HumanText.plural(count, "event")) sent to \(destination.name) as \"other\": events have "
                + "more values than its template_values (\(destination.templateValues))"
        }
    }

    /// The obstacle that events go nowhere: no destination is configured, or no destination wants the events
    /// of some apps.
    private func noDestination(_ state: QueueSnapshot, _ settings: Settings) -> [String] {
        guard !settings.destinations.isEmpty else {
            return [
                "no destination is configured: nothing is read from the spool; add a [[destination]] and "
                    + "reload"
            ]
        }
        let discarded = state.withoutDestination - agent.reloads.withLock { $0.withoutDestination }
        guard discarded > 0 else { return [] }
        return [
            "\(HumanText.plural(discarded, "event")) discarded since the last reload: no destination wants"
                + " \(discarded == 1 ? "it" : "them") (by_default, [apps.NAME] destinations)"
        ]
    }

    /// The destinations of the configuration, then those that were removed and have something left.
    private func destinations(_ state: QueueSnapshot, _ delivery: DeliverySnapshot, _ settings: Settings)
        -> [StatusReport.Destination]
    {
        // A lane that is not configured is listed only while something is left in it.
        var names: [DestinationName] = []
        for lane in state.lanes
        where !names.contains(lane.destination) && (lane.isConfigured || state.waits(lane)) {
            names.append(lane.destination)
        }
        return names.map { name in
            let known = delivery.destinations.first { $0.name == name }
            var destination = StatusReport.Destination(
                name: name.text, state: known.map { DestinationStateName($0) } ?? .orphaned)
            let configured = settings.destinations.first { $0.name == name.text }
            destination.address = configured?.address?.place ?? configured?.path
            if let known {
                if known.interval != delivery.interval {
                    destination.interval = known.interval.text
                }
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

    /// The obstacle that the spool cannot be read or written. Without it a spool that was moved away, or is
    /// hidden by a mount, would look like apps that write nothing.
    private func lostSpool(_ settings: Settings) -> [String] {
        if let problem = parts.reader.spool.problem { return ["the spool is not read: \(problem)"] }
        // Its silence is an obstacle by itself (`Pulse`).
        guard !settings.destinations.isEmpty, let root = parts.reader.figures.root,
            !parts.reader.spool.isSilent
        else { return [] }
        guard DistantMount.onTheWay(of: root.path) != nil else { return lostSpool(root) }
        return SilentFiles.answer(about: root.path) { self.lostSpool(root) }
            ?? ["the spool: \(root.path): its file system does not answer"]
    }

    /// The same, from the spool's file system.
    private func lostSpool(_ root: SpoolFigures.Root) -> [String] {
        // The agent asks the kernel, because owner and mode do not show access control lists.
        if root.hasItsName, access(root.path, R_OK | X_OK) != 0 {
            return [
                "the spool: \(root.path) cannot be read: \(SystemError.message(errno)); `spoolship check` "
                    + "says what to do"
            ]
        }
        if root.hasItsName {
            let room = FileSystemRoom(root.path)
            // A full disk of the spool stops the apps, not the agent, so nothing else would report it.
            let isFull = room?.freeBytes == 0 || room?.freeInodes == 0
            let full = isFull ? "its disk is full (df, df -i \(root.path)): apps cannot write" : nil
            return [
                full, parts.notice.checkLock(hasBeenRead: parts.reader.spool.figures.bytesRead.value > 0),
            ]
            .compactMap { $0.map { "the spool: \($0)" } }
        }
        return [
            "the spool: \(root.path) is not the directory that is read; was it removed, moved, replaced or "
                + "mounted over? Bring it back, or restart the agent"
        ]
    }

    /// The obstacle that files of the spool cannot be read or removed now. Files that only their owner can
    /// repair do not count.
    private var spoolObstacles: [String] {
        // Only what the agent or its machine is responsible for: one user's bad file must not make the agent
        // unready.
        let waiting = parts.reader.figures.secondTries.filter { !$0.key.isOwners }
        guard !waiting.isEmpty else { return [] }
        let reasons = waiting.keys.map(\.rawValue).sorted().joined(separator: ", ")
        let count = HumanText.count(waiting.values.reduce(0, +))
        let text =
            "the spool: \(count) of its files or directories cannot be read or removed now, and will be "
            + "tried again"
        return ["\(text) (\(reasons))"]
    }

    /// The spool's part of the report; without a destination nothing is read, so the directory itself is
    /// measured.
    private func spoolFigures(_ state: QueueSnapshot, _ settings: Settings) -> StatusReport.Spool {
        let figures = parts.reader.figures
        var spool = StatusReport.Spool()
        // The directory of the start: a reload does not change which spool is read.
        spool.directory = agent.reloads.withLock { $0.started }.spool.directory
        // No reader runs, so measure the directory itself.
        if settings.destinations.isEmpty {
            // Measured by walking the directory, so the figure may be some seconds old.
            let backlog = parts.unreadSpool.look(in: settings.spool.directory)
            spool.lagBytes = Int(backlog.bytes.value)
            spool.lagSeconds = backlog.oldest.map { max(0, Int((time.wallTime - $0) / .seconds(1))) } ?? 0
            spool.files = backlog.files
            spool.waits = "no destination"
            return spool
        }
        spool.isListed = figures.unlistedReaders == 0
        spool.lagBytes = Int(figures.unreadBytes.value)
        spool.lagSeconds = figures.oldestUnread.map { max(0, Int((time.wallTime - $0) / .seconds(1))) } ?? 0
        // Files that are read in place are listed with their places.
        let own = parts.reader.spool.figures
        spool.files = own.appendFiles + own.waitingDropFiles
        // The queue's reason counts before that of a function: without room no answer of a function helps.
        if figures.isHeldBack, case .nothing(let reason) = state.accepting {
            spool.waits = reason.rawValue
        }
        if spool.waits == nil {
            spool.waits = waitsForFunctions
        }
        spool.secondTries = Dictionary(
            uniqueKeysWithValues: figures.secondTries.map { ($0.key.rawValue, $0.value) })
        spool.secondTryPaths = figures.secondTryPaths
        spool.unfinishedLines = figures.unfinishedLines.filter {
            time.wallTime - $0.since > SpoolFigures.UnfinishedLine.patience
        }
        spool.passedOver = figures.passedOver
        spool.places = parts.reader.places.compactMap { reader in reader.place.map { ($0, reader.figures) } }
        spool.journals = parts.reader.journals.states(parts.pulse.silent)
        spool.complaints =
            (parts.reader.spool.isSilent
                ? ["\(spool.directory): its file system does not answer; everything else is read"] : [])
            + figures.lostFiles.filter { time.wallTime - $0.at < SpoolFigures.LostFile.memory }.map(lost)
            + figures.complaints.map { "\($0.path) (owner \($0.ownerName)): \($0.advice)" }
            + complaints(figures, state).compactMap { $0 }
        return spool
    }

    /// The sentence about bytes that disappeared before they were read.
    private func lost(_ file: SpoolFigures.LostFile) -> String {
        let bytes = HumanText.bytes(Int(file.bytes))
        let age = HumanText.duration(time.wallTime - file.at)
        let event =
            switch file.way {
            case .truncated: "it was truncated before they were read"
            case .removed: "it was removed before they were read"
            case .removedWhileStopped: "it was removed while the agent was stopped; there may have been more"
            case .packedWhileStopped:
                "it was compressed while the agent was stopped, and archives of its kind are not read;"
                    + " unpack it, and ship it with `spoolship run --once`"
            }
        guard file.way != .packedWhileStopped else {
            return "\(file.path) (\(bytes)) may hold lines that are lost: \(event) (reported \(age) ago)"
        }
        return "\(bytes) of \(file.path) are lost: \(event) (reported \(age) ago)"
    }

    /// The files that wait for a function, the apps with most files first; nil if none does.
    private var waitsForFunctions: String? {
        let waits = parts.intakes.spool.counts.waiting.flatMap { function, apps in
            apps.map {
                (
                    files: $0.value,
                    text: "\(HumanText.plural($0.value, "file")) of \($0.key) for function \(function)"
                )
            }
        }.sorted { ($1.files, $0.text) < ($0.files, $1.text) }
        return waits.isEmpty ? nil : waits.prefix(4).map(\.text).joined(separator: ", ")
    }

    /// Further problems that an operator should fix; nil for each part that is in order.
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
                : "\(HumanText.plural(figures.refusedFiles, "file")) never opened "
                    + "(instead of a link, name what it leads to): "
                    + figures.refusedNames.joined(separator: ", "),
            figures.loweredOpenFiles.map {
                "\($0.files) files are held open at most, because the process may open \($0.limit): raise "
                    + "LimitNOFILE"
            },
            state.health.refusedMaxSize.map {
                "queue.max_size is \($0) bytes, less than is stored: the old one, \(state.maxSize) bytes, "
                    + "stays in force"
            },
            state.unknownLosses == 0
                ? nil
                : "the queue was damaged \(state.unknownLosses) times, with an unknown number of events "
                    + "lost: see the log",
            behind.isEmpty
                ? nil
                : "more is unread than spool.when_full.max_unread allows: the oldest events for \(behind), "
                    + "which acknowledge nothing, are evicted",
        ]
    }
}

extension DispatchInterval {
    /// The interval's length; nil if it is off.
    var duration: Duration? {
        if case .every(let duration) = self {
            duration
        } else {
            nil
        }
    }
}

extension StatusHistory.Sample {
    /// The sums over all lanes.
    init(_ snapshot: QueueSnapshot, at now: Timestamp) {
        func sum(_ figure: (Ledger) -> Int) -> Int { snapshot.lanes.reduce(0) { $0 + figure($1.ledger) } }
        self.init(
            at: now, accepted: sum(\.accepted), acknowledged: sum(\.acknowledged), queued: sum(\.queued),
            bytes: snapshot.storedBytes)
    }
}

extension QueueSnapshot {
    /// Events that were discarded because no destination wants them, since the queue was made.
    var withoutDestination: Int {
        discarded.reduce(0) { $0 + ($1.reason == "no_destination" ? $1.events : 0) }
    }

    /// True if a lane's destination has events or dead letters left that a person may want to look at.
    func waits(_ lane: LaneState) -> Bool {
        lanes.contains { $0.destination == lane.destination && ($0.ledger.queued > 0 || $0.deadLetters > 0) }
    }

    /// Destinations that the configuration does not name, with the number of events that wait for each.
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
