internal import Configuration
internal import Containers
internal import Delivery
internal import EventLoops
internal import Events
internal import Intake
internal import Journal
internal import Logs
internal import Metrics
internal import Model
internal import Queue
internal import Spool
internal import Synchronization

/// Turns the snapshots that the modules have published into metrics. It waits for no other loop, so a scrape
/// is answered also while a disk hangs.
struct AgentCollector: MetricCollector {
    /// The agent, for its log, its settings and the figures of sending.
    let agent: AgentService
    /// The running parts, for their snapshots.
    let parts: AgentService.Parts

    /// The time of day of the scrape, for ages.
    private var now: Timestamp { agent.time.wallTime }

    /// The known series come first: a figure that is set twice keeps the later value.
    func collect(into exposition: inout Exposition) {
        collectKnownSeries(into: &exposition)
        collectQueue(into: &exposition)
        IntakeCollector(
            figures: parts.intakes, expired: parts.queue.snapshot.expiredByApp, time: agent.time
        ).collect(into: &exposition)
        collectSpool(into: &exposition)
        collectDelivery(into: &exposition)
        collectContainers(into: &exposition)
        collectProgram(into: &exposition)
        collectStatus(into: &exposition)
    }

    /// The ledgers of all lanes, the stores, and the state of the database.
    private func collectQueue(into exposition: inout Exposition) {
        let state = parts.queue.snapshot
        var balances = state.intake.balances
        // Remember destinations that were removed while events waited, so that their series show the last
        // change.
        let leftovers = agent.sending.leftovers.withLock {
            $0.formUnion(state.lanes.filter { !$0.isConfigured && state.waits($0) }.map(\.destination))
            return $0
        }
        for lane in state.lanes {
            balances = balances && lane.ledger.balances
            guard lane.isConfigured || leftovers.contains(lane.destination) else { continue }
            let labels = [lane.destination.text, lane.priority.name]
            for (family, figure) in zip(MetricFamily.table.deliveries, Ledger.figures) {
                exposition.set(family, labels, to: lane.ledger[keyPath: figure.path])
            }
            exposition.set(\.deadLetters, labels, to: lane.deadLetters)
            // At least 0, because the time of day may have been set back since.
            let age = lane.oldestQueuedAt.map { (now - $0) / .seconds(1) } ?? 0
            exposition.set(\.queueOldestAge, labels, to: max(0, age))
        }
        // 0 means a defect of the agent.
        exposition.set(\.ledgerBalanced, to: balances)
        exposition.set([
            \.eventsRead: state.intake.read, \.eventsAccepted: state.intake.accepted,
            \.eventsRefused: state.intake.refused, \.eventsQuarantined: state.intake.quarantined,
            \.quarantineRecords: state.quarantine.count, \.quarantineBytes: state.quarantine.bytes,
            \.quarantinePurged: state.quarantine.purged, \.filesStaying: state.unkept.count,
            \.deadLetterBytes: state.deadLetters.bytes, \.deadLettersPurged: state.deadLetters.purged,
            \.queueBytes: state.storedBytes, \.queueMaxBytes: state.maxSize,
            \.queueRecoveries: state.health.recoveries,
            \.queueUnknownLosses: state.unknownLosses,
        ])
        var discards: [String: Int] = [:]
        for entry in state.discarded { discards[entry.reason, default: 0] += entry.events }
        exposition.set(\.discards, by: discards)
        exposition.set(\.queueFileBytes, by: ["database": state.fileBytes, "wal": state.walBytes])
        // A full queue that still accepts critical events exerts no backpressure on reading as a whole.
        let isClosed = if case .nothing = state.accepting { true } else { false }
        exposition.set(\.queueBackpressure, to: isClosed)
        let failures = state.health.failures.values.reduce(0, +)
        exposition.set(\.queueCommits, by: ["ok": state.health.transactions, "failed": failures])
        exposition.set(\.persistenceFailures, ["queue"], to: failures)
        exposition.set(\.queueCapRefused, to: state.health.refusedMaxSize != nil)
    }

