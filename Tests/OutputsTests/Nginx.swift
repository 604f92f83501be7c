import EventLoops
import Glibc
import Receiver
import TestKit
import Testing

/// nginx as a child of the tests, on loopback, with a configuration of its own.
final class Nginx: Sendable {
    let port: UInt16
    private let child: pid_t

    /// - Parameter locations: what stands in the server's block.
    init(_ bench: Bench, locations: String) async throws {
        let directory = "\(bench.directory.path)/nginx"
        try #require(mkdir(directory, 0o755) == 0)
        let identity = try bench.identity()
        try PrivateFile.replace("\(directory)/server.pem", with: identity.certificate)
        try PrivateFile.replace("\(directory)/server.key", with: identity.key)
        port = UInt16(try freePort())
        let configuration = """
            daemon off; worker_processes 1; pid \(directory)/pid; error_log \(directory)/error.log;
            \(getuid() == 0 ? "user root;" : "")
            events { worker_connections 256; }
            http {
                access_log off; client_body_temp_path \(directory)/body; proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/f; uwsgi_temp_path \(directory)/u; scgi_temp_path \(directory)/s;
                client_max_body_size 64m; keepalive_requests 100000;
                server {
                    listen 127.0.0.1:\(port) ssl http2;
                    ssl_certificate \(directory)/server.pem; ssl_certificate_key \(directory)/server.key;
                    ssl_protocols TLSv1.2 TLSv1.3;
                    \(locations)
                }
            }
            """
        let file = "\(directory)/nginx.conf"
        try PrivateFile.replace(file, with: configuration)
        let words: [String] = ["/usr/sbin/nginx", "-c", file, "-e", "\(directory)/error.log"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid = pid_t()
        let spawned = posix_spawn(&pid, words[0], nil, nil, &arguments, environ)
        try #require(spawned == 0, "no /usr/sbin/nginx")
        child = pid
        let deadline = SystemTime().bootTime + .seconds(20)
        while !Nginx.answers(port) {
            try #require(
                SystemTime().bootTime < deadline, "nginx did not start: \(text(of: "\(directory)/error.log"))"
            )
            await Task.yield()
        }
    }

    /// Its worker says nothing more, with all of its connections, and another one takes new ones.
    ///
    /// - Returns: the silent worker, which has to be killed.
    func fallSilent() async throws -> pid_t {
        let worker = try #require(workers().first)
        kill(worker, SIGSTOP)
        kill(child, SIGHUP)
        let deadline = SystemTime().bootTime + .seconds(20)
        while workers().count < 2 {
            try #require(SystemTime().bootTime < deadline, "nginx started no other worker")
            await Task.yield()
        }
        return worker
    }

    private func workers() -> [pid_t] {
        guard let processes = opendir("/proc") else { return [] }
        defer { closedir(processes) }
        var found: [pid_t] = []
        while let entry = readdir(processes) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard let pid = pid_t(name) else { continue }
            // "7 (nginx) S 6 …": behind the name come the state and the parent.
            let fields =
                text(of: "/proc/\(name)/stat").split(separator: ")").last?.split(separator: " ") ?? []
            if fields.count > 1, pid_t(String(fields[1])) == child { found.append(pid) }
        }
        return found
    }

    var url: String { "https://127.0.0.1:\(port)" }

    deinit {
        kill(child, SIGTERM)
        waitpid(child, nil, 0)
    }

    private static func answers(_ port: UInt16) -> Bool {
        let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(raw) }
        var address = loopback(port)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
