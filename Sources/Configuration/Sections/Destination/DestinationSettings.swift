internal import Model

/// `[[destination]]`: where events go. The struct is in `Model`, because `Outputs` uses it.
///
/// The rows of what only one type has are in a file of the type, and come in by its `SettingsCase`. `only`
/// names the types that another setting is for; with another one it is a mistake (`checkSpecialSettings`).
extension DestinationSettings: SettingsSection {
    // In TOML the sections of a table come after its settings, so they are last.
    static let entries: [Entry<DestinationSettings>] =
        reachEntries + loginEntries + requestEntries + OwnSettings.entries + sectionEntries
        + http(HTTPSettings.formatSectionEntries + HTTPSettings.oldEntries)

    /// The type decides which settings there are, and the format which of `http`.
    static var decidingKeys: [String] { ["type", "format"] }

    /// How the destination is reached, and in which format.
    private static let reachEntries: [Entry<DestinationSettings>] =
        [
            .setting(
                "name", \.name, .destinationName.standingForNothing(""),
                "Its name, in metrics, commands and other settings.", example: "\"main\"",
                changesAnswers: false),
            .setting(
                "type", \.type, .choice,
                "How it is reached: http in one of the formats below; s3 is a bucket, one object a batch; "
                    + "nats is JetStream, one message a batch or an event; kafka is a topic, one record an "
                    + "event (package librdkafka1); syslog is RFC 5424 over TLS or TCP, without "
                    + "acknowledgements; file and stdout are lines, one event each."
            ),
            .setting(
                "url", \.url, optional: EndpointURL.settingType("https", "http", "nats", "tls", "tcp"),
                "Its address: https://… for http and for s3 (by default Amazon's in the region), nats:// or "
                    + "tls://… for nats, tls:// or tcp://… for syslog. Kafka's are in kafka.brokers.",
                example: "\"https://events.example.com/ingest\""),
            .setting(
                "allow_plain_http", \.allowPlainHTTP, .boolean,
                "Plain HTTP, nats://, tcp://, and Kafka without TLS, go to this machine only, unless this "
                    + "is true: anyone on the network path can read and change them.", only: .servers),
        ] + http(HTTPSettings.formatEntries) + [
            .setting(
                "compression", \.compression, .choice(by: \.name),
                "Every receiver reads gzip; if yours reads zstd, that is smaller and takes a third of the "
                    + "CPU.",
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
                "Headers of every request, message (nats) or record (kafka). Events may fill them in: "
                    + "{app}, {member:team}. Their values are always masked when shown.",
                example: "{ X-Scope-OrgID = \"shop\" }", only: .types([.http, .nats, .kafka])),
        ]

    /// How the agent proves who it is.
    private static let loginEntries: [Entry<DestinationSettings>] =
        Entry.secret(
            "token", \.token.source, file: \.token.file, credential: \.token.credential,
            "Bearer token, HEC token, API secret or app secret, as the format requires; or NATS's. A secret "
                + "is given as file:/path (reread when it changes), credential:name (systemd's "
                + "LoadCredential=) or itself; text: before it ends what would be read as file: or "
                + "credential:.",
            example: "main.token", only: .types([.http, .nats]))
        + http(HTTPSettings.tokenEntries) + [
            .setting(
                "user", \.user, optional: .text(), "The user, for basic authentication, NATS and Kafka.",
                example: "\"spoolship\"", only: .requests)
        ]
        + Entry.secret(
            "password", \.password.source, file: \.password.file, credential: \.password.credential,
            "The user's password.", example: "main.password", only: .requests)

