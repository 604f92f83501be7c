/// `[[destination]]`: where events go. The table of settings says what each is for, and within which bounds.
public struct DestinationSettings: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable { case http, s3, nats, kafka, file, stdout }

    package enum Format: String, Sendable, CaseIterable {
        case ndjson
        /// One array.
        case json
        /// `_bulk` of Elasticsearch, OpenSearch, Quickwit, ZincSearch.
        case elasticsearch
        case loki
        case otlp
        case splunkHEC = "splunk_hec"
        /// Google Analytics 4 Measurement Protocol.
        case ga4
        case appCenter = "app_center"
    }

    /// The version of HTTP. 1.1 costs less for one request at a time.
    package enum HTTPVersion: String, Sendable, CaseIterable {
        case http1 = "1.1"
        case http2 = "2"
    }

    package var name = ""
    package var kind = Kind.http
    package var url: EndpointURL?
    package var allowPlainHTTP = false
    package var format = Format.ndjson
    package var compression = Compression.gzip
    package var byDefault = true
    package var headers: [String: Secret] = [:]
    package var token = SecretSetting()
    package var tokenScheme: String?
    package var user: String?
    package var password = SecretSetting()
    package var oauth2 = OAuth2Settings()
    package var aws = AWSSettings()
    package var tls = TLSOptions()
    package var s3 = S3Settings()
    package var nats = NATSSettings()
    package var kafka = KafkaSettings()
    package var proxy: EndpointURL?
    package var httpVersion = HTTPVersion.http1
    /// Names and TLS included.
    package var connectTimeout = Duration.seconds(10)
    /// Connection and answer included.
    package var requestTimeout = Duration.seconds(60)
    package var maxConnectionAge = Duration.seconds(600)
    package var rateLimit = 0.0
    /// What it sets for itself of `[dispatch]` and `[queue]`.
    public var own = OwnSettings()
    package var outcomes: [String: AnswerMeaning] = [:]
    package var batchIDParameter: String?
    package var contentType: String?
    package var index: Template?
    package var labels: [String: Template] = [:]
    package var structuredMetadata = true
    package var host: String?
    package var source: String?
    package var sourcetype: String?
    package var otlpEncoding = OTLPEncoding.protobuf
    package var indexerAcknowledgement = false
    package var measurementID: String?
    /// How many values its templates may have; the rest becomes `other`.
    package var templateValues = 100
    package var path: String?

    package init() {}
}

extension DestinationSettings {
    /// Whether the events of a batch may go to different places there.
    package var isByEvent: Bool {
        [index, nats.subject, kafka.topic, s3.key].contains { $0?.fields.contains(where: \.isOfEvent) == true }
    }

    /// Every secret that a destination may have besides its headers, by its setting: code that checks secrets, or removes them from a
    /// text, goes by this list. Where each is kept; nil: it has none.
    public var secrets: [(setting: String, source: SecretSource?)] {
        [
            ("token", token.source), ("password", password.source), ("oauth2.client_secret", oauth2.secret.source),
            ("aws.secret_access_key", aws.secret.source), ("s3.secret_access_key", s3.aws.secret.source),
            ("nats.nkey", nats.nkey.source), ("nats.credentials", nats.credentials.source),
        ]
    }

    /// The keys without which it cannot be; a configuration that was read has them all.
    public var missing: [String] {
        let wanted: [(key: String, isMissing: Bool)] =
            switch kind {
            case .http: [("measurement_id", format == .ga4 && measurementID == nil), ("url", url == nil)]
            case .s3: [("s3.bucket", s3.bucket.isEmpty)] + s3.aws.missing.map { ("s3.\($0)", true) }
            case .nats: [("nats.subject", nats.subject.isEmpty), ("url", url == nil)]
            case .kafka: [("kafka.brokers", kafka.brokers.isEmpty), ("kafka.topic", kafka.topic.isEmpty)]
            case .file: [("path", path == nil)]
            case .stdout: []
            }
        return wanted.filter(\.isMissing).map(\.key)
    }

    /// Which setting says where it is on the network.
    public var addressKey: String { kind == .kafka ? "kafka.brokers" : "url" }

    /// Where it is on the network: as set, Amazon's for a bucket without an address, the first broker. Nil for files.
    public var address: EndpointURL? { addresses.first }

    /// Where its servers are, the first one first; empty for files. One of them is enough to reach it.
    public var addresses: [EndpointURL] {
        switch kind {
        case .s3: [url ?? EndpointURL("https://s3.\(s3.aws.region).amazonaws.com")].compactMap { $0 }
        case .nats: url.map { [$0] + nats.servers } ?? []
        case .kafka: kafka.addresses
        case .http, .file, .stdout: url.map { [$0] } ?? []
        }
    }
}

extension DestinationSettings.Kind {
    package var isServer: Bool { self != .file && self != .stdout }

    /// Whether it is reached over the network and may have a user.
    package var takesUser: Bool { isServer && self != .s3 }

    /// How its address may begin; empty for what has none, or names its servers elsewhere.
    package var schemes: [String] {
        switch self {
        case .http, .s3: ["https", "http"]
        case .nats: ["nats", "tls"]
        case .kafka, .file, .stdout: []
        }
    }
}
