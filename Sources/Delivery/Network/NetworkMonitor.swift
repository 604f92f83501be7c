internal import CNetlink
public import EventLoops
public import Model

/// Watches the kernel's routes, and tells delivery which destinations they reach and when the network
/// changed.
///
/// The kernel announces changes of links, addresses and routes (rtnetlink(7)). Half a second after the first
/// one, the few routes that matter are asked for one by one, so that neither a storm of changes nor a large
/// routing table costs anything. Without changes nothing runs. It makes no connection and resolves no name.
public actor NetworkMonitor: LoopActor {
    /// How long changes are collected before the routes are asked for.
    private static let settling = Duration.milliseconds(500)
    /// Addresses for documentation, which belong to no host (RFC 5737, RFC 3849): the route to them is the
    /// default route. Nothing is sent there.
    private static let anywhere: [[UInt8]] = [
        [198, 51, 100, 1], [0x20, 0x01, 0x0d, 0xb8] + Array(repeating: 1, count: 12),
    ]

    /// The delivery loop.
    public nonisolated let loop: EventLoop
    private let time: any TimeSource
    /// Receives news; called on the loop.
    private let tell: @Sendable (NetworkNews) -> Void
    /// The state that was reported to delivery, and the targets.
    private var state: NetworkState
    /// Nil before `start` and after `stop`.
    private var sockets: Sockets?
    /// Number of the last request; distinguishes its answer from those to earlier requests.
    private var sequence: UInt32 = 0
    /// The next look, and its time.
    private var timer: (id: EventLoop.TimerID, at: BootInstant)?

    /// The two netlink sockets. Separate ones, so that announcements cannot come between a request and its
    /// answer.
    private final class Sockets {
        /// Receives the kernel's announcements.
        let listening: Descriptor
        /// Asks for routes.
        let asking: Descriptor

        init() throws(SystemError) {
            listening = try Descriptor(checking: cnetlink_open(1), "netlink socket")
            asking = try Descriptor(checking: cnetlink_open(0), "netlink socket")
        }
    }

    /// A monitor that does nothing before `start`.
    ///
    /// - Parameters:
    ///   - loop: the delivery loop; `tell` is called there.
    ///   - targets: the servers of each destination, or its proxy; a route to one of them is enough.
    public init(
        on loop: EventLoop, targets: [DestinationName: [NetworkTarget]], time: any TimeSource = SystemTime(),
        tell: @escaping @Sendable (NetworkNews) -> Void
    ) {
        self.loop = loop
        self.time = time
        self.tell = tell
        state = NetworkState(targets: targets)
    }

    /// Begins to watch, and reports at once which destinations are reachable.
    ///
    /// - Throws: `SystemError` if the kernel refuses netlink sockets (`RestrictAddressFamilies` of a systemd
    ///   unit must include AF_NETLINK). Delivery works without: senders find out by themselves.
    public func start() throws(SystemError) {
        let sockets = try Sockets()
        let listening = sockets.listening.raw
        try loop.watch(listening, for: .readable) { _ in
            // The content of an announcement does not matter: the routes are asked for anyway.
            _ = cnetlink_discard(listening)
            self.assumeIsolated { $0.arm(at: $0.time.bootTime + NetworkMonitor.settling) }
        }
        self.sockets = sockets
        look()
    }

    package func stop() {
        guard let sockets else { return }
        loop.forget(sockets.listening.raw)
        if let timer {
            loop.cancel(timer.id)
        }
        timer = nil
        self.sockets = nil
    }

    /// The settings were read again.
    public func setTargets(_ targets: [DestinationName: [NetworkTarget]]) {
        state.targets = targets
        look()
    }

    /// Plans a look, unless an earlier one is planned.
    private func arm(at point: BootInstant) {
        if let timer {
            guard point < timer.at else { return }
            loop.cancel(timer.id)
        }
        let id = loop.at(point) {
            self.assumeIsolated { monitor in
                monitor.timer = nil
                monitor.look()
            }
        }
        timer = (id, point)
    }

    /// Asks for all routes that matter, and reports changes.
    private func look() {
        guard sockets != nil else { return }
        let interfaces = NetworkInterfaces()
        var findings = NetworkFindings()
        findings.defaultRoutes = NetworkMonitor.anywhere.map { route(to: $0, over: interfaces) }
        findings.hasAddress = interfaces.hasAddress
        for case .address(let bytes) in state.targets.values.joined() {
            findings.reached[bytes] = route(to: bytes, over: interfaces) != nil
        }
        let (news, again) = state.update(findings, at: time.bootTime)
        if let again {
            arm(at: again)
        }
        if let news {
            tell(news)
        }
    }

    /// The route to an address; nil if no route leads there.
    private func route(to address: [UInt8], over interfaces: NetworkInterfaces) -> NetworkFindings.Route? {
        guard let sockets else { return nil }
        sequence &+= 1
        var answer = cnetlink_route()
        // The kernel answers before the send returns, so this never waits. If it cannot be asked, a route is
        // assumed, and senders find out by themselves.
        guard cnetlink_ask_route(sockets.asking.raw, sequence, address, Int32(address.count)) == 0,
            cnetlink_read_route(sockets.asking.raw, sequence, &answer) == 1
        else { return NetworkFindings.Route(interface: 0, gateway: []) }
        // Types 1 and 2 are RTN_UNICAST and RTN_LOCAL; others (unreachable, blackhole) lead nowhere. The
        // kernel keeps routes over an interface without a carrier, so that is checked too.
        guard answer.error == 0, answer.type == 1 || answer.type == 2, interfaces.isRunning(answer.interface)
        else { return nil }
        let gateway = withUnsafeBytes(of: answer.gateway) {
            Array($0.prefix(Int(max(0, answer.gateway_length))))
        }
        return NetworkFindings.Route(interface: answer.interface, gateway: gateway)
    }
}
