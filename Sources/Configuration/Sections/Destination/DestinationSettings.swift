public import Model

/// `[[destination]]`: where events go.
public struct DestinationSettings: Sendable, Equatable {
    /// How a destination is reached.
    public enum Kind: String, SettingChoice {
        /// By HTTP, in one of the formats.
        case http
        /// Objects in a bucket.
        case s3
        /// NATS JetStream.
        case nats
        /// Apache Kafka and compatible brokers.
        case kafka
        /// A file on this machine.
        case file
        /// The agent's standard output.
        case stdout
    }

    /// How a batch is written into a request.
    public enum Format: String, SettingChoice {
        /// One event a line.
        case ndjson
        /// One JSON array.
        case json
        /// `_bulk` of Elasticsearch, OpenSearch, Quickwit, ZincSearch.
        case elasticsearch
        /// Grafana Loki's push API.
        case loki
        /// OpenTelemetry logs.
        case otlp
        /// Splunk's HTTP event collector.
        case splunkHEC = "splunk_hec"
        /// Google Analytics 4 Measurement Protocol.
        case ga4
        /// App Center's ingestion envelope.
        case appCenter = "app_center"
    }

    /// The version of HTTP that is spoken.
    public enum HTTPVersion: String, SettingChoice {
        /// HTTP/1.1.
        case http1 = "1.1"
        /// HTTP/2 where the server offers it.
        case http2 = "2"
    }

    /// Its name: in metrics, commands and other settings. Unique.
    public var name = ""
    /// How it is reached.
    public var kind = Kind.http
    /// Where it is; required except for `kafka`, `file` and `stdout`, and for `s3` at Amazon.
    public var url: EndpointURL?
    /// Whether plain HTTP may leave this machine.
    public var allowPlainHTTP = false
    /// How a batch is written into a request.
    public var format = Format.ndjson
    /// How a request's body is packed.
    public var compression = Compression.gzip
    /// Whether events go here that no app and no tag sends somewhere else.
    public var byDefault = true
    /// Headers of every request.
    public var headers: [String: Secret] = [:]
    /// A token, in the configuration itself.
    public var inlineToken: Secret?
    /// The file that holds the token.
    public var tokenFile: String?
    /// The systemd credential that holds the token.
    public var tokenCredential: String?
    /// The word before the token in `Authorization`; nil for the format's own.
    public var tokenScheme: String?
    /// The user of basic authentication.
    public var user: String?
    /// The user's password, in the configuration itself.
    public var inlinePassword: Secret?
    /// The file that holds the password.
    public var passwordFile: String?
    /// The systemd credential that holds the password.
    public var passwordCredential: String?
    /// TLS.
    public var tls = TLSOptions()
    /// The bucket, for `s3`.
    public var s3 = S3Settings()
    /// The subject, for `nats`.
    public var nats = NATSSettings()
    /// The topic, for `kafka`.
    public var kafka = KafkaSettings()
    /// The proxy; nil for what the environment says.
    public var proxy: EndpointURL?
    /// HTTP/1.1 or 2.
    public var httpVersion = HTTPVersion.http1
    /// How long a connection may take to come about.
    public var connectTimeout = Duration.seconds(10)
    /// How long a request may take, connection included.
    public var requestTimeout = Duration.seconds(60)
    /// How old a connection may become before it is made anew.
    public var maxConnectionAge = Duration.seconds(600)
    /// Requests a second; 0 for any number.
    public var rateLimit = 0.0
    /// What it sets for itself of `[dispatch]` and `[queue]`.
    public var own = OwnSettings()
    /// What an answer means, by status (`404`) or class (`4xx`), where it differs from the usual.
    public var outcomes: [String: AnswerMeaning] = [:]
    /// The query parameter that carries the batch's id.
    public var batchIDParameter: String?
    /// The body's `Content-Type`; nil for the format's own.
    public var contentType: String?
    /// The index, for `elasticsearch` and `splunk_hec`.
    public var index: String?
    /// The labels of the stream, for `loki`.
    public var labels: [String: String] = [:]
    /// Whether session and event ids go beside each line, for `loki`.
    public var structuredMetadata = true
    /// The machine, for `splunk_hec`; nil for this one's name.
    public var host: String?
    /// Where events come from, for `splunk_hec`.
    public var source: String?
    /// What events are, for `splunk_hec`.
    public var sourcetype: String?
    /// How records are written, for `otlp`.
    public var otlpEncoding = OTLPEncoding.protobuf
    /// Whether the indexer's acknowledgement is waited for, for `splunk_hec`.
    public var indexerAcknowledgement = false
    /// The measurement id, for `ga4`.
    public var measurementID: String?
    /// The file, for `file`.
    public var path: String?

    /// Where the token is kept; nil when there is none.
    public var token: SecretSource? {
        tokenFile.map { .file($0) } ?? tokenCredential.map { .credential($0) } ?? inlineToken.map { .inline($0) }
    }

