internal import Model

/// `[destination.nats]`: the subject, the servers and the credentials. The struct is in `Model`, because
/// `Outputs` uses it.
extension NATSSettings: SettingsSection {
    static let entries: [Entry<NATSSettings>] = subjectEntries + loginEntries

    /// The subject, the stream and the messages.
    private static let subjectEntries: [Entry<NATSSettings>] = [
        .setting(
            "subject", \.subject, .template(.subject).standingForNothing(""),
            "Where messages go; a stream must take the subject. Events may fill it in: events.{app}.{level}.",
            example: "\"events.web\""),
        .setting(
            "servers", \.servers,
            .list(of: EndpointURL.settingType("tls", "nats"), count: 0...32, unique: true),
            "More servers of the cluster, besides url: the next is tried if one cannot be reached.",
            example: "[\"tls://b.example.com:4222\", \"tls://c.example.com:4222\"]"),
        .setting(
            "follow_cluster", \.followCluster, .boolean,
            "Servers that the cluster announces are tried after those named here."
        ).retired("an announced server that cannot be reached costs a moment, and the next is tried"),
        .pair(
            "stream",
            .init(
                "name", \.stream,
                optional: .checked(
                    "stream name", mustBe: "a stream's name, without blanks, dots, *, > and slashes"
                ) {
                    $0.isNATSStream
                }),
            .init("duplicate_window", \.duplicateWindow, duplicateWindowType),
            "The stream that must take the messages; if another one would, the destination is held. How long"
                + " it recognises repeats is set there, too: a batch that is sent again later, and so may be"
                + " stored twice, is logged.",
            example: "\"EVENTS\""),
        .setting(
            "duplicate_window", \.duplicateWindow, duplicateWindowType, "Now stream.duplicate_window."
        ).renamed(to: "stream.duplicate_window"),
        .setting(
            "message", \.message, .choice,
            "batch: one message with an event a line, compressed as compression says; event: one "
                + "uncompressed message for each event, with its id."),
    ]

    private static let duplicateWindowType = ValueType<Duration>.duration(
        .seconds(1) ... .seconds(31 * 86_400))

    /// How the agent authenticates: one of nkey, credentials, user and token.
    private static let loginEntries: [Entry<NATSSettings>] =
        Entry.secret(
            "nkey", \.nkey.source, file: \.nkey.file, credential: \.nkey.credential,
            "The seed of the agent's nkey (SU…).", example: "nats.nkey")
        + Entry.secret(
            // No inline form: a .creds file has two blocks of several lines.
            "credentials", \.credentials.source, file: \.credentials.file,
            credential: \.credentials.credential, "A user's JWT and nkey (.creds).", example: "nats.creds",
            isInline: false)
        + [
            .setting(
                "tls_first", \.tlsFirst, .boolean,
                "TLS begins before the server sends anything, if it is configured so (handshake_first)."),
            .setting(
                "inbox_prefix", \.inboxPrefix,
                .checked(
                    "subject", mustBe: "words separated by dots, without blanks, * and >, at most 255 bytes"
                ) {
                    $0.isNATSSubject
                },
                "The prefix of subjects for acknowledgements, if the agent's user may subscribe only to "
                    + "certain ones."
            ),
        ]
}

extension DestinationSettings {
    /// Reports settings of a destination of type `nats` that contradict each other.
    func check(_ nats: NATSSettings, path: String, _ context: inout ReadContext) {
        // All ways that are configured. A password without a user, or the reverse, is reported for all types.
        let ways = [
            ("token", token.source),
            ("user", user == nil ? nil : password.source),
            ("nats.nkey", nats.nkey.source),
            ("nats.credentials", nats.credentials.source),
        ].filter { $0.1 != nil }.map(\.0)
        // A user and a token together are reported already, for all types.
        if ways.count > 1, ways != ["token", "user"] {
            context.complain(of: path, "authenticates by \(ways.joined(separator: " and by ")); keep one")
        }
        // `tls_first` cannot be plain text; without it `nats://` begins in the clear and the server decides.
        for url in [url].compactMap({ $0 }) + nats.servers
        where url.scheme == "nats" && !url.isLoopback && !allowPlainHTTP && !nats.tlsFirst {
            let key = url == self.url ? "url" : "nats.servers"
            context.complain(
                of: "\(path).\(key)",
                "is nats:// to another machine, which may be plain text; use tls://, or set"
                    + " allow_plain_http = true if you mean it")
        }
        if nats.message == .event, compression != .none,
            compression != DestinationSettings().compression
        {
            context.complain(
                of: "\(path).compression", "is for whole batches; nats.message = \"event\" compresses nothing"
            )
        }
    }
}
