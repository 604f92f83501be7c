internal import Logs
internal import Model

/// The table: what a family counts is said in its help.
extension MetricFamily {
    package static let all: [MetricFamily] =
        ledger + intake + queue + delivery + spool + containers + agent + process

    private static let destination = Label.open("destination")
    private static let priority = Label.closed("priority", Priority.allCases.map(\.name))
    private static let seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

    // MARK: Ledger (durable: counts since the database was made)

    package static let deliveriesAccepted = ledgerCounter(
        "accepted", "Deliveries (an event for one of its destinations) taken into the queue.")
    package static let deliveriesRetried = ledgerCounter("retried", "Dead letters that a person sent back.")
    package static let deliveriesAcknowledged = ledgerCounter(
        "acknowledged", "Deliveries that the destination has confirmed.")
    package static let deliveriesDeadLettered = ledgerCounter(
        "dead_lettered", "Deliveries that the destination rejected for good; purging does not change it.")
    package static let deliveriesEvicted = ledgerCounter("evicted", "Deliveries that the storage cap forced out.")
    package static let deliveriesExpired = ledgerCounter(
        "expired", "Deliveries that grew older than queue.max_age, or the destination's own max_age.")
    package static let deliveriesDiscarded = ledgerCounter(
        "discarded", "Deliveries that a rule, disabled collection or a person took out.")
    package static let deliveriesLost = ledgerCounter("lost", "Deliveries that corruption took, beyond salvage.")
    package static let deliveriesQueued = MetricFamily(
        .gauge, "spoolship_deliveries_queued", "Deliveries that wait in the queue, in flight ones included.",
        [destination, priority])
    package static let ledgerBalanced = MetricFamily(
        .gauge, "spoolship_ledger_balanced",
        "1 if accepted + retried = acknowledged + dead-lettered + evicted + expired + discarded + lost + queued.")

    private static let ledger = [
        deliveriesAccepted, deliveriesRetried, deliveriesAcknowledged, deliveriesDeadLettered, deliveriesEvicted,
        deliveriesExpired, deliveriesDiscarded, deliveriesLost, deliveriesQueued, ledgerBalanced,
    ]

    private static func ledgerCounter(_ figure: String, _ help: String) -> MetricFamily {
        MetricFamily(.counter, "spoolship_deliveries_\(figure)_total", help, [destination, priority])
    }

    // MARK: Intake

