import EventLoops
import Glibc
import Receiver
import Synchronization
import TestKit
import Testing

@testable import Outputs

/// Debian's nats-server with JetStream, as a child of the tests, on loopback; it can be killed, stopped and started again.
final class NATSServer: Sendable {
    let port: UInt16
    private let directory: String
    private let child = Mutex<pid_t>(0)

    /// - Parameter settings: its settings besides address and store.
    init(_ bench: Bench, name: String = "nats", _ settings: String = "", starts: Bool = true) async throws {
        directory = "\(bench.directory.path)/\(name)"
        try #require(mkdir(directory, 0o755) == 0)
        port = UInt16(try freePort())
        configure(settings)
        if starts { try await start() }
    }

    deinit { end(SIGKILL) }

    var url: String { "nats://127.0.0.1:\(port)" }
    var log: String { text(of: "\(directory)/log") }

    /// Other settings, from its next start on.
    func configure(_ settings: String) {
        let text = """
            server_name: "\(directory)", host: "127.0.0.1", port: \(port), log_file: "\(directory)/log"
            jetstream { store_dir: "\(directory)/store", max_mem: 64MB, max_file: 512MB }
            \(settings)
            """
        do { try PrivateFile.replace("\(directory)/conf", with: text) } catch { Issue.record("\(error)") }
    }

    func start() async throws {
        let words = ["/usr/sbin/nats-server", "-c", "\(directory)/conf"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid = pid_t()
        try #require(posix_spawn(&pid, words[0], nil, nil, &arguments, environ) == 0, "no \(words[0])")
        child.withLock { $0 = pid }
        try #require(await eventually { isListening }, "nats-server did not start: \(log)")
    }

    /// Ends it, and waits for that.
    func end(_ signal: Int32) {
        child.withLock { child in
            guard child > 0 else { return }
            kill(child, signal)
            waitpid(child, nil, 0)
            child = 0
        }
    }

    /// Sends it a signal. After SIGSTOP it has stopped, with all of its threads: a kill alone is only a wish.
    func signal(_ number: Int32) {
        let process = child.withLock { process in
            _ = kill(process, number)
            return process
        }
        guard number == SIGSTOP else { return }
        for _ in 0..<10_000 where !hasStopped(process) { usleep(1000) }
        if !hasStopped(process) { Issue.record("nats-server did not stop") }
    }

    private func hasStopped(_ process: pid_t) -> Bool {
        guard let threads = opendir("/proc/\(process)/task") else { return false }
        defer { closedir(threads) }
        while let entry = readdir(threads) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard Int(name) != nil, let state = state(of: name, in: process) else { continue }
            guard state == "T" else { return false }
        }
        return true
    }

    /// The letter that /proc has for what a thread does; nil if it has ended.
    private func state(of thread: String, in process: pid_t) -> Character? {
        let file = open("/proc/\(process)/task/\(thread)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = read(file, &bytes, bytes.count)
        // After the name in parentheses, which may have some of its own.
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: ")").last?
            .dropFirst()
            .first
    }

    /// Whether somebody takes connections at its port.
    var isListening: Bool {
        let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(raw) }
        var address = NATSServer.loopback(port)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
