internal import Model

/// `[[destination]]`: where events go. The struct is in `Model`, because `Outputs` uses it.
extension DestinationSettings: SettingsSection {
    // In TOML the sections of a table come after its settings, so they are last.
    static let entries: [Entry<DestinationSettings>] =
        reachEntries + loginEntries + requestEntries + OwnSettings.entries + sectionEntries + formatEntries
        + oldEntries

    /// How the destination is reached, and in which format. `only` names the types or formats that a setting
    /// is for; with another one it is a mistake (`checkSpecialSettings`).
    private static let reachEntries: [Entry<DestinationSettings>] = [
        .setting(
            "name", \.name, .destinationName.standingForNothing(""),
            "Its name, in metrics, commands and other settings.", example: "\"main\"", changesAnswers: false),
        .setting(
            "type", \.kind, .choice,
            "How it is reached: http in one of the formats below; s3 is a bucket, one object a batch; nats is JetStream, one"
                + " message a batch or an event; kafka is a topic, one record an event (package librdkafka1); syslog is RFC 5424"
                + " over TLS or TCP, without acknowledgements; file and stdout are lines, one event each."
        ),
        .setting(
            "url", \.url, optional: EndpointURL.settingType("https", "http", "nats", "tls", "tcp"),
            "Its address: https://… for http and for s3 (by default Amazon's in the region), nats:// or tls://… for nats,"
                + " tls:// or tcp://… for syslog. Kafka's are in kafka.brokers.",
            example: "\"https://events.example.com/ingest\""),
        .setting(
            "allow_plain_http", \.allowPlainHTTP, .boolean,
            "Plain HTTP, nats://, tcp://, and Kafka without TLS, go to this machine only, unless this is true: anyone on the"
                + " network path can read and change them.", only: .servers),
        .setting("format", \.format, .choice, "The format that the receiver reads.", only: .types([.http])),
        .setting(
            "compression", \.compression, .choice(by: \.name),
            "Every receiver reads gzip; if yours reads zstd, that is smaller and takes a third of the CPU.",
            only: .types([.http, .s3, .nats, .kafka])),
        .setting(
            "by_default", \.byDefault, .boolean,
            "false: only what [apps.NAME] destinations or a container's tag sends here.",
            changesAnswers: false),
        .setting(
            "purpose", \.purposes, optional: ConsentSettings.purposes,
            "What events are used for here: an event goes here only if there is consent to each purpose"
                + " ([apps.NAME] consent).",
            example: "\"analytics\"", changesAnswers: false),
        .setting(
            "headers", \.headers, .map(of: .secret, names: "header names", accepts: isHeaderName),
            "Headers of every request, message (nats) or record (kafka). Events may fill them in: {app}, {member:team}. Their"
                + " values are always masked when shown.",
            example: "{ X-Scope-OrgID = \"shop\" }", only: .types([.http, .nats, .kafka])),
    ]

    /// How the agent proves who it is.
    private static let loginEntries: [Entry<DestinationSettings>] =
        Entry.secret(
            "token", \.token.source, file: \.token.file, credential: \.token.credential,
            "Bearer token, HEC token, API secret or app secret, as the format requires; or NATS's. A secret is given as"
                + " file:/path (reread when it changes), credential:name (systemd's LoadCredential=) or itself;"
                + " text: before it ends what would be read as file: or credential:.",
            example: "main.token", only: .types([.http, .nats]))
        + [
            .setting(
                "token_scheme", \.tokenScheme, optional: .text(),
                "The word before the token in the Authorization header, if it differs from the format's.",
                example: "\"ApiKey\"", only: .types([.http])),
            .setting(
                "token_in", \.tokenIn, .choice,
                "header: where the format's receivers expect the token; query: the token is arguments of the"
                    + " url as it is (Azure's SAS).",
                only: .types([.http])),
            .setting(
                "user", \.user, optional: .text(), "The user, for basic authentication, NATS and Kafka.",
                example: "\"spoolship\"", only: .requests),
        ]
        + Entry.secret(
            "password", \.password.source, file: \.password.file, credential: \.password.credential,
            "The user's password.", example: "main.password", only: .requests)