    package static let eventsRead = MetricFamily(
        .counter, "spoolship_events_read_total", "Events read: accepted, refused or quarantined.")
    package static let eventsAccepted = MetricFamily(.counter, "spoolship_events_accepted_total", "Events taken.")
    package static let eventsRefused = MetricFamily(
        .counter, "spoolship_events_refused_total", "Events not taken: a limit, or a queue full of more important ones."
    )
    package static let eventsQuarantined = MetricFamily(
        .counter, "spoolship_events_quarantined_total", "Lines and files that could not be read as an event.")
    package static let quarantined = MetricFamily(
        .counter, "spoolship_quarantined_total", "What was put into quarantine since the start, by reason.",
        [.closed("reason", QuarantineRecord.Reason.allCases.map(\.rawValue))])
    package static let quarantineRecords = MetricFamily(
        .gauge, "spoolship_quarantine_records", "Records that lie in quarantine.")
    package static let quarantinePurged = MetricFamily(
        .counter, "spoolship_quarantine_purged_total",
        "Records removed by a person or by spool.quarantine_max_size, or never kept, since the database was made.")
    package static let filesStaying = MetricFamily(
        .gauge, "spoolship_spool_files_staying",
        "Files that were read and stay in the spool, because the quarantine could not hold all of their bad lines.")
    package static let quarantineBytes = MetricFamily(
        .gauge, "spoolship_quarantine_bytes", "Bytes that lie in quarantine.")
    package static let truncations = MetricFamily(
        .counter, "spoolship_event_truncations_total", "What the limits cut off events since the start, by kind.",
        [.closed("kind", ["name", "property_key", "property_value", "properties"])])
    package static let beyondLimit = MetricFamily(
        .counter, "spoolship_events_beyond_limit_total",
        "Events beyond a limit that were not cut since the start, by limit and what happened to them.",
        [
            .closed(
                "limit", ["event_names", "name_length", "properties", "property_key_length", "property_value_length"]),
            .closed("consequence", ["refuse", "quarantine", "allow"]),
        ])
    package static let oddities = MetricFamily(
        .counter, "spoolship_event_oddities_total",
        "What events said that was corrected or passed over since the start, by kind.",
        [
            .closed(
                "kind",
                [
                    "unknown_priority", "critical_denied", "unreadable_time", "unknown_country", "unknown_address",
                    "replaced_app", "repeated_member", "merged_property", "ignored_session_start", "unusable_id",
                    "no_time", "unusable_name", "repaired_utf8", "wrapped_text",
                ])
        ])
    package static let discards = MetricFamily(
        .counter, "spoolship_events_discarded_total", "Events discarded since the start, by reason or rule.",
        [.open("reason")])
    package static let eventNames = MetricFamily(
        .gauge, "spoolship_event_names", "Different event names of an app in this UTC day.", [.open("app")])
    package static let appEvents = MetricFamily(
        .counter, "spoolship_app_events_total",
        "Events and records that were read of an app since the start; the first 999 apps, all others as (others).",
        [.open("app")])
    package static let appRecords = MetricFamily(
        .counter, "spoolship_app_records_total", "How many of these were records, since the start.", [.open("app")])
    package static let appBytes = MetricFamily(
        .counter, "spoolship_app_bytes_total", "Bytes that were read of an app since the start.", [.open("app")])
    package static let appQuarantined = MetricFamily(
        .counter, "spoolship_app_quarantined_total", "Lines of an app that went to the quarantine since the start.",
        [.open("app")])
    package static let appLastRead = MetricFamily(
        .gauge, "spoolship_app_last_read_timestamp_seconds",
        "When the last event or record of an app was read, in seconds since 1970.", [.open("app")])
    package static let sessions = MetricFamily(
        .counter, "spoolship_sessions_started_total", "Sessions started since the start of the agent, by mode.",
        [.closed("mode", ["automatic", "manual", "event"])])
    package static let tagsFired = MetricFamily(
        .counter, "spoolship_container_tags_fired_total", "Tags fired since the start of the agent, by container.",
        [container])
    package static let ruleProblems = MetricFamily(
        .counter, "spoolship_container_problems_total",
        "What containers' rules could not do for an event since the start: one made too large is in quarantine, others went on as they came.",
        [
            .closed(
                "problem",
                [
                    "event_too_large", "function_not_allowed", "hash_key_missing", "not_a_name", "data_layer_full",
                    "unknown_destination",
                ])
        ])

    private static let intake = [
        eventsRead, eventsAccepted, eventsRefused, eventsQuarantined, quarantined, quarantineRecords, quarantineBytes,
        quarantinePurged, filesStaying,
        truncations, beyondLimit, oddities, discards, eventNames, appEvents, appRecords, appBytes, appQuarantined,
        appLastRead,
        sessions, tagsFired, ruleProblems,
    ]

    // MARK: Queue