    /// Where the password is kept; nil when there is none.
    public var password: SecretSource? {
        passwordFile.map { .file($0) } ?? passwordCredential.map { .credential($0) }
            ?? inlinePassword.map { .inline($0) }
    }
}

extension DestinationSettings: SettingsSection {
    static let entries: [Entry<DestinationSettings>] = reachEntries + OwnSettings.entries + sectionEntries

    /// Where it is, and what it reads.
    private static let reachEntries: [Entry<DestinationSettings>] = [
        .setting(
            "name", \.name, .destinationName.standingForNothing(""),
            "Its name, in metrics, commands and other settings.", example: "\"main\""
        ).changingNoAnswer(),
        .setting(
            "type", \.kind, .choice,
            "How it is reached: http in one of the formats below; s3 is a bucket, one object a batch; nats is JetStream, one"
                + " message a batch or an event; kafka is a topic, one record an event (package librdkafka1); file and stdout"
                + " are plain lines, an event each."
        ),
        .setting(
            "url", \.url, optional: .url("https", "http", "nats", "tls"),
            "Where it is: https://… for http and for s3 (by default Amazon's in the region), nats:// or tls://… for nats."
                + " Kafka's are in kafka.brokers.",
            example: "\"https://events.example.com/ingest\""),
        .setting(
            "allow_plain_http", \.allowPlainHTTP, .boolean,
            "Plain HTTP, nats://, and Kafka without TLS, go to this machine only, unless you allow it: anyone on the way can"
                + " read and change it."
        ).only(.servers),
        .setting(
            "format", \.format, .choice, "What the receiver reads."
        ).only(.type(.http)),
        .setting(
            "compression", \.compression, .choice,
            "Every receiver reads gzip; zstd is smaller and takes a third of the CPU, where the receiver reads it."
        ).only(.servers),
        .setting(
            "by_default", \.byDefault, .boolean,
            "false: only what [apps.NAME] destinations or a container's tag sends here."
        ).changingNoAnswer(),
        .setting(
            "headers", \.headers, .map(of: .secret, names: "header names", accepts: isHeaderName),
            "Headers of every request, or of every record (kafka). Their values are shown masked only.",
            example: "{ X-Scope-OrgID = \"shop\" }"
        ).only(.types([.http, .kafka])),
        .setting(
            "token", \.inlineToken, optional: .secret,
            "Bearer token, HEC token, API secret or app secret, as the format has it; or NATS's. Better: token_file.",
            example: "\"…\""
        ).only(.types([.http, .nats])),
        .setting(
            "token_file", \.tokenFile, optional: .path,
            "The file that holds the token; read again by itself when it changes.",
            example: "\"/etc/spoolship/main.token\""
        ).only(.types([.http, .nats])),
        .setting(
            "token_credential", \.tokenCredential, optional: .credentialName,
            "The systemd credential that holds the token (LoadCredential= in the unit).", example: "\"main-token\""
        ).only(.types([.http, .nats])),
        .setting(
            "token_scheme", \.tokenScheme, optional: .text(),
            "The word before the token in the Authorization header, where it is not the format's usual one.",
            example: "\"ApiKey\""
        ).only(.type(.http)),
        .setting(
            "user", \.user, optional: .text(), "The user, for basic authentication, NATS and Kafka.",
            example: "\"spoolship\""
        ).only(.requests),
        .setting(
            "password", \.inlinePassword, optional: .secret, "The user's password. Better: password_file.",
            example: "\"…\""
        ).only(.requests),
        .setting(
            "password_file", \.passwordFile, optional: .path,
            "The file that holds the password; read again by itself when it changes.",
            example: "\"/etc/spoolship/main.password\""
        ).only(.requests),
        .setting(
            "password_credential", \.passwordCredential, optional: .credentialName,
            "The systemd credential that holds the password.", example: "\"main-password\""
        ).only(.requests),
        .setting(
            "proxy", \.proxy, optional: .url("http", "https", "socks5", "socks5h", credentials: true),
            "The proxy; by default what https_proxy and NO_PROXY in the environment say.",
            example: "\"http://proxy.example.com:3128\""
        ).only(.types([.http, .s3, .nats])),
        .setting(
            "http_version", \.httpVersion, .choice, "2 may save CPU with many requests at once."
        ).only(.type(.http)),
        .setting(
            "connect_timeout", \.connectTimeout, .duration(.milliseconds(100) ... .seconds(600)),
            "How long a connection may take to come about."
        ).only(.servers).changingNoAnswer(),
        .setting(
            "request_timeout", \.requestTimeout, .duration(.milliseconds(100) ... .seconds(3600)),
            "How long a request may take in all. Raise it for slow receivers and large batches."
        ).changingNoAnswer(),
        .setting(
            "max_connection_age", \.maxConnectionAge, .duration(.seconds(1) ... .seconds(86_400)),
            "An older connection is made anew, so that changes of DNS and load balancers are followed."
        ).only(.servers).changingNoAnswer(),
        .setting(
            "rate_limit", \.rateLimit, .number(0...100_000), "Requests a second; 0 for any number."
        ).changingNoAnswer(),
        .setting(
            "outcomes", \.outcomes,
            .map(of: .choice, names: "a status (404) or a class (4xx)", accepts: isStatusOrClass),
            "What an answer means, where it differs from the usual.", example: "{ 404 = \"retry\", 4xx = \"hold\" }"
        ).only(.type(.http)),
        .setting(
            "batch_id_parameter", \.batchIDParameter, optional: .text(),
            "The query parameter that carries the batch's id, where the receiver removes repeats by it.",
            example: "\"insert_deduplication_token\""
        ).only(.type(.http)),
        .setting(
            "content_type", \.contentType, optional: .text(),
            "The body's Content-Type, where the receiver wants another than the format's (Fluent Bit: application/json).",
            example: "\"application/json\""
        ).only(.type(.http)),
        .setting(
            "index", \.index, optional: .text(), "Formats elasticsearch and splunk_hec: the index.",
            example: "\"events\""
        ).only(.formats([.elasticsearch, .splunkHEC])),
        .setting(
            "labels", \.labels, .map(of: .text(), names: "a-z, 0-9 and _", accepts: isLabelName),
            "Format loki: labels of the streams, beside host and app (an empty one leaves that out).",
            example: "{ job = \"spoolship\" }"
        ).only(.format(.loki)),
        .setting(
            "structured_metadata", \.structuredMetadata, .boolean,
            "Format loki: false sends no session and event ids beside the lines, for a Loki that refuses them (before 3.0)."
        ).only(.format(.loki)),
        .setting(
            "otlp_encoding", \.otlpEncoding, .choice, "Format otlp: json for receivers that do not read protobuf."
        ).only(.format(.otlp)),
        .setting(
            "indexer_acknowledgement", \.indexerAcknowledgement, .boolean,
            "Format splunk_hec: true waits until the indexer has the events, where the token has it on."
        ).only(.format(.splunkHEC)),
        .setting(
            "host", \.host, optional: .text(), "Format splunk_hec: the machine; by default this one's name.",
            example: "\"web-1\""
        ).only(.format(.splunkHEC)),
        .setting(
            "source", \.source, optional: .text(), "Format splunk_hec: the source; by default the token's.",
            example: "\"spoolship\""
        ).only(.format(.splunkHEC)),
        .setting(
            "sourcetype", \.sourcetype, optional: .text(),
            "Format splunk_hec: the source type; by default the token's.",
            example: "\"_json\""
        ).only(.format(.splunkHEC)),
        .setting(
            "measurement_id", \.measurementID, optional: .text(),
            "Format ga4: the measurement id; the API secret is the token.",
            example: "\"G-XXXXXXX\""
        ).only(.format(.ga4)),
        .setting(
            "path", \.path, optional: .path,
            "Type file: the file to append to; when it is renamed or deleted, a new one is begun.",
            example: "\"/var/lib/spoolship/out.jsonl\""
        ).only(.type(.file)),
    ]

