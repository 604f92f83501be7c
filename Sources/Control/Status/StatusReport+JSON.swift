public import EventLoops
public import Model

extension StatusReport {
    /// The report as `GET /v1/status` sends it. Times are milliseconds since 1970-01-01T00:00:00Z.
    public var json: JSONValue {
        [
            "version": .string(version), "host": .string(host), "process_id": .integer(processID),
            "started_ms": started.json,
            "now_ms": now.json, "ready": .bool(obstacles.isEmpty), "obstacles": .strings(obstacles),
            "collection_enabled": .bool(isEnabled), "network_on": .bool(isNetworkOn),
            "pause_tokens": .strings(pauseTokens), "interval": .string(interval),
            "interval_origin": .string(intervalOrigin), "log_level": .string(logLevel),
            "reload_problem": JSONValue(reloadProblem), "restart_problem": JSONValue(restartProblem),
            "edits": .array(edits.map { .string($0) }),
            "balanced": .bool(balances),
            "intake": [
                "read": .integer(intake.read), "accepted": .integer(intake.accepted),
                "refused": .integer(intake.refused), "quarantined": .integer(intake.quarantined),
            ],
            "apps": .array(
                busiestApps.map { name, app in
                    [
                        "name": .string(name), "events": .integer(app.events - app.records),
                        "records": .integer(app.records), "bytes": .integer(app.bytes),
                        "quarantined": .integer(app.quarantined), "last_read_ms": JSONValue(app.lastRead?.json),
                    ]
                }),
            "destinations": .array(destinations.map(\.json)), "queue": queue.json, "spool": spool.json,
            "containers": .array(containers.map(\.json)), "overrides": .array(overrides.map(\.json)),
        ]
    }

    /// Reads a report; what is missing keeps its default, so that versions of agent and command may differ a little.
    ///
    /// - Throws: `ControlError` with code `badAnswer` when it is no report at all.
    public init(json: JSONValue) throws(ControlError) {
        guard let started = Timestamp(json["started_ms"]), let now = Timestamp(json["now_ms"]) else {
            throw ControlError(.badAnswer, "the agent's answer is no status report; is it another version?")
        }
        self.init(started: started, now: now)
        version = json.text("version")
        host = json.text("host")
        processID = json.count("process_id")
        obstacles = json.texts("obstacles")
        isEnabled = json["collection_enabled"]?.bool ?? true
        isNetworkOn = json["network_on"]?.bool ?? true
        pauseTokens = json.texts("pause_tokens")
        interval = json.text("interval")
        intervalOrigin = json.text("interval_origin")
        logLevel = json.text("log_level")
        reloadProblem = json["reload_problem"]?.string
        restartProblem = json["restart_problem"]?.string
        edits = json["edits"]?.array?.compactMap(\.string) ?? []
        if let intake = json["intake"] {
            self.intake.read = intake.count("read")
            self.intake.accepted = intake.count("accepted")
            self.intake.refused = intake.count("refused")
            self.intake.quarantined = intake.count("quarantined")
        }
        for app in json["apps"]?.array ?? [] {
            var counts = AppCounts()
            counts.records = app.count("records")
            counts.events = app.count("events") + counts.records
            counts.bytes = app.count("bytes")
            counts.quarantined = app.count("quarantined")
            counts.lastRead = Timestamp(app["last_read_ms"])
            apps[app.text("name")] = counts
        }
        destinations = (json["destinations"]?.array ?? []).map(Destination.init)
        queue = Queue(json["queue"] ?? .null)
        spool = Spool(json["spool"] ?? .null)
        containers = (json["containers"]?.array ?? []).map(Container.init)
        overrides = (json["overrides"]?.array ?? []).map(Override.init)
    }
}

extension StatusReport {
    /// The apps, the one with the most events first.
    var busiestApps: [(name: String, counts: AppCounts)] {
        apps.sorted { ($1.value.events, $0.key) < ($0.value.events, $1.key) }.map { ($0.key, $0.value) }
    }
}