    package static let queueBytes = MetricFamily(
        .gauge, "spoolship_queue_bytes", "What the queue holds, frames and metadata: the figure that the cap bounds.")
    package static let queueMaxBytes = MetricFamily(
        .gauge, "spoolship_queue_max_bytes", "The storage cap in force (queue.max_size).")
    package static let queueFileBytes = MetricFamily(
        .gauge, "spoolship_queue_file_bytes", "The size of the queue's files.",
        [.closed("file", ["database", "wal"])])
    package static let queueOldestAge = MetricFamily(
        .gauge, "spoolship_queue_oldest_age_seconds", "How long the oldest queued delivery has waited; 0 if none does.",
        [destination, priority])
    package static let queueBackpressure = MetricFamily(
        .gauge, "spoolship_queue_backpressure", "1 while reading waits for room in the queue or on its disk.")
    package static let queueCommits = MetricFamily(
        .counter, "spoolship_queue_commits_total", "Transactions of the queue since the start, by result.",
        [.closed("result", ["ok", "failed"])])
    package static let queueRecoveries = MetricFamily(
        .counter, "spoolship_queue_recoveries_total",
        "Corrupt databases that were moved aside and salvaged since the start.")
    package static let queueUnknownLosses = MetricFamily(
        .counter, "spoolship_queue_unknown_losses_total",
        "Corrupt databases that were salvaged without knowing how many events were lost, since the first one was made.")
    package static let queueCapRefused = MetricFamily(
        .gauge, "spoolship_queue_max_size_refused",
        "1 while queue.max_size is below what is stored at the start, and the old one stays in force.")
    package static let deadLetters = MetricFamily(
        .gauge, "spoolship_dead_letters", "Dead letters that are kept: neither purged nor sent again.",
        [destination, priority])
    package static let deadLetterBytes = MetricFamily(
        .gauge, "spoolship_dead_letters_bytes", "Bytes of the dead letters that are kept.")
    package static let deadLettersPurged = MetricFamily(
        .counter, "spoolship_dead_letters_purged_total",
        "Dead letters removed by a person or by dead_letters.max_size since the database was made.")

    private static let queue = [
        queueBytes, queueMaxBytes, queueFileBytes, queueOldestAge, queueBackpressure, queueCommits,
        queueRecoveries, queueUnknownLosses, queueCapRefused, deadLetters, deadLetterBytes, deadLettersPurged,
    ]

    // MARK: Delivery

    package static let attempts = MetricFamily(
        .counter, "spoolship_delivery_attempts_total", "Attempts to send a batch since the start, by outcome.",
        [
            destination,
            .closed(
                "outcome",
                ["acknowledged", "partial", "retry", "retry_after", "too_large", "rejected", "held", "offline"]),
        ])
    package static let failures = MetricFamily(
        .counter, "spoolship_delivery_failures_total", "Attempts that failed since the start, by kind of failure.",
        [destination, .closed("kind", Failure.Kind.allCases.map(\.rawValue))])
    package static let responses = MetricFamily(
        .counter, "spoolship_delivery_responses_total", "Answers since the start, by HTTP status.",
        [destination, .open("code")])
    package static let inFlight = MetricFamily(
        .gauge, "spoolship_delivery_in_flight", "Batches that are being sent.", [destination])
    package static let retries = MetricFamily(
        .counter, "spoolship_delivery_retries_total", "Attempts after a batch's first since the start.", [destination])
    package static let retryWaiting = MetricFamily(
        .gauge, "spoolship_delivery_retry_waiting", "Batches that wait for their retry.", [destination])
    package static let attemptSeconds = MetricFamily(
        .histogram, "spoolship_delivery_duration_seconds", "How long attempts took.", [destination], buckets: seconds)
    package static let sentBytes = MetricFamily(
        .counter, "spoolship_delivery_sent_bytes_total", "Bytes of request bodies sent since the start, as compressed.",
        [destination])
    package static let valuesLeftOut = MetricFamily(
        .counter, "spoolship_delivery_values_left_out_total",
        "Values of acknowledged events that the format has no place for or had to change, since the start.",
        [destination])
    package static let unnamedRejections = MetricFamily(
        .counter, "spoolship_delivery_unnamed_rejections_total",
        "Events that a destination rejected without saying which (OTLP partial success), since the start: acknowledged.",
        [destination])
    package static let lastAcknowledged = MetricFamily(
        .gauge, "spoolship_delivery_last_acknowledged_timestamp_seconds",
        "When a destination last acknowledged something (Unix time); 0 if never.", [destination])
    package static let destinationState = MetricFamily(
        .gauge, "spoolship_destination_state", "1 for the state that a destination is in, 0 for the others.",
        [destination, .closed("state", DestinationStateName.allCases.map(\.rawValue))])
    package static let destinations = MetricFamily(
        .gauge, "spoolship_destinations", "Destinations that the configuration names; 0 means that nothing is read.")
    package static let certificateExpiry = MetricFamily(
        .gauge, "spoolship_destination_certificate_expiry_timestamp_seconds",
        "When a certificate that we use for a destination, or its own as last seen in a handshake, ends (Unix time).",
        [destination, .closed("certificate", ["ca", "client", "server"])])
    package static let lateEvents = MetricFamily(
        .counter, "spoolship_deadline_late_events_total",
        "Events acknowledged after their deadline since the start, by deadline.", [.open("deadline")])