    /// The reader's figures, and those of each journal.
    private func collectSpool(into exposition: inout Exposition) {
        let figures = parts.reader.figures
        // No figure is better than one that says that all is read before anybody has looked.
        if figures.unlistedReaders == 0 || figures.unreadBytes > 0 {
            exposition.set(\.spoolLagBytes, to: Int(figures.unreadBytes.value))
        }
        exposition.set([
            \.spoolOpenFiles: figures.openFiles,
            \.spoolReadBytes: Int(figures.bytesRead.value),
            \.spoolGivenUpBytes: Int(figures.bytesGivenUp.value),
            \.spoolFilesRemoved: figures.filesRemoved, \.spoolRotations: figures.rotations,
            \.spoolTruncations: figures.truncations, \.spoolLinesTooLong: figures.linesTooLong,
            \.spoolUnclosedLines: figures.unclosedLines, \.spoolZeroBytes: Int(figures.zeroBytes.value),
            \.spoolWatchOverflows: figures.overflows,
            \.spoolLeaseWaits: figures.leaseWaits, \.spoolErrors: figures.errors,
            \.spoolUnfinishedLines: figures.unfinishedLines.count {
                now - $0.since > SpoolFigures.UnfinishedLine.patience
            },
            \.spoolPassedOver: figures.passedOver, \.spoolCrowdedDirectories: figures.crowdedDirectories,
        ])
        // At least 0: the time of day may have been set back since the oldest file was written.
        let lag = figures.oldestUnread.map { (now - $0) / .seconds(1) } ?? 0
        exposition.set(\.spoolLagSeconds, to: max(0, lag))
        exposition.set(\.spoolFiles, by: ["append": figures.appendFiles, "drop": figures.waitingDropFiles])
        exposition.set(\.spoolRefusedFiles, of: SpoolRefusal.self) { figures.refused[$0] ?? 0 }
        // Files without permission are counted by the reader apart from the other refusals.
        exposition.set(\.spoolRefusedFiles, ["permission"], to: figures.inaccessible)
        exposition.set(\.spoolPolling, to: figures.polledDirectories > 0)
        exposition.set(
            \.spoolFilesFinished, by: ["append": figures.appendFilesRead, "drop": figures.dropFilesRead])
        exposition.set(\.spoolSecondTries, of: SpoolObstacle.self) { figures.secondTries[$0] ?? 0 }
        for (mount, isAnswering) in parts.reader.mounts.answers.sorted(by: { $0.key < $1.key }) {
            exposition.set(\.mountAnswers, [mount], to: isAnswering)
        }
        for journal in parts.reader.journals.states(parts.pulse.silent) {
            exposition.set(\.journalEntries, [journal.app], to: journal.figures.entries)
            exposition.set(\.journalCutEntries, [journal.app], to: journal.figures.cut)
            exposition.set(\.journalGaps, [journal.app], to: journal.figures.gaps)
            exposition.set(\.journalReadable, [journal.app], to: journal.figures.problem == nil)
        }
    }

    /// The state, answers and counters of each destination.
    private func collectDelivery(into exposition: inout Exposition) {
        let state = parts.driver.snapshot
        var late: [String: Int] = [:]
        for destination in state.destinations {
            let name = destination.name.text
            let current = DestinationStateName(destination)
            exposition.set(\.destinationState, [name], of: DestinationStateName.self) {
                $0 == current ? 1 : 0
            }
            exposition.set(\.inFlight, [name], to: destination.inFlight)
            exposition.set(\.retryWaiting, [name], to: destination.waitingForRetry)
            exposition.set(\.setAside, [name], to: destination.setAside.values.reduce(0, +))
            exposition.set(
                \.lastAcknowledged, [name],
                to: destination.lastSuccess.map { Double($0.milliseconds) / 1000 } ?? 0)
            // One answer has an outcome, perhaps a kind of failure and perhaps a status: each is a family of
            // its own.
            let counters = destination.counters
            var attempts: [String: Int] = [:]
            var failures: [String: Int] = [:]
            var statuses: [String: Int] = [:]
            for (answer, count) in counters.answers {
                attempts[answer.outcome, default: 0] += count
                if let kind = answer.kind {
                    failures[kind.rawValue, default: 0] += count
                }
                if let status = answer.status {
                    statuses["\(status)", default: 0] += count
                }
            }
            exposition.set(\.attempts, [name], by: attempts)
            exposition.set(\.failures, [name], by: failures)
            exposition.set(\.responses, [name], by: statuses)
            exposition.set(\.retries, [name], to: counters.retries)
            exposition.set(\.unnamedRejections, [name], to: counters.unnamedRejections)
            for (deadline, count) in counters.late { late[deadline, default: 0] += count }
        }
        exposition.set(\.lateEvents, by: late)
        exposition.set(\.networkEnabled, to: state.isNetworkOn)
        exposition.set(\.collectionEnabled, to: state.isEnabled)
        exposition.set(\.pauseTokens, to: state.heldTokens)
        exposition.set(\.dispatchInterval, to: (state.interval.duration ?? .zero) / .seconds(1))
    }

