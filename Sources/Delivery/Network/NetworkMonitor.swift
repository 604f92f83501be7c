internal import CNetlink
public import EventLoops
public import Model

/// Watches the kernel's routes and tells delivery what they mean (ac15).
///
/// The kernel announces changes of links, addresses and routes (rtnetlink); half a second after the first one the few
/// routes that matter are asked for one by one, so that neither a storm of changes nor a large routing table costs
/// anything. Without changes nothing runs. It makes no connection and resolves no name.
///
/// Source: rtnetlink(7).
public actor NetworkMonitor: LoopActor {
    /// How long changes are collected before the routes are asked for.
    private static let settling = Duration.milliseconds(500)
    /// Addresses that are nobody's (RFC 5737, RFC 3849): the way to them is the default route. Nothing is sent there.
    private static let anywhere: [[UInt8]] = [
        [198, 51, 100, 1], [0x20, 0x01, 0x0d, 0xb8] + Array(repeating: 1, count: 12),
    ]

    /// The loop that it lives on.
    public nonisolated let loop: EventLoop
    private let time: any TimeSource
    private let tell: @Sendable (NetworkNews) -> Void
    private var state: NetworkState
    private var sockets: Sockets?
    private var sequence: UInt32 = 0
    private var timer: (id: EventLoop.TimerID, at: BootInstant)?

    private final class Sockets {
        let listening: Descriptor
        let asking: Descriptor

        init() throws(SystemError) {
            listening = try Descriptor(checking: cnetlink_open(1), "netlink socket")
            asking = try Descriptor(checking: cnetlink_open(0), "netlink socket")
        }
    }

    /// A monitor that does nothing before `start`.
    ///
    /// - Parameters:
    ///   - loop: the delivery loop; `tell` is called on it.
    ///   - targets: where each destination's servers are (its proxy, where it has one): one that is reached is enough.
    public init(
        on loop: EventLoop, targets: [DestinationName: [NetworkTarget]], time: any TimeSource = SystemTime(),
        tell: @escaping @Sendable (NetworkNews) -> Void
    ) {
        self.loop = loop
        self.time = time
        self.tell = tell
        state = NetworkState(targets: targets)
    }

    /// Begins to watch; tells at once which destinations are reached.
    ///
    /// - Throws: `SystemError` when the kernel has no netlink socket for us (`RestrictAddressFamilies` in a unit must
    ///   name AF_NETLINK). Delivery works without: senders find out by themselves.
    public func start() throws(SystemError) {
        let sockets = try Sockets()
        let listening = sockets.listening.raw
        try loop.watch(listening, for: .readable) { _ in
            // Only that something changed matters; what it is now is asked for.
            _ = cnetlink_discard(listening)
            self.assumeIsolated { $0.arm(at: $0.time.bootTime + NetworkMonitor.settling) }
        }
        self.sockets = sockets
        look()
    }

    package func stop() {
        guard let sockets else { return }
        loop.forget(sockets.listening.raw)
        if let timer { loop.cancel(timer.id) }
        timer = nil
        self.sockets = nil
    }

    /// The settings were read again.
    public func setTargets(_ targets: [DestinationName: [NetworkTarget]]) {
        state.targets = targets
        look()
    }

    /// Looks then, or earlier if that is planned already.
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
        if let again { arm(at: again) }
        if let news { tell(news) }
    }

    /// The way to an address; nil when none leads there.
    private func route(to address: [UInt8], over interfaces: NetworkInterfaces) -> NetworkFindings.Route? {
        guard let sockets else { return nil }
        sequence &+= 1
        var answer = cnetlink_route()
        // The kernel answers before the request returns. When it cannot be asked, senders find out by themselves.
        guard cnetlink_ask_route(sockets.asking.raw, sequence, address, Int32(address.count)) == 0,
            cnetlink_read_route(sockets.asking.raw, sequence, &answer) == 1
        else { return NetworkFindings.Route(interface: 0, gateway: []) }
        // RTN_UNICAST and RTN_LOCAL lead somewhere; the kernel keeps routes over an interface without a carrier.
        guard answer.error == 0, answer.type == 1 || answer.type == 2, interfaces.isRunning(answer.interface)
        else { return nil }
        let gateway = withUnsafeBytes(of: answer.gateway) { Array($0.prefix(Int(max(0, answer.gateway_length)))) }
        return NetworkFindings.Route(interface: answer.interface, gateway: gateway)
    }
}
