internal import EventLoops
public import Model

/// How batches become messages of one JetStream subject. Plain values; the agent's settings are mapped to them.
public struct NATSOptions: Sendable, Equatable {
    /// Where messages go.
    public var subject: String
    /// The servers, `nats://host:4222` or `tls://host:4222`; they are tried one after the other.
    public var servers: [String]
    /// The stream that must take the messages; nil: any.
    public var stream: String?
    /// What one message holds; default a batch.
    public var content = NATSContent.batch
    /// How a batch's message is packed; default gzip.
    public var compression = Compression.gzip
    /// How long the stream remembers ids; default 2 min, as the server's is.
    public var duplicateWindow = Duration.seconds(120)
    /// How the agent shows who it is.
    public var authorization = NATSAuthorization.none
    /// How the servers are known.
    public var tls = TLSOptions()
    /// Whether TLS begins before the server says anything.
    public var isTLSFirst = false
    /// Whether plain text may leave the machine.
    public var allowPlainText = false
    /// Whether servers that others tell of are tried when those named are not to be had; default yes.
    public var followsCluster = true
    /// What subjects of acknowledgements begin with.
    public var inboxPrefix = "_INBOX"
    /// The proxy: HTTP with CONNECT, or SOCKS; nil: none, whatever the environment says.
    public var proxy: Secret?
    /// The longest wait for a connection to one server, names, TLS and its welcome included; default 10 s.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time for a batch, connection included; default 60 s.
    public var requestTimeout = Duration.seconds(60)
    /// The age at which a connection is not used again; default 10 min.
    public var connectionAge = Duration.seconds(600)
    /// How the agent names itself to the server.
    public var agentName = "spoolship"
    /// The agent's version.
    public var agentVersion = ""

    /// A subject at some servers, with the defaults for the rest.
    public init(subject: String, servers: [String]) {
        self.subject = subject
        self.servers = servers
    }

    /// Refuses settings without meaning.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func check() throws(OutputError) -> [NATSAddress] {
        try require(
            subject.isNATSSubject, "the subject must be words with dots between them, without blanks, * and >")
        try require(inboxPrefix.isNATSSubject, "inbox_prefix must be words with dots between them")
        if let stream { try require(stream.isNATSStream, "the stream's name holds a blank or one of . * > / \\") }
        try require(!servers.isEmpty, "there is no server")
        var addresses: [NATSAddress] = []
        for server in servers {
            let address = try NATSAddress(url: server)
            try require(
                address.isTLS || isTLSFirst || address.isLoopback || allowPlainText,
                "nats:// to \(address.host) may show every event on the way; use tls://, or allow it by name")
            if !addresses.contains(address) { addresses.append(address) }
        }
        return addresses
    }
}
