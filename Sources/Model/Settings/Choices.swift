// The choices that settings offer and modules act on. Each raw value is the word in the configuration.

/// Whether a line that is JSON is an event or a record.
package enum LineKind: String, Sendable, CaseIterable {
    /// With `event`, an object whose `name` is a string is an event, any other object a record. With
    /// `log`, each line is a record.
    case event, log
}

/// How serious an event or a record is: the six ranges of OpenTelemetry's severity numbers.
public enum SeverityLevel: String, Sendable, CaseIterable {
    case trace, debug, info, warn, error, fatal
}

/// What a severity means that is a bare number.
public enum SeverityScale: String, Sendable, CaseIterable {
    /// Judged by value: 10 to 69 as in pino and bunyan, 100 to 600 as in monolog, 0 to 7 as in syslog under
    /// `PRIORITY`, 1 to 24 as in OpenTelemetry under `severity`. Other numbers mean nothing.
    case auto
    /// 0 (emergency) to 7 (debug).
    case syslog
    /// 1 (trace) to 24 (fatal), as in OpenTelemetry.
    case otel
    /// 10 (debug) to 50 (critical), Python's `levelno`.
    case python
}

/// What starts sessions. The word is also a metric label.
public enum SessionMode: String, Sendable, CaseIterable {
    /// The agent starts a session for each producer, and a new one after the producer was silent and
    /// has ended.
    case automatic
    /// The app, by `{"type": "start_session"}`, or a person, by command. Until then there is no
    /// session.
    case manual
    /// The agent assigns no session ids; those of the events are kept.
    case off
}

/// What happens to an event beyond a limit.
public enum LimitConsequence: String, Sendable, CaseIterable {
    /// Longer texts are cut, further members left out, both counted. An event whose name exceeds the number
    /// of names is refused, because a shorter name would be another name.
    case cut
    /// The event is refused and counted; its line goes to the quarantine.
    case refuse
    case quarantine
    /// The event is stored and the excess is counted.
    case allow
}

/// What a commit survives.
public enum Durability: String, Sendable, CaseIterable {
    /// A power cut: each commit is synced.
    case powerLoss = "power_loss"
    /// The end of the process. A power cut may repeat events but lose none, because the queue is synced
    /// before files are removed.
    case crash
}

/// What happens to an event that the queue has no room for.
public enum WhenFull: String, Sendable, CaseIterable {
    /// Reading stops until there is room; the events wait in the spool.
    case wait
    /// The oldest events of the lowest priority are evicted.
    case evict
}

/// Where reading a journal begins the first time: at the newest boot, at the oldest entry, or with
/// entries written from now on.
package enum JournalStart: String, Sendable, CaseIterable { case boot, beginning, now }

/// Which copy of a container applies until the network has answered.
public enum ContainerOpening: String, Sendable, CaseIterable {
    /// The first of saved or network copy within the timeout, however old; after that the default.
    case preferNonDefault = "prefer_non_default"
    /// The first fresh one of saved and network copy within the timeout; after that the saved copy,
    /// then the default.
    case preferFresh = "prefer_fresh"
    /// The default at once, then the saved and the network copy as they arrive.
    case immediate
}

/// What a destination's breaker does when a request has used up its retries.
public enum WhenExhausted: String, Sendable, CaseIterable {
    /// The breaker lets one batch pass at each probe interval; a success closes it.
    case probe
    /// The breaker stays open until a restart, a network change or `resume`.
    case suspend
}

/// What an answer means for the batch.
public enum AnswerMeaning: String, Sendable, CaseIterable {
    case acknowledge
    /// The same batch is sent again, after the backoff or when `Retry-After` says.
    case retry
    case split
    /// Some events of the batch are not accepted: the batch is bisected to find them.
    case bisect
    /// Events are kept and a person must look.
    case hold
}

/// The encoding of OpenTelemetry requests. Every receiver reads Protobuf.
package enum OTLPEncoding: String, Sendable, CaseIterable { case protobuf, json }

/// Encryption by S3, if the bucket's default is not sufficient.
public enum S3Encryption: String, Sendable, CaseIterable {
    /// With keys of S3.
    case service = "AES256"
    /// With the key management service and the key that the bucket names. A key cannot be named here:
    /// libcurl 7.88 signs a header wrongly if its name begins with that of another header.
    case keyManagement = "aws:kms"
}

/// What one message to NATS contains: a batch of lines, compressed as the destination says, or one
/// event, uncompressed.
package enum NATSContent: String, Sendable, CaseIterable { case batch, event }

/// SASL mechanisms, by their registered names.
package enum KafkaMechanism: String, Sendable, CaseIterable {
    case plain = "PLAIN"
    case scramSHA256 = "SCRAM-SHA-256"
    case scramSHA512 = "SCRAM-SHA-512"
}
