public import EventLoops
internal import Glibc
public import Metrics

/// What the API on the Unix socket needs to know.
public struct ControlServerOptions: Sendable, Equatable {
    /// Where the socket lies; its directory must exist. Default `/run/spoolship/control.sock`.
    public var socket = "/run/spoolship/control.sock"
    /// The group whose members may control the agent; nil means the agent's own.
    public var group: String?
    /// The largest body of a request, in bytes. Default 1 MiB.
    public var largestBody = 1_048_576

    package init() {}
}

/// The control API: HTTP on a Unix socket, for root, the agent's own user and the members of one group.
///
/// The kernel keeps others out by the socket's mode (0660) and vouches for who connects; both are asked.
public final class ControlServer: Sendable {
    private let options: ControlServerOptions
    private let group: UInt32?
    private let server: HTTPServer
    private let counters: CounterSet
    private let cuts: CounterSet

    /// A server that does not listen yet.
    ///
    /// - Throws: `ControlError` when there is no such group.
    public init(on loop: EventLoop, options: ControlServerOptions, routes: ControlRoutes) throws(ControlError) {
        self.options = options
        if let name = options.group {
            guard let entry = getgrnam(name) else {
                throw ControlError(.badAddress, "there is no group \(name): make it, or change control.group")
            }
            group = entry.pointee.gr_gid
        } else {
            group = nil
        }
        let counters = CounterSet(.requests)
        self.counters = counters
        let allowed = group ?? getegid()
        var bounds = HTTPServerOptions()
        bounds.bodyBytes = options.largestBody
        bounds.needsPeer = true
        let cuts = CounterSet(.connectionsCut)
        self.cuts = cuts
        server = HTTPServer(
            on: loop, options: bounds,
            judge: { _, peer in
                guard let peer else { return nil }
                let isAllowed =
                    peer.userID == 0 || peer.userID == geteuid() || peer.groupID == allowed
                    || peer.supplementaryGroups.contains(allowed)
                return isAllowed
                    ? nil
                    : ControlRefusal(
                        status: 403, code: "not_permitted", message: "user \(peer.userID) may not control the agent")
            },
            note: { note in
                switch note {
                case .answered(let status): counters.add(["control", "\(status / 100)xx"])
                case .cut(let reason): cuts.add(["control", reason])
                }
            }, handler: { request in await routes.answer(request) })
    }

    /// Requests by status class, and connections that were cut.
    public var collectors: [any MetricCollector] { [counters, cuts] }

    /// Makes the socket and answers from now on.
    ///
    /// - Throws: `ControlError`: `addressInUse` when another agent answers there.
    public func start() async throws(ControlError) {
        try await server.start(try UnixSocket.listen(at: options.socket, group: group))
    }

    /// Ends all requests and removes the socket.
    public func stop() async {
        // Another agent can only have put its own there after ours stopped answering: so it goes first.
        unlink(options.socket)
        await server.stop()
    }
}

extension ControlServer: SelfAnswering {
    /// `control`.
    public var label: String { "control" }
    /// How people call it.
    public var name: String { "control socket" }

    /// Whether the path leads to this process, and it answers.
    public func isAnswering() async -> Bool {
        let socket = options.socket
        return await server.answers(within: SelfAnswer.limit) {
            guard let connection = UnixSocket.connect(to: socket, waits: false),
                UnixSocket.peer(of: connection.raw)?.processID == getpid()
            else { return nil }
            return connection
        }
    }

    /// Makes the socket anew.
    public func openAgain() async throws(ControlError) {
        // Only ours goes: one that another process answers at stays.
        if let other = UnixSocket.connect(to: options.socket, waits: false) {
            if UnixSocket.peer(of: other.raw)?.processID == getpid() { unlink(options.socket) }
        }
        try await start()
    }
}
