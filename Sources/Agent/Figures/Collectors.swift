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

/// Turns the modules' published snapshots into figures; waits for no other loop.
struct AgentCollector: MetricCollector {
    let agent: AgentService
    let parts: AgentService.Parts

    private var now: Timestamp { agent.time.wallTime }

    func collect(into exposition: inout Exposition) {
        collectKnownSeries(into: &exposition)
        collectQueue(into: &exposition)
        IntakeCollector(figures: parts.intakes, time: agent.time).collect(into: &exposition)
        collectSpool(into: &exposition)
        collectDelivery(into: &exposition)
        collectContainers(into: &exposition)
        collectProgram(into: &exposition)
        collectStatus(into: &exposition)
    }

    private func collectQueue(into exposition: inout Exposition) {
        let state = parts.queue.snapshot
        var balances = state.intake.balances
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
            let age = lane.oldestQueuedAt.map { (now - $0) / .seconds(1) } ?? 0
            exposition.set(\.queueOldestAge, labels, to: max(0, age))
        }
        exposition.set(\.ledgerBalanced, to: balances)
        exposition.set([
            \.eventsRead: state.intake.read, \.eventsAccepted: state.intake.accepted,
            \.eventsRefused: state.intake.refused, \.eventsQuarantined: state.intake.quarantined,
            \.quarantineRecords: state.quarantine.count, \.quarantineBytes: state.quarantine.bytes,
            \.quarantinePurged: state.quarantine.purged, \.filesStaying: state.unkept.count,
            \.deadLetterBytes: state.deadLetters.bytes, \.deadLettersPurged: state.deadLetters.purged,
            \.queueBytes: state.storedBytes, \.queueMaxBytes: state.maxSize, \.queueRecoveries: state.recoveries,
            \.queueUnknownLosses: state.unknownLosses,
        ])
        var discards: [String: Int] = [:]
        for entry in state.discarded { discards[entry.reason, default: 0] += entry.events }
        exposition.set(\.discards, by: discards)
        exposition.set(\.queueFileBytes, by: ["database": state.fileBytes, "wal": state.walBytes])
        let isClosed = if case .nothing = state.accepting { true } else { false }
        exposition.set(\.queueBackpressure, to: isClosed)
        let failures = state.failures.values.reduce(0, +)
        exposition.set(\.queueCommits, by: ["ok": state.transactions, "failed": failures])
        exposition.set(\.persistenceFailures, ["queue"], to: failures)
        exposition.set(\.queueCapRefused, to: state.refusedMaxSize != nil)
    }

    private func collectSpool(into exposition: inout Exposition) {
        let figures = parts.reader.figures
        exposition.set([
            \.spoolLagBytes: Int(figures.unreadBytes.value), \.spoolOpenFiles: figures.openFiles,
            \.spoolReadBytes: Int(figures.bytesRead.value), \.spoolGivenUpBytes: Int(figures.bytesGivenUp.value),
            \.spoolFilesRemoved: figures.filesRemoved, \.spoolRotations: figures.rotations,
            \.spoolTruncations: figures.truncations, \.spoolLinesTooLong: figures.linesTooLong,
            \.spoolZeroBytes: Int(figures.zeroBytes.value), \.spoolWatchOverflows: figures.overflows,
            \.spoolLeaseWaits: figures.leaseWaits, \.spoolErrors: figures.errors,
            \.spoolPassedOver: figures.passedOver, \.spoolCrowdedDirectories: figures.crowdedDirectories,
        ])
        let lag = figures.oldestUnread.map { (now - $0) / .seconds(1) } ?? 0
        exposition.set(\.spoolLagSeconds, to: max(0, lag))
        exposition.set(\.spoolFiles, by: ["append": figures.appendFiles, "drop": figures.waitingDropFiles])
        exposition.set(\.spoolRefusedFiles, of: SpoolRefusal.self) { figures.refused[$0] ?? 0 }
        exposition.set(\.spoolRefusedFiles, ["permission"], to: figures.inaccessible)
        exposition.set(\.spoolPolling, to: figures.polledDirectories > 0)
        exposition.set(\.spoolFilesFinished, by: ["append": figures.appendFilesRead, "drop": figures.dropFilesRead])
        exposition.set(\.spoolSecondTries, of: SpoolObstacle.self) { figures.secondTries[$0] ?? 0 }
        for journal in parts.reader.journals.states(parts.pulse.silent) {
            exposition.set(\.journalEntries, [journal.app], to: journal.figures.entries)
            exposition.set(\.journalCutEntries, [journal.app], to: journal.figures.cut)
            exposition.set(\.journalGaps, [journal.app], to: journal.figures.gaps)
            exposition.set(\.journalReadable, [journal.app], to: journal.figures.problem == nil)
        }
    }

    private func collectDelivery(into exposition: inout Exposition) {
        let state = parts.driver.snapshot
        var late: [String: Int] = [:]
        for destination in state.destinations {
            let name = destination.name.text
            let current = DestinationStateName(destination)
            exposition.set(\.destinationState, [name], of: DestinationStateName.self) { $0 == current ? 1 : 0 }
            exposition.set(\.inFlight, [name], to: destination.inFlight)
            exposition.set(\.retryWaiting, [name], to: destination.waitingForRetry)
            exposition.set(\.setAside, [name], to: destination.setAside.values.reduce(0, +))
            exposition.set(
                \.lastAcknowledged, [name], to: destination.lastSuccess.map { Double($0.milliseconds) / 1000 } ?? 0)
            let counters = destination.counters
            var attempts: [String: Int] = [:]
            var failures: [String: Int] = [:]
            var statuses: [String: Int] = [:]
            for (answer, count) in counters.answers {
                attempts[answer.outcome, default: 0] += count
                if let kind = answer.kind { failures[kind.rawValue, default: 0] += count }
                if let status = answer.status { statuses["\(status)", default: 0] += count }
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

    /// The state of the containers, and what their functions do.
    private func collectContainers(into exposition: inout Exposition) {
        for state in parts.containers.states {
            exposition.set(\.containerVersion, [state.id], to: state.version ?? 0)
            exposition.set(\.containerHeldBackVersion, [state.id], to: state.machine.heldBack ?? 0)
            exposition.set(\.containerSource, [state.id], of: ContainerSource.self) { $0 == state.source ? 1 : 0 }
            exposition.set(\.containerAwaited, [state.id], to: state.isHolding)
            exposition.set(\.containerFresh, [state.id], to: state.isFresh(at: now))
            exposition.set(
                \.containerConfirmed, [state.id], to: state.confirmed.map { Double($0.milliseconds) / 1000 } ?? 0)
            if state.settings.url != nil {
                exposition.set(
                    \.containerRefreshSuccessful, [state.id], to: state.lastFetch.map { $0 == .success } ?? true)
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

    private func collectProgram(into exposition: inout Exposition) {
        let (program, log) = (agent.program, agent.sink)
        exposition.set(\.build, [program.version, program.commit, program.toolchain], to: 1)
        for level in LogLevel.allCases { exposition.set(\.logMessages, [level.name], to: log.messages(of: level)) }
        let last = agent.reloads.withLock { $0 }
        exposition.set(\.reloadSuccessful, to: last.problem == nil)
        exposition.set(\.reloadTime, to: Double(last.lastSuccess.milliseconds) / 1000)
        exposition.set(\.logLinesSuppressed, to: log.suppressedLines)
    }

    /// Every counter whose labels are known, as 0 from the start; what was counted comes after it.
    ///
    /// `increase()` sees nothing of a series' first sample: a counter that comes into being with the first late event, or the
    /// first lost one, could not tell of it.
    private func collectKnownSeries(into exposition: inout Exposition) {
        let settings = agent.sharedSettings.withLock { $0 }
        let open = [
            "destination": settings.destinations.map(\.name), "deadline": settings.deadlines.map(\.name),
            "container": settings.containers.map(\.id), "function": settings.functions.keys.sorted(),
        ]
        for family in MetricFamily.all where family.kind == .counter {
            let values = family.labels.compactMap { $0.values ?? open[$0.name] }
            guard values.count == family.labels.count else { continue }
            for labels in AgentCollector.combinations(values) { exposition.set(family, labels, to: 0) }
        }
        for reason in ["no_destination", "disabled", "purged", "moved"] { exposition.set(\.discards, [reason], to: 0) }
        exposition.set(\.destinations, to: settings.destinations.count)
        agent.sending.keep(settings.destinations.map(\.name))
        for (name, _) in parts.queue.snapshot.orphans {
            exposition.set(\.destinationState, [name.text], of: DestinationStateName.self) { $0 == .orphaned ? 1 : 0 }
        }
    }

    /// Each value of the first list with each of the second, and so on.
    private static func combinations(_ lists: [[String]]) -> [[String]] {
        lists.reduce([[]]) { found, list in found.flatMap { head in list.map { head + [$0] } } }
    }

    /// Whether the agent is ready, as `/readyz` says it.
    private func collectStatus(into exposition: inout Exposition) {
        let report = AgentStatus(agent: agent, parts: parts).report()
        Task(executorPreference: agent.loop) { await parts.pulse.check() }
        exposition.set(\.ready, to: report.obstacles.isEmpty)
        let standstills = report.standstills
        exposition.set(\.obstacles, by: ["agent": report.obstacles.count - standstills, "destination": standstills])
        // Without a destination nobody reads, and the reader has no figures.
        guard report.spool.waits == "no destination" else { return }
        exposition.set(\.spoolLagBytes, to: report.spool.lagBytes)
        exposition.set(\.spoolLagSeconds, to: Double(report.spool.lagSeconds))
    }
}

struct AllIntakes: Sendable {
    let spool = IntakeFigures()
    /// Those of old files that were taken by hand.
    let backfill = IntakeFigures()
    /// Those of files that are read in place, and of journals.
    var places: [IntakeFigures] = []

    var read: IntakeFigures.Counts { places.reduce(into: spool.counts) { $0.add($1.counts) } }

    /// What was read, old files included.
    var all: IntakeFigures.Counts { (places + [backfill]).reduce(into: spool.counts) { $0.add($1.counts) } }
}

/// What the pass over each line counts.
struct IntakeCollector: MetricCollector {
    let figures: AllIntakes
    let time: any TimeSource

    func collect(into exposition: inout Exposition) {
        let (read, counts) = (figures.read, figures.all)
        // Of an app that was silent since, the names of an earlier day are left.
        let today = time.wallTime.milliseconds / 86_400_000
        for (app, count) in counts.names.sorted(by: { $0.key < $1.key }) {
            exposition.set(\.eventNames, [app], to: count.day == today ? count.names : 0)
        }
        for (app, count) in counts.apps.sorted(by: { $0.key < $1.key }) {
            exposition.set(\.appEvents, [app], to: count.events)
            exposition.set(\.appRecords, [app], to: count.records)
            exposition.set(\.appBytes, [app], to: count.bytes)
            exposition.set(\.appQuarantined, [app], to: count.quarantined)
            if let last = count.lastRead {
                exposition.set(\.appLastRead, [app], to: Double(last.milliseconds) / 1000)
            }
        }
        exposition.set(\.quarantined, of: QuarantineRecord.Reason.self) { counts.quarantined[$0] ?? 0 }
        exposition.set(\.sessions, by: read.events.sessions)
        for kind in LimitKind.allCases {
            for word in [LimitConsequence.refuse, .quarantine, .allow] {
                exposition.set(\.beyondLimit, [kind.rawValue, word.rawValue], to: counts.events[word, kind])
            }
        }
        exposition.set(\.oddities, of: Oddity.self) { counts.events[$0] }
        exposition.set(\.tagsFired, by: counts.rules.fired)
        exposition.set(\.ruleProblems, of: RuleProblem.self) { counts.rules.problems[$0] ?? 0 }
        for (label, kind) in [
            ("name", LimitKind.nameLength), ("property_key", .propertyKeyLength),
            ("property_value", .propertyValueLength), ("properties", .properties),
        ] { exposition.set(\.truncations, [label], to: counts.events[.cut, kind]) }
    }
}

extension DestinationStateName {
    /// The state of a destination: what is in its way, or that its last attempts failed, or nothing.
    init(_ destination: DeliverySnapshot.Destination) {
        let hasFailed = destination.lastFailure.map { $0.at > destination.lastSuccess ?? Timestamp(nanoseconds: .min) }
        let isRetrying = destination.waitingForRetry > 0 && hasFailed == true
        self = destination.obstacle ?? (isRetrying ? .waitingForRetry : .active)
    }
}
