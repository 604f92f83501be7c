/// What a server says of itself in `INFO`, as far as we use it.
struct NATSInfo: Equatable {
    /// The largest message that it takes, headers included, in bytes.
    var maxPayload = NATSInfo.usualPayload
    /// What clients with a key must sign.
    let nonce: String?
    /// Whether it speaks TLS only, after this line.
    let requiresTLS: Bool
    let offersTLS: Bool
    /// Whether it knows headers; without them there is no `Nats-Msg-Id`.
    let hasHeaders: Bool
    /// Whether it is about to stop, and wants its clients to go elsewhere.
    let isLeaving: Bool
    /// Other servers of its cluster, `host:port` each; no more than `mostServers`.
    let otherServers: [String]

    /// The server's default.
    static let usualPayload = 1 << 20
    /// The largest limit that is believed: a batch is no larger.
    static let largestPayload = 64 << 20
    static let mostServers = 32

    /// - Returns: nil when it is not JSON object.
    init?(_ json: [UInt8]) {
        guard let all = JSONSlice(json[...])?.members else { return nil }
        let members = Dictionary(all.map { ($0.key, $0.value) }) { _, last in last }
        func flag(_ name: String) -> Bool { members[name]?.boolean ?? false }
        if let size = members["max_payload"]?.integer, size > 0 {
            maxPayload = Int(min(size, Int64(NATSInfo.largestPayload)))
        }
        nonce = members["nonce"]?.string.flatMap { text in
            (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? text : nil
        }
        requiresTLS = flag("tls_required")
        offersTLS = flag("tls_available")
        hasHeaders = flag("headers")
        isLeaving = flag("ldm")
        otherServers = (members["connect_urls"]?.elements ?? []).prefix(NATSInfo.mostServers).compactMap(\.string)
    }
}
