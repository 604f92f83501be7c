package import Model

/// How batches become messages of a subject: the settings of all destinations, and those of type `nats`.
package struct NATSOptions: Sendable, Equatable {
    package var settings: DestinationSettings
    package var nats: NATSSettings

    package init(_ settings: DestinationSettings, _ nats: NATSSettings) {
        self.settings = settings
        self.nats = nats
    }

    /// The servers, each once, in the order in which they are tried.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` for an invalid address.
    func servers() throws(OutputError) -> [NATSAddress] {
        var servers: [NATSAddress] = []
        for url in [settings.url].compactMap(\.self) + nats.servers {
            let server = try NATSAddress(url: url.text)
            if !servers.contains(server) {
                servers.append(server)
            }
        }
        return servers
    }

    /// The source of the secret that authenticates the agent; nil without one.
    var secret: SecretSource? { nats.credentials.source ?? nats.nkey.source ?? settings.login?.secret }
}
