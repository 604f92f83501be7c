import EventLoops
import Glibc
import Logs
import Model
import Outputs
import Synchronization
import TestKit
import Testing

/// Gives the calling thread a network of its own (`unshare(CLONE_NEWNET)`, which Glibc's module hides): without any route.
@Sendable private func enterOwnNetwork() -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    guard let symbol = dlsym(nil, "unshare") else { return false }
    return unsafeBitCast(symbol, to: Unshare.self)(0x4000_0000) == 0
}

@Suite("Without a route")
struct RouteTests {
    @Test(
        "ac15: an address that no route leads to is offline, no failure; a name that cannot be asked for is one",
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
        func outcome(_ url: String, _ proxy: HTTPOptions.Proxy = .none) async throws -> Outcome {
            var options = HTTPOptions(url: url)
            options.proxy = proxy
            let output = try HTTPOutput(
                "main", options, format: NDJSONEncoder(), on: loop, log: Log(KeptLog()), time: SystemTime())
            return await output.send(try Sample.batch(3))
        }
        #expect(try await outcome("https://203.0.113.9/") == .offline)
        #expect(try await outcome("https://[2001:db8::9]:8443/") == .offline)
        for outcome in [
            try await outcome("https://receiver.invalid/"),
            try await outcome("https://203.0.113.9/", .address(Secret("http://203.0.113.10:3128"))),
        ] {
            guard case .retry = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
    }
}