    /// The state of the containers, and the calls of their functions.
    private func collectContainers(into exposition: inout Exposition) {
        for state in parts.containers.states {
            exposition.set(\.containerVersion, [state.id], to: state.version ?? 0)
            exposition.set(\.containerHeldBackVersion, [state.id], to: state.machine.heldBack ?? 0)
            exposition.set(\.containerSource, [state.id], of: ContainerSource.self) {
                $0 == state.source ? 1 : 0
            }
            exposition.set(\.containerAwaited, [state.id], to: state.isHolding)
            exposition.set(\.containerFresh, [state.id], to: state.isFresh(at: now))
            exposition.set(
                \.containerConfirmed, [state.id],
                to: state.confirmed.map { Double($0.milliseconds) / 1000 } ?? 0)
            // A container without a `url` is never fetched, so the series would say nothing.
            if state.settings.url != nil {
                exposition.set(
                    \.containerRefreshSuccessful, [state.id],
                    to: state.lastFetch.map { $0 == .success } ?? true)
            }
            exposition.set(\.containerSettingsRefused, [state.id], to: state.refused.count)
            for (type, result, count) in state.refreshes {
                exposition.set(\.containerRefreshes, [state.id, type.rawValue, result.rawValue], to: count)
            }
        }
        let figures = parts.functions.runner.figures
        for (name, results) in figures.calls.sorted(by: { $0.key < $1.key }) {
            let counts = results.map { ($0.key.rawValue, $0.value) }
            exposition.set(\.functionCalls, [name], by: Dictionary(uniqueKeysWithValues: counts))
        }
        exposition.set(\.functionsRunning, by: figures.running)
    }

    /// The version, the log, and the result of the last reload.
    private func collectProgram(into exposition: inout Exposition) {
        let program = agent.program
        let log = agent.sink
        exposition.set(\.build, [program.version, program.commit, program.toolchain], to: 1)
        for level in LogLevel.allCases {
            exposition.set(\.logMessages, [level.name], to: log.messages(of: level))
        }
        let last = agent.reloads.withLock { $0 }
        exposition.set(\.reloadSuccessful, to: last.problem == nil)
        exposition.set(\.reloadTime, to: Double(last.lastSuccess.milliseconds) / 1000)
        exposition.set(\.logLinesSuppressed, to: log.suppressedLines)
    }

    /// Exports every counter whose labels are known as 0 from the start; later sets replace the zero.
    ///
    /// `increase()` of Prometheus ignores the first sample of a series: if a counter first appeared with the
    /// first late or lost event, no alert would fire for that event.
    private func collectKnownSeries(into exposition: inout Exposition) {
        let settings = agent.sharedSettings.withLock { $0 }
        // Labels whose values come from the configuration; all others have fixed values in `MetricFamily`.
        let open = [
            "destination": settings.destinations.map(\.name), "deadline": settings.deadlines.map(\.name),
            "container": settings.containers.map(\.id), "function": settings.functions.keys.sorted(),
        ]
        for family in MetricFamily.all where family.kind == .counter {
            let values = family.labels.compactMap { $0.values ?? open[$0.name] }
            guard values.count == family.labels.count else { continue }
            for labels in AgentCollector.combinations(values) { exposition.set(family, labels, to: 0) }
        }
        // Reasons that the agent itself gives. Those of rules are known only once a rule has discarded
        // something.
        for reason in ["no_destination", "disabled", "purged", "moved", "erased", "repeat", "withheld"] {
            exposition.set(\.discards, [reason], to: 0)
        }
        exposition.set(\.destinations, to: settings.destinations.count)
        // A reload may have removed destinations.
        agent.sending.keep(settings.destinations.map(\.name))
        // Delivery does not know destinations that are not configured, so their state comes from the queue.
        for (name, _) in parts.queue.snapshot.orphans {
            exposition.set(\.destinationState, [name.text], of: DestinationStateName.self) {
                $0 == .orphaned ? 1 : 0
            }
        }
    }

    /// All combinations of one value from each list.
    private static func combinations(_ lists: [[String]]) -> [[String]] {
        lists.reduce([[]]) { found, list in found.flatMap { head in list.map { head + [$0] } } }
    }

    /// Whether the agent is ready, as in `/readyz`.
    private func collectStatus(into exposition: inout Exposition) {
        let report = AgentStatus(agent: agent, parts: parts).report()
        // The check ends after this scrape, and the next one sees its result.
        Task(executorPreference: agent.loop) { await parts.pulse.check() }
        exposition.set(\.ready, to: report.obstacles.isEmpty)
        let standstills = report.standingStill.count
        exposition.set(
            \.obstacles, by: ["agent": report.obstacles.count - standstills, "destination": standstills])
        // Without a destination nothing is read, and the reader has no figures: export those of the
        // directory.
        guard report.spool.waits == "no destination" else { return }
        exposition.set(\.spoolLagBytes, to: report.spool.lagBytes)
        exposition.set(\.spoolLagSeconds, to: Double(report.spool.lagSeconds))
    }
}

