internal import EventLoops
public import Model

/// How batches become records of one Kafka topic. Plain values; the agent's settings are mapped to them.
public struct KafkaOptions: Sendable, Equatable {
    /// How the agent shows who it is.
    public struct Login: Sendable, Equatable {
        /// How the password is proved.
        public var mechanism: KafkaMechanism
        /// The user.
        public var user: String
        /// Where the password is kept.
        public var password: SecretSource

        package init(_ mechanism: KafkaMechanism, user: String, password: SecretSource) {
            self.mechanism = mechanism
            self.user = user
            self.password = password
        }
    }

    /// Where records go.
    public var topic: String
    /// Brokers to begin with, `host:9092`; they tell of the others.
    public var brokers: [String]
    /// The member that is a record's key: its name, or a path with dots; nil: records have none. Default `session_id`.
    public var key: String? = "session_id"
    /// Headers of every record, besides the agent's own.
    public var headers: [HTTPOptions.Header] = []
    /// How records are packed, many together; default gzip.
    public var compression = Compression.gzip
    /// How the agent shows who it is; nil: not at all.
    public var login: Login?
    /// Whether TLS is spoken; default yes.
    public var usesTLS = true
    /// How the brokers are known. No pins, and TLS 1.2 or newer: the library has nothing for them.
    public var tls = TLSOptions()
    /// Whether plain text may leave the machine.
    public var allowPlainText = false
    /// The longest wait for a connection to one broker; default 10 s.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time for a batch, connection included; default 60 s.
    public var requestTimeout = Duration.seconds(60)
    /// The age at which a producer is not used again; default 10 min.
    public var connectionAge = Duration.seconds(600)
    /// How long a producer without records is kept; default 5 s. One that is kept wakes the process several times a second.
    public var idleTime = Duration.seconds(5)
    /// For so long after all brokers were lost the library tries them, and all their addresses; default 3 s.
    public var searchTime = Duration.seconds(3)
    /// More properties of librdkafka, by name.
    public var properties: [String: String] = [:]
    /// How the agent names itself to the brokers.
    public var agentName = "spoolship"

    /// A topic at some brokers, with the defaults for the rest.
    public init(topic: String, brokers: [String]) {
        self.topic = topic
        self.brokers = brokers
    }

    /// Whether connections may lead to this machine only.
    var staysHere: Bool { !usesTLS && !allowPlainText }

    /// Refuses settings without meaning.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func check() throws(OutputError) {
        try require(topic.isKafkaTopic, "the topic must be 1 to 249 letters, digits, dots, _ and -")
        try require(!brokers.isEmpty, "there is no broker")
        for broker in brokers {
            guard let address = NATSAddress(authority: broker, usualPort: 9092) else {
                throw OutputError(.invalidSetting, "\(broker) is no broker of the form host:9092")
            }
            try require(
                !staysHere || address.isLoopback,
                "without TLS every event to \(address.host) is seen on the way; use TLS, or allow it by name")
        }
        try require(
            tls.pinnedKeys.isEmpty && tls.minimumVersion == .tls12,
            "librdkafka has no pinned keys and no minimum version of TLS")
        for name in properties.keys.sorted() {
            if let reason = KafkaOptions.refusal(ofProperty: name) { throw OutputError(.invalidSetting, reason) }
        }
        for header in headers {
            try require(
                !KafkaOptions.ownHeaders.contains(header.name),
                "header \(header.name) is made by the agent; take it out")
        }
    }

    /// The headers that each record has: the batch's id and the event's.
    static let ownHeaders = ["batch_id", "event_id"]

    /// Why a property cannot be set in `properties`; nil when it can.
    static func refusal(ofProperty name: String) -> String? {
        ours.first { name == $0.property || $0.property.hasSuffix(".") && name.hasPrefix($0.property) }.map {
            "options has \(name): \($0.instead)"
        }
    }

    /// What the agent sets itself, or what would break its promises; with a dot at the end, all that begin so.
    private static let ours: [(property: String, instead: String)] = [
        ("bootstrap.servers", "the brokers are a setting of their own"),
        ("metadata.broker.list", "the brokers are a setting of their own"),
        ("acks", "every record is acknowledged by all replicas in sync"),
        ("request.required.acks", "every record is acknowledged by all replicas in sync"),
        ("enable.idempotence", "it is always on"),
        ("transactional.id", "the agent does not use transactions"),
        ("delivery.report.only.error", "the agent must learn of what is stored"),
        ("compression.type", "use compression"), ("compression.codec", "use compression"),
        ("message.timeout.ms", "use request_timeout"), ("delivery.timeout.ms", "use request_timeout"),
        ("socket.connection.setup.timeout.ms", "use connect_timeout"),
        ("security.protocol", "it follows from kafka.tls and user"),
        ("sasl.", "use user, password_file and kafka.mechanism; there are no other ways"),
        ("enable.ssl.certificate.verification", "certificates are always verified"),
        ("ssl.endpoint.identification.algorithm", "certificates are always verified"),
        ("ssl.ca.", "use tls.ca_file"), ("ssl.certificate.", "use tls.certificate_file"),
        ("ssl.key.", "use tls.key_file"), ("ssl.keystore.", "use tls.certificate_file"),
        ("debug", "the agent does not show what the library logs"),
        ("plugin.library.paths", "the agent loads no plug-ins"),
        ("test.mock.", "what is sent to a cluster in the agent's own memory is lost"),
    ]
}