    private static let delivery = [
        attempts, failures, responses, inFlight, retries, retryWaiting, attemptSeconds, sentBytes, valuesLeftOut,
        unnamedRejections, lastAcknowledged,
        destinations, destinationState, certificateExpiry, lateEvents,
    ]

    // MARK: Spool

    package static let spoolLagBytes = MetricFamily(
        .gauge, "spoolship_spool_lag_bytes", "Bytes in the spool that are not in the queue yet.")
    package static let spoolLagSeconds = MetricFamily(
        .gauge, "spoolship_spool_lag_seconds",
        "How long the oldest unread data has waited in the spool; 0 if none does.")
    package static let spoolFiles = MetricFamily(
        .gauge, "spoolship_spool_files", "Files of the spool that the agent knows, by kind.",
        [.closed("kind", ["append", "drop"])])
    package static let spoolOpenFiles = MetricFamily(
        .gauge, "spoolship_spool_open_files", "Files of the spool that are held open.")
    package static let spoolReadBytes = MetricFamily(
        .counter, "spoolship_spool_read_bytes_total", "Bytes read from the spool since the start.")
    package static let spoolGivenUpBytes = MetricFamily(
        .counter, "spoolship_spool_given_up_bytes_total",
        "Bytes that were truncated or deleted before they could be read, since the start.")
    package static let spoolRefusedFiles = MetricFamily(
        .gauge, "spoolship_spool_refused_files",
        "Files that are not read: permission those of now, the other reasons all since the start.",
        [
            .closed(
                "reason",
                [
                    "symbolic_link", "hard_link", "not_regular", "other_file_system", "too_deep", "permission",
                ]
            )
        ])
    package static let spoolPolling = MetricFamily(
        .gauge, "spoolship_spool_polling", "1 while the spool is polled because it cannot be watched.")
    package static let spoolFilesFinished = MetricFamily(
        .counter, "spoolship_spool_files_finished_total", "Files that were read to their end since the start, by kind.",
        [.closed("kind", ["append", "drop"])])
    package static let spoolFilesRemoved = MetricFamily(
        .counter, "spoolship_spool_files_removed_total",
        "Files removed or archived after they were read, since the start.")
    package static let spoolRotations = MetricFamily(
        .counter, "spoolship_spool_rotations_total",
        "Append files that lost their name to rotation or deletion, since the start.")
    package static let spoolTruncations = MetricFamily(
        .counter, "spoolship_spool_truncations_total",
        "Append files that became shorter or were rewritten, since the start.")
    package static let spoolLinesTooLong = MetricFamily(
        .counter, "spoolship_spool_lines_too_long_total",
        "Lines and events longer than spool.max_event_size, quarantined since the start.")
    package static let spoolZeroBytes = MetricFamily(
        .counter, "spoolship_spool_zero_bytes_total",
        "Zeros before lines that were passed over since the start: a file was made longer and not filled.")
    package static let spoolWatchOverflows = MetricFamily(
        .counter, "spoolship_spool_watch_overflows_total",
        "How often changes came faster than the kernel keeps them and all was listed again, since the start.")
    package static let spoolLeaseWaits = MetricFamily(
        .counter, "spoolship_spool_lease_waits_total",
        "How often a file's opening was put off because somebody holds a file lease on it, since the start.")
    package static let spoolErrors = MetricFamily(
        .counter, "spoolship_spool_errors_total",
        "Failed system calls on the spool that reading survives, each logged, since the start.")
    package static let spoolSecondTries = MetricFamily(
        .gauge, "spoolship_spool_second_tries",
        "Files and directories of the spool that wait for a second try after a failed system call, by reason.",
        [
            .closed(
                "reason",
                [
                    "descriptors", "memory", "permission", "read_only", "no_room", "missing", "input_output", "other",
                ])
        ])
    package static let spoolPassedOver = MetricFamily(
        .gauge, "spoolship_spool_passed_over_files", "Files that are not read because of the ends of their names.")
    package static let spoolUnreadBoundPassed = MetricFamily(
        .gauge, "spoolship_spool_unread_bound_passed",
        "1 while the queue evicts because spool.max_unread is passed and nothing is acknowledged.")

