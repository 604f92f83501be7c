internal import Model

/// What an error code of librdkafka means for a batch; all codes are rows of one table. Negative codes are
/// the library's own, the others come from brokers.
struct KafkaAnswer: Equatable {
    /// What happens to the records that met the error.
    enum Action: Equatable {
        /// A condition that passes: the records are sent again.
        case retry
        /// The destination is held: a person must look.
        case hold
        /// The records are too many or too large for one request: the batch is split.
        case split
        /// One of the records is refused: the batch is bisected to find it.
        case bisect
    }

    /// librdkafka's number.
    let code: Int32
    /// The code's name in librdkafka.
    let name: String
    let action: Action
    /// The kind of failure, for metrics and for the decision whether the records may be stored.
    let kind: Failure.Kind
    /// The error, and what to check.
    let hint: String
    /// Whether the producer that met the error accepts no more records, so that the next attempt needs a
    /// new one.
    var endsProducer = false

    /// The outcome of records that met a code.
    ///
    /// - Parameters:
    ///   - words: the library's text; kept with the failure, never logged.
    ///   - wireBytes: size of the record, for a split.
    ///   - isOwnTopic: whether the event names its topic. If the topic is missing, only this event is
    ///     rejected, and the destination is not held.
    /// - Returns: `acknowledged` for code 0 only.
    static func outcome(
        of code: Int32, words: String = "", wireBytes: Int = 0, isOwnTopic: Bool = false
    ) -> Outcome {
        guard code != KafkaCode.none else { return .acknowledged }
        let meaning = find(code)
        let failure = Failure(
            kind: meaning.kind, message: "\(meaning.hint) (\(meaning.name))",
            excerpt: AnswerReader.excerpt(Array(words.utf8)))
        switch meaning.action {
        case .hold where isOwnTopic && KafkaCode.unknownTopic.contains(code):
            return .partial(rejected: [RejectedEvent(index: 0, failure: failure)], retry: [])
        case .retry: return .retry(failure)
        case .hold: return .held(failure)
        case .split: return .tooLarge(wireBytes: wireBytes, failure)
        case .bisect: return .rejected(failure)
        }
    }

    /// The row of a code. An unknown code counts as a condition that passes: a retry loses nothing.
    static func find(_ code: Int32) -> KafkaAnswer {
        table.first { $0.code == code }
            ?? KafkaAnswer(
                code: code, name: "error \(code)", action: .retry, kind: code < 0 ? .connection : .status,
                hint: "an unknown error; see `spoolship status` as root for its text")
    }

