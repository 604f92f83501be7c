public import Model

/// How one HTTP destination is reached. Plain values; the agent's settings are mapped to them.
public struct HTTPOptions: Sendable, Equatable {
    /// A header that goes with every request.
    public struct Header: Sendable, Equatable {
        /// Its name.
        public var name: String
        /// Its value, which may be a secret.
        public var value: Secret

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = Secret(value)
        }
    }

    /// How the agent shows that it may write.
    public enum Authorization: Sendable, Equatable {
        /// Not by a header.
        case none
        /// By a token, at the place where the format has it: most as `Authorization: Bearer …`. The scheme is the word
        /// before it; nil for the format's own.
        case token(SecretSource, scheme: String? = nil)
        /// `Authorization: Basic …`.
        case basic(user: String, password: SecretSource)
        /// By an access token that a server gives for a time.
        case oauth2(OAuth2Options)
        /// By AWS's signature, version 4.
        case aws(AWSOptions)
    }

    /// Which proxy is used.
    public enum Proxy: Sendable, Equatable {
        /// What `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` of the environment say; the default.
        case environment
        /// None, whatever the environment says.
        case none
        /// This one (`http://proxy:3128`, `socks5h://user:password@…`), except for the hosts of `no_proxy`.
        case address(Secret)
    }

    /// Where requests go: `https://host/path`. Plain `http://` only to loopback, unless `allowPlainHTTP`.
    public var url: String
    /// How bodies are packed; default gzip, which every receiver reads. zstd is smaller and costs a third of the CPU.
    public var compression = Compression.gzip
    /// Headers that go with every request; one of the format's name replaces it.
    public var headers: [Header] = []
    /// The body's `Content-Type`; nil for the format's own.
    public var contentType: String?
    /// How the agent shows that it may write; default not at all.
    public var authorization = Authorization.none
    /// How the destination is known.
    public var tls = TLSOptions()
    /// Which proxy is used; default as the environment says.
    public var proxy = Proxy.environment
    /// The longest wait for a connection, names and TLS included; default 10 s.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time for a request with its answer; default 60 s.
    public var requestTimeout = Duration.seconds(60)
    /// The longest time in which nothing moves in either direction; nil is half of `requestTimeout`, at least 30 s.
    public var stallTimeout: Duration?
    /// The age at which a connection is not used again, so that changes of names and of what stands behind them are
    /// followed; default 10 min.
    public var connectionAge = Duration.seconds(600)
    /// How long a name's addresses are believed; default 60 s.
    public var nameAge = Duration.seconds(60)
    /// Whether HTTP/2 may be spoken; default not: HTTP/1.1 costs less for one request at a time.
    public var allowHTTP2 = false
    /// Whether plain `http://` may leave the machine; default not.
    public var allowPlainHTTP = false
    /// What statuses mean.
    public var answers = AnswerTable()
    /// The query parameter that carries the batch's id, for destinations that remove repeats by it.
    public var batchIDParameter: String?
    /// How the agent names itself.
    public var userAgent = "spoolship"

    package init(url: String) { self.url = url }
}
