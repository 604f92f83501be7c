internal import Model

/// What librdkafka's error codes mean for a batch: one table. Negative codes are the library's own, the others the brokers'.
struct KafkaAnswer: Equatable {
    /// What is done with records that met it.
    enum Action: Equatable {
        /// They go again.
        case retry
        /// A person must look.
        case hold
        /// They are too many or too large for one request.
        case split
        /// One of them is not wanted.
        case bisect
    }

    let code: Int32
    let name: String
    let action: Action
    let kind: Failure.Kind
    let hint: String

    private init(_ code: Int32, _ name: String, _ action: Action, _ kind: Failure.Kind, _ hint: String) {
        self.code = code
        self.name = name
        self.action = action
        self.kind = kind
        self.hint = hint
    }

    /// What a code means for records.
    ///
    /// - Parameters:
    ///   - words: what the library said; for the record of the failure, not for the log.
    ///   - wireBytes: the record's size.
    ///   - isOwnTopic: whether the event names its topic: that it is not there is nobody else's trouble.
    /// - Returns: `acknowledged` for 0 alone.
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

    /// The row of a code. One that is not in the table may pass by itself: nothing is lost by trying again.
    static func find(_ code: Int32) -> KafkaAnswer {
        table.first { $0.code == code }
            ?? KafkaAnswer(
                code, "error \(code)", .retry, code < 0 ? .connection : .status,
                "an error that has no meaning here; see `spoolship status` as root for its words")
    }