    /// The rows. Source: Apache Kafka protocol guide, "Error codes"; librdkafka 2.0.2, rdkafka.h,
    /// `rd_kafka_resp_err_t`.
    static let table: [KafkaAnswer] = [
        // Too large.
        rows(
            .split, "larger than the topic's max.message.bytes, or message.max.bytes in options",
            [10: "MSG_SIZE_TOO_LARGE"]),
        rows(.split, "larger than the broker's segment.bytes", [18: "RECORD_LIST_TOO_LARGE"]),
        // The topic.
        rows(
            .hold, "the cluster has no such topic or partition; create the topic, or check kafka.topic",
            [3: "UNKNOWN_TOPIC_OR_PART", -188: "_UNKNOWN_TOPIC", -190: "_UNKNOWN_PARTITION"]),
        rows(
            .hold, "the cluster does not accept the topic's name; check kafka.topic", [17: "TOPIC_EXCEPTION"]),
        // Credentials and permissions.
        rows(
            .hold, "this user may not write to the topic; allow Write and Describe",
            [29: "TOPIC_AUTHORIZATION_FAILED"]),
        rows(
            .hold,
            "this user may not write idempotently; allow IdempotentWrite on the cluster (brokers before 2.8)",
            [31: "CLUSTER_AUTHORIZATION_FAILED"]),
        rows(
            .hold, "this user may not write idempotently; allow IdempotentWrite on the cluster",
            [53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"]),
        rows(
            .hold,
            "the brokers refuse these credentials; check user, password and kafka.mechanism, or oauth2; with Kafka 4,"
                + " SCRAM needs librdkafka 2.6.1 or newer",
            [-169: "_AUTHENTICATION", 58: "SASL_AUTHENTICATION_FAILED", 34: "ILLEGAL_SASL_STATE"]),
        rows(.hold, "the brokers do not offer kafka.mechanism", [33: "UNSUPPORTED_SASL_MECHANISM"]),
        rows(.hold, "the brokers' security is off; remove user", [54: "SECURITY_DISABLED"]),
        // Single records.
        rows(
            .bisect, "the broker rejects a record; a compacted topic requires a key in each",
            [87: "INVALID_RECORD"]),
        rows(.bisect, "the broker rejects a record's time", [32: "INVALID_TIMESTAMP"]),
        rows(.bisect, "a policy of the broker forbids a record", [44: "POLICY_VIOLATION"]),
        // What the brokers cannot do.
        rows(
            .hold,
            "the topic's message format is too old for headers; set log.message.format.version to 0.11 or newer",
            [43: "UNSUPPORTED_FOR_MESSAGE_FORMAT"]),
        rows(
            .hold, "the brokers do not support this compression; use gzip, or zstd from Kafka 2.1 on",
            [76: "UNSUPPORTED_COMPRESSION_TYPE"]),
        rows(
            .hold, "the brokers are too old; Kafka 0.11 or newer is required",
            [35: "UNSUPPORTED_VERSION", -165: "_UNSUPPORTED_FEATURE"]),
        rows(.hold, "the broker does not understand the request; see its log", [42: "INVALID_REQUEST"]),
        rows(.hold, "the broker does not accept acks=all; see its log", [21: "INVALID_REQUIRED_ACKS"]),
        rows(.hold, "the topic's configuration is wrong; see the broker's log", [40: "INVALID_CONFIG"]),
        rows(
            .hold, kind: .local, "librdkafka does not accept the record; check kafka.options",
            [-186: "_INVALID_ARG"]),
        // Replicas and leaders: they come back.
        rows(.retry, "the partition has no leader at the moment", [5: "LEADER_NOT_AVAILABLE"]),
        rows(
            .retry, "the partition has a new leader",
            [6: "NOT_LEADER_FOR_PARTITION", 74: "FENCED_LEADER_EPOCH", 75: "UNKNOWN_LEADER_EPOCH"]),
        rows(.retry, "the broker is not available", [8: "BROKER_NOT_AVAILABLE"]),
        rows(.retry, "a replica is not available", [9: "REPLICA_NOT_AVAILABLE"]),
        rows(
            .retry, "too few replicas are in sync (min.insync.replicas)",
            [19: "NOT_ENOUGH_REPLICAS", 20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND", -183: "_ISR_INSUFF"]),
        rows(
            .retry, "the broker's disk fails; see its log",
            [56: "KAFKA_STORAGE_ERROR", 57: "LOG_DIR_NOT_FOUND"]),
        rows(.retry, "the user's quota is used up", [89: "THROTTLING_QUOTA_EXCEEDED"]),
        rows(
            .retry, "the cluster is starting",
            [14: "COORDINATOR_LOAD_IN_PROGRESS", 15: "COORDINATOR_NOT_AVAILABLE"]),
        rows(.retry, "the cluster is moving work between brokers", [16: "NOT_COORDINATOR"]),
        rows(
            .retry, "the request was damaged on its way to the broker",
            [2: "INVALID_MSG", 4: "INVALID_MSG_SIZE"]),
        rows(.retry, "the broker failed; see its log", [-1: "UNKNOWN"]),
        // Connections and timeouts.
        rows(.retry, kind: .connection, noWay, [-195: "_TRANSPORT", 13: "NETWORK_EXCEPTION"]),
        rows(.retry, kind: .connect, noWay, [-187: "_ALL_BROKERS_DOWN"]),
        rows(
            .retry, kind: .resolve, "the name of a broker is not known; check kafka.brokers and DNS",
            [-193: "_RESOLVE"]
        ),
        rows(
            .retry, kind: .tls,
            "TLS failed; check the port, tls.ca_file, and that the certificate is for the name in kafka.brokers",
            [-181: "_SSL"]),
        rows(
            .retry, kind: .protocolViolation,
            "the server is not a Kafka broker; check the port in kafka.brokers",
            [-199: "_BAD_MSG"]),
        rows(
            .retry, kind: .timeout, "not acknowledged in time (request_timeout)",
            [-192: "_MSG_TIMED_OUT", -185: "_TIMED_OUT", -166: "_TIMED_OUT_QUEUE"]),
        rows(
            .retry, kind: .timeout, "the replicas did not have it in time; see the brokers' logs",
            [7: "REQUEST_TIMED_OUT"]),
        // Fatal producer errors: the producer is replaced before the next attempt.
        rows(
            .retry, "the producer has ended; the next attempt uses a new one",
            [
                45: "OUT_OF_ORDER_SEQUENCE_NUMBER", 46: "DUPLICATE_SEQUENCE_NUMBER",
                47: "INVALID_PRODUCER_EPOCH",
                49: "INVALID_PRODUCER_ID_MAPPING", 59: "UNKNOWN_PRODUCER_ID", 90: "PRODUCER_FENCED",
                -144: "_FENCED",
                -148: "_GAPLESS_GUARANTEE", -149: "_INCONSISTENT", -150: "_FATAL",
            ], endProducer: true),
        rows(
            .retry, kind: .connection, "the producer has ended; the next attempt uses a new one",
            [-151: "_PURGE_INFLIGHT", -152: "_PURGE_QUEUE", -172: "_STATE", -197: "_DESTROY"],
            endProducer: true),
        // This machine.
        rows(
            .retry, kind: .local, "librdkafka's queue is full; see queue.buffering.max in options",
            [-184: "_QUEUE_FULL"]),
        rows(.retry, kind: .local, "there is no memory for it, or no thread", [-194: "_CRIT_SYS_RESOURCE"]),
        rows(.retry, kind: .connection, "librdkafka failed", [-196: "_FAIL"]),
    ].flatMap(\.self)

    /// Hint for brokers that cannot be reached.
    private static let noWay =
        "no connection to the brokers; check kafka.brokers, kafka.tls and the addresses that they announce"
        + " (advertised.listeners)"

    /// Rows of several codes with one meaning.
    private static func rows(
        _ action: Action, kind: Failure.Kind = .status, _ hint: String, _ codes: KeyValuePairs<Int32, String>,
        endProducer: Bool = false
    ) -> [KafkaAnswer] {
        codes.map {
            KafkaAnswer(
                code: $0.key, name: $0.value, action: action, kind: kind, hint: hint,
                endsProducer: endProducer)
        }
    }
}

/// Codes that the client treats in a special way; their names are in `KafkaAnswer.table`.
enum KafkaCode {
    /// No error: the record is stored.
    static let none: Int32 = 0
    /// The library's queue is full; reports will make room.
    static let queueFull: Int32 = -184
    /// No broker is connected.
    static let allBrokersDown: Int32 = -187
    /// A question was not answered in time.
    static let noAnswer: Int32 = -185
    /// A record was not acknowledged in time.
    static let timedOut: Int32 = -192
    /// No memory, or no thread.
    static let noMemory: Int32 = -194
    /// No broker could be reached.
    static let noConnection: Int32 = -195
    /// The producer has ended.
    static let destroyed: Int32 = -197
    /// The topic does not exist.
    static let unknownTopic: Set<Int32> = [3, -188]
    /// Errors with which brokers refuse the credentials.
    static let badLogin: Set<Int32> = [-169, 34, 58]
}
