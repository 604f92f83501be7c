/// `[[destination]]`: where events go.
///
/// `reach` says what the destination is, with the settings that only such a destination has; the other
/// properties are for all types, or for several of them. The meaning and bounds of each setting are in
/// Configuration/Sections/Destination, from which the documentation is generated.
public struct DestinationSettings: Sendable, Equatable {
    /// The types, by their names in the configuration.
    package enum Kind: String, Sendable, CaseIterable { case http, s3, nats, kafka, syslog, file, stdout }

    /// What a destination is. A type that is added here gets its row in Configuration's table, and its output
    /// in `Agent`; the compiler names every other place that has to know it.
    package enum Reach: Sendable, Equatable {
        /// A receiver of requests over HTTP, in one of several formats.
        case http(HTTPSettings)
        /// A bucket, one object a batch.
        case s3(S3Settings)
        /// A subject of JetStream.
        case nats(NATSSettings)
        case kafka(KafkaSettings)
        /// A receiver of RFC 5424 over TLS or TCP.
        case syslog(SyslogSettings)
        /// A file to which lines are appended.
        case file(FileSettings)
        /// The agent's standard output.
        case stdout
    }

    package var name = ""
    /// How the destination is reached.
    package var reach = Reach.http(HTTPSettings())
    package var url: EndpointURL?
    /// Whether unencrypted connections to other machines are allowed.
    package var allowPlainHTTP = false
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
    package var user: String?
    package var password = SecretSetting()
    package var oauth2 = OAuth2Settings()
    package var tls = TLSOptions()
    /// The proxy; nil for that of the environment.
    package var proxy: EndpointURL?
    /// Time to connect, including name resolution and TLS.
    package var connectTimeout: Duration {
        get { min(longestConnecting, requestTimeout) }
        set { longestConnecting = newValue }
    }
    /// The same, before `requestTimeout` bounds it.
    private var longestConnecting = Duration.seconds(10)
    /// Time for a request, including connecting and the answer.
    package var requestTimeout = Duration.seconds(60)
    /// Age at which a connection is replaced, so that changes of DNS and load balancers take effect.
    package var maxConnectionAge = Duration.seconds(600)
    /// Most requests a second; 0 for no limit.
    package var rateLimit = 0.0
    /// What the destination sets for itself of `[dispatch]` and `[queue]`.
    public var own = OwnSettings()
    /// Number of values that templates may have for an app; others become `other`. Each value is a
    /// stream, index or object for the receiver, so hostile events could overload it.
    package var templateValues = 100

    package init() {}
}

/// The only setting of a destination of type `file`.
public struct FileSettings: Sendable, Equatable {
    /// The file to append to.
    package var path: String?

    package init() {}
}

extension DestinationSettings {
    /// The type's name.
    package var kind: Kind { reach.kind }

    /// The name of the format; nil for other types than `http`.
    package var format: HTTPSettings.Format? {
        guard case .http(let http) = reach else { return nil }
        return http.format.name
    }

    /// The file that is written; nil for other types than `file`.
    package var path: String? { if case .file(let file) = reach { file.path } else { nil } }

    /// Whether the events of one batch may go to different indexes, subjects, topics or objects.
    package var isByEvent: Bool {
        let template: Template? =
            switch reach {
            case .http(let http): http.format.index
            case .s3(let s3): s3.key
            case .nats(let nats): nats.subject
            case .kafka(let kafka): kafka.topic
            case .syslog, .file, .stdout: nil
            }
        return template?.fields.contains(where: \.isOfEvent) == true
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
        let ofAll = [
            ("token", token), ("password", password), ("oauth2.client_secret", oauth2.secret),
            ("oauth2.private_key", oauth2.privateKey),
        ]
        return switch reach {
        case .http(let http): ofAll + [("aws.secret_access_key", http.aws.secret)]
        case .s3(let s3): ofAll + [("s3.secret_access_key", s3.aws.secret)]
        case .nats(let nats): ofAll + [("nats.nkey", nats.nkey), ("nats.credentials", nats.credentials)]
        case .kafka, .syslog, .file, .stdout: ofAll
        }
    }

    /// Required keys that are not set. Empty for a configuration that was read without errors.
    public var missing: [String] {
        let address = ("url", url == nil)
        let wanted: [(key: String, isMissing: Bool)] =
            switch reach {
            case .http(let http): http.format.missing + [address]
            case .s3(let s3):
                [("s3.bucket", s3.bucket.isEmpty)] + s3.aws.missing.map { ("s3.\($0)", true) }
            case .nats(let nats): [("nats.subject", nats.subject.isEmpty), address]
            case .kafka(let kafka):
                [("kafka.brokers", kafka.brokers.isEmpty), ("kafka.topic", kafka.topic.isEmpty)]
            case .syslog: [address]
            case .file(let file): [("path", file.path == nil)]
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
        switch reach {
        case .s3(let s3):
            [url ?? EndpointURL("https://s3.\(s3.aws.region).amazonaws.com")].compactMap { $0 }
        case .nats(let nats): url.map { [$0] + nats.servers } ?? []
        case .kafka(let kafka): kafka.addresses
        case .http, .syslog, .file, .stdout: url.map { [$0] } ?? []
        }
    }
}

extension DestinationSettings.Reach {
    /// A destination of a type, with the defaults of its settings.
    package init(_ kind: DestinationSettings.Kind) {
        self =
            switch kind {
            case .http: .http(HTTPSettings())
            case .s3: .s3(S3Settings())
            case .nats: .nats(NATSSettings())
            case .kafka: .kafka(KafkaSettings())
            case .syslog: .syslog(SyslogSettings())
            case .file: .file(FileSettings())
            case .stdout: .stdout
            }
    }

    /// The type's name.
    package var kind: DestinationSettings.Kind {
        switch self {
        case .http: .http
        case .s3: .s3
        case .nats: .nats
        case .kafka: .kafka
        case .syslog: .syslog
        case .file: .file
        case .stdout: .stdout
        }
    }
}

extension DestinationSettings.Kind {
    /// Whether the destination is reached over the network. A switch: the compiler asks for a new
    /// type.
    package var isServer: Bool {
        switch self {
        case .http, .s3, .nats, .kafka, .syslog: true
        case .file, .stdout: false
        }
    }

    /// Whether the destination is reached over the network and may have a user.
    package var takesUser: Bool {
        switch self {
        case .http, .nats, .kafka: true
        case .s3, .syslog, .file, .stdout: false
        }
    }

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
