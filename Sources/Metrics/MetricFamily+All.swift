internal import Logs
internal import Model

extension MetricFamily {
    /// The one table of all families.
    package static let table = MetricTable()

    /// All families, in the order of the table. By reflection, so that a new field cannot be forgotten in a
    /// list.
    package static let all = Mirror(reflecting: table).children.flatMap { child in
        (child.value as? MetricFamily).map { [$0] } ?? child.value as? [MetricFamily] ?? []
    }
}

/// Labels that many families share.
private let destination = MetricFamily.Label.open("destination")
private let priority = MetricFamily.Label.closed("priority", Priority.allCases.map(\.name))
private let container = MetricFamily.Label.open("container")
/// Buckets for durations: from 1 ms, a request on this machine, to 60 s.
private let seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/// Declares a counter of the agent.
private func counter(_ name: String, _ help: String, _ labels: MetricFamily.Label...) -> MetricFamily {
    MetricFamily(.counter, "spoolship_\(name)_total", help, labels)
}

/// Declares a gauge of the agent.
private func gauge(_ name: String, _ help: String, _ labels: MetricFamily.Label...) -> MetricFamily {
    MetricFamily(.gauge, "spoolship_\(name)", help, labels)
}

/// All families, grouped by what they are about. A family's help says what it counts; the comments say what
/// a person reads from it and where the figure comes from.
///
/// A new family needs a collector that sets it (see `Sources/Agent/Figures`), and then `scripts/generate`.
/// Counters with known labels are set to 0 from the start, because `increase()` does not see the first
/// sample of a series.
package struct MetricTable: Sendable {
    // MARK: Ledger (durable: counts since the database was made)

    /// The ledger, by destination and priority, in the order of `Ledger.figures`. Kept in the database in
    /// the same transaction as the events, so it survives restarts and crashes.
    package let deliveries: [MetricFamily] =
        [
            ("accepted", "Deliveries (an event for one of its destinations) taken into the queue."),
            ("retried", "Dead letters queued again by a command."),
            ("acknowledged", "Deliveries that the destination has confirmed."),
            (
                "dead_lettered",
                "Deliveries that the destination rejected permanently; purging does not change it."
            ),
            ("evicted", "Deliveries that the storage cap forced out."),
            (
                "expired",
                "Deliveries that grew older than queue.max_age, or the max_age of their destination or app."
            ),
            ("discarded", "Deliveries removed by a rule, a command, lack of consent or disabled collection."),
            ("lost", "Deliveries lost to corruption, beyond salvage."),
        ].map { counter("deliveries_\($0)", $1, destination, priority) } + [
            gauge(
                "deliveries_queued", "Deliveries that wait in the queue, including those in flight.",
                destination, priority)
        ]
    /// A consistency check over the ledger. 0 is a defect of the agent, and SpoolshipLedgerUnbalanced asks
    /// to report it.
    package let ledgerBalanced = gauge(
        "ledger_balanced",
        "1 if accepted + retried = acknowledged + dead-lettered + evicted + expired + discarded + lost + "
            + "queued."
    )

    // MARK: Intake

    /// Lines by their fate; kept in the database, like the ledger. read = accepted + refused + quarantined.
    package let eventsRead = counter("events_read", "Events read: accepted, refused or quarantined.")
    package let eventsAccepted = counter("events_accepted", "Events accepted.")
    package let eventsRefused = counter(
        "events_refused", "Events not accepted: a limit, or a queue full of more important ones.")
    package let eventsQuarantined = counter(
        "events_quarantined", "Lines and files that could not be read as an event.")
    /// Quarantined lines by reason, since the start only.
    package let quarantined = counter(
        "quarantined", "Lines and files put into quarantine since the start, by reason.",
        .closed("reason", QuarantineRecord.Reason.allCases.map(\.rawValue)))
    /// What the quarantine holds now; its size is bounded by `spool.quarantine_max_size`.
    package let quarantineRecords = gauge("quarantine_records", "Records in quarantine.")
    package let quarantineBytes = gauge("quarantine_bytes", "Bytes in quarantine.")
    package let quarantinePurged = counter(
        "quarantine_purged",
        "Records removed by a command or spool.quarantine_max_size, or never kept, since the database was "
            + "made."
    )
    /// Above 0, files are not removed although they were read: a person should look at their bad lines.
    package let filesStaying = gauge(
        "spool_files_staying",
        "Files that were read but stay in the spool, because the quarantine could not hold all of their bad "
            + "lines."
    )
    /// What the limits did to events: cut, or refused, quarantined and allowed.
    package let truncations = counter(
        "event_truncations", "Parts that the limits cut off events since the start, by kind.",
        .closed("kind", "name", "property_key", "property_value", "properties"))
    package let beyondLimit = counter(
        "events_beyond_limit",
        "Events beyond a limit that were not cut since the start, by limit and consequence.",
        .closed(
            "limit", "event_names", "name_length", "properties", "property_key_length",
            "property_value_length"),
        .closed("consequence", "refuse", "quarantine", "allow"))
    /// Mistakes of producers that did not keep an event from being read.
    package let oddities = counter(
        "event_oddities", "Members of events that were corrected or ignored since the start, by kind.",
        .closed(
            "kind", "unknown_priority", "critical_denied", "unreadable_time", "unknown_country",
            "unknown_address",
            "replaced_app", "repeated_member", "merged_property", "ignored_session_start", "unusable_id",
            "no_time",
            "unusable_name", "repaired_utf8", "wrapped_text"))
    /// Reasons of the agent (`no_destination`, `disabled`, `purged`, …), or names of rules.
    package let discards = counter(
        "events_discarded",
        "Deliveries that were discarded, by reason or rule; an event counts once for each destination.",
        .open("reason"))
    package let schemaEvents = counter(
        "schema_events",
        "Events that were compared with the schema of their name since the start, by result.",
        .open("app"), .open("event"), .open("version"), .closed("result", "valid", "invalid"))
    package let dedupIDs = gauge("dedup_ids", "Ids of events that are remembered to find repeats.")
    package let dedupForgotten = counter(
        "dedup_forgotten",
        "Ids that were forgotten before the end of dedup.window since the start, because there were"
            + " too many.")
    /// Names that contain a number or an id make this grow, until the limit `event_names` acts.
    package let eventNames = gauge(
        "event_names", "Distinct event names of an app in this UTC day.", .open("app"))
    /// Figures by app. An app is a directory that anybody may make, so the number of series is bounded.
    package let appEvents = counter(
        "app_events",
        "Events and records that were read of an app since the start; the first 999 apps, all others as "
            + "(others).",
        .open("app"))
    package let appRecords = counter(
        "app_records", "How many of these were records, since the start.", .open("app"))
    package let appBytes = counter(
        "app_bytes", "Bytes that were read of an app since the start.", .open("app"))
    package let appQuarantined = counter(
        "app_quarantined", "Lines of an app that went to the quarantine since the start.", .open("app"))
    package let appExpired = counter(
        "app_expired",
        "Deliveries of an app's events that grew too old (max_age of queue, destination or app) since the"
            + " start; those of unknown apps as (others).", .open("app"))
    package let appLinesNotParsed = counter(
        "app_lines_not_parsed",
        "Lines of an app that did not match its format (parse, pattern) since the start.",
        .open("app"))
    package let appBrokenJSON = counter(
        "app_broken_json",
        "Lines of an app that begin with { and are not JSON since the start: sent as text, if the app has "
            + "no format.",
        .open("app"))
    /// Shows an app that has become silent.
    package let appLastRead = gauge(
        "app_last_read_timestamp_seconds",
        "When the last event or record of an app was read, in seconds since 1970.",
        .open("app"))
    package let sessions = counter(
        "sessions_started", "Sessions started since the start of the agent, by mode.",
        .closed("mode", "automatic", "manual", "event"))
    package let tagsFired = counter(
        "container_tags_fired", "Tags fired since the start of the agent, by container.", container)
    package let ruleEvents = counter(
        "rule_events", "Events on which a rule of the configuration has acted since the start of the agent.",
        .open("rule"))
    /// `event_too_large` means that events were lost to a rule (SpoolshipEventsMadeTooLarge); with the
    /// other problems events were sent unchanged.
    package let ruleProblems = counter(
        "container_problems",
        "Container rules that could not be applied to an event since the start: one made too large is in "
            + "quarantine, others were sent as they came.",
        .closed(
            "problem", "event_too_large", "function_not_allowed", "app_not_listening", "hash_key_missing",
            "not_a_name", "throttle_full", "data_layer_full", "unknown_destination"))

    // MARK: Queue

    /// Compared with `queue_max_bytes` by SpoolshipQueueNearlyFull.
    package let queueBytes = gauge(
        "queue_bytes", "Bytes in the queue, frames and metadata: the figure that the cap bounds.")
    package let queueMaxBytes = gauge("queue_max_bytes", "The storage cap in force (queue.max_size).")
    /// Size on the disk, free pages included; the database gives free pages back step by step.
    package let queueFileBytes = gauge(
        "queue_file_bytes", "The size of the queue's files.", .closed("file", "database", "wal"))
    /// The delay that a receiver sees; in SpoolshipNothingAcknowledged it distinguishes an idle destination
    /// from a dead one.
    package let queueOldestAge = gauge(
        "queue_oldest_age_seconds", "How long the oldest queued delivery has waited; 0 if none does.",
        destination,
        priority)
    /// While this is 1, apps still write to the spool, which grows.
    package let queueBackpressure = gauge(
        "queue_backpressure", "1 while reading waits for room in the queue or on its disk.")
    package let queueCommits = counter(
        "queue_commits", "Transactions of the queue since the start, by result.",
        .closed("result", "ok", "failed"))
    /// Damage to the database. If the number of lost events is unknown, `queue_unknown_losses` counts the
    /// damage instead.
    package let queueRecoveries = counter(
        "queue_recoveries", "Corrupt databases that were moved aside and salvaged since the start.")
    package let queueUnknownLosses = counter(
        "queue_unknown_losses",
        "Corrupt databases that were salvaged without knowing how many events were lost, since the first "
            + "one was made."
    )
    /// A cap below the size that is stored is not applied: the old one stays in force until less is stored
    /// and the agent is reloaded.
    package let queueCapRefused = gauge(
        "queue_max_size_refused",
        "1 while the old cap stays in force, because queue.max_size was below the size stored at the start.")
    /// Kept in the database until they are purged or sent again.
    package let deadLetters = gauge(
        "dead_letters", "Dead letters that are kept: neither purged nor sent again.", destination, priority)
    package let deadLetterBytes = gauge("dead_letters_bytes", "Bytes of the dead letters that are kept.")
    package let deadLettersPurged = counter(
        "dead_letters_purged",
        "Dead letters removed by a command or dead_letters.max_size since the database was made.")

    // MARK: Delivery

    /// Outcomes of attempts since the start; `failures` has the kind of each failure, `responses` its
    /// status.
    package let attempts = counter(
        "delivery_attempts", "Attempts to send a batch since the start, by outcome.", destination,
        .closed(
            "outcome", "acknowledged", "partial", "retry", "retry_after", "too_large", "rejected", "held",
            "offline"))
    package let failures = counter(
        "delivery_failures", "Attempts that failed since the start, by kind of failure.", destination,
        .closed("kind", Failure.Kind.allCases.map(\.rawValue)))
    package let responses = counter(
        "delivery_responses", "Answers since the start, by HTTP status.", destination, .open("code"))
    /// State of the batches now, from the delivery's snapshot.
    package let inFlight = gauge("delivery_in_flight", "Batches that are being sent.", destination)
    package let retries = counter(
        "delivery_retries", "Attempts after a batch's first since the start.", destination)
    package let retryWaiting = gauge(
        "delivery_retry_waiting", "Batches that wait for their retry.", destination)
    package let setAside = gauge(
        "delivery_set_aside",
        "Events that are kept beside the others: too many of their app were rejected, or they fail alone.",
        destination)
    /// Time from the begin of an attempt to its outcome, with encoding and waiting.
    package let attemptSeconds = MetricFamily(
        .histogram, "spoolship_delivery_duration_seconds", "How long attempts took.", [destination],
        buckets: seconds)
    package let sentBytes = counter(
        "delivery_sent_bytes", "Bytes of request bodies sent since the start, as compressed.", destination)
    /// Data that a receiver does not get although its event was acknowledged, because the format has no
    /// place for it.
    package let valuesLeftOut = counter(
        "delivery_values_left_out",
        "Values of acknowledged events that the format has no place for or had to change, since the start.",
        destination
    )
    /// Events that a receiver did not store, because it had others under their ids, for example after a
    /// copied state directory.
    package let unexpectedRepeats = counter(
        "delivery_unexpected_repeats",
        "Events that a destination took for repeats, though they were never sent before, since the start: "
            + "acknowledged.",
        destination)
    package let templateFallbacks = counter(
        "delivery_template_fallbacks",
        "Events that lacked a value for a template (none), or had one beyond template_values (other), each "
            + "time that they were sent, since the start.", destination, .closed("value", "none", "other"))
    /// Lost events: OTLP says how many were rejected, not which, and forbids sending them again.
    package let unnamedRejections = counter(
        "delivery_unnamed_rejections",
        "Events that a destination rejected without saying which (OTLP partial success), since the start: "
            + "acknowledged.",
        destination)
    /// A time rather than an age, as Prometheus recommends: the age is computed at the query.
    package let lastAcknowledged = gauge(
        "delivery_last_acknowledged_timestamp_seconds",
        "When a destination last acknowledged something (Unix time); 0 if never.", destination)
    package let destinations = gauge(
        "destinations", "Destinations that the configuration names; 0 means that nothing is read.")
    /// One series for each state, so that an alert can name the state it is about.
    package let destinationState = gauge(
        "destination_state", "1 for the state that a destination is in, 0 for the others.", destination,
        .closed("state", DestinationStateName.allCases.map(\.rawValue)))
    package let certificateExpiry = gauge(
        "destination_certificate_expiry_timestamp_seconds",
        "When a certificate used for a destination, or the destination's own as last seen in a handshake, "
            + "expires (Unix time).", destination, .closed("certificate", "ca", "client", "server"))
    /// Events that were acknowledged after the deadline of a view; see `[[deadline]]`.
    package let lateEvents = counter(
        "deadline_late_events", "Events acknowledged after their deadline since the start, by deadline.",
        .open("deadline"))

    // MARK: Spool and journals

    /// Figures of journals, by the app that reads each.
    package let journalEntries = counter(
        "journal_entries", "Entries of the journal that were read since the start, by app.", .open("app"))
    package let journalCutEntries = counter(
        "journal_cut_entries",
        "Entries of the journal that were cut to spool.max_event_size since the start, by app.",
        .open("app"))
    package let journalGaps = counter(
        "journal_gaps",
        "How often entries of the journal were removed before they were read, since the start, by app.",
        .open("app"))
    package let journalReadable = gauge(
        "journal_readable", "1 while the journal can be read, by app.", .open("app"))
    package let mountAnswers = gauge(
        "mount_answers",
        "1 while the file system of a mount that is read and may never answer (NFS, SMB, FUSE) answers,"
            + " by mount point.",
        .open("mount"))
    /// The backlog before the queue. Together with the queue's age it is the whole delay of an event.
    package let spoolLagBytes = gauge("spool_lag_bytes", "Bytes in the spool that are not in the queue yet.")
    package let spoolLagSeconds = gauge(
        "spool_lag_seconds", "How long the oldest unread data has waited in the spool; 0 if none does.")
    package let spoolFiles = gauge(
        "spool_files", "Files of the spool that the agent knows, by kind.", .closed("kind", "append", "drop"))
    package let spoolOpenFiles = gauge("spool_open_files", "Files of the spool that are held open.")
    package let spoolReadBytes = counter("spool_read_bytes", "Bytes read from the spool since the start.")
    /// Lost data: a file was truncated or deleted before it was read.
    package let spoolGivenUpBytes = counter(
        "spool_given_up_bytes",
        "Bytes that were truncated or deleted before they could be read, since the start.")
    /// Files that stay in the spool and are skipped, because reading them could be unsafe or is forbidden.
    package let spoolRefusedFiles = gauge(
        "spool_refused_files",
        "Files that are not read: for permission at present, for other reasons since the start.",
        .closed(
            "reason", "symbolic_link", "hard_link", "not_regular", "other_file_system", "too_deep",
            "permission"))
    /// Directories that inotify cannot watch are polled, which costs CPU time and delay.
    package let spoolPolling = gauge(
        "spool_polling", "1 while the spool is polled because it cannot be watched.")
    package let spoolFilesFinished = counter(
        "spool_files_finished", "Files that were read to their end since the start, by kind.",
        .closed("kind", "append", "drop"))
    package let spoolFilesRemoved = counter(
        "spool_files_removed", "Files removed or archived after they were read, since the start.")
    package let spoolRotations = counter(
        "spool_rotations", "Append files that lost their name to rotation or deletion, since the start.")
    package let spoolTruncations = counter(
        "spool_truncations", "Append files that became shorter or were rewritten, since the start.")
    package let spoolLinesTooLong = counter(
        "spool_lines_too_long",
        "Lines and events longer than spool.max_event_size, quarantined since the start.")
    /// Lines that may be incomplete.
    package let spoolUnclosedLines = counter(
        "spool_unclosed_lines",
        "Last lines without a line feed that counted as whole after ten minutes of silence, since the "
            + "start: their file was rotated or deleted, and no writer was seen to close it."
    )
    /// Zeros in the place of lines: a file's size was set, its content was not written (for example by a
    /// crash of the machine).
    package let spoolZeroBytes = counter(
        "spool_zero_bytes",
        "Zeros before lines that were skipped since the start: a file was extended but not filled.")
    /// Complete listings after inotify's queue overflowed (inotify(7), IN_Q_OVERFLOW).
    package let spoolWatchOverflows = counter(
        "spool_watch_overflows",
        "How often changes came faster than the kernel queues them and everything was listed again, since "
            + "the start."
    )
    package let spoolLeaseWaits = counter(
        "spool_lease_waits",
        "How often opening a file was postponed because of a file lease, since the start.")
    package let spoolErrors = counter(
        "spool_errors",
        "Failed system calls on the spool that reading survives, each logged, since the start.")
    /// Reading continues by itself once the obstacle is gone.
    package let spoolSecondTries = gauge(
        "spool_second_tries",
        "Files and directories of the spool that wait for a second try after a failed system call, by "
            + "reason.",
        .closed(
            "reason", "descriptors", "memory", "permission", "read_only", "no_room", "quota", "missing",
            "name_taken",
            "input_output", "other")
    )
    package let spoolUnfinishedLines = gauge(
        "spool_unfinished_lines",
        "Files whose last line has had no end for longer than a minute; status names them, at most 16."
    )
    package let spoolPassedOver = gauge(
        "spool_passed_over_files", "Files that are not read because of their names' endings.")
    package let spoolCrowdedDirectories = gauge(
        "spool_crowded_directories",
        "Directories with append files that wait: their app or owner has as many as the agent reads at once.")
    /// While this is 1, events are evicted for dead destinations, so that apps keep their room on the disk.
    package let spoolUnreadBoundPassed = gauge(
        "spool_unread_bound_passed",
        "1 while spool.when_full.max_unread is exceeded and events are evicted for destinations that "
            + "acknowledge nothing."
    )

    // MARK: Containers

    /// Compared across the fleet by SpoolshipContainerVersionsDiffer.
    package let containerVersion = gauge(
        "container_version", "The version of the container in force; 0 if it is empty.", container)
    package let containerHeldBackVersion = gauge(
        "container_held_back_version",
        "The version that is published for a share of the agents that does not include this one yet; 0 if "
            + "there is none.",
        container)
    package let containerSource = gauge(
        "container_source",
        "1 for the source of the container in force, 0 for the others; preview while a draft is in force.",
        container,
        .closed("source", "none", "default", "saved", "network", "preview"))
    /// 0 means that this machine may not have the published version.
    package let containerFresh = gauge(
        "container_fresh",
        "1 while the container in force was confirmed within 12 h, or has no url and a default.",
        container)
    package let containerConfirmed = gauge(
        "container_confirmed_timestamp_seconds",
        "When the network last confirmed the container in force (Unix time); 0 if it never did.", container)
    /// `signature`, `version`, `form` and `expired` mean that the published document was refused, and the
    /// one in force stays.
    package let containerRefreshes = counter(
        "container_refreshes", "Refreshes of a container since the start, by type and result.", container,
        .closed("type", "saved", "network"),
        .closed(
            "result", "success", "no_saved_container", "io_error", "no_network", "network_error",
            "server_error",
            "unknown_error", "signature", "version", "form", "expired"))
    package let containerAwaited = gauge(
        "container_awaited",
        "1 while the container is required and no document of it is in force: events of its apps are not "
            + "read.",
        container)
    package let containerRefreshSuccessful = gauge(
        "container_last_refresh_successful", "1 if the last fetch returned or confirmed a good document.",
        container)
    package let containerSettingsRefused = gauge(
        "container_settings_refused",
        "Values of the container in force that are invalid for the settings that may_set lets them set.",
        container)
    /// Calls of the programs that rules and macros may use.
    package let functionCalls = counter(
        "function_calls", "Calls of functions since the start, by result.", .open("function"),
        .closed(
            "result", "success", "cached", "unknown", "timeout", "exit", "bad_json", "too_large",
            "not_started", "busy")
    )
    package let functionSeconds = MetricFamily(
        .histogram, "spoolship_function_duration_seconds",
        "How long a function's program ran, until it ended or was killed.", [.open("function")],
        buckets: seconds)
    package let functionsRunning = gauge(
        "function_running", "Running processes of a function.", .open("function"))

    // MARK: Agent

    /// Always 1; joined with other figures to compare versions.
    package let build = MetricFamily(
        .info, "spoolship_build_info", "Version, commit and toolchain of the agent.",
        [.open("version"), .open("commit"), .open("toolchain")])
    /// What `/readyz` says, for alerts without a probe; `obstacles` divides the reasons.
    package let ready = gauge("ready", "1 if /readyz says yes.")
    package let obstacles = gauge(
        "obstacles", "Reasons why /readyz says no, by what they are about.",
        .closed("of", "agent", "destination"))
    /// The switches of commands, which stay in force across restarts: SpoolshipSwitchedOff asks after a day
    /// whether that was meant.
    package let collectionEnabled = gauge("collection_enabled", "1 unless collection was disabled.")
    package let networkEnabled = gauge("network_enabled", "1 unless the network was switched off.")
    package let pauseTokens = gauge("pause_tokens", "Pause tokens that are held.")
    package let dispatchInterval = gauge(
        "dispatch_interval_seconds",
        "The dispatch interval in force for destinations without their own; 0 if periodic dispatch is off.")
    /// 0 means that the file on the disk is not what is in force.
    package let reloadSuccessful = gauge(
        "config_last_reload_successful", "1 if the configuration last read is in force.")
    package let reloadTime = gauge(
        "config_last_reload_success_timestamp_seconds",
        "When a configuration was last read and applied (Unix time).")
    /// Failed writes to the state directory: nothing is made durable in the meantime.
    package let persistenceFailures = counter(
        "persistence_failures", "Writes that could not be made durable since the start, by what was written.",
        .closed("what", "queue", "state_file"))
    package let logMessages = counter(
        "log_messages", "Log messages since the start, by level.",
        .closed("level", LogLevel.allCases.map(\.name)))
    /// Gaps in the agent's own log.
    package let logLinesSuppressed = counter(
        "log_lines_suppressed",
        "Log lines that were not written because their reader was too slow or had gone, since the start.")
    package let requests = counter(
        "http_requests",
        "Requests to the stats port and the control socket, by status class, since the start.",
        .closed("server", "stats", "control"), .closed("code", "2xx", "3xx", "4xx", "5xx"))
    /// Reasons are those of `ServerFigures.cut`.
    package let connectionsCut = counter(
        "http_connections_cut",
        "Connections to the stats port and the control socket that were cut, since the start: slow to ask "
            + "or to read, crowded out by another, busy (no place), or a shortage of descriptors.",
        .closed("server", "stats", "control"), .closed("reason", "slow", "crowded", "busy", "shortage"))
    package let listenersReopened = counter(
        "http_listeners_reopened",
        "Times that the stats port or the control socket did not answer the agent and was reopened, since "
            + "the start.",
        .closed("server", "stats", "control"))
    /// Room on the disks that the agent depends on, as of the last look; a scrape never waits for a disk.
    package let freeBytes = gauge(
        "filesystem_free_bytes", "Free bytes in the file system of a directory, when last checked.",
        .closed("directory", "spool", "state"))
    package let freeInodes = gauge(
        "filesystem_free_inodes",
        "Free inodes in the file system of a directory, when last checked; missing if it does not count "
            + "them.",
        .closed("directory", "spool", "state"))
    /// With a wrong clock nothing may expire: ages would be wrong.
    package let clockSynchronised = gauge(
        "clock_synchronised",
        "0 while the kernel's clock is not synchronised: nothing expires, no event's time counts as ahead.")
    /// Found by trying the start of the agent with the present files.
    package let restartWouldFail = gauge(
        "restart_would_fail",
        "1 while a restart would fail because of the configuration or a file that it names; `spoolship "
            + "status` says why."
    )
    /// Above 0, this answer is incomplete.
    package let seriesSuppressed = gauge(
        "metrics_series_suppressed", "Series left out of this answer because a family has too many.")

    // MARK: Process

    /// Names of Prometheus' client libraries, so that common dashboards work.
    package let processCPU = MetricFamily(
        .counter, "process_cpu_seconds_total", "User and system CPU time spent, in seconds.")
    package let processResident = MetricFamily(
        .gauge, "process_resident_memory_bytes", "Resident memory size in bytes.")
    /// What the agent itself uses, without mapped files such as the database.
    package let processPrivate = gauge(
        "process_private_memory_bytes", "Private resident memory of the process (RssAnon), in bytes.")
    package let processVirtual = MetricFamily(
        .gauge, "process_virtual_memory_bytes", "Virtual memory size in bytes.")
    package let processOpenDescriptors = MetricFamily(
        .gauge, "process_open_fds", "Number of open file descriptors.")
    package let processMaxDescriptors = MetricFamily(
        .gauge, "process_max_fds", "Maximum number of open file descriptors.")
    package let processStart = MetricFamily(
        .gauge, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.")
}
