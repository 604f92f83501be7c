internal import Control
internal import EventLoops
internal import Glibc
internal import Synchronization

/// Reports the agent's state to systemd, if systemd asked for reports.
///
/// Source: sd_notify(3): one datagram of `KEY=value` lines to the socket that `$NOTIFY_SOCKET` names.
final class ServiceManager: Sendable {
    /// The path of the socket; an abstract name begins with a zero byte (unix(7)).
    private let address: [UInt8]
    /// The last `STATUS=` text, so that systemd gets each text once.
    private let told = Mutex("")

    /// Makes the reporter from `$NOTIFY_SOCKET`: an absolute path, or `@` and an abstract name. Nil if the
    /// variable is missing or invalid: no service manager wants reports.
    init?(socket: String?) {
        guard let socket, let first = socket.utf8.first,
            first == UInt8(ascii: "/") || first == UInt8(ascii: "@")
        else { return nil }
        var name = Array(socket.utf8)
        guard name.count <= UnixSocket.longestPath else { return nil }
        if first == UInt8(ascii: "@") {
            name[0] = 0
        }
        address = name
    }

    /// How long systemd waits for `WATCHDOG=1` before it kills the process (`$WATCHDOG_USEC`,
    /// sd_watchdog_enabled(3)). Nil without a watchdog, or if the limit belongs to another process
    /// (`$WATCHDOG_PID`).
    static func watchdogLimit(microseconds: String?, process: String?) -> Duration? {
        guard let limit = microseconds.flatMap({ Int64($0) }), limit > 0 else { return nil }
        if let process, Int32(process) != getpid() { return nil }
        return .microseconds(limit)
    }

    /// Reports that the shutdown has begun, and how long it may take: systemd would otherwise kill the agent
    /// after `TimeoutStopSec=` although events are still being saved.
    func notifyStopping(within limit: Duration) {
        notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=\(Int64(limit / .microseconds(1)))")
    }

    /// Reports that a reload has begun; `READY=1` ends it. `MONOTONIC_USEC` lets a `Type=notify-reload` unit
    /// tell this reload from an earlier one (sd_notify(3)).
    func notifyReloading() {
        notify("RELOADING=1\nMONOTONIC_USEC=\(SystemTime().monotonicMicroseconds)")
    }

    /// Reports the first reason of `/readyz`, or `ready`, if the text differs from the last one.
    func notifyStatus(_ obstacles: [String]) {
        // bounded: a line for people
        let reason = obstacles.first.map { String($0.prefix { $0 != "\n" }.prefix(200)) }
        let text = reason.map { "not ready: \($0)" } ?? "ready"
        let isNew = told.withLock { told in
            defer { told = text }
            return told != text
        }
        if isNew {
            notify("STATUS=\(text)")
        }
    }

    /// Sends a state such as `READY=1`. An error is ignored: without a listener there is nobody to report to.
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
