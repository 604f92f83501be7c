internal import EventLoops
internal import Model

/// One server: where it is, and how it is spoken to.
struct NATSAddress: Hashable, Sendable {
    /// A name or a number, IPv6 without brackets.
    let host: String
    /// 4222 where none is written.
    let port: UInt16
    /// Whether `tls://` was written.
    var isTLS = false
    /// The name that its certificate must be for; nil: `host`.
    ///
    /// Servers that were learned of from others are known by numbers mostly, and their certificates by names.
    var certificateName: String?

    /// The server of `nats://host:port` or `tls://host:port`.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    init(url: String) throws(OutputError) {
        let schemes = ["nats://": false, "tls://": true]
        let (scheme, isTLS) = schemes.first { url.lowercased().hasPrefix($0.key) } ?? ("", false)
        var rest = url.dropFirst(scheme.count)
        if rest.hasSuffix("/") { rest.removeLast() }
        try require(
            scheme.isEmpty || !rest.contains("@"),
            "the url holds a user or password; give them as settings of their own")
        guard !scheme.isEmpty, let address = NATSAddress(authority: String(rest), usualPort: 4222) else {
            throw OutputError(.invalidSetting, "the url is no address of the form nats://host:4222 or tls://host:4222")
        }
        self = address
        self.isTLS = isTLS
    }

    /// The server of `host:port`, as servers tell of each other.
    ///
    /// - Parameter usualPort: the port where none is written; nil: there must be one.
    init?(authority: String, usualPort: UInt16? = nil) {
        guard authority.utf8.count <= 270 else { return nil }
        let host: Substring
        let rest: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            rest = authority[authority.index(after: end)...]
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit && $0.isASCII || $0 == ":" || $0 == "." }) else {
                return nil
            }
        } else {
            host = authority.prefix { $0 != ":" }
            rest = authority[host.endIndex...]
            guard host.hasOnlyLettersDigits(and: "-._"), !host.hasPrefix("-") else { return nil }
        }
        guard (1...253).contains(host.utf8.count) else { return nil }
        if rest.isEmpty, let usualPort {
            port = usualPort
        } else {
            guard rest.hasPrefix(":"), rest.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = UInt16(rest.dropFirst()), number > 0
            else { return nil }
            port = number
        }
        self.host = host.lowercased()
    }

    /// `host:port`, with brackets where they are needed.
    var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// What its certificate must be for.
    var verifiedName: String { certificateName ?? host }

    /// Whether nothing that is sent there leaves the machine.
    var isLoopback: Bool { host.isLoopbackHost }
}
