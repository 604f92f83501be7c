/// `[destination.nats]`: the subject, the servers, and the credentials.
public struct NATSSettings: Sendable, Equatable {
    package var subject: Template = ""
    /// More servers of the cluster in addition to `url`.
    package var servers: [EndpointURL] = []
    /// Whether servers announced by the cluster are tried too.
    package var followCluster = true
    /// Stream that must store the messages; nil for any stream.
    package var stream: String?
    package var message = NATSContent.batch
    /// How long the stream recognises repetitions. A batch that is repeated later may be stored twice.
    package var duplicateWindow = Duration.seconds(120)
    package var nkey = SecretSetting()
    /// A user's JWT and nkey. Never inline in the configuration.
    package var credentials = SecretSetting()
    /// Whether TLS begins before the server sends its first message.
    package var tlsFirst = false
    /// Prefix of the subjects on which acknowledgements arrive.
    package var inboxPrefix = "_INBOX"

    package init() {}
}
