internal import Model

extension DestinationSettings: SettingsSection {
    static let entries: [Entry<DestinationSettings>] =
        reachEntries + loginEntries + requestEntries + OwnSettings.entries + sectionEntries

    private static let reachEntries: [Entry<DestinationSettings>] = [
        .setting(
            "name", \.name, .destinationName.standingForNothing(""),
            "Its name, in metrics, commands and other settings.", example: "\"main\"", changesAnswers: false),
        .setting(
            "type", \.kind, .choice,
            "How it is reached: http in one of the formats below; s3 is a bucket, one object a batch; nats is JetStream, one"
                + " message a batch or an event; kafka is a topic, one record an event (package librdkafka1); file and stdout"
                + " are lines, one event each."
        ),
        .setting(
            "url", \.url, optional: .url("https", "http", "nats", "tls"),
            "Its address: https://… for http and for s3 (by default Amazon's in the region), nats:// or tls://… for nats."
                + " Kafka's are in kafka.brokers.",
            example: "\"https://events.example.com/ingest\""),
        .setting(
            "allow_plain_http", \.allowPlainHTTP, .boolean,
            "Plain HTTP, nats://, and Kafka without TLS, go to this machine only, unless this is true: anyone on the"
                + " network path can read and change them.", only: .servers),
        .setting("format", \.format, .choice, "The format that the receiver reads.", only: .types([.http])),
        .setting(
            "compression", \.compression, .choice(by: \.name),
            "Every receiver reads gzip; if yours reads zstd, that is smaller and takes a third of the CPU.",
            only: .servers),
        .setting(
            "by_default", \.byDefault, .boolean,
            "false: only what [apps.NAME] destinations or a container's tag sends here.", changesAnswers: false),
        .setting(
            "headers", \.headers, .map(of: .secret, names: "header names", accepts: isHeaderName),
            "Headers of every request, or of every record (kafka). Their values are always masked when shown.",
            example: "{ X-Scope-OrgID = \"shop\" }", only: .types([.http, .kafka])),
    ]

    private static let loginEntries: [Entry<DestinationSettings>] =
        Entry.secret(
            "token",
            inline: (
                \.token.inline,
                "Bearer token, HEC token, API secret or app secret, as the format requires; or NATS's. Better: token_file."
            ), file: \.token.file, credential: \.token.credential, "the token", example: ("…", "main.token"),
            only: .types([.http, .nats]))
        + [
            .setting(
                "token_scheme", \.tokenScheme, optional: .text(),
                "The word before the token in the Authorization header, if it differs from the format's.",
                example: "\"ApiKey\"", only: .types([.http])),
            .setting(
                "user", \.user, optional: .text(), "The user, for basic authentication, NATS and Kafka.",
                example: "\"spoolship\"", only: .requests),
        ]
        + Entry.secret(
            "password", inline: (\.password.inline, "The user's password. Better: password_file."),
            file: \.password.file, credential: \.password.credential, "the password", example: ("…", "main.password"),
            only: .requests)