    package static let journalEntries = MetricFamily(
        .counter, "spoolship_journal_entries_total", "Entries of the journal that were read since the start, by app.",
        [.open("app")])
    package static let journalCutEntries = MetricFamily(
        .counter, "spoolship_journal_cut_entries_total",
        "Entries of the journal that were cut to spool.max_event_size since the start, by app.", [.open("app")])
    package static let journalGaps = MetricFamily(
        .counter, "spoolship_journal_gaps_total",
        "How often entries of the journal were removed before they were read, since the start, by app.", [.open("app")])
    package static let journalReadable = MetricFamily(
        .gauge, "spoolship_journal_readable", "1 while the journal can be read, by app.", [.open("app")])

    private static let spool = [
        journalEntries, journalCutEntries, journalGaps, journalReadable,
        spoolLagBytes, spoolLagSeconds, spoolFiles, spoolOpenFiles, spoolReadBytes, spoolGivenUpBytes,
        spoolRefusedFiles, spoolPolling, spoolFilesFinished, spoolFilesRemoved, spoolRotations, spoolTruncations,
        spoolLinesTooLong, spoolZeroBytes, spoolWatchOverflows, spoolLeaseWaits, spoolErrors, spoolSecondTries,
        spoolPassedOver,
        spoolUnreadBoundPassed,
    ]

    // MARK: Containers

