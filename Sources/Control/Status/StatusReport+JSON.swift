internal import EventLoops
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
            "edits": .strings(edits), "restart_edits": .strings(restartEdits),
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
            "retry_waiting": .integer(retryWaiting),
            "set_aside": .object(
                setAside.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .integer($0.value)) }),
            "lanes": .array(lanes.map(\.json)),
        ]
    }
}

extension StatusReport.Lane {
    fileprivate var json: JSONValue {
        let figures = Ledger.figures.map { JSONValue.Member($0.name, .integer(ledger[keyPath: $0.path])) }
        return JSONValue.object([.init("priority", .string(priority.name))] + figures)
            .adding("oldest_ms", JSONValue(oldest?.json)).adding("dead_letters", .integer(deadLetters))
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
}

extension StatusReport.Container {
    fileprivate var json: JSONValue {
        [
            "id": .string(id), "source": .string(source), "version": .string(version),
            "confirmed_ms": JSONValue(confirmed?.json), "problem": JSONValue(problem),
            "preview_ends_ms": JSONValue(previewEnds?.json),
        ]
    }
}

extension StatusReport.Override {
    fileprivate var json: JSONValue {
        ["setting": .string(setting), "value": .string(value), "origin": .string(origin)]
    }
}

extension Timestamp {
    fileprivate var json: JSONValue { .integer(Int(milliseconds)) }
}

extension JSONValue {
    fileprivate static func strings(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
}
