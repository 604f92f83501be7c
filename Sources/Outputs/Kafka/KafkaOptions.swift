internal import EventLoops
package import Model

/// How batches become records of a Kafka topic: the destination's settings, and times without a setting.
package struct KafkaOptions: Sendable, Equatable {
    package var settings: DestinationSettings
    /// What only a destination of type `kafka` has.
    package var kafka: KafkaSettings
    /// How long a producer without records is kept; default 5 s. As long as it exists, it wakes the process
    /// several times a second.
    package var idleTime = Duration.seconds(5)
    /// How long the library may try all addresses of all brokers after it has lost them; default 3 s.
    package var searchTime = Duration.seconds(3)

    package init(_ settings: DestinationSettings, _ kafka: KafkaSettings) {
        self.settings = settings
        self.kafka = kafka
    }

    /// Whether connections may lead to this machine only: without TLS, a broker elsewhere would get events
    /// in clear text.
    var staysHere: Bool { !kafka.tls && !settings.allowPlainHTTP }

    /// The source of access tokens; nil for other logins.
    ///
    /// - Throws: `OutputError` for an invalid address or an unreadable certificate.
    func tokens(on loop: EventLoop) throws(OutputError) -> OAuth2Client? {
        guard case .oauth2 = settings.login else { return nil }
        return try OAuth2Client(settings.oauth2, HTTPOptions(settings, userAgent: "spoolship"), on: loop)
    }

    /// Refuses a secret that cannot be used: a key that cannot sign assertions.
    ///
    /// - Throws: `OutputError` with code `badFile` or `invalidSetting`.
    func check(_ secret: Secret?) throws(OutputError) {
        guard case .oauth2 = settings.login, settings.oauth2.grant == .jwtBearer, let secret else { return }
        _ = try AssertionSigner(secret, settings.oauth2)
    }

    /// Refuses settings that the library cannot use, or that would break a promise of the agent.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func check() throws(OutputError) {
        for broker in kafka.brokers where NATSAddress(authority: broker, usualPort: 9092) == nil {
            throw OutputError(.invalidSetting, "\(broker) is not a broker of the form host:9092")
        }
        for name in kafka.options.keys.sorted() {
            if let reason = KafkaOptions.refusal(ofProperty: name) {
                throw OutputError(.invalidSetting, reason)
            }
        }
        for (name, _) in settings.sortedHeaders {
            try require(
                !KafkaOptions.ownHeaders.contains(name), "header \(name) is set by the agent; remove it")
        }
    }

    /// Headers that the agent adds to each record: the batch's id and the event's.
    static let ownHeaders = ["batch_id", "event_id"]

    /// Why a property must not be in `kafka.options`; nil if it may.
    static func refusal(ofProperty name: String) -> String? {
        ours.first { name == $0.property || $0.property.hasSuffix(".") && name.hasPrefix($0.property) }.map {
            "options has \(name): \($0.instead)"
        }
    }

    /// Properties that the agent sets, or that would break its promises, each with what to do instead. A
    /// dot at the end stands for all properties with that beginning.
    private static let ours: [(property: String, instead: String)] = [
        ("bootstrap.servers", "use kafka.brokers"),
        ("metadata.broker.list", "use kafka.brokers"),
        ("acks", "every record is acknowledged by all replicas in sync"),
        ("request.required.acks", "every record is acknowledged by all replicas in sync"),
        ("enable.idempotence", "it is always on"),
        ("transactional.id", "the agent does not use transactions"),
        ("delivery.report.only.error", "the agent must know what is stored"),
        ("compression.type", "use compression"), ("compression.codec", "use compression"),
        ("message.timeout.ms", "use request_timeout"), ("delivery.timeout.ms", "use request_timeout"),
        ("socket.connection.setup.timeout.ms", "use request_timeout"),
        ("security.protocol", "it follows from kafka.tls and user"),
        ("sasl.", "use user, password and kafka.mechanism, or oauth2; there are no other ways"),
        ("enable.ssl.certificate.verification", "certificates are always verified"),
        ("ssl.endpoint.identification.algorithm", "certificates are always verified"),
        ("ssl.ca.", "use tls.ca_file"), ("ssl.certificate.", "use tls.certificate"),
        ("ssl.key.", "use tls.certificate.key_file"), ("ssl.keystore.", "use tls.certificate"),
        ("debug", "the agent does not show the library's log"),
        ("plugin.library.paths", "the agent loads no plug-ins"),
        ("test.mock.", "events sent to a cluster in the agent's memory are lost"),
    ]
}
