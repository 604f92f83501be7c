internal import Model

/// The servers of a cluster and the order in which they are tried. Never empty.
struct NATSServers {
    /// The configured servers.
    private let configured: [NATSAddress]
    /// Index of the configured server to try first.
    private var first: Int
    /// Servers that other servers have announced.
    private var learned: [NATSAddress] = []

    /// - Parameter draw: any number; it chooses the server to try first. Random, so that a fleet spreads over
    ///   the servers.
    init(_ configured: [NATSAddress], draw: UInt64) {
        self.configured = configured
        first = Int(draw % UInt64(configured.count))
    }

    /// The servers to try: the configured ones, from the one whose turn it is, then those that servers have
    /// announced.
    var candidates: [NATSAddress] {
        let inTurn = Array(configured[first...] + configured[..<first])
        return inTurn + learned.filter { other in !inTurn.contains { $0.authority == other.authority } }
    }

    /// A server accepted the agent: it is tried first next time.
    mutating func prefer(_ server: NATSAddress) { first = configured.firstIndex(of: server) ?? first }

    /// The server that was tried first refused the agent: the next attempt begins with the one after it.
    mutating func passFirst() { first = (first + 1) % configured.count }

    /// A server failed or leaves: the next attempt begins with the one after it.
    mutating func pass(_ server: NATSAddress) {
        if let index = configured.firstIndex(of: server) {
            first = (index + 1) % configured.count
        }
    }

    /// Keeps the addresses of other servers that a server announces, instead of those known so far.
    ///
    /// In clear text anybody on the path may have written them. A server from such a list must therefore
    /// have a certificate for the name that is configured, not for the announced one.
    mutating func learn(_ others: [String], from server: NATSAddress, isEncrypted: Bool) {
        guard !others.isEmpty else { return }
        learned = others.compactMap { text in
            guard var address = NATSAddress(authority: text) else { return nil }
            address.isTLS = server.isTLS || isEncrypted
            if !isEncrypted || address.host.isHostNumber {
                address.certificateName = server.verifiedName
            }
            return address
        }
    }
}
