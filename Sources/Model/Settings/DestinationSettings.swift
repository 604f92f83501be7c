/// `[[destination]]`: where events go.
///
/// The meaning and bounds of each setting are in Configuration/Sections/Destination, from which the
/// documentation is generated. Members that do not apply to a kind or format are ignored.
public struct DestinationSettings: Sendable, Equatable {
    /// How a destination is reached.
    package enum Kind: String, Sendable, CaseIterable { case http, s3, nats, kafka, syslog, file, stdout }

    /// The format that an HTTP receiver reads.
    package enum Format: String, Sendable, CaseIterable {
        case ndjson
        /// One JSON array.
        case json
        /// `_bulk` of Elasticsearch, OpenSearch, Quickwit and ZincSearch.
        case elasticsearch
        case loki
        case otlp
        case splunkHEC = "splunk_hec"
        /// Google Analytics 4, Measurement Protocol.
        case ga4
        case appCenter = "app_center"
        /// The body that `[destination.body]` describes.
        case template
    }

    /// The version of HTTP. 1.1 costs less if there is one request at a time.
    package enum HTTPVersion: String, Sendable, CaseIterable {
        case http1 = "1.1"
        case http2 = "2"
    }

    /// Where a token goes.
    package enum TokenIn: String, Sendable, CaseIterable {
        /// Where the format's receivers expect it: usually in the Authorization header.
        case header
        /// It is arguments of the address, as a SAS token of Azure is.
        case query
    }

    package var name = ""
    package var kind = Kind.http
    package var url: EndpointURL?
    /// Whether unencrypted connections to other machines are allowed.
    package var allowPlainHTTP = false
    package var format = Format.ndjson
    package var compression = Compression.gzip
    /// Whether events without a rule are sent here; otherwise only what an app's settings or a tag
    /// direct here.
    package var byDefault = true
    /// What the events are used for here. An event is sent only if there is consent to each purpose; nil:
    /// consent is not asked.
    package var purposes: [String]?
    /// Headers of each request, message or record; secret, because they often contain keys.
    package var headers: [String: Secret] = [:]
    package var token = SecretSetting()
    /// The word before the token in the Authorization header; nil for the format's.
    package var tokenScheme: String?
    package var tokenIn = TokenIn.header
    package var user: String?
    package var password = SecretSetting()
    package var oauth2 = OAuth2Settings()
    package var aws = AWSSettings()
    package var tls = TLSOptions()
    package var s3 = S3Settings()
    package var nats = NATSSettings()
    package var kafka = KafkaSettings()
    package var syslog = SyslogSettings()
    package var body = BodySettings()
    package var accept = AcceptSettings()
    /// The proxy; nil for that of the environment.
    package var proxy: EndpointURL?
    package var httpVersion = HTTPVersion.http1
    /// Time to connect, including name resolution and TLS.
    package var connectTimeout = Duration.seconds(10)
    /// Time for a request, including connecting and the answer.
    package var requestTimeout = Duration.seconds(60)
    /// Age at which a connection is replaced, so that changes of DNS and load balancers take effect.
    package var maxConnectionAge = Duration.seconds(600)
    /// Most requests a second; 0 for no limit.
    package var rateLimit = 0.0
    /// What the destination sets for itself of `[dispatch]` and `[queue]`.
    public var own = OwnSettings()
    /// Answers with another meaning than the default, by status (`404`) or class (`4xx`).
    package var outcomes: [String: AnswerMeaning] = [:]
    /// Query parameter that carries the batch's id, for receivers that remove repetitions by it.
    package var batchIDParameter: String?
    package var contentType: String?
    package var elasticsearch = ElasticsearchSettings()
    package var loki = LokiSettings()
    package var otlp = OTLPSettings()
    package var splunk = SplunkSettings()
    package var ga4 = GA4Settings()
    /// Number of values that templates may have for an app; others become `other`. Each value is a
    /// stream, index or object for the receiver, so hostile events could overload it.
    package var templateValues = 100
    /// The file to append to, for kind `file`.
    package var path: String?

    package init() {}
}

extension DestinationSettings {
    /// The index, for the formats that have one.
    package var index: Template? { format == .splunkHEC ? splunk.index : elasticsearch.index }

    /// Whether the events of one batch may go to different indexes, subjects, topics or objects.
    package var isByEvent: Bool {
        [index, nats.subject, kafka.topic, s3.key].contains {
            $0?.fields.contains(where: \.isOfEvent) == true
        }
    }

    /// All secrets of a destination except its headers, by their setting; a source is nil if the secret
    /// is not set.
    ///
    /// Code that checks secrets, or removes them from a text, uses this list, so a new secret must be
    /// added here.
    public var secrets: [(setting: String, source: SecretSource?)] {
        secretSettings.map { ($0.name, $0.setting.source) }
    }

    /// The same as they are set, by the names of their settings.
    package var secretSettings: [(name: String, setting: SecretSetting)] {
        [
            ("token", token), ("password", password), ("oauth2.client_secret", oauth2.secret),
            ("oauth2.private_key", oauth2.privateKey),
            ("aws.secret_access_key", aws.secret), ("s3.secret_access_key", s3.aws.secret),
            ("nats.nkey", nats.nkey), ("nats.credentials", nats.credentials),
        ]
    }

    /// Required keys that are not set. Empty for a configuration that was read without errors.
    public var missing: [String] {
        let wanted: [(key: String, isMissing: Bool)] =
            switch kind {
            case .http:
                [
                    ("ga4.measurement_id", format == .ga4 && ga4.measurementID == nil),
                    ("body.event", format == .template && body.event == nil), ("url", url == nil),
                ]
            case .s3: [("s3.bucket", s3.bucket.isEmpty)] + s3.aws.missing.map { ("s3.\($0)", true) }
            case .nats: [("nats.subject", nats.subject.isEmpty), ("url", url == nil)]
            case .kafka: [("kafka.brokers", kafka.brokers.isEmpty), ("kafka.topic", kafka.topic.isEmpty)]
            case .syslog: [("url", url == nil)]
            case .file: [("path", path == nil)]
            case .stdout: []
            }
        return wanted.filter(\.isMissing).map(\.key)
    }

    /// The setting that says where the destination is on the network.
    public var addressKey: String { kind == .kafka ? "kafka.brokers" : "url" }

    /// Where the destination is on the network: the configured address, Amazon's for a bucket without
    /// one, or the first broker. Nil for files.
    public var address: EndpointURL? { addresses.first }

    /// Addresses of the destination's servers, the first one first; empty for files. Reaching one of
    /// them is enough.
    public var addresses: [EndpointURL] {
        switch kind {
        case .s3: [url ?? EndpointURL("https://s3.\(s3.aws.region).amazonaws.com")].compactMap { $0 }
        case .nats: url.map { [$0] + nats.servers } ?? []
        case .kafka: kafka.addresses
        case .http, .syslog, .file, .stdout: url.map { [$0] } ?? []
        }
    }
}

extension DestinationSettings.Kind {
    /// Whether the destination is reached over the network.
    package var isServer: Bool { self != .file && self != .stdout }

    /// Whether the destination is reached over the network and may have a user.
    package var takesUser: Bool { isServer && self != .s3 && self != .syslog }

    /// Schemes that its address may have; empty for kinds without an address, or whose servers have
    /// another setting.
    package var schemes: [String] {
        switch self {
        case .http, .s3: ["https", "http"]
        case .nats: ["nats", "tls"]
        case .syslog: ["tls", "tcp"]
        case .kafka, .file, .stdout: []
        }
    }
}
