internal import Model

extension DestinationSettings {
    /// The servers, each once, in the order of trying; refuses settings without meaning (`invalidSetting`).
    func checkNATS() throws(OutputError) -> [NATSAddress] {
        try require(
            nats.subject.longest.isNATSSubject,
            "the subject must be words separated by dots, without blanks, * and >")
        try require(nats.inboxPrefix.isNATSSubject, "inbox_prefix must be words separated by dots")
        if let stream = nats.stream {
            try require(stream.isNATSStream, "the stream's name holds a blank or one of . * > / \\")
        }
        try require(!addresses.isEmpty, "there is no server")
        var servers: [NATSAddress] = []
        for url in addresses {
            let server = try NATSAddress(url: url.text)
            try require(
                server.isTLS || nats.tlsFirst || server.isLoopback || allowPlainHTTP,
                "nats:// to \(server.host) may show every event on the network; use tls://, or allow it")
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
