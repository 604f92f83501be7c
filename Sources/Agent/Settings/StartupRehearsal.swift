package import Configuration
internal import Containers
internal import EventLoops
internal import Intake
internal import Logs
public import Model
internal import Outputs
internal import Queue
internal import Schemas

/// How a start would treat a configuration, found out without starting: for `check` and `RestartWatch`.
public struct StartupRehearsal: Sendable {
    /// A setting that a start refuses, and why.
    public struct Refusal: Sendable, Equatable {
        /// The setting: `destination.main.url`.
        public let setting: String
        /// What is wrong and what to do.
        public let message: String
        /// True if the start fails; otherwise it warns and continues without, or with what was in force.
        public var endsStart = true
    }

    private let settings: Settings
    private let version: String

    package init(_ settings: Settings, version: String) {
        self.settings = settings
        self.version = version
    }

    /// All that the start would refuse or warn of: settings without a meaning, a missing library, a cap below
    /// what is stored.
    public var refusals: [Refusal] {
        mistakes
            + settings.readingProblems.map {
                Refusal(setting: $0.setting, message: $0.message, endsStart: false)
            }
    }

    /// What a start on any machine would refuse: names of formats, patterns, paths.
    public var refusalsOfText: [Refusal] {
        settings.readingMistakeInText.map { [Refusal(setting: $0.setting, message: $0.message)] } ?? []
    }

    /// The refusals that can be found without asking for files or journals that may never answer.
    private var mistakes: [Refusal] {
        var found: [Refusal] = []
        func add(_ setting: String, _ message: String, endsStart: Bool = true) {
            found.append(Refusal(setting: setting, message: message, endsStart: endsStart))
        }
        for mistake in [settings.readingMistake, settings.fileMistake] {
            if let mistake {
                add(mistake.setting, mistake.message)
            }
        }
        if let mistake = settings.schemaMistake {
            add("schemas.directory", mistake)
        } else if let unused = try? settings.schemasForSample().set.unused, !unused.isEmpty {
            add(
                "schemas",
                "not used, because \(SchemaSet.winner) has a schema for the same events: "
                    + unused.joined(separator: ", "), endsStart: false)
        }
        if let app = settings.appOfUnknownZone {
            add("apps.\(app).time.zone", "is not a time zone that this system knows")
        }
        for destination in settings.destinations {
            let key = destination.kind == .kafka ? "kafka" : "url"
            if let message = refusal(of: destination) {
                add("destination.\(destination.name).\(key)", message)
            }
        }
        var queue: StoredQueue?
        do throws(QueueError) {
            queue = try StoredQueue.look(in: settings.agent.stateDirectory)
        } catch {
            let more = error.code == .corrupt ? "; a start saves what can be read" : ""
            add(
                "agent.state_directory", "has a queue that cannot be read: \(error.message)\(more)",
                endsStart: false)
        }
        // The queue of a newer version, or the database of another program.
        if let refusal = queue?.refusal {
            add("agent.state_directory", "cannot be used: \(refusal)")
        }
        // Not fatal: a start continues with the cap that was in force.
        if let stored = queue?.storedBytes, stored > settings.queue.maxSize {
            add(
                "queue.max_size",
                "is \(settings.queue.maxSize) bytes, but \(stored) are stored: a reload refuses it, and a "
                    + "start continues with the cap that was in force; give at least that much, or send or "
                    + "purge first",
                endsStart: false)
        }
        return found + (queue?.isOlder == true ? oldWays : [])
    }

    /// Settings whose default is different from that of an older version, if this queue was made by an older
    /// version: reported before the first start of this version.
    private var oldWays: [Refusal] {
        func isSet(_ prefix: String) -> Bool { settings.origins.keys.contains { $0.hasPrefix(prefix) } }
        var found: [Refusal] = []
        func tell(_ setting: String, _ message: String) {
            found.append(Refusal(setting: setting, message: "(upgrade) \(message)", endsStart: false))
        }
        if !isSet("limits.") {
            tell(
                "limits.like",
                "by default events are not cut; for the former limits write \"app_center\"")
        }
        if !isSet("queue.max_size") {
            tell("queue.max_size", "is 256MiB by default; it was \"10MiB\"")
        }
        if isSet("dispatch.batch_events.full"), settings.dispatch.batchEvents > 0,
            !isSet("dispatch.batch_events.max")
        {
            tell(
                "dispatch.batch_events",
                "batches grow with the backlog; to cap them, add max = \(settings.dispatch.batchEvents)"
            )
        }
        for destination in settings.destinations where destination.kind == .s3 {
            let name = "destination.\(destination.name)"
            guard !isSet(name + ".compression"), !isSet(name + ".interval") else { continue }
            tell(
                name,
                "the defaults are a minute and zstd; they were interval = \"6s\", compression = \"gzip\"")
        }
        return found
    }

