// What settings choose between and modules act on: each is said here once, with its word in the configuration.

package enum LineKind: String, Sendable, CaseIterable {
    /// An object whose `name` is a text is an event, any other object a record; with `log` each line is a record.
    case event, log
}

/// How serious an event or a record is: one of OpenTelemetry's six ranges.
public enum SeverityLevel: String, Sendable, CaseIterable {
    case trace, debug, info, warn, error, fatal
}

/// What a severity that is a bare number means.
public enum SeverityScale: String, Sendable, CaseIterable {
    /// 10 to 69 as pino and bunyan count, 100 to 600 as monolog does, 0 to 7 as syslog does under `PRIORITY`, 1 to 24 as
    /// OpenTelemetry does under `severity`; others mean nothing.
    case auto
    /// 0 (emergency) to 7 (debug).
    case syslog
    /// 1 (trace) to 24 (fatal), as OpenTelemetry counts.
    case otel
    /// 10 (debug) to 50 (critical), as Python's `levelno`.
    case python
}

/// What starts sessions. The word is also a metric label.
public enum SessionMode: String, Sendable, CaseIterable {
    /// The agent: one for each producer, and a new one when it was silent and is gone.
    case automatic
    /// The app, by `{"type": "start_session"}`, or a person, by command. Until then there is no session.
    case manual
    /// Nobody: no session ids but the events' own.
    case off
}

/// What happens to an event beyond a limit.
public enum LimitConsequence: String, Sendable, CaseIterable {
    /// What is too long is cut, what is too many is left out, and counted. A name too many is refused: it cannot be cut.
    case cut
    /// The event is refused and counted; its line is in quarantine.
    case refuse
    case quarantine
    /// Nothing happens, but it is counted.
    case allow
}

/// What a commit survives.
public enum Durability: String, Sendable, CaseIterable {
    /// A power cut: each commit is synced.
    case powerLoss = "power_loss"
    /// The death of the process. A power cut may repeat events, not lose any: the queue is synced before files go.
    case crash
}

/// What happens to an event for which the queue has no room.
public enum WhenFull: String, Sendable, CaseIterable {
    /// Reading stops until there is room; the events wait in the spool.
    case wait
    /// The oldest events of the lowest priority make room.
    case evict
}

/// Where the reading of a journal begins when nothing was read yet: with the newest boot, the oldest entry, or what is written from now on.
package enum JournalStart: String, Sendable, CaseIterable { case boot, beginning, now }

/// What is served of a container until the network has answered.
public enum ContainerOpening: String, Sendable, CaseIterable {
    /// The first of saved or network within the timeout, however old; then the default.
    case preferNonDefault = "prefer_non_default"
    /// A fresh one of saved and network within the timeout; then the saved one; then the default.
    case preferFresh = "prefer_fresh"
    /// The default at once, then saved, then network as they come.
    case immediate
}

/// What a destination's breaker does when a request has used up its retries.
public enum WhenExhausted: String, Sendable, CaseIterable {
    /// One batch is tried at every probe interval; success closes it.
    case probe
    /// Open until a restart, a network change or `resume`.
    case suspend
}

/// What an answer means for the batch that was sent.
public enum AnswerMeaning: String, Sendable, CaseIterable {
    case acknowledge
    /// The same batch goes again, by the backoff or when `Retry-After` says.
    case retry
    case split
    /// Some of its events are not wanted: it is bisected until they are found.
    case bisect
    /// Events are kept, a person must look.
    case hold
}

/// How OpenTelemetry's records are written; every receiver reads Protobuf.
package enum OTLPEncoding: String, Sendable, CaseIterable { case protobuf, json }

/// Encryption by S3, if the bucket's default is not enough.
public enum S3Encryption: String, Sendable, CaseIterable {
    /// With keys of the service.
    case service = "AES256"
    /// With the key management service, and the key that the bucket names. A key cannot be named here: libcurl 7.88 signs a
    /// header wrongly whose name begins with that of another.
    case keyManagement = "aws:kms"
}

/// What one message to NATS holds: a batch of lines, packed as the destination's compression says, or one event, as it is.
package enum NATSContent: String, Sendable, CaseIterable { case batch, event }

package enum KafkaMechanism: String, Sendable, CaseIterable {
    case plain = "PLAIN"
    case scramSHA256 = "SCRAM-SHA-256"
    case scramSHA512 = "SCRAM-SHA-512"
}
