internal import Glibc
public import Model

/// A destination's location, for routing.
public enum NetworkTarget: Sendable, Hashable {
    /// An address, as its 4 or 16 bytes.
    case address([UInt8])
    /// A host's name, which may mean any address.
    case name
    /// On this machine, or nothing that needs a route: always reached.
    case local

    /// What the host of a URL (or of a proxy) means: a name or an address, IPv6 with or without brackets.
    public init(host: String) {
        var text = host.lowercased()
        if text.hasPrefix("["), text.hasSuffix("]") { text = String(text.dropFirst().dropLast()) }
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            let bytes = withUnsafeBytes(of: &four) { Array($0) }
            self = bytes[0] == 127 ? .local : .address(bytes)
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            let bytes = withUnsafeBytes(of: &six) { Array($0) }
            self = bytes == Array(repeating: 0, count: 15) + [1] ? .local : .address(bytes)
        } else if text == "localhost" || text.hasSuffix(".localhost") || text.isEmpty {
            self = .local
        } else {
            self = .name
        }
    }
}

/// The meaning of the network's state for delivery.
public struct NetworkNews: Sendable, Equatable {
    /// The default route has appeared or changed (ac15).
    public var hasChanged: Bool
    /// Which destinations a route leads to.
    public var routes: [DestinationName: Bool]
}