    /// The sections in it: TOML has them after all settings.
    private static let sectionEntries: [Entry<DestinationSettings>] = [
        .section("tls", \.tls, "Whom to trust, and how to prove who we are.").only(.servers),
        .section("s3", \.s3, "Which bucket, what objects are called, and who writes them.").only(.type(.s3)),
        .section("nats", \.nats, "Which subject, at which servers, and who publishes.").only(.type(.nats)),
        .section("kafka", \.kafka, "Which topic, at which brokers, and what a record is.").only(.type(.kafka)),
    ]
}

private func isHeaderName(_ name: String) -> Bool { name.isHeaderName && name.utf8.count <= 256 && !name.isOwnHeader }

private func isStatusOrClass(_ name: String) -> Bool {
    if let status = Int(name) { return (100...599).contains(status) && name.utf8.count == 3 }
    return ["1xx", "2xx", "3xx", "4xx", "5xx"].contains(name)
}

private func isLabelName(_ name: String) -> Bool {
    guard let first = name.first, first.isASCII, first.isLetter || first == "_" else { return false }
    return name.hasOnlyLettersDigits(and: "_")
}

extension ValueType where Value == String {
    /// The name of a systemd credential.
    static var credentialName: ValueType {
        checked("credential name", mustBe: "a credential's name: letters, digits, _, - and .") { name in
            !name.hasPrefix(".") && name.utf8.count <= 255 && name.hasOnlyLettersDigits(and: "_-.")
        }
    }

    /// A public key's hash as curl writes it.
    static var pinnedKey: ValueType {
        checked(
            "public key hash", range: "sha256//BASE64",
            mustBe: "sha256// and the base64 of 32 bytes, as `openssl dgst -sha256 -binary | base64` prints it"
        ) { $0.isPinnedKey }
    }
}

extension ValueType where Value: Equatable {
    /// The same, but a certain value means that nothing is set.
    func standingForNothing(_ nothing: Value) -> ValueType {
        ValueType(name, range: range, parse: parse) { $0 == nothing ? nil : print($0) }
    }
}