    /// What the agent cannot do while this machine's clock is not synchronised; nil if it is, or if the
    /// kernel may not be asked.
    public static var clockComplaint: String? {
        guard kernelClockIsSynchronised() == false else { return nil }
        return
            "the clock is not synchronised (timedatectl): nothing expires and no event's time counts as ahead"
    }

    /// Why a start would fail: a destination that cannot be made of its settings and files, or an invalid key
    /// for hashes.
    var firstUnmakeable: String? {
        for destination in settings.destinations {
            if let refusal = refusal(of: destination, countsFiles: true) {
                return "destination \(destination.name): \(refusal)"
            }
        }
        do throws(AgentError) {
            _ = (
                try settings.hashKeys(), try settings.configuredRules(AgentFacts()),
                try settings.deliveryOptions()
            )
        } catch {
            return error.message
        }
        return mistakes.first(where: \.endsStart).map { "\($0.setting) \($0.message)" }
    }

    /// Why a destination cannot be made because of the files that its settings name, in the words of the
    /// start.
    public func fileRefusal(of destination: DestinationSettings) -> String? {
        refusal(of: destination) == nil ? refusal(of: destination, countsFiles: true) : nil
    }

    /// Destinations that no setting names, and how many events wait for them; empty if the queue is
    /// unreadable (see `refusals`).
    public var orphans: [(name: String, events: Int)] {
        let known = Set(settings.destinations.map(\.name))
        return ((try? StoredQueue.look(in: settings.agent.stateDirectory))?.waiting ?? []).filter {
            $0.deliveries > 0 && !known.contains($0.destination.text)
        }.map { ($0.destination.text, $0.deliveries) }
    }

    /// Opens a connection to a destination and closes it. It sends nothing, except its credentials to NATS
    /// and a signed GET to S3. Blocks for `connect_timeout` at most, with NATS for `request_timeout`.
    ///
    /// - Returns: what failed and what to do; nil if the connection succeeded.
    public func connect(to destination: DestinationSettings) -> String? {
        let http = HTTPOptions(destination, userAgent: "spoolship/\(version)")
        do {
            if destination.kind == .http, let failure = try HTTPHandshake.attempt(http) {
                return failure.message
            }
            do {
                return try ask(destination) { await $0.probe() }?.message
            } catch let error as OutputError where error.code == .unreadable {
                guard case .s3(let s3) = destination.reach else { throw error }
                // A systemd credential exists for the service only, so `check` cannot sign: try the
                // connection alone.
                return try HTTPHandshake.attempt(try http.ofBucket(s3))?.message
            }
        } catch {
            return "\(error)"
        }
    }

    /// Makes the output of a destination and asks it a question, on a loop of its own.
    ///
    /// - Throws: `AgentError` or `OutputError` if the output cannot be made.
    private func ask<Answer: Sendable>(
        _ destination: DestinationSettings,
        _ question: @escaping @Sendable (any MeasuredOutput) async -> Answer
    ) throws -> Answer {
        try EventLoop.runProgram(name: "check", failure: { $0 as any Error }) { loop in
            await question(try output(for: destination, on: loop))
        }
    }

    /// The output of a destination as the agent makes it, without a log.
    private func output(for destination: DestinationSettings, on loop: EventLoop) throws -> any MeasuredOutput
    {
        // The install id is made at the start; any id will do here.
        try destination.output(
            version: version, installID: StartupRehearsal.installID, hostName: hostName(),
            messages: MessagePaths(settings.apps.compactMapValues(\.message)), on: loop,
            writingLoop: { loop }, log: Log(NoLog()), time: SystemTime())
    }

    /// An id of no agent, in the form that App Center requires.
    private static let installID = "00000000-0000-4000-8000-000000000000"

    /// Sends one event to a destination as the agent would, with its credentials. Blocks for
    /// `request_timeout` at most.
    public func sendTestEvent(to destination: DestinationSettings) -> TestDelivery {
        let batch = TestEvent(at: SystemTime().wallTime).batch(for: DestinationName(destination.name))
        do {
            let sent = try ask(destination) { await $0.sendShowingAnswers(batch) }
            return TestDelivery(sent.outcome, sent.answers)
        } catch {
            return TestDelivery(notMade: "\(error)")
        }
    }

