internal import EventLoops
internal import Model

/// A host and port; also used for syslog servers and Kafka brokers.
struct NATSAddress: Hashable, Sendable {
    /// A name or an IP address, IPv6 without brackets.
    let host: String
    /// The port; without one in the address, the protocol's usual port.
    let port: UInt16
    /// Whether the address itself demands TLS (`tls://`).
    var isTLS = false
    /// The name for which the server's certificate must be valid; nil for `host`.
    ///
    /// Servers announce each other by IP address mostly, while their certificates have names.
    var certificateName: String?

    /// The server of `nats://host:port` or `tls://host:port`.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    init(url text: String) throws(OutputError) {
        let url = EndpointURL(text)
        try require(
            url?.hasCredentials != true,
            "the url contains a user or password; use the settings user and password")
        guard let url, ["nats", "tls"].contains(url.scheme), ["", "/"].contains(url.path),
            let address = NATSAddress(
                authority: String(text.dropFirst("\(url.scheme)://".count).prefix { $0 != "/" }),
                usualPort: 4222)
        else {
            throw OutputError(
                .invalidSetting, "the url must have the form nats://host:4222 or tls://host:4222")
        }
        self = address
        isTLS = url.scheme == "tls"
    }

    /// The server of `host:port`, which may come from another server and is hostile.
    ///
    /// - Parameter usualPort: the port if the text has none; nil to demand one.
    /// - Returns: nil unless the text is exactly a host and a port.
    init?(authority: String, usualPort: UInt16? = nil) {
        guard let url = EndpointURL("nats://\(authority)"), url.host.utf8.count <= 253,
            let port = url.port.map({ UInt16($0) }) ?? usualPort
        else { return nil }
        host = url.host
        self.port = port
        // The text must be exactly what was parsed from it: no user, no path, no port with a sign.
        let written = url.port == nil ? "\(authority):\(port)" : authority
        guard host.hasOnlyLettersDigits(and: host.contains(":") ? ":." : "-._"), !host.hasPrefix("-"),
            written.lowercased() == self.authority
        else { return nil }
    }

    /// `host:port`, with brackets around an IPv6 address.
    var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The name for which the server's certificate must be valid.
    var verifiedName: String { certificateName ?? host }

    var isLoopback: Bool { host.isLoopbackHost }
}