    private static let container = Label.open("container")
    package static let containerVersion = MetricFamily(
        .gauge, "spoolship_container_version", "The version of the container in force; 0 if it is empty.", [container])
    package static let containerSource = MetricFamily(
        .gauge, "spoolship_container_source",
        "1 for the source of the container in force, 0 for the others; preview while a draft rules.",
        [container, .closed("source", ["none", "default", "saved", "network", "preview"])])
    package static let containerHeldBackVersion = MetricFamily(
        .gauge, "spoolship_container_held_back_version",
        "Version that is published for a share of the agents, to which this one does not belong yet; 0 if there is none.",
        [container])
    package static let containerFresh = MetricFamily(
        .gauge, "spoolship_container_fresh",
        "1 while the container in force was confirmed within fresh_for, or has no url and a default.", [container])
    package static let containerConfirmed = MetricFamily(
        .gauge, "spoolship_container_confirmed_timestamp_seconds",
        "When the network last confirmed the container in force (Unix time); 0 if it never did.", [container])
    package static let containerRefreshes = MetricFamily(
        .counter, "spoolship_container_refreshes_total",
        "Refreshes of a container since the start, by type and result.",
        [
            container, .closed("type", ["saved", "network"]),
            .closed(
                "result",
                [
                    "success", "no_saved_container", "io_error", "no_network", "network_error", "server_error",
                    "unknown_error", "signature", "version", "form", "expired",
                ]),
        ])
    package static let containerAwaited = MetricFamily(
        .gauge, "spoolship_container_awaited",
        "1 while the container is required and no document of it rules: events of its apps are not read.", [container])
    package static let containerRefreshSuccessful = MetricFamily(
        .gauge, "spoolship_container_last_refresh_successful",
        "1 if the last fetch brought, or confirmed, a good document.", [container])
    package static let containerSettingsRefused = MetricFamily(
        .gauge, "spoolship_container_settings_refused",
        "Values of the container in force that may_set lets set settings and that no setting can have.", [container])
    package static let functionCalls = MetricFamily(
        .counter, "spoolship_function_calls_total", "Calls of functions since the start, by result.",
        [
            .open("function"),
            .closed(
                "result",
                [
                    "success", "cached", "unknown", "timeout", "exit", "bad_json", "too_large", "not_started", "busy",
                ]),
        ])
    package static let functionSeconds = MetricFamily(
        .histogram, "spoolship_function_duration_seconds",
        "How long a function's program ran, until it ended or was killed.", [.open("function")], buckets: seconds)
    package static let functionsRunning = MetricFamily(
        .gauge, "spoolship_function_running", "Processes of a function that run now.", [.open("function")])

    private static let containers = [
        containerVersion, containerHeldBackVersion, containerSource, containerFresh, containerConfirmed,
        containerRefreshes,
        containerAwaited, containerRefreshSuccessful, containerSettingsRefused, functionCalls, functionSeconds,
        functionsRunning,
    ]

    // MARK: Agent

    package static let build = MetricFamily(
        .info, "spoolship_build_info", "What runs here.", [.open("version"), .open("commit"), .open("toolchain")])
    package static let ready = MetricFamily(.gauge, "spoolship_ready", "1 if /readyz says yes.")
    package static let collectionEnabled = MetricFamily(
        .gauge, "spoolship_collection_enabled", "1 unless collection was disabled.")
    package static let networkEnabled = MetricFamily(
        .gauge, "spoolship_network_enabled", "1 unless the network was switched off.")
    package static let pauseTokens = MetricFamily(.gauge, "spoolship_pause_tokens", "Pause tokens that are held.")
    package static let dispatchInterval = MetricFamily(
        .gauge, "spoolship_dispatch_interval_seconds",
        "The dispatch interval in force where a destination has none of its own; 0 if periodic dispatch is off.")
    package static let reloadSuccessful = MetricFamily(
        .gauge, "spoolship_config_last_reload_successful", "1 if the configuration last read is in force.")
    package static let reloadTime = MetricFamily(
        .gauge, "spoolship_config_last_reload_success_timestamp_seconds",
        "When a configuration was last read and taken (Unix time).")
    package static let persistenceFailures = MetricFamily(
        .counter, "spoolship_persistence_failures_total",
        "What could not be made durable since the start, by what it was.",
        [.closed("what", ["queue", "state_file"])])
    package static let logMessages = MetricFamily(
        .counter, "spoolship_log_messages_total", "Log messages since the start, by level.",
        [.closed("level", LogLevel.allCases.map(\.name))])
    package static let logLinesSuppressed = MetricFamily(
        .counter, "spoolship_log_lines_suppressed_total",
        "Log lines that were not written because their reader was too slow or gone, since the start.")
    package static let requests = MetricFamily(
        .counter, "spoolship_http_requests_total",
        "Requests to the stats port and the control socket, by status class, since the start.",
        [.closed("server", ["stats", "control"]), .closed("code", ["2xx", "3xx", "4xx", "5xx"])])
    package static let connectionsCut = MetricFamily(
        .counter, "spoolship_http_connections_cut_total",
        "Connections to the stats port and the control socket that were cut, since the start: slow to ask or to read, "
            + "crowded out by another, busy (no place), or for a shortage of descriptors.",
        [
            .closed("server", ["stats", "control"]),
            .closed("reason", ["slow", "crowded", "busy", "shortage"]),
        ])
    package static let listenersReopened = MetricFamily(
        .counter, "spoolship_http_listeners_reopened_total",
        "Times that the stats port or the control socket did not answer the agent itself and was opened again, since the start.",
        [.closed("server", ["stats", "control"])])
    package static let freeBytes = MetricFamily(
        .gauge, "spoolship_filesystem_free_bytes",
        "Bytes that are free in the file system of a directory, by the last look.",
        [.closed("directory", ["spool", "state"])])
    package static let freeInodes = MetricFamily(
        .gauge, "spoolship_filesystem_free_inodes",
        "Files that the file system of a directory has room for, by the last look; missing where it counts none.",
        [.closed("directory", ["spool", "state"])])
    package static let clockSynchronised = MetricFamily(
        .gauge, "spoolship_clock_synchronised",
        "0 while the kernel says that its clock is not synchronised: nothing expires, no event's time counts as ahead."
    )
    package static let restartWouldFail = MetricFamily(
        .gauge, "spoolship_restart_would_fail",
        "1 while the configuration, or a file that it names, is such that a restart would fail; `spoolship status` says why."
    )
    package static let seriesSuppressed = MetricFamily(
        .gauge, "spoolship_metrics_series_suppressed", "Series left out of this answer because a family has too many.")

