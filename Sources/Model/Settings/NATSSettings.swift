/// `[destination.nats]`: the subject, the servers, and the credentials.
public struct NATSSettings: Sendable, Equatable {
    package var subject: Template = ""
    package var servers: [EndpointURL] = []
    package var followCluster = true
    package var stream: String?
    package var message = NATSContent.batch
    package var duplicateWindow = Duration.seconds(120)
    package var nkey = SecretSetting()
    /// Never in the configuration itself.
    package var credentials = SecretSetting()
    package var tlsFirst = false
    package var inboxPrefix = "_INBOX"

    package init() {}
}
