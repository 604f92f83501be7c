import EventLoops
import Glibc
import Logs
import Model
import Outputs
import Synchronization
import TestKit
import Testing

/// Gives the calling thread namespaces of its own (`unshare`, which Glibc's module hides).
@Sendable private func enter(_ flags: Int32) -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    guard let symbol = dlsym(nil, "unshare") else { return false }
    return unsafeBitCast(symbol, to: Unshare.self)(flags) == 0
}

/// Without any route: `CLONE_NEWNET`.
@Sendable private func enterOwnNetwork() -> Bool { enter(0x4000_0000) }

/// With a name server of its own that never answers: `CLONE_NEWNS`, and `/etc/resolv.conf` mounted over.
@Sendable private func useNameServer(_ file: String) -> Bool {
    guard enter(0x0002_0000), mount("none", "/", nil, UInt(MS_REC | MS_PRIVATE), nil) == 0 else {
        return false
    }
    return mount(file, "/etc/resolv.conf", nil, UInt(MS_BIND), nil) == 0
}

@Suite("Without a route")
struct RouteTests {
    @Test(
        "ac15: an address without a route is offline, not a failure; a name that cannot be resolved is a failure",
        .enabled(if: getuid() == 0, "NOT TESTED: needs root (CAP_SYS_ADMIN) for unshare(2)"))
    func ac15_offline() async throws {
        let loop = try EventLoop(name: "routeless")
        try loop.start()
        defer { loop.stop() }
        let entered = Mutex<Bool?>(nil)
        loop.post {
            let done = enterOwnNetwork()
            entered.withLock { $0 = done }
        }
        let deadline = SystemTime().bootTime + .seconds(30)
        while entered.withLock({ $0 }) == nil, SystemTime().bootTime < deadline { usleep(1000) }
        try #require(entered.withLock { $0 } == true)
        func outcome(_ url: String, _ proxy: String = "") async throws -> Outcome {
            var options = HTTPOptions(url: url)
            options.settings.proxy = EndpointURL(proxy)
            options.heedsEnvironment = false
            let output = try HTTPOutput(
                "main", options, format: NDJSONEncoder(), on: loop, log: Log(KeptLog()), time: SystemTime())
            return await output.send(try Sample.batch(3))
        }
        #expect(try await outcome("https://203.0.113.9/") == .offline)
        #expect(try await outcome("https://[2001:db8::9]:8443/") == .offline)
        for outcome in [
            try await outcome("https://receiver.invalid/"),
            try await outcome("https://203.0.113.9/", "http://203.0.113.10:3128"),
        ] {
            guard case .retry = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
    }

    @Test(
        "a silent name server is named, and blocks nothing else on the loop",
        .enabled(if: getuid() == 0, "NOT TESTED: needs root (CAP_SYS_ADMIN, port 53)"))
    func silentNameServer() async throws {
        let server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(server) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(53).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0058).bigEndian
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(bound == 0)
        let directory = try TemporaryDirectory()
        let file = directory.path + "/resolv.conf"
        try WholeFile.replace(file, with: Array("nameserver 127.0.0.88\n".utf8), mode: 0o644)
        let loop = try EventLoop(name: "nameless")
        try loop.start()
        defer { loop.stop() }
        let entered = Mutex<Bool?>(nil)
        loop.post {
            let done = useNameServer(file)
            entered.withLock { $0 = done }
        }
        let deadline = SystemTime().bootTime + .seconds(30)
        while entered.withLock({ $0 }) == nil, SystemTime().bootTime < deadline { usleep(1000) }
        try #require(entered.withLock { $0 } == true)
        var options = HTTPOptions(url: "https://receiver.example.org/")
        options.settings.connectTimeout = .seconds(1)
        let output = try HTTPOutput(
            "main", options, format: NDJSONEncoder(), on: loop, log: Log(KeptLog()), time: SystemTime())
        let begin = SystemTime().bootTime
        guard case .retry(let failure) = await output.send(try Sample.batch(3)) else {
            Issue.record("a name was resolved without a server")
            return
        }
        #expect(failure.kind == .resolve && failure.message.contains("name servers"), "\(failure)")
        // The answer of what is posted next tells that the loop is free.
        await withCheckedContinuation { continuation in loop.post { continuation.resume() } }
        #expect(SystemTime().bootTime - begin < .seconds(4))
    }
}
