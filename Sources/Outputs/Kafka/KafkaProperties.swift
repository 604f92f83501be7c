internal import CKafka
internal import EventLoops
internal import Model

/// The library's properties for a destination: what the settings mean in its words.
struct KafkaProperties {
    /// The largest answer of a broker that is read, in bytes.
    static let largestAnswer = 8 << 20

    let pairs: [(name: String, value: String)]
    /// Nil where events name theirs.
    private let topic: String?
    private let staysHere: Bool

    /// - Parameters:
    ///   - authorities: the certificates that are trusted, in PEM; empty: the system's.
    ///   - secret: the user's password; a client's secret is for its token endpoint.
    ///   - connects: whether it knows the brokers; without them a producer only finds fault with its properties.
    init(_ options: KafkaOptions, authorities: [UInt8], secret: Secret?, connects: Bool = true) {
        let (settings, kafka) = (options.settings, options.settings.kafka)
        topic = kafka.topic.fields.isEmpty ? kafka.topic.text : nil
        staysHere = options.staysHere
        func milliseconds(_ duration: Duration, least: Int64 = 1) -> String {
            "\(max(least, Int64(duration / .milliseconds(1))))"
        }
        var pairs: [(String, String)] = [
            ("client.id", "spoolship"), ("socket.keepalive.enable", "true"),
            // What brokers answer to producers is small; the library would take 100 MB from each that says so.
            ("receive.message.max.bytes", "\(KafkaProperties.largestAnswer)"),
            // So long a topic that nobody knows may have been created just now.
            ("topic.metadata.propagation.max.ms", milliseconds(min(.seconds(10), settings.requestTimeout / 2))),
        ]
        pairs += kafka.options.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        pairs += [
            ("acks", "all"), ("enable.idempotence", "true"),
            // A mistyped topic is a mistake, not a wish.
            ("allow.auto.create.topics", "false"),
            ("compression.type", settings.compression.name),
            ("message.timeout.ms", milliseconds(settings.requestTimeout)),
            // The least that the library takes is a second.
            ("socket.connection.setup.timeout.ms", milliseconds(settings.connectTimeout, least: 1000)),
            ("security.protocol", (settings.login == nil ? "" : "sasl_") + (settings.kafka.tls ? "ssl" : "plaintext")),
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
                ("enable.ssl.certificate.verification", "true"), ("ssl.endpoint.identification.algorithm", "https"),
            ]
            if !authorities.isEmpty { pairs.append(("ssl.ca.pem", String(decoding: authorities, as: UTF8.self))) }
            // The library reads a chain from a file only.
            if let file = settings.tls.certificateFile {
                pairs += [("ssl.certificate.location", file), ("ssl.key.location", settings.tls.keyFile ?? file)]
            }
        }
        if connects { pairs.append(("bootstrap.servers", kafka.brokers.joined(separator: ","))) }
        self.pairs = pairs
    }

    /// Makes a producer; throws code `invalidSetting` with the library's words.
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

    /// Makes a producer that connects to nothing, for what the library has against the properties, and ends it.
    func rehearse() throws(OutputError) { ckafka_close(try open()) }
}

/// librdkafka, which is loaded when a destination of that type is set up.
enum KafkaLibrary {
    /// Loads it, unless that is done; throws code `library` with the package's name.
    static func load() throws(OutputError) {
        var words = [CChar](repeating: 0, count: 512)
        guard !ckafka_load(&words, words.count) else { return }
        throw OutputError(
            .library, "type kafka needs librdkafka; install the package librdkafka1 (\(KafkaLibrary.text(words)))")
    }

    static func text(_ words: [CChar]) -> String {
        String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
