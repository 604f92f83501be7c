import EventLoops
import Glibc
import TestKit
import Testing

/// Debian's tinyproxy with a configuration of its own, on loopback; it tunnels with CONNECT.
final class TinyProxy {
    let port: Int
    private let log: String
    private let program: RunningProgram

    /// - Parameters:
    ///   - credentials: `user password`, which it then wants; nil: none.
    ///   - hosts: what it reads instead of `/etc/hosts`; needs root.
    init(in path: String, credentials: String? = nil, hosts: String? = nil) throws {
        port = try freePort()
        log = "\(path)/tinyproxy.log"
        try write(
            """
            Port \(port)
            Listen 127.0.0.1
            Timeout 60
            LogLevel Connect
            LogFile "\(log)"
            MaxClients 50
            \(credentials.map { "BasicAuth \($0)" } ?? "")

            """, to: "\(path)/tinyproxy.conf")
        let command = ["/usr/bin/tinyproxy", "-d", "-c", "\(path)/tinyproxy.conf"]
        let whole = hosts.map { TinyProxy.reading(hosts: $0) + command } ?? command
        program = try RunningProgram(whole[0], Array(whole.dropFirst()), output: "\(path)/tinyproxy.out")
        let port = self.port
        try wait(.seconds(20), "tinyproxy: \(program.printed)") {
            // Anything but "connection refused".
            try run("curl", ["-s", "-o", "/dev/null", "--max-time", "2", "http://127.0.0.1:\(port)/"]).code
                != 7
        }
    }

    /// What a program is begun by that is to read another file for names.
    static func reading(hosts: String) -> [String] {
        [
            "/usr/bin/unshare", "--mount", "sh", "-c", "mount --bind '\(hosts)' /etc/hosts && exec \"$@\"",
            "sh",
        ]
    }

    deinit { program.kill9() }

    /// How many tunnels were asked for.
    var tunnels: Int {
        ((try? contents(of: log)) ?? "").split(separator: "\n").count {
            $0.contains(": CONNECT ")
        }
    }
}

extension EndToEnd {
    @Suite("Proxies and names")
    struct ProxyTests {
        @Test("through a real proxy with credentials everything arrives once")
        func fault24_configuredProxy() throws {
            let bench = try Workbench()
            let proxy = try TinyProxy(in: bench.path, credentials: "agent secret-of-the-proxy")
            try bench.startReceiver()
            bench.settings["destination.proxy"] =
                "\"http://agent:secret-of-the-proxy@127.0.0.1:\(proxy.port)\""
            try bench.startAgent()
            try bench.append(keyed(0..<300), to: "app.jsonl")
            try bench.waitUntilDelivered(300)
            try bench.expectOnce(Set((0..<300).map { "e\($0)" }), member: "key")
            #expect(proxy.tunnels > 0)
            // ac24: a secret is in no log, status or printed configuration.
            for text in [
                bench.agentLog, try bench.command("status", "--json").text,
                try bench.command("check", "--print").text,
                try run("sh", ["-c", "tr '\\0' ' ' </proc/\(try #require(bench.agent).process)/cmdline"])
                    .text,
            ] {
                #expect(!text.contains("secret-of-the-proxy"), "\(text)")
            }
        }

        @Test(
            "https_proxy and NO_PROXY of the environment are obeyed",
            .enabled(if: getuid() == 0, "NOT TESTED: needs root for a mount namespace"))
        func fault24_environment() throws {
            let bench = try Workbench()
            // Another machine by name: what is for this one never goes to a proxy of the environment.
            let hosts = "\(bench.path)/hosts"
            try write("127.0.0.1 localhost\n127.0.0.2 receiver.test\n", to: hosts)
            let certificates = try Certificates(in: bench.path)
            let server = "\(bench.path)/server"
            try certificates.issue(server, names: ["DNS:receiver.test"])
            let store = "\(bench.path)/received.ndjson"
            let port = try freePort()
            let receiver = try FaultyReceiver(
                in: bench.path, address: "127.0.0.2", port: port, certificate: server, store: store)
            let proxy = try TinyProxy(in: bench.path, hosts: hosts)
            bench.settings["destination.url"] = "\"https://receiver.test:\(port)/\""
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            let under = TinyProxy.reading(hosts: hosts)
            let environment = ["https_proxy=http://127.0.0.1:\(proxy.port)"]
            try bench.startAgent(
                under: under, environment: environment + ["NO_PROXY=example.org,receiver.test"])
            try bench.append(keyed(0..<100), to: "app.jsonl")
            try bench.waitUntilDelivered(100)
            #expect(receiver.count("ok") > 0 && proxy.tunnels == 0)
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent(under: under, environment: environment + ["NO_PROXY=example.org"])
            try bench.append(keyed(100..<200), to: "app.jsonl")
            try bench.waitUntilDelivered(200)
            #expect(proxy.tunnels > 0)
            let keys = try contents(of: store).split(separator: "\n").count { $0.contains("\"key\"") }
            #expect(keys == 200)
        }

        @Test(
            "if a name changes to another machine, the agent follows within the maximum age of a connection",
            .enabled(if: getuid() == 0, "NOT TESTED: needs root for a mount namespace"))
        func fault24_nameChanges() throws {
            let bench = try Workbench()
            let certificates = try Certificates(in: bench.path)
            let server = "\(bench.path)/server"
            try certificates.issue(server, names: ["DNS:receiver.test"])
            // Two machines with the same port, and a name that means the first.
            let port = try freePort()
            let stores = ["127.0.0.2", "127.0.0.3"].map { "\(bench.path)/\($0).ndjson" }
            let first = try FaultyReceiver(
                in: bench.path, address: "127.0.0.2", port: port, certificate: server, store: stores[0])
            let second = try FaultyReceiver(
                in: bench.path, address: "127.0.0.3", port: port, certificate: server, store: stores[1])
            let hosts = "\(bench.path)/hosts"
            try write("127.0.0.1 localhost\n127.0.0.2 receiver.test\n", to: hosts)
            bench.settings["destination.url"] = "\"https://receiver.test:\(port)/\""
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            bench.settings["destination.max_connection_age"] = "\"1s\""
            let mount = "mount --bind '\(hosts)' /etc/hosts && exec \"$@\""
            try bench.startAgent(under: ["unshare", "--mount", "sh", "-c", mount, "sh"])
            try bench.append(keyed(0..<100), to: "app.jsonl")
            try bench.waitUntilDelivered(100)
            #expect(first.count("ok") > 0 && second.count("ok") == 0)

            // In place: it is mounted.
            try write("127.0.0.1 localhost\n127.0.0.3 receiver.test\n", to: hosts)
            var next = 100
            try wait(.seconds(60), "the other machine to be asked", every: .milliseconds(500)) {
                try bench.append(keyed(next..<next + 10), to: "app.jsonl")
                next += 10
                return second.count("ok") > 0
            }
            try bench.waitUntilDelivered(next)
            let arrived = try stores.flatMap { values(of: "key", in: try bytes(of: $0)) }
            #expect(arrived.count == next && Set(arrived).count == next)
            #expect(try bench.figures().total("spoolship_delivery_failures_total") == 0)
        }
    }
}
