extension DestinationSettings {
    /// Where its servers are, the first one first; empty for files. One of them is enough to reach it.
    public var addresses: [EndpointURL] {
        guard let address else { return [] }
        return switch kind {
        case .nats: nats.addresses(after: address)
        case .kafka: kafka.addresses
        default: [address]
        }
    }
}

extension NATSSettings {
    /// All servers: the destination's `url`, and those that are named besides.
    public func addresses(after url: EndpointURL) -> [EndpointURL] { [url] + servers }
}