    /// How requests are made, and settings of single formats. `changesAnswers: false` marks those that cannot
    /// change how a receiver answers: if only they change, a reload keeps what the agent has learned about
    /// the receiver.
    private static let requestEntries: [Entry<DestinationSettings>] = [
        .setting(
            "proxy", \.proxy,
            optional: EndpointURL.settingType("http", "https", "socks5", "socks5h", credentials: true),
            "The proxy; by default https_proxy and NO_PROXY in the environment.",
            example: "\"http://proxy.example.com:3128\"", only: .types([.http, .s3, .nats, .syslog])),
        .setting(
            "http_version", \.httpVersion, .choice, "The version of HTTP.", only: .types([.http])
        ).retired("1.1 costs no more CPU than 2, and every receiver reads it"),
        .setting(
            "connect_timeout", \.connectTimeout, .duration(.milliseconds(100) ... .seconds(600)),
            "How long connecting may take.", only: .servers, changesAnswers: false
        ).retired("request_timeout bounds connecting, too; alone it may take 10s"),
        .setting(
            "request_timeout", \.requestTimeout, .duration(.milliseconds(100) ... .seconds(3600)),
            "How long a request may take in all. Raise it for slow receivers and large batches.",
            changesAnswers: false),
        .setting(
            "max_connection_age", \.maxConnectionAge, .duration(.seconds(1) ... .seconds(86_400)),
            "The age at which a connection is replaced.", only: .servers, changesAnswers: false
        ).retired(
            "a connection is replaced after 10m, so that changes of DNS and load balancers take effect"),
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
            "template_values", \.templateValues, .count(1...10_000),
            "How many values {app}, {date} and the like may have at a time for an app (for all: twice as many), where they are in"
                + " index, subject, topic, labels, headers or key: beyond that, within a day, events are sent as \"other\".",
            only: .servers),
        .setting(
            "path", \.path, optional: .path,
            "Type file: the file to append to; if it is renamed or deleted, a new one is created.",
            example: "\"/var/lib/spoolship/out.jsonl\"", only: .types([.file])),
    ]

    /// The sections of a destination.
    private static let sectionEntries: [Entry<DestinationSettings>] = [
        .section("tls", \.tls, "Certificates to trust and to present.", only: .servers),
        .section(
            "oauth2", \.oauth2,
            "The server that issues access tokens, and its client. ca_file, as in [destination.tls], is for"
                + " this server.",
            only: .types([.http, .kafka])),
        .section("aws", \.aws, "Signs requests for an AWS service.", only: .types([.http])),
        .section("accept", \.accept, "What an answer must be to acknowledge.", only: .types([.http])),
        .section("body", \.body, "Format template: the text of requests.", only: .formats([.template])),
        .section(
            "s3", \.s3,
            "The bucket, the names of objects, and region and credentials, whose keys are those of [destination.aws].",
            only: .types([.s3])),
        .section("nats", \.nats, "The subject, the servers, and the credentials.", only: .types([.nats])),
        .section("syslog", \.syslog, "How events become syslog messages.", only: .types([.syslog])),
        .section("kafka", \.kafka, "The topic, the brokers, and the records.", only: .types([.kafka])),
    ]
}

/// Whether a name can be that of a header (RFC 9110, section 5.1). Headers that the agent sets itself, such
/// as Content-Length, are refused: two of them make a request invalid.
private func isHeaderName(_ name: String) -> Bool {
    name.isHeaderName && name.utf8.count <= 256 && !name.isOwnHeader
}

/// Whether a text is a status (404) or a class of statuses (4xx). `Int` also reads signs and leading zeros,
/// hence the length.
private func isStatusOrClass(_ name: String) -> Bool {
    if let status = Int(name) { return (100...599).contains(status) && name.utf8.count == 3 }
    return ["1xx", "2xx", "3xx", "4xx", "5xx"].contains(name)
}

extension StructuredMetadata {
    /// How it is written: `true`, `false` or a list of members.
    static var settingType: ValueType<StructuredMetadata> {
        let wanted = "true, false or a list of members, such as [\"trace_id\"]"
        return ValueType("true, false or members") { node throws(Problem) in
            switch node.value {
            // `true` means the ids and the level that the agent knows, `false` means nothing.
            case .boolean(let isOn): return isOn ? .ids : .none
            case .array(let nodes):
                guard nodes.count <= StructuredMetadata.mostMembers else {
                    throw Problem(
                        .outOfRange,
                        "has \(nodes.count) members; must be at most \(StructuredMetadata.mostMembers)")
                }
                var members: [String] = []
                for node in nodes { members.append(try ValueType<String>.text().parse(node)) }
                return .members(members)
            default: throw .wrongType(wanted, node)
            }
        } print: { value in
            switch value {
            case .none: .boolean(false)
            case .ids: .boolean(true)
            case .members(let members): .array(members.map { .string($0) })
            }
        }
    }
}

extension BodyTemplate {
    /// A template of the body of requests, up to 4 KiB.
    static var settingType: ValueType<BodyTemplate> {
        let text = ValueType<String>.text(maxLength: 4096)
        return ValueType("template") { node throws(Problem) in
            let value = try text.parse(node)
            return try relaying(try BodyTemplate(value)) { (mistake: BodyTemplate.Mistake) in
                Problem(.outOfRange, mistake.message)
            }
        } print: {
            .string($0.text)
        }
    }

    /// A text that may be empty and may contain line feeds: a piece that stands before, between or after
    /// events.
    static var fragmentType: ValueType<String> {
        ValueType("string", range: "") { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
            guard text.utf8.count <= 1024 else { throw Problem(.outOfRange, "is longer than 1024 bytes") }
            return text
        }.standingForNothing("")
    }
}

extension AcceptSettings {
    /// Statuses of HTTP that acknowledge a batch. Only successes: other statuses are for `outcomes`.
    static var statusesType: ValueType<[Int]> {
        ValueType("statuses", range: "200 to 299") { node throws(Problem) in
            guard case .array(let nodes) = node.value else {
                throw .wrongType("a list of statuses, such as [202]", node)
            }
            var statuses: [Int] = []
            for node in nodes { statuses.append(try ValueType<Int>.count(200...299).parse(node)) }
            return statuses
        } print: { statuses in
            statuses.isEmpty ? nil : .array(statuses.map { .integer(Int64($0)) })
        }
    }
}
