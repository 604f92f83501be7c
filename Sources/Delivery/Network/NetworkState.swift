internal import EventLoops
internal import Model

/// What the kernel says of the network at one moment.
struct NetworkFindings: Sendable, Equatable {
    /// The way out of the machine: over which interface, by which gateway.
    struct Route: Sendable, Equatable {
        var interface: UInt32
        var gateway: [UInt8]
    }

    /// The way to any address of the Internet, by protocol version; nil where there is none.
    var defaultRoutes: [Route?] = [nil, nil]
    /// Whether an interface other than loopback is up and has an address that is not link-local.
    var hasAddress = false
    /// Whether a route leads to an address.
    var reached: [[UInt8]: Bool] = [:]
}

/// Decides what is news: findings in, news out.
///
/// A change of the default route is told at most once in 30 s, and one that was held back is told when that time is
/// over: containers that come and go on the host are no network change (ac15). That no route leads to a destination is
/// told at once.
struct NetworkState: Sendable {
    private static let quiet = Duration.seconds(30)

    var targets: [DestinationName: [NetworkTarget]]
    /// The default routes that delivery knows of.
    private var told: [NetworkFindings.Route?]?
    private var toldAt: BootInstant?
    /// Whether a route led there at the last look.
    private(set) var routes: [DestinationName: Bool] = [:]

    init(targets: [DestinationName: [NetworkTarget]]) { self.targets = targets }

    /// What is to be told after a look at the network, and when to look again for a change that is held back.
    mutating func update(_ findings: NetworkFindings, at now: BootInstant) -> (news: NetworkNews?, again: BootInstant?)
    {
        var again: BootInstant?
        var hasChanged = false
        // One that vanished is no news, nothing gets better by it; that it comes back, or becomes another one, is.
        let current = findings.defaultRoutes
        told = told.map { told in zip(told, current).map { old, new in new == nil ? nil : old } }
        if told.map({ told in zip(told, current).contains { old, new in new != nil && new != old } }) ?? true {
            if let toldAt, now < toldAt + NetworkState.quiet {
                again = toldAt + NetworkState.quiet
            } else {
                // The first look only learns how things are.
                hasChanged = told != nil
                if hasChanged { toldAt = now }
                told = current
            }
        }
        let new = targets.mapValues { servers in servers.contains { reaches($0, findings) } }
        guard hasChanged || new != routes else { return (nil, again) }
        routes = new
        return (NetworkNews(hasChanged: hasChanged, routes: new), again)
    }

    private func reaches(_ target: NetworkTarget, _ findings: NetworkFindings) -> Bool {
        switch target {
        case .local: true
        case .address(let bytes): findings.reached[bytes] ?? true
        // A name may mean an address of the own network, so only a machine without any address is cut off for sure.
        case .name: findings.hasAddress || findings.defaultRoutes.contains { $0 != nil }
        }
    }
}
