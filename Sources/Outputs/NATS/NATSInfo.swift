/// What a server says of itself in `INFO`, as far as we use it.
struct NATSInfo: Equatable {
    /// The largest message that it takes, headers included, in bytes.
    var maxPayload = NATSInfo.usualPayload
    /// What clients with a key must sign.
    var nonce: String?
    /// Whether it speaks TLS only, after this line.
    var requiresTLS = false
    /// Whether it offers TLS.
    var offersTLS = false
    /// Whether it knows headers; without them there is no `Nats-Msg-Id`.
    var hasHeaders = false
    /// Whether it is about to stop, and wants its clients to go elsewhere.
    var isLeaving = false
    /// Other servers of its cluster, `host:port` each; no more than `mostServers`.
    var otherServers: [String] = []

    /// The server's default.
    static let usualPayload = 1 << 20
    /// The largest limit that is believed: a batch is no larger.
    static let largestPayload = 64 << 20
    /// How many other servers are kept.
    static let mostServers = 32

    /// - Returns: nil when it is not JSON object.
    init?(_ json: [UInt8]) {
        guard let document = JSONSlice(json[...]), let members = document.members else { return nil }
        for (key, value) in members {
            switch key {
            case "max_payload":
                guard let size = value.integer, size > 0 else { continue }
                maxPayload = Int(min(size, Int64(NATSInfo.largestPayload)))
            case "nonce":
                nonce = value.string.flatMap { text in
                    (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? text : nil
                }
            case "tls_required": requiresTLS = value.boolean ?? false
            case "tls_available": offersTLS = value.boolean ?? false
            case "headers": hasHeaders = value.boolean ?? false
            case "ldm": isLeaving = value.boolean ?? false
            case "connect_urls":
                otherServers = (value.elements ?? []).prefix(NATSInfo.mostServers).compactMap(\.string)
            default: break
            }
        }
    }
}