extension StatusReport.Destination {
    fileprivate var json: JSONValue {
        [
            "name": .string(name), "address": JSONValue(address), "state": .string(state.rawValue),
            "since_ms": JSONValue(since?.json), "next_attempt_ms": JSONValue(nextAttempt?.json),
            "last_acknowledged_ms": JSONValue(lastAcknowledged?.json),
            "last_failure": JSONValue(
                lastFailure.map { failure -> JSONValue in
                    [
                        "status": JSONValue(failure.status), "kind": .string(failure.kind),
                        "message": .string(failure.message), "answer": JSONValue(failure.answer),
                        "at_ms": failure.at.json,
                    ]
                }),
            "interval": JSONValue(interval), "pause_tokens": .strings(pauseTokens), "in_flight": .integer(inFlight),
            "retry_waiting": .integer(retryWaiting), "lanes": .array(lanes.map(\.json)),
        ]
    }

    fileprivate init(_ json: JSONValue) {
        self.init(name: json.text("name"), state: DestinationStateName(rawValue: json.text("state")) ?? .active)
        address = json["address"]?.string
        since = Timestamp(json["since_ms"])
        nextAttempt = Timestamp(json["next_attempt_ms"])
        lastAcknowledged = Timestamp(json["last_acknowledged_ms"])
        if let failure = json["last_failure"], let at = Timestamp(failure["at_ms"]) {
            lastFailure = StatusReport.LastFailure(
                status: failure["status"]?.integer, kind: failure.text("kind"), message: failure.text("message"),
                answer: failure["answer"]?.string, at: at)
        }
        interval = json["interval"]?.string
        pauseTokens = json.texts("pause_tokens")
        inFlight = json.count("in_flight")
        retryWaiting = json.count("retry_waiting")
        lanes = (json["lanes"]?.array ?? []).compactMap(StatusReport.Lane.init)
    }
}

extension StatusReport.Lane {
    private static let figures: [(String, any WritableKeyPath<Ledger, Int> & Sendable)] = [
        ("accepted", \.accepted), ("retried", \.retried), ("acknowledged", \.acknowledged),
        ("dead_lettered", \.deadLettered), ("evicted", \.evicted), ("expired", \.expired),
        ("discarded", \.discarded), ("lost", \.lost), ("queued", \.queued),
    ]

    fileprivate var json: JSONValue {
        let figures = StatusReport.Lane.figures.map { JSONValue.Member($0.0, .integer(ledger[keyPath: $0.1])) }
        return .object(
            [.init("priority", .string(priority.name))] + figures
                + [.init("oldest_ms", JSONValue(oldest?.json)), .init("dead_letters", .integer(deadLetters))])
    }

    fileprivate init?(_ json: JSONValue) {
        guard let priority = Priority(name: json.text("priority")) else { return nil }
        var ledger = Ledger()
        for (name, path) in StatusReport.Lane.figures { ledger[keyPath: path] = json.count(name) }
        self.init(
            priority: priority, ledger: ledger, oldest: Timestamp(json["oldest_ms"]),
            deadLetters: json.count("dead_letters"))
    }
}

extension StatusReport.Queue {
    fileprivate var json: JSONValue {
        [
            "bytes": .integer(bytes), "max_bytes": .integer(maxBytes), "file_bytes": .integer(fileBytes),
            "accepting": .string(accepting), "accepting_reason": JSONValue(acceptingReason),
            "growth_bytes_per_second": JSONValue(growth), "dead_letters": .integer(deadLetters),
            "dead_letter_bytes": .integer(deadLetterBytes), "quarantined": .integer(quarantined),
            "quarantine_bytes": .integer(quarantineBytes),
            "files_staying": .integer(filesStaying), "staying_paths": .strings(stayingPaths),
            "quarantine_purged": .integer(quarantinePurged), "dead_letters_purged": .integer(deadLettersPurged),
        ]
    }

