internal import CKafka
internal import EventLoops
internal import Model

/// The settings of a destination as librdkafka's properties.
struct KafkaProperties {
    /// Largest answer of a broker that is read, in bytes.
    static let largestAnswer = 8 << 20

    /// The properties in the order of setting: the user's options come before those that must not change.
    let pairs: [(name: String, value: String)]
    /// The topic; nil if events name theirs.
    private let topic: String?
    /// Whether connections may lead to this machine only.
    private let staysHere: Bool

    /// - Parameters:
    ///   - authorities: certificates to trust, in PEM; empty for the system's.
    ///   - secret: the user's password. A client's secret for OAuth 2 goes to the token endpoint instead.
    ///   - connects: whether brokers are named; without them a producer only checks its properties.
    init(_ options: KafkaOptions, authorities: [UInt8], secret: Secret?, connects: Bool = true) {
        let settings = options.settings
        let kafka = options.kafka
        topic = kafka.topic.fields.isEmpty ? kafka.topic.text : nil
        staysHere = options.staysHere
        func milliseconds(_ duration: Duration, least: Int64 = 1) -> String {
            "\(max(least, Int64(duration / .milliseconds(1))))"
        }
        var pairs: [(String, String)] = [
            ("client.id", "spoolship"), ("socket.keepalive.enable", "true"),
            // Answers to producers are small. By default the library would accept 100 MB from any server
            // that announces as much.
            ("receive.message.max.bytes", "\(KafkaProperties.largestAnswer)"),
            // How long an unknown topic may have been created just now, so that the library waits for it.
            (
                "topic.metadata.propagation.max.ms",
                milliseconds(min(.seconds(10), settings.requestTimeout / 2))
            ),
        ]
        // As other destinations compress (`FrameCompressor`): a higher level costs more CPU than it saves
        // bytes.
        if settings.compression != .none {
            pairs.append(("compression.level", "1"))
        }
        pairs += kafka.options.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        pairs += [
            ("acks", "all"), ("enable.idempotence", "true"),
            // A mistyped topic must be an error, and not create a topic.
            ("allow.auto.create.topics", "false"),
            ("compression.type", settings.compression.name),
            ("message.timeout.ms", milliseconds(settings.requestTimeout)),
            // The library's minimum is a second.
            ("socket.connection.setup.timeout.ms", milliseconds(settings.connectTimeout, least: 1000)),
            (
                "security.protocol",
                (settings.login == nil ? "" : "sasl_") + (kafka.tls ? "ssl" : "plaintext")
            ),
        ]
        switch settings.login {
        case .password(let user, _):
            pairs += [
                ("sasl.mechanism", kafka.mechanism.rawValue), ("sasl.username", user),
                ("sasl.password", secret?.revealed ?? ""),
            ]
        case .oauth2: pairs.append(("sasl.mechanism", "OAUTHBEARER"))
        case nil, .token, .aws: break
        }
        if kafka.tls {
            pairs += [
                ("enable.ssl.certificate.verification", "true"),
                ("ssl.endpoint.identification.algorithm", "https"),
            ]
            if !authorities.isEmpty {
                pairs.append(("ssl.ca.pem", String(decoding: authorities, as: UTF8.self)))
            }
            // The library reads a certificate with its chain only from a file.
            if let file = settings.tls.certificateFile {
                pairs += [
                    ("ssl.certificate.location", file), ("ssl.key.location", settings.tls.keyFile ?? file),
                ]
            }
        }
        if connects {
            pairs.append(("bootstrap.servers", kafka.brokers.joined(separator: ",")))
        }
        self.pairs = pairs
    }

    /// Makes a producer.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` and the library's text.
    func open() throws(OutputError) -> OpaquePointer {
        guard let properties = ckafka_properties_new() else {
            throw OutputError(.library, "there is no memory for a producer")
        }
        var words = [CChar](repeating: 0, count: 512)
        for (name, value) in pairs where !ckafka_set(properties, name, value, &words, words.count) {
            ckafka_properties_free(properties)
            throw OutputError(.invalidSetting, "librdkafka refuses \(name): \(KafkaLibrary.text(words))")
        }
        guard let handle = ckafka_open(properties, topic, staysHere, &words, words.count) else {
            throw OutputError(.invalidSetting, "librdkafka creates no producer: \(KafkaLibrary.text(words))")
        }
        return handle
    }

    /// Makes a producer that connects to nothing, and ends it, to see whether the library accepts the
    /// properties.
    func rehearse() throws(OutputError) { ckafka_close(try open()) }
}

/// librdkafka, loaded at run time, and only if a destination needs it: few users have Kafka
/// ([why](../DESIGN.md#kafka-is-spoken-by-librdkafka-which-is-loaded-at-run-time)).
enum KafkaLibrary {
    /// Loads the library, unless that was done.
    ///
    /// - Throws: `OutputError` with code `library` and the name of the package to install.
    static func load() throws(OutputError) {
        var words = [CChar](repeating: 0, count: 512)
        guard !ckafka_load(&words, words.count) else { return }
        throw OutputError(
            .library,
            "type kafka needs librdkafka; install the package librdkafka1 (\(KafkaLibrary.text(words)))")
    }

    /// A text of the library as a string.
    static func text(_ words: [CChar]) -> String {
        String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
