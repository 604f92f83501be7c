/// What a server says about itself in `INFO`, as far as the agent uses it. Hostile.
struct NATSInfo: Equatable {
    /// Largest message that the server accepts, headers included, in bytes.
    var maxPayload = NATSInfo.usualPayload
    /// Text that a client with a key must sign; nil if the server asks for none.
    let nonce: String?
    /// Whether TLS must follow this line.
    let requiresTLS: Bool
    /// Whether TLS may follow this line.
    let offersTLS: Bool
    /// Whether the server supports headers. Without them `Nats-Msg-Id` cannot be sent, and repeats would be
    /// stored twice.
    let hasHeaders: Bool
    /// Whether the server is about to stop and wants its clients to leave (lame duck mode).
    let isLeaving: Bool
    /// Other servers of the cluster, `host:port` each; at most `mostServers`.
    let otherServers: [String]

    /// The server's default: 1 MiB.
    static let usualPayload = 1 << 20
    /// Largest limit that is believed; no batch is larger.
    static let largestPayload = 64 << 20
    /// Most announced servers that are kept.
    static let mostServers = 32

    /// - Returns: nil if the text is not a JSON object.
    init?(_ json: [UInt8]) {
        guard let all = JSONSlice(json[...])?.members else { return nil }
        let members = Dictionary(all.map { ($0.key, $0.value) }) { _, last in last }
        func flag(_ name: String) -> Bool { members[name]?.boolean ?? false }
        if let size = members["max_payload"]?.integer, size > 0 {
            maxPayload = Int(min(size, Int64(NATSInfo.largestPayload)))
        }
        nonce = members["nonce"]?.string.flatMap { text in
            (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
                ? text : nil
        }
        requiresTLS = flag("tls_required")
        offersTLS = flag("tls_available")
        hasHeaders = flag("headers")
        isLeaving = flag("ldm")
        otherServers = (members["connect_urls"]?.elements ?? []).prefix(NATSInfo.mostServers).compactMap(
            \.string)
    }
}
