internal import Model

extension DestinationSettings {
    /// The servers, each once, in the order of trying; throws for an address that is none (`invalidSetting`).
    func natsServers() throws(OutputError) -> [NATSAddress] {
        var servers: [NATSAddress] = []
        for url in addresses {
            let server = try NATSAddress(url: url.text)
            if !servers.contains(server) { servers.append(server) }
        }
        return servers
    }

    /// Where the secret is that authenticates the agent; nil without one.
    var natsSecret: SecretSource? { nats.credentials.source ?? nats.nkey.source ?? login?.secret }

    /// How connections to NATS are made, in HTTP's terms: only names, routes, the proxy and the wait matter.
    var natsConnection: HTTPOptions {
        var options = HTTPOptions(url: "http://localhost/")
        options.heedsEnvironment = false
        options.settings.proxy = proxy
        options.settings.connectTimeout = connectTimeout
        options.settings.requestTimeout = requestTimeout
        return options
    }
}