    /// How requests are made. `changesAnswers: false` marks settings that cannot change how a receiver
    /// answers: if only they change, a reload keeps what the agent has learned about the receiver.
    private static let requestEntries: [Entry<DestinationSettings>] =
        [
            .setting(
                "proxy", \.proxy,
                optional: EndpointURL.settingType("http", "https", "socks5", "socks5h", credentials: true),
                "The proxy; by default https_proxy and NO_PROXY in the environment.",
                example: "\"http://proxy.example.com:3128\"", only: .types([.http, .s3, .nats, .syslog]))
        ] + http(HTTPSettings.versionEntries) + [
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
                "rate_limit", \.rateLimit, .number(0...100_000),
                "The most requests a second; 0 for no limit.", changesAnswers: false),
        ] + http(HTTPSettings.answerEntries) + [
            .setting(
                "template_values", \.templateValues, .count(1...10_000),
                "How many values {app}, {date} and the like may have at a time for an app (for all: twice "
                    + "as many), where they are in index, subject, topic, labels, headers or key: beyond "
                    + "that, within a day, events are sent as \"other\".",
                only: .servers)
        ] + FileSettings.entries.map { $0.inside(.file) }

    /// The sections of a destination.
    private static let sectionEntries: [Entry<DestinationSettings>] =
        [
            .section("tls", \.tls, "Certificates to trust and to present.", only: .servers),
            .section(
                "oauth2", \.oauth2,
                "The server that issues access tokens, and its client.",
                only: .types([.http, .kafka])),
        ] + http(HTTPSettings.sectionEntries) + [
            .section(
                "s3", of: .s3,
                "The bucket, the names of objects, and region and credentials, whose keys are those of "
                    + "[destination.aws]."
            ),
            .section("nats", of: .nats, "The subject, the servers, and the credentials."),
            .section("syslog", of: .syslog, "How events become syslog messages."),
            .section("kafka", of: .kafka, "The topic, the brokers, and the records."),
        ]

    /// Rows of type `http` as rows of a destination.
    private static func http(_ rows: [Entry<HTTPSettings>]) -> [Entry<DestinationSettings>] {
        rows.map { $0.inside(.http) }
    }

    /// The type, as its row reads and writes it: another one begins with the defaults of its settings.
    private var type: Kind {
        get { kind }
        set {
            if newValue != kind {
                reach = Reach(newValue)
            }
        }
    }
}

/// The cases of `DestinationSettings.Reach`, for the rows of each type.
extension SettingsCase<DestinationSettings, HTTPSettings> {
    static let http = SettingsCase(
        scope: .types([.http]), part: { if case .http(let part) = $0.reach { part } else { nil } },
        put: { $1.reach = .http($0) })
}

extension SettingsCase<DestinationSettings, S3Settings> {
    static let s3 = SettingsCase(
        scope: .types([.s3]), part: { if case .s3(let part) = $0.reach { part } else { nil } },
        put: { $1.reach = .s3($0) })
}

extension SettingsCase<DestinationSettings, NATSSettings> {
    static let nats = SettingsCase(
        scope: .types([.nats]), part: { if case .nats(let part) = $0.reach { part } else { nil } },
        put: { $1.reach = .nats($0) })
}

extension SettingsCase<DestinationSettings, KafkaSettings> {
    static let kafka = SettingsCase(
        scope: .types([.kafka]), part: { if case .kafka(let part) = $0.reach { part } else { nil } },
        put: { $1.reach = .kafka($0) })
}

extension SettingsCase<DestinationSettings, SyslogSettings> {
    static let syslog = SettingsCase(
        scope: .types([.syslog]), part: { if case .syslog(let part) = $0.reach { part } else { nil } },
        put: { $1.reach = .syslog($0) })
}

extension SettingsCase<DestinationSettings, FileSettings> {
    static let file = SettingsCase(
        scope: .types([.file]), part: { if case .file(let part) = $0.reach { part } else { nil } },
        put: { $1.reach = .file($0) })
}

extension FileSettings: SettingsSection {
    static let entries: [Entry<FileSettings>] = [
        .setting(
            "path", \.path, optional: .path,
            "Type file: the file to append to; if it is renamed or deleted, a new one is created.",
            example: "\"/var/lib/spoolship/out.jsonl\"")
    ]
}

/// Whether a name can be that of a header (RFC 9110, section 5.1). Headers that the agent sets itself, such
/// as Content-Length, are refused: two of them make a request invalid.
private func isHeaderName(_ name: String) -> Bool {
    name.isHeaderName && name.utf8.count <= 256 && !name.isOwnHeader
}

extension StructuredMetadata {
    /// The setting's written form: `true`, `false` or a list of members.
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