    private static let agent = [
        build, ready, collectionEnabled, networkEnabled, pauseTokens, dispatchInterval, reloadSuccessful, reloadTime,
        persistenceFailures, logMessages, logLinesSuppressed, requests, connectionsCut, listenersReopened,
        freeBytes, freeInodes, clockSynchronised, restartWouldFail,
        seriesSuppressed,
    ]

    // MARK: Process

    package static let processCPU = MetricFamily(
        .counter, "process_cpu_seconds_total", "User and system CPU time spent, in seconds.")
    package static let processResident = MetricFamily(
        .gauge, "process_resident_memory_bytes", "Resident memory size in bytes.")
    package static let processPrivate = MetricFamily(
        .gauge, "spoolship_process_private_memory_bytes",
        "Resident memory that is the process's own (RssAnon), in bytes.")
    package static let processVirtual = MetricFamily(
        .gauge, "process_virtual_memory_bytes", "Virtual memory size in bytes.")
    package static let processOpenDescriptors = MetricFamily(
        .gauge, "process_open_fds", "Number of open file descriptors.")
    package static let processMaxDescriptors = MetricFamily(
        .gauge, "process_max_fds", "Maximum number of open file descriptors.")
    package static let processStart = MetricFamily(
        .gauge, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.")

    private static let process = [
        processCPU, processResident, processPrivate, processVirtual, processOpenDescriptors, processMaxDescriptors,
        processStart,
    ]
}

/// The states that a destination can be in, as metrics, status and the control API call them.
///
/// What stands higher wins: everything is sent in the last one only.
public enum DestinationStateName: String, Sendable, CaseIterable {
    /// Collection is disabled.
    case disabled
    /// `network off`.
    case networkOff = "network_off"
    /// A pause token is held.
    case paused
    /// The agent is stopping.
    case stopping
    /// The destination or its settings are wrong: a person must look.
    case held
    /// The destination said when to come back.
    case retryAfter = "retry_after"
    /// No route leads to the destination.
    case offline
    /// Retries were used up: only probes go.
    case breakerOpen = "breaker_open"
    /// What is left failed and waits for its next try.
    case waitingForRetry = "waiting_for_retry"
    /// The configuration does not name it any more.
    case orphaned
    /// Nothing stands in the way.
    case active
}
