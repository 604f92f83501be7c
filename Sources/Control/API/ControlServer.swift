package import EventLoops
internal import Glibc
package import Metrics

/// The control API: HTTP on a Unix socket, for root, the agent's own user and the members of one group.
///
/// Two barriers: the kernel enforces the socket's mode (0660), and the server checks the caller that the
/// kernel identifies. The second one holds if the file's mode is changed. Thread-safe.
package final class ControlServer: Sendable {
    /// Path of the socket.
    private let socket: String
    /// Group that the socket is given to; nil for the process's own.
    private let group: UInt32?
    private let server: HTTPServer
    private let figures = ServerFigures(of: "control")
    package let routes: ControlRoutes

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - socket: path; its directory must exist.
    ///   - name: group whose members may control the agent; nil for the process's own group.
    ///   - largestBody: largest body in bytes; default 1 MiB.
    /// - Throws: `ControlError` with code `badAddress` if the group does not exist.
    package init(
        on loop: EventLoop, socket: String, group name: String? = nil, largestBody: Int = 1_048_576,
        routes: ControlRoutes
    ) throws(ControlError) {
        self.socket = socket
        self.routes = routes
        group = try name.map { name throws(ControlError) in
            guard let entry = getgrnam(name) else {
                throw ControlError(
                    .badAddress, "there is no group \(name): make it, or change control.socket.group")
            }
            return entry.pointee.gr_gid
        }
        let allowed = group ?? getegid()
        server = HTTPServer(
            on: loop, options: HTTPServerOptions(bodyBytes: largestBody),
            refusal: { _, peer in ControlServer.refusal(of: peer, group: allowed) }, figures: figures,
            handler: { request in await routes.answer(request) })
    }

    /// Why a caller may not control the agent; nil for root, the agent's own user and members of the group.
    static func refusal(of peer: PeerCredentials?, group: UInt32) -> ControlRefusal? {
        guard let peer else {
            return ControlRefusal(403, "not_permitted", "the kernel does not identify the caller")
        }
        guard ![0, geteuid()].contains(peer.userID), !peer.groups.contains(group) else { return nil }
        return ControlRefusal(403, "not_permitted", "user \(peer.userID) may not control the agent")
    }

    /// Figures of requests by status class, and of connections that were cut.
    package var collectors: [any MetricCollector] { figures.collectors }

    /// Makes the socket and begins to answer.
    ///
    /// - Throws: `ControlError`, with code `addressInUse` if another agent answers there.
    package func start() async throws(ControlError) {
        try await server.start(try UnixSocket.listen(at: socket, group: group))
    }

    /// Removes the socket and stops.
    package func stop() async {
        // The name is removed before the server stops: another agent can replace the socket only once ours
        // does not answer, and its socket must not be removed.
        unlink(socket)
        await server.stop()
    }
}

extension ControlServer: SelfAnswering {
    package var label: String { "control" }
    package var name: String { "control socket" }

    /// Whether the path leads to this process, and it answers. Also notices that the socket's file was
    /// removed.
    package func isAnswering() async -> Bool {
        let socket = socket
        return await server.answers {
            guard let connection = UnixSocket.connect(to: socket, waits: false),
                UnixSocket.peer(of: connection.raw)?.processID == getpid()
            else { return nil }
            return connection
        }
    }

    /// Listens again, after the file was removed or the server stopped answering.
    package func openAgain() async throws(ControlError) {
        // Only our own socket is removed; one at which another process answers stays.
        if let other = UnixSocket.connect(to: socket, waits: false) {
            if UnixSocket.peer(of: other.raw)?.processID == getpid() {
                unlink(socket)
            }
        }
        try await start()
    }
}