    private static let requestEntries: [Entry<DestinationSettings>] = [
        .setting(
            "proxy", \.proxy, optional: .url("http", "https", "socks5", "socks5h", credentials: true),
            "The proxy; by default https_proxy and NO_PROXY in the environment.",
            example: "\"http://proxy.example.com:3128\"", only: .types([.http, .s3, .nats])),
        .setting(
            "http_version", \.httpVersion, .choice, "2 may save CPU with many requests at once.", only: .types([.http])),
        .setting(
            "connect_timeout", \.connectTimeout, .duration(.milliseconds(100) ... .seconds(600)),
            "How long connecting may take.", only: .servers, changesAnswers: false),
        .setting(
            "request_timeout", \.requestTimeout, .duration(.milliseconds(100) ... .seconds(3600)),
            "How long a request may take in all. Raise it for slow receivers and large batches.",
            changesAnswers: false),
        .setting(
            "max_connection_age", \.maxConnectionAge, .duration(.seconds(1) ... .seconds(86_400)),
            "An older connection is replaced, so that changes of DNS and load balancers take effect.",
            only: .servers, changesAnswers: false),
        .setting(
            "rate_limit", \.rateLimit, .number(0...100_000), "The most requests a second; 0 for no limit.",
            changesAnswers: false),
        .setting(
            "outcomes", \.outcomes,
            .map(of: .choice, names: "a status (404) or a class (4xx)", accepts: isStatusOrClass),
            "Answers whose meaning differs from the default.", example: "{ 404 = \"retry\", 4xx = \"hold\" }",
            only: .types([.http])),
        .setting(
            "batch_id_parameter", \.batchIDParameter,
            optional: .checked("string", mustBe: "the name of a query parameter", { $0.isHeaderName }),
            "The query parameter that carries the batch's id, if the receiver removes repeats by it.",
            example: "\"insert_deduplication_token\"", only: .types([.http])),
        .setting(
            "content_type", \.contentType, optional: .text(),
            "The body's Content-Type, if the receiver wants another than the format's (Fluent Bit: application/json).",
            example: "\"application/json\"", only: .types([.http])),
        .setting(
            "index", \.index, optional: .template(.index),
            "Formats elasticsearch and splunk_hec: the index. Events may fill it in: events-{app}-{date}.",
            example: "\"events\"", only: .formats([.elasticsearch, .splunkHEC])),
        .setting(
            "labels", \.labels, .map(of: .template(.label), names: "a-z, 0-9 and _", accepts: isLabelName),
            "Format loki: labels of the streams, beside host and app (an empty one leaves that out). Events may fill them in.",
            example: "{ job = \"spoolship\", level = \"{level}\" }", only: .formats([.loki])),
        .setting(
            "structured_metadata", \.structuredMetadata, .boolean,
            "Format loki: false sends no session and event ids beside the lines, for a Loki that refuses them (before 3.0).",
            only: .formats([.loki])),
        .setting(
            "otlp_encoding", \.otlpEncoding, .choice, "Format otlp: json for receivers that do not read protobuf.",
            only: .formats([.otlp])),
        .setting(
            "indexer_acknowledgement", \.indexerAcknowledgement, .boolean,
            "Format splunk_hec: true waits until the indexer has the events, if the token has acknowledgement on.",
            only: .formats([.splunkHEC])),
        .setting(
            "host", \.host, optional: .text(), "Format splunk_hec: the machine; by default this machine's name.",
            example: "\"web-1\"", only: .formats([.splunkHEC])),
        .setting(
            "source", \.source, optional: .text(), "Format splunk_hec: the source; by default the token's.",
            example: "\"spoolship\"", only: .formats([.splunkHEC])),
        .setting(
            "sourcetype", \.sourcetype, optional: .text(),
            "Format splunk_hec: the source type; by default the token's.",
            example: "\"_json\"", only: .formats([.splunkHEC])),
        .setting(
            "measurement_id", \.measurementID, optional: .text(),
            "Format ga4: the measurement id; the API secret is the token.",
            example: "\"G-XXXXXXX\"", only: .formats([.ga4])),
        .setting(
            "template_values", \.templateValues, .count(1...10_000),
            "How many values {app}, {date} and the like may have at a time for an app (for all: twice as many), where they are in"
                + " index, subject, topic, labels or key: beyond that, within a day, events are sent as \"other\".",
            only: .servers),
        .setting(
            "path", \.path, optional: .path,
            "Type file: the file to append to; if it is renamed or deleted, a new one is created.",
            example: "\"/var/lib/spoolship/out.jsonl\"", only: .types([.file])),
    ]

    /// The sections in it: TOML has them after all settings.
    private static let sectionEntries: [Entry<DestinationSettings>] = [
        .section("tls", \.tls, "Certificates to trust and to present.", only: .servers),
        .section(
            "oauth2", \.oauth2, "The server that issues access tokens, and its client.",
            only: .types([.http, .kafka])),
        .section("aws", \.aws, "Signs requests for an AWS service.", only: .types([.http])),
        .section("s3", \.s3, "The bucket, the names of objects, and the credentials.", only: .types([.s3])),
        .section("nats", \.nats, "The subject, the servers, and the credentials.", only: .types([.nats])),
        .section("kafka", \.kafka, "The topic, the brokers, and the records.", only: .types([.kafka])),
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
