internal import EventLoops
internal import Journal
internal import Model
internal import Queue
internal import Spool

extension StatusReport {
    /// The report as `GET /v1/status` sends it. Times are in milliseconds since 1970-01-01T00:00:00Z. Members
    /// may be added; those that exist keep their names and meaning, because programs read them.
    var json: JSONValue {
        [
            "version": .string(version), "host": .string(host), "host_news": .strings(hostNews),
            "process_id": .integer(processID),
            "started_ms": started.json,
            "now_ms": now.json, "ready": .bool(obstacles.isEmpty), "obstacles": .strings(obstacles),
            "collection_enabled": .bool(isEnabled), "network_on": .bool(isNetworkOn),
            "pause_tokens": .strings(pauseTokens), "interval": .string(interval),
            "interval_origin": .string(intervalOrigin), "log_level": .string(logLevel),
            "reload_problem": JSONValue(reloadProblem), "restart_problem": JSONValue(restartProblem),
            "edits": .strings(edits), "restart_edits": .strings(restartEdits),
            "balanced": .bool(balances),
            "intake": [
                "read": .integer(queue.intake.read), "accepted": .integer(queue.intake.accepted),
                "refused": .integer(queue.intake.refused), "quarantined": .integer(queue.intake.quarantined),
            ],
            "apps": .array(
                busiestApps.map { name, app in
                    [
                        "name": .string(name), "events": .integer(app.events - app.records),
                        "records": .integer(app.records), "bytes": .integer(app.bytes),
                        "quarantined": .integer(app.quarantined), "expired": .integer(app.expired),
                        "last_read_ms": JSONValue(app.lastRead?.json),
                    ]
                }),
            "destinations": .array(destinations.map(\.json)), "queue": queueJSON, "spool": spool.json,
            "rules": .array(rules.map { ["name": .string($0.name), "events": .integer($0.events)] }),
            "checks": .strings(checks), "containers": .array(containers.map(\.json)),
            "overrides": .array(
                overrides.map {
                    [
                        "setting": .string($0.setting), "value": .string($0.value),
                        "origin": .string($0.origin),
                    ]
                }),
        ]
    }

    /// The queue, the dead letters and the quarantine.
    private var queueJSON: JSONValue {
        [
            "bytes": .integer(queue.storedBytes), "max_bytes": .integer(queue.maxSize),
            "file_bytes": .integer(queue.fileBytes + queue.walBytes),
            "accepting": .string(accepting.word), "accepting_reason": JSONValue(accepting.reason),
            "growth_bytes_per_second": JSONValue(growth), "dead_letters": .integer(queue.deadLetters.count),
            "dead_letter_bytes": .integer(queue.deadLetters.bytes),
            "quarantined": .integer(queue.quarantine.count),
            "quarantine_bytes": .integer(queue.quarantine.bytes),
            "files_staying": .integer(queue.unkept.count), "staying_paths": .strings(stayingPaths),
            "quarantine_purged": .integer(queue.quarantine.purged),
            "dead_letters_purged": .integer(queue.deadLetters.purged),
        ]
    }
}

/// The elements of `destinations`. A member that does not apply is null, so that programs need not
/// distinguish missing from unknown.
extension StatusReport.Destination {
    fileprivate var json: JSONValue {
        [
            "name": .string(name), "address": JSONValue(address), "state": .string(state.rawValue),
            "since_ms": JSONValue(since?.json), "next_attempt_ms": JSONValue(nextAttempt?.json),
            "last_acknowledged_ms": JSONValue(lastAcknowledged?.json),
            "last_failure": JSONValue(
                lastFailure.map { failure, at -> JSONValue in
                    [
                        "status": JSONValue(failure.status), "kind": .string(failure.kind.rawValue),
                        "message": .string(failure.message), "answer": JSONValue(failure.words),
                        "at_ms": at.json,
                    ]
                }),
            "interval": JSONValue(interval), "pause_tokens": .strings(pauseTokens),
            "in_flight": .integer(inFlight),
            "retry_waiting": .integer(retryWaiting),
            "set_aside": .object(
                setAside.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .integer($0.value)) }),
            "unnamed_rejections": JSONValue(
                unnamedRejections.map {
                    ["events": .integer($0.events), "answer": JSONValue($0.words)] as JSONValue
                }),
            "lanes": .array(lanes.map(\.json)),
        ]
    }
}

/// The elements of `lanes`: one for each priority. The figures of the ledger have the names that they have in
/// metrics; see `Ledger.figures`.
extension QueueSnapshot.LaneState {
    fileprivate var json: JSONValue {
        let figures = Ledger.figures.map { JSONValue.Member($0.name, .integer(ledger[keyPath: $0.path])) }
        return JSONValue.object([.init("priority", .string(priority.name))] + figures)
            .adding("oldest_ms", JSONValue(oldestQueuedAt?.json)).adding(
                "dead_letters", .integer(deadLetters))
    }
}

/// The member `spool`. Places and journals are lists, because one app may read several.
extension StatusReport.Spool {
    fileprivate var json: JSONValue {
        [
            "directory": .string(directory), "lag_bytes": .integer(lagBytes),
            "lag_seconds": .integer(lagSeconds), "is_listed": .bool(isListed),
            "files": .integer(files), "waits": JSONValue(waits), "complaints": .strings(complaints),
            "second_tries": .object(
                secondTries.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .integer($0.value)) }),
            "second_try_files": .strings(secondTryPaths),
            "unfinished_lines": .array(
                unfinishedLines.map {
                    [
                        "app": .string($0.app), "file": .string($0.path), "bytes": .integer(Int($0.bytes)),
                        "since_ms": JSONValue($0.since.json),
                    ]
                }),
            "passed_over": .integer(passedOver),
            "places": .array(
                places.map { place, figures in
                    [
                        "app": .string(place.app), "directory": .string(place.root),
                        "is_there": .bool(figures?.root != nil),
                        "files": .integer(figures?.appendFiles ?? 0),
                        "unread_bytes": .integer(Int(figures?.unreadBytes.value ?? 0)),
                    ]
                }),
            "journals": .array(
                journals.map { app, directory, figures in
                    [
                        "app": .string(app), "directory": .string(directory ?? ""),
                        "entries": .integer(figures.entries), "gaps": .integer(figures.gaps),
                        "unreadable_files": .integer(figures.unreadableFiles),
                        "problem": JSONValue(figures.problem?.message),
                    ]
                }),
        ]
    }
}

/// The elements of `containers`.
extension StatusReport.Container {
    fileprivate var json: JSONValue {
        [
            "id": .string(id), "source": .string(source), "version": .string(version),
            "confirmed_ms": JSONValue(confirmed?.json), "problem": JSONValue(problem),
            "preview_ends_ms": JSONValue(previewEnds?.json),
        ]
    }
}

extension Timestamp {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fileprivate var json: JSONValue { .integer(Int(milliseconds)) }
}

extension JSONValue {
    /// An array of texts.
    static func strings(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
}
