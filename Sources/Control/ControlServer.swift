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

    /// The defaults.
    public init() {}
}

/// The control API: HTTP on a Unix socket, for root, the agent's own user and the members of one group.
///
/// The kernel keeps others out by the socket's mode (0660) and vouches for who connects; both are asked.
public final class ControlServer: Sendable {
    private let options: ControlServerOptions
    private let group: UInt32?
    private let server: HTTPServer
    private let counters: CounterSet

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
        server = HTTPServer(
            on: loop, options: bounds,
            checksPeer: { peer in
                peer.userID == 0 || peer.userID == geteuid() || peer.groupID == allowed
                    || peer.supplementaryGroups.contains(allowed)
            },
            handler: { request in
                let response = await routes.answer(request)
                counters.add(["control", "\(response.status / 100)xx"])
                return response
            })
    }

    /// Requests by status class.
    public var collector: any MetricCollector { counters }

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
