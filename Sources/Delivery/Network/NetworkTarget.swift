internal import Glibc
public import Model

/// Location of a destination's server, for routing.
public enum NetworkTarget: Sendable, Hashable {
    /// An address in network order, 4 or 16 bytes.
    case address([UInt8])
    /// A host name, which may stand for any address.
    case name
    /// On this machine, or without need of a route: always reached.
    case local

    /// The location of a URL's or proxy's host: a name or an address, IPv6 with or without brackets.
    public init(host: String) {
        var text = host.lowercased()
        if text.hasPrefix("["), text.hasSuffix("]") {
            text = String(text.dropFirst().dropLast())
        }
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

/// What the state of the network means for delivery.
public struct NetworkNews: Sendable, Equatable {
    /// Whether the default route has appeared or changed.
    public var hasChanged: Bool
    /// Whether a route leads to each destination.
    public var routes: [DestinationName: Bool]
}