    fileprivate init(_ json: JSONValue) {
        self.init()
        bytes = json.count("bytes")
        maxBytes = json.count("max_bytes")
        fileBytes = json.count("file_bytes")
        accepting = json["accepting"]?.string ?? "all"
        acceptingReason = json["accepting_reason"]?.string
        growth = json["growth_bytes_per_second"]?.number
        deadLetters = json.count("dead_letters")
        deadLetterBytes = json.count("dead_letter_bytes")
        quarantined = json.count("quarantined")
        quarantineBytes = json.count("quarantine_bytes")
        quarantinePurged = json.count("quarantine_purged")
        filesStaying = json.count("files_staying")
        stayingPaths = json.texts("staying_paths")
        deadLettersPurged = json.count("dead_letters_purged")
    }
}

extension StatusReport.Spool {
    fileprivate var json: JSONValue {
        [
            "directory": .string(directory), "lag_bytes": .integer(lagBytes), "lag_seconds": .integer(lagSeconds),
            "files": .integer(files), "waits": JSONValue(waits), "complaints": .strings(complaints),
            "second_tries": .object(
                secondTries.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .integer($0.value)) }),
            "passed_over": .integer(passedOver),
            "places": .array(
                places.map { place in
                    [
                        "app": .string(place.app), "directory": .string(place.directory),
                        "is_there": .bool(place.isThere),
                        "files": .integer(place.files), "unread_bytes": .integer(place.unreadBytes),
                    ]
                }),
            "journals": .array(
                journals.map {
                    [
                        "app": .string($0.app), "directory": .string($0.directory), "entries": .integer($0.entries),
                        "gaps": .integer($0.gaps), "problem": JSONValue($0.problem),
                    ]
                }),
        ]
    }

    fileprivate init(_ json: JSONValue) {
        self.init()
        for member in json["second_tries"]?.members ?? [] { secondTries[member.key] = member.value.integer ?? 0 }
        passedOver = json.count("passed_over")
        directory = json.text("directory")
        lagBytes = json.count("lag_bytes")
        lagSeconds = json.count("lag_seconds")
        files = json.count("files")
        waits = json["waits"]?.string
        complaints = json.texts("complaints")
        if case .array(let all)? = json["places"] {
            places = all.map { place in
                Place(
                    app: place.text("app"), directory: place.text("directory"),
                    isThere: place["is_there"]?.bool ?? false,
                    files: place.count("files"), unreadBytes: place.count("unread_bytes"))
            }
        }
        if case .array(let all)? = json["journals"] {
            journals = all.map {
                Journal(
                    app: $0.text("app"), directory: $0.text("directory"), entries: $0.count("entries"),
                    gaps: $0.count("gaps"), problem: $0["problem"]?.string)
            }
        }
    }
}

extension StatusReport.Container {
    fileprivate var json: JSONValue {
        [
            "id": .string(id), "source": .string(source), "version": .string(version),
            "confirmed_ms": JSONValue(confirmed?.json), "problem": JSONValue(problem),
            "preview_ends_ms": JSONValue(previewEnds?.json),
        ]
    }

    fileprivate init(_ json: JSONValue) {
        self.init(
            id: json.text("id"), source: json.text("source"), version: json.text("version"),
            confirmed: Timestamp(json["confirmed_ms"]), problem: json["problem"]?.string,
            previewEnds: Timestamp(json["preview_ends_ms"]))
    }
}

extension StatusReport.Override {
    fileprivate var json: JSONValue {
        ["setting": .string(setting), "value": .string(value), "origin": .string(origin)]
    }

    fileprivate init(_ json: JSONValue) {
        self.init(setting: json.text("setting"), value: json.text("value"), origin: json.text("origin"))
    }
}

extension Timestamp {
    fileprivate var json: JSONValue { .integer(Int(milliseconds)) }

    fileprivate init?(_ json: JSONValue?) {
        guard let milliseconds = json?.integer else { return nil }
        self.init(milliseconds: Int64(milliseconds))
    }
}

extension JSONValue {
    fileprivate static func strings(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }

    fileprivate func text(_ key: String) -> String { self[key]?.string ?? "" }

    fileprivate func texts(_ key: String) -> [String] { (self[key]?.array ?? []).compactMap(\.string) }

    fileprivate func count(_ key: String) -> Int { self[key]?.integer ?? 0 }
}