    /// What a reachable destination lacks: columns of a ClickHouse table (`DESCRIBE TABLE`), a stream of NATS
    /// (`STREAM.INFO`). Sends the credentials. Blocks like `connect`.
    ///
    /// - Returns: the message, and whether the server would refuse every batch; nil if there is nothing to
    ///   report.
    public func complaint(of destination: DestinationSettings) -> (message: String, isRefused: Bool)? {
        switch destination.reach {
        case .http(let http) where http.format == .ndjson:
            return tableComplaint(of: destination, http.batchIDParameter)
        case .nats:
            do {
                return try ask(destination) { await ($0 as? NATSOutput)?.streamComplaint() }
            } catch {
                return ("its stream cannot be checked: \(error)", false)
            }
        case .http(let http) where http.format.name == .elasticsearch && destination.isByEvent:
            return ("events fill in its index: write access to each cannot be checked", false)
        case .kafka where destination.isByEvent:
            return (
                "events fill in its topic: missing topics cannot be found; their events become dead letters",
                false
            )
        default: return nil
        }
    }

    /// Whether inserts are asynchronous, which would make the batch's id useless; nil if the server does not
    /// tell.
    ///
    /// - Parameter parameter: the query parameter that carries the batch's id.
    private func insertsAsynchronously(
        _ destination: DestinationSettings, _ parameter: String?
    ) throws -> Bool? {
        guard parameter == "insert_deduplication_token" else { return false }
        return try ask(destination) { output in
            guard let output = output as? HTTPOutput else { return false }
            return await output.insertsAsynchronously()
        }
    }

    /// Compares the table's columns with the members that each event has.
    private func tableComplaint(
        of destination: DestinationSettings, _ parameter: String?
    ) -> (message: String, isRefused: Bool)? {
        let members =
            ["name", "timestamp", "app", "observed_at", "id"]
            + (settings.session.mode == .off ? [] : ["session_id"])
            + (settings.device.properties.isEmpty ? [] : ["device"])
            + (settings.places.isEmpty && settings.journals.isEmpty ? [] : ["host_name"])
        do {
            let isAsynchronous = try insertsAsynchronously(destination, parameter)
            if isAsynchronous == true {
                return (
                    "inserts are asynchronous and ignore the token: repeats would be stored twice; add"
                        + " async_insert=0 to the url", true
                )
            }
            switch try ask(destination, { await ($0 as? HTTPOutput)?.compareTable(with: members) }) {
            case nil, .notClickHouse, .columns(_, [], _):
                guard isAsynchronous == nil else { return nil }
                return (
                    "the server does not say whether inserts are asynchronous, which would ignore the token;"
                        + " add async_insert=0 to the url", false
                )
            case .failed(let failure): return ("its table cannot be checked: \(failure.message)", false)
            case .columns(let table, let missing, let isRefused):
                let names = missing.joined(separator: ", ")
                return (
                    "the table \(table) has no column for \(names): "
                        + (isRefused
                            ? "the server refuses such events; add columns, or "
                                + "input_format_skip_unknown_fields=1 to the url"
                            : "they are left out there"),
                    isRefused
                )
            }
        } catch {
            return ("its table cannot be checked: \(error)", false)
        }
    }

    /// Why the output of a destination cannot be made; with `countsFiles` also because of its files.
    private func refusal(of destination: DestinationSettings, countsFiles: Bool = false) -> String? {
        do {
            if case .kafka(let kafka) = destination.reach {
                let options = KafkaOptions(destination, kafka)
                try KafkaOutput.rehearse(DestinationName(destination.name), options, log: Log(NoLog()))
                return nil
            }
            _ = try output(for: destination, on: try EventLoop(name: "check"))
            return nil
        } catch let error as OutputError {
            // `check` reports problems with files at their own settings, and the agent waits for a file that
            // does not answer.
            guard error.code != .unanswered else { return nil }
            // Errors that do not depend on files are always reported.
            return countsFiles || [.invalidSetting, .library].contains(error.code) ? error.message : nil
        } catch {
            return "\(error)"
        }
    }
}

/// A log that discards everything: commands report in their own words.
struct NoLog: LogSink {
    let level = LogLevel.error
    func write(_ message: LogMessage) {}
}