/// The figures of all intakes.
struct AllIntakes: Sendable {
    /// Lines of the spool.
    let spool = IntakeFigures()
    /// Lines of old files that a person sends in (`spoolship run --once`).
    let backfill = IntakeFigures()
    /// Lines of files that are read in place, and of journals.
    var places: [IntakeFigures] = []

    /// The counts of all that was read by itself, without old files.
    var read: IntakeFigures.Counts { places.reduce(into: spool.counts) { $0.add($1.counts) } }

    /// The counts of all that was read, including old files.
    var all: IntakeFigures.Counts { (places + [backfill]).reduce(into: spool.counts) { $0.add($1.counts) } }
}

/// Exports what the intakes count: events by app, sessions, limits, tags, rules.
struct IntakeCollector: MetricCollector {
    /// The published figures of all intakes.
    let figures: AllIntakes
    /// What has expired in the queue, by app.
    var expired: [String: AppCounts] = [:]
    /// The clock, to recognise yesterday's counts of names.
    let time: any TimeSource

    func collect(into exposition: inout Exposition) {
        // Sessions count for lines that the agent reads by itself; all other figures count old files too.
        let read = figures.read
        let counts = figures.all
        var apps = counts.apps
        apps.add(expired)
        // The names are counted for one day: an app that was silent today still has yesterday's count.
        let today = time.wallTime.milliseconds / 86_400_000
        for (app, count) in counts.names.sorted(by: { $0.key < $1.key }) {
            exposition.set(\.eventNames, [app], to: count.day == today ? count.names : 0)
        }
        for (app, count) in apps.sorted(by: { $0.key < $1.key }) {
            exposition.set(\.appEvents, [app], to: count.events)
            exposition.set(\.appRecords, [app], to: count.records)
            exposition.set(\.appBytes, [app], to: count.bytes)
            exposition.set(\.appQuarantined, [app], to: count.quarantined)
            exposition.set(\.appExpired, [app], to: count.expired)
            if let last = count.lastRead {
                exposition.set(\.appLastRead, [app], to: Double(last.milliseconds) / 1000)
            }
        }
        for (app, texts) in counts.events.texts.sorted(by: { $0.key < $1.key }) {
            exposition.set(\.appLinesNotParsed, [app], to: texts.notParsed)
            exposition.set(\.appBrokenJSON, [app], to: texts.brokenJSON)
        }
        for (name, found) in counts.schemas.sorted(by: { $0.key < $1.key }) {
            let labels = [name.app, name.event, name.version]
            exposition.set(\.schemaEvents, labels + ["valid"], to: found.valid)
            exposition.set(\.schemaEvents, labels + ["invalid"], to: found.invalid)
        }
        exposition.set([\.dedupIDs: counts.repeats.ids, \.dedupForgotten: counts.repeats.forgottenEarly])
        exposition.set(\.quarantined, of: QuarantineRecord.Reason.self) { counts.quarantined[$0] ?? 0 }
        exposition.set(\.sessions, by: read.events.sessions)
        for kind in LimitKind.allCases {
            for word in [LimitConsequence.refuse, .quarantine, .allow] {
                exposition.set(\.beyondLimit, [kind.rawValue, word.rawValue], to: counts.events[word, kind])
            }
        }
        exposition.set(\.oddities, of: Oddity.self) { counts.events[$0] }
        exposition.set(\.tagsFired, by: counts.rules.fired)
        exposition.set(\.ruleEvents, by: counts.rules.byRule)
        exposition.set(\.ruleProblems, of: RuleProblem.self) { counts.rules.problems[$0] ?? 0 }
        for (label, kind) in [
            ("name", LimitKind.nameLength), ("property_key", .propertyKeyLength),
            ("property_value", .propertyValueLength), ("properties", .properties),
        ] { exposition.set(\.truncations, [label], to: counts.events[.cut, kind]) }
    }
}

extension DestinationStateName {
    /// The state of a destination: the obstacle, if there is one; else retrying, if its last attempts failed;
    /// else active.
    init(_ destination: DeliverySnapshot.Destination) {
        let hasFailed = destination.lastFailure.map {
            $0.at > destination.lastSuccess ?? Timestamp(nanoseconds: .min)
        }
        let isRetrying = destination.waitingForRetry > 0 && hasFailed == true
        self = destination.obstacle ?? (isRetrying ? .waitingForRetry : .active)
    }
}
