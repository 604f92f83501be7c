package import EventLoops
internal import Glibc
package import Metrics

/// The control API: HTTP on a Unix socket, for root, the agent's own user and the members of one group.
///
/// The kernel keeps others out by the socket's mode (0660) and identifies the caller; both are checked.
package final class ControlServer: Sendable {
    private let socket: String
    private let group: UInt32?
    private let server: HTTPServer
    private let figures = ServerFigures(of: "control")
    package let routes: ControlRoutes

    /// A server that does not listen yet. The socket's directory must exist; bodies have 1 MiB at most by default.
    ///
    /// The members of `group` may control the agent, by default its own group's. Throws when there is no such group.
    package init(
        on loop: EventLoop, socket: String, group name: String? = nil, largestBody: Int = 1_048_576,
        routes: ControlRoutes
    ) throws(ControlError) {
        self.socket = socket
        self.routes = routes
        group = try name.map { name throws(ControlError) in
            guard let entry = getgrnam(name) else {
                throw ControlError(.badAddress, "there is no group \(name): make it, or change control.group")
            }
            return entry.pointee.gr_gid
        }
        let allowed = group ?? getegid()
        server = HTTPServer(
            on: loop, options: HTTPServerOptions(bodyBytes: largestBody),
            judge: { _, peer in ControlServer.refusal(of: peer, group: allowed) }, figures: figures,
            handler: { request in await routes.answer(request) })
    }

    /// Why a caller may not control the agent; nil for root, the agent's own user and the members of the group.
    static func refusal(of peer: PeerCredentials?, group: UInt32) -> ControlRefusal? {
        guard let peer else { return ControlRefusal(403, "not_permitted", "the kernel does not identify the caller") }
        guard ![0, geteuid()].contains(peer.userID), !peer.groups.contains(group) else { return nil }
        return ControlRefusal(403, "not_permitted", "user \(peer.userID) may not control the agent")
    }

    /// Requests by status class, and connections that were cut.
    package var collectors: [any MetricCollector] { figures.collectors }

    /// Makes the socket and answers from now on; throws `addressInUse` when another agent answers there.
    package func start() async throws(ControlError) {
        try await server.start(try UnixSocket.listen(at: socket, group: group))
    }

    package func stop() async {
        // Another agent can only have put its own there after ours stopped answering: so it goes first.
        unlink(socket)
        await server.stop()
    }
}

extension ControlServer: SelfAnswering {
    package var label: String { "control" }
    package var name: String { "control socket" }

    /// Whether the path leads to this process, and it answers.
    package func isAnswering() async -> Bool {
        let socket = socket
        return await server.answers {
            guard let connection = UnixSocket.connect(to: socket, waits: false),
                UnixSocket.peer(of: connection.raw)?.processID == getpid()
            else { return nil }
            return connection
        }
    }

    package func openAgain() async throws(ControlError) {
        // Only ours goes: one that another process answers at stays.
        if let other = UnixSocket.connect(to: socket, waits: false) {
            if UnixSocket.peer(of: other.raw)?.processID == getpid() { unlink(socket) }
        }
        try await start()
    }
}
