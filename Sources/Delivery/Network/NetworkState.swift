internal import EventLoops
internal import Model

/// What the kernel says of the network at one moment.
struct NetworkFindings: Sendable, Equatable {
    /// Way out of the machine: interface and gateway.
    struct Route: Sendable, Equatable {
        var interface: UInt32
        /// Address of the gateway; empty for a directly connected network.
        var gateway: [UInt8]
    }

    /// Route to any address of the Internet, for IPv4 and IPv6; nil if there is no such route.
    var defaultRoutes: [Route?] = [nil, nil]
    /// Whether an interface other than loopback is up and has an address that is not link-local.
    var hasAddress = false
    /// Whether a route leads to each asked address.
    var reached: [[UInt8]: Bool] = [:]
}

/// Decides what is news: findings in, news out.
///
/// A change of the default route is reported at most once in 30 s, and a change that was held back when that
/// time is over. Otherwise containers that come and go on the host would end the waits of all destinations
/// each time. A destination without a route is reported at once.
struct NetworkState: Sendable {
    /// Shortest time between two reported changes of the default route.
    private static let quiet = Duration.seconds(30)

    /// The servers of each destination.
    var targets: [DestinationName: [NetworkTarget]]
    /// Default routes that delivery knows; nil before the first look.
    private var told: [NetworkFindings.Route?]?
    /// When a change was last reported.
    private var toldAt: BootInstant?
    /// Whether a route led to each destination at the last look.
    private(set) var routes: [DestinationName: Bool] = [:]

    init(targets: [DestinationName: [NetworkTarget]]) { self.targets = targets }

    /// What to report after a look, and when to look again for a change that is held back.
    mutating func update(_ findings: NetworkFindings, at now: BootInstant) -> (
        news: NetworkNews?, again: BootInstant?
    ) {
        var again: BootInstant?
        var hasChanged = false
        let current = findings.defaultRoutes
        // A route that vanished is not reported, because nothing improves by it. It is forgotten here, so
        // that its return, or another route, is reported.
        told = told.map { told in zip(told, current).map { old, new in new == nil ? nil : old } }
        if told.map({ told in zip(told, current).contains { old, new in new != nil && new != old } }) ?? true
        {
            if let toldAt, now < toldAt + NetworkState.quiet {
                again = toldAt + NetworkState.quiet
            } else {
                // The first look only learns the present state.
                hasChanged = told != nil
                if hasChanged {
                    toldAt = now
                }
                told = current
            }
        }
        let new = targets.mapValues { servers in servers.contains { reaches($0, findings) } }
        guard hasChanged || new != routes else { return (nil, again) }
        routes = new
        return (NetworkNews(hasChanged: hasChanged, routes: new), again)
    }

    /// Whether a route leads to a server.
    private func reaches(_ target: NetworkTarget, _ findings: NetworkFindings) -> Bool {
        switch target {
        case .local: true
        case .address(let bytes): findings.reached[bytes] ?? true
        // A name may stand for an address of the local network, so only a machine without any address is
        // certainly cut off.
        case .name: findings.hasAddress || findings.defaultRoutes.contains { $0 != nil }
        }
    }
}