    /// Source: Apache Kafka protocol guide, "Error codes"; librdkafka 2.0.2, rdkafka.h, `rd_kafka_resp_err_t`.
    static let table: [KafkaAnswer] = [
        // Too large.
        .init(
            10, "MSG_SIZE_TOO_LARGE", .split, .status,
            "larger than the topic's max.message.bytes, or message.max.bytes in options"),
        .init(18, "RECORD_LIST_TOO_LARGE", .split, .status, "larger than the broker's segment.bytes"),
        // The topic.
        .init(3, "UNKNOWN_TOPIC_OR_PART", .hold, .status, noTopic),
        .init(-188, "_UNKNOWN_TOPIC", .hold, .status, noTopic),
        .init(-190, "_UNKNOWN_PARTITION", .hold, .status, noTopic),
        .init(17, "TOPIC_EXCEPTION", .hold, .status, "the cluster does not take the topic's name; check kafka.topic"),
        // Credentials and permissions.
        .init(
            29, "TOPIC_AUTHORIZATION_FAILED", .hold, .status,
            "this user may not write to the topic; allow Write and Describe"),
        .init(
            31, "CLUSTER_AUTHORIZATION_FAILED", .hold, .status,
            "this user may not write idempotently; allow IdempotentWrite on the cluster (brokers before 2.8)"),
        .init(
            53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", .hold, .status,
            "this user may not write idempotently; allow IdempotentWrite on the cluster"),
        .init(-169, "_AUTHENTICATION", .hold, .status, badLogin),
        .init(58, "SASL_AUTHENTICATION_FAILED", .hold, .status, badLogin),
        .init(33, "UNSUPPORTED_SASL_MECHANISM", .hold, .status, "the brokers do not offer kafka.mechanism"),
        .init(34, "ILLEGAL_SASL_STATE", .hold, .status, badLogin),
        .init(54, "SECURITY_DISABLED", .hold, .status, "the brokers' security is off; take user out"),
        // Single records.
        .init(
            87, "INVALID_RECORD", .bisect, .status,
            "the broker does not want a record; a compacted topic wants a key in each"),
        .init(32, "INVALID_TIMESTAMP", .bisect, .status, "the broker does not want a record's time"),
        .init(44, "POLICY_VIOLATION", .bisect, .status, "a policy of the broker forbids a record"),
        // What the brokers cannot do.
        .init(
            43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", .hold, .status,
            "the topic's message format is too old for headers; set log.message.format.version to 0.11 or newer"),
        .init(
            76, "UNSUPPORTED_COMPRESSION_TYPE", .hold, .status,
            "the brokers do not read this compression; use gzip, or zstd from Kafka 2.1 on"),
        .init(35, "UNSUPPORTED_VERSION", .hold, .status, "the brokers are too old; Kafka 0.11 or newer is needed"),
        .init(-165, "_UNSUPPORTED_FEATURE", .hold, .status, "the brokers are too old; Kafka 0.11 or newer is needed"),
        .init(42, "INVALID_REQUEST", .hold, .status, "the broker does not understand the request; see its log"),
        .init(21, "INVALID_REQUIRED_ACKS", .hold, .status, "the broker does not take acks=all; see its log"),
        .init(40, "INVALID_CONFIG", .hold, .status, "the topic's configuration is wrong; see the broker's log"),
        .init(-186, "_INVALID_ARG", .hold, .local, "librdkafka does not take the record; check kafka.options"),
        // Replicas and leaders: they come back.
        .init(5, "LEADER_NOT_AVAILABLE", .retry, .status, "the partition has no leader just now"),
        .init(6, "NOT_LEADER_FOR_PARTITION", .retry, .status, "the partition has another leader by now"),
        .init(8, "BROKER_NOT_AVAILABLE", .retry, .status, "the broker is not available"),
        .init(9, "REPLICA_NOT_AVAILABLE", .retry, .status, "a replica is not available"),
        .init(19, "NOT_ENOUGH_REPLICAS", .retry, .status, fewReplicas),
        .init(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", .retry, .status, fewReplicas),
        .init(-183, "_ISR_INSUFF", .retry, .status, fewReplicas),
        .init(56, "KAFKA_STORAGE_ERROR", .retry, .status, "the broker's disk fails; see its log"),
        .init(57, "LOG_DIR_NOT_FOUND", .retry, .status, "the broker's disk fails; see its log"),
        .init(74, "FENCED_LEADER_EPOCH", .retry, .status, "the partition has another leader by now"),
        .init(75, "UNKNOWN_LEADER_EPOCH", .retry, .status, "the partition has another leader by now"),
        .init(89, "THROTTLING_QUOTA_EXCEEDED", .retry, .status, "the user's quota is used up"),
        .init(14, "COORDINATOR_LOAD_IN_PROGRESS", .retry, .status, "the cluster is starting"),
        .init(15, "COORDINATOR_NOT_AVAILABLE", .retry, .status, "the cluster is starting"),
        .init(16, "NOT_COORDINATOR", .retry, .status, "the cluster is moving work between brokers"),
        .init(2, "INVALID_MSG", .retry, .status, "the broker found the request damaged on the way"),
        .init(4, "INVALID_MSG_SIZE", .retry, .status, "the broker found the request damaged on the way"),
        .init(-1, "UNKNOWN", .retry, .status, "the broker failed; see its log"),
        // Ways and times.
        .init(-195, "_TRANSPORT", .retry, .connection, noWay),
        .init(-187, "_ALL_BROKERS_DOWN", .retry, .connect, noWay),
        .init(13, "NETWORK_EXCEPTION", .retry, .connection, noWay),
        .init(-193, "_RESOLVE", .retry, .resolve, "the name of a broker is not known; check kafka.brokers and DNS"),
        .init(
            -181, "_SSL", .retry, .tls,
            "TLS failed; check the port, tls.ca_file, and that the certificate is for the name in kafka.brokers"),
        .init(
            -199, "_BAD_MSG", .retry, .protocolViolation,
            "what answers is no Kafka broker; check the port in kafka.brokers"),
        .init(-192, "_MSG_TIMED_OUT", .retry, .timeout, late),
        .init(-185, "_TIMED_OUT", .retry, .timeout, late),
        .init(-166, "_TIMED_OUT_QUEUE", .retry, .timeout, late),
        .init(7, "REQUEST_TIMED_OUT", .retry, .timeout, "the replicas did not have it in time; see the brokers' logs"),
        // The producer itself: the next attempt has another one.
        .init(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", .retry, .status, ended),
        .init(46, "DUPLICATE_SEQUENCE_NUMBER", .retry, .status, ended),
        .init(47, "INVALID_PRODUCER_EPOCH", .retry, .status, ended),
        .init(49, "INVALID_PRODUCER_ID_MAPPING", .retry, .status, ended),
        .init(59, "UNKNOWN_PRODUCER_ID", .retry, .status, ended),
        .init(90, "PRODUCER_FENCED", .retry, .status, ended),
        .init(-144, "_FENCED", .retry, .status, ended),
        .init(-148, "_GAPLESS_GUARANTEE", .retry, .status, ended),
        .init(-149, "_INCONSISTENT", .retry, .status, ended),
        .init(-150, "_FATAL", .retry, .status, ended),
        .init(-151, "_PURGE_INFLIGHT", .retry, .connection, ended),
        .init(-152, "_PURGE_QUEUE", .retry, .connection, ended),
        .init(-172, "_STATE", .retry, .connection, ended),
        .init(-197, "_DESTROY", .retry, .connection, ended),
        // This machine.
        .init(-184, "_QUEUE_FULL", .retry, .local, "librdkafka's queue is full; see queue.buffering.max in options"),
        .init(-194, "_CRIT_SYS_RESOURCE", .retry, .local, "there is no memory for it, or no thread"),
        .init(-196, "_FAIL", .retry, .connection, "librdkafka failed"),
    ]

    private static let noTopic = "the cluster has no such topic or partition; create the topic, or check kafka.topic"
    private static let badLogin =
        "the brokers refuse these credentials; check user, password_file and kafka.mechanism, or oauth2; with Kafka 4,"
        + " SCRAM needs librdkafka 2.6.1 or newer"
    private static let fewReplicas = "too few replicas are in sync (min.insync.replicas)"
    private static let noWay =
        "no connection to the brokers; check kafka.brokers, kafka.tls and the addresses that they tell of"
        + " (advertised.listeners)"
    private static let late = "not acknowledged in time (request_timeout)"
    private static let ended = "the producer came to its end; the next attempt has another one"
}

/// Codes that are decided upon elsewhere.
enum KafkaCode {
    static let none: Int32 = 0
    static let queueFull: Int32 = -184
    static let allBrokersDown: Int32 = -187
    static let noAnswer: Int32 = -185
    static let timedOut: Int32 = -192
    static let noMemory: Int32 = -194
    static let noConnection: Int32 = -195
    static let destroyed: Int32 = -197
    static let unknownTopic: Set<Int32> = [3, -188]
    static let badLogin: Set<Int32> = [-169, 34, 58]
}
