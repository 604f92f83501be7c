internal import Model

extension DestinationSettings {
    /// The servers, each once, in the order in which they are tried.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` for an invalid address.
    func natsServers() throws(OutputError) -> [NATSAddress] {
        var servers: [NATSAddress] = []
        for url in addresses {
            let server = try NATSAddress(url: url.text)
            if !servers.contains(server) {
                servers.append(server)
            }
        }
        return servers
    }

    /// The source of the secret that authenticates the agent; nil without one.
    var natsSecret: SecretSource? { nats.credentials.source ?? nats.nkey.source ?? login?.secret }

    /// Options for connections that carry another protocol than HTTP. Only name resolution, the proxy and
    /// the timeouts matter; the address is a placeholder.
    var bareConnection: HTTPOptions {
        var options = HTTPOptions(url: "http://localhost/")
        options.heedsEnvironment = false
        options.settings.proxy = proxy
        options.settings.connectTimeout = connectTimeout
        options.settings.requestTimeout = requestTimeout
        return options
    }
}
