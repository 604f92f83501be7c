internal import EventLoops
internal import Model

struct NATSAddress: Hashable, Sendable {
    /// A name or a number, IPv6 without brackets.
    let host: String
    /// 4222 where none is written.
    let port: UInt16
    var isTLS = false
    /// The name that its certificate must be for; nil: `host`.
    ///
    /// Servers that were learned of from others are known by numbers mostly, and their certificates by names.
    var certificateName: String?

    /// The server of `nats://host:port` or `tls://host:port`; throws with code `invalidSetting`.
    init(url text: String) throws(OutputError) {
        let url = EndpointURL(text)
        try require(url?.hasCredentials != true, "the url contains a user or password; use user and password_file")
        guard let url, ["nats", "tls"].contains(url.scheme), ["", "/"].contains(url.path),
            let address = NATSAddress(
                authority: String(text.dropFirst("\(url.scheme)://".count).prefix { $0 != "/" }), usualPort: 4222)
        else {
            throw OutputError(.invalidSetting, "the url must have the form nats://host:4222 or tls://host:4222")
        }
        self = address
        isTLS = url.scheme == "tls"
    }

    /// The server of `host:port`, as servers tell of each other: hostile. Without `usualPort` there must be a port.
    init?(authority: String, usualPort: UInt16? = nil) {
        guard let url = EndpointURL("nats://\(authority)"), url.host.utf8.count <= 253,
            let port = url.port.map({ UInt16($0) }) ?? usualPort
        else { return nil }
        host = url.host
        self.port = port
        // It is these two and nothing else: no user, no path, no port with a sign.
        let written = url.port == nil ? "\(authority):\(port)" : authority
        guard host.hasOnlyLettersDigits(and: host.contains(":") ? ":." : "-._"), !host.hasPrefix("-"),
            written.lowercased() == self.authority
        else { return nil }
    }

    /// `host:port`, with brackets where they are needed.
    var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    var verifiedName: String { certificateName ?? host }

    var isLoopback: Bool { host.isLoopbackHost }
}
