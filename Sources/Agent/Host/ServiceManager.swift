internal import Control
internal import EventLoops
internal import Glibc
internal import Synchronization

/// Tells systemd what the agent is doing, where systemd has asked to be told.
///
/// Source: sd_notify(3): one datagram of `KEY=value` lines to the socket that `$NOTIFY_SOCKET` names.
final class ServiceManager: Sendable {
    private let address: [UInt8]
    private let told = Mutex("")

    /// Nil without `$NOTIFY_SOCKET`, an absolute path, or `@` and an abstract name: no service manager asks for news.
    init?(socket: String?) {
        guard let socket, let first = socket.utf8.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "@")
        else { return nil }
        var name = Array(socket.utf8)
        guard name.count <= UnixSocket.longestPath else { return nil }
        if first == UInt8(ascii: "@") { name[0] = 0 }
        address = name
    }

    /// How long the service manager waits for a sign of progress before it ends the process (`$WATCHDOG_USEC`).
    /// Nil when it does not, or when the limit is another process's (`$WATCHDOG_PID`).
    static func watchdogLimit(microseconds: String?, process: String?) -> Duration? {
        guard let limit = microseconds.flatMap({ Int64($0) }), limit > 0 else { return nil }
        if let process, Int32(process) != getpid() { return nil }
        return .microseconds(limit)
    }

    /// Says that the end has begun, and how long it may take.
    func notifyStopping(within limit: Duration) {
        notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=\(Int64(limit / .microseconds(1)))")
    }

    /// Says that a reload has begun; `READY=1` ends it.
    func notifyReloading() {
        notify("RELOADING=1\nMONOTONIC_USEC=\(SystemTime().monotonicMicroseconds)")
    }

    /// Says what `/readyz` says, whenever that is another thing than before.
    func notifyStatus(_ obstacles: [String]) {
        let reason = obstacles.first.map { String($0.prefix { $0 != "\n" }.prefix(200)) }  // bounded: a line for people
        let text = reason.map { "not ready: \($0)" } ?? "ready"
        let isNew = told.withLock { told in
            defer { told = text }
            return told != text
        }
        if isNew { notify("STATUS=\(text)") }
    }

    /// Sends a state, such as `READY=1`. Without a listener it goes nowhere, which is systemd's affair.
    func notify(_ state: String) {
        guard
            let socket = try? Descriptor(
                checking: socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket")
        else { return }
        let bytes = Array(state.utf8)
        UnixSocket.withAddress(address) {
            // A manager that does not listen must not stop the agent.
            _ = sendto(socket.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1)
        }
    }
}
