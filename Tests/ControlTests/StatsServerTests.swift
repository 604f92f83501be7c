import EventLoops
import Glibc
import Metrics
import Synchronization
import TestKit
import Testing

@testable import Control

@Suite("Stats port", .timeLimit(.minutes(2)))
struct StatsServerTests {
    private func withServer(
        thread: String = "stats", readiness: @escaping @Sendable () -> Readiness = { Readiness() },
        page: (@Sendable () -> String)? = nil, time: any TimeSource = SystemTime(),
        _ body: (String, EventLoop) async throws -> Void
    ) async throws {
        try await withLoop(thread) { loop in
            let server = StatsServer(
                on: loop, collectors: [ProcessCollector()], readiness: readiness, page: page, time: time)
            let port = try await server.start()
            try await body("http://127.0.0.1:\(port)", loop)
            await server.stop()
        }
    }

    private func curl(_ arguments: String) throws -> String {
        try runShell("curl -s --max-time 20 \(arguments)").output
    }

    @Test("metrics are in the requested format, and promtool accepts them")
    func metrics() async throws {
        try await withServer { (address, _) async throws in
            let plain = try curl("-i \(address)/metrics")
            #expect(plain.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"))
            #expect(plain.contains("\nprocess_resident_memory_bytes "))
            let open = try curl(
                "-i -H 'Accept: application/openmetrics-text;version=1.0.0' \(address)/metrics")
            #expect(open.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"))
            #expect(open.hasSuffix("# EOF\n"))
            #expect(try runShell("curl -s \(address)/metrics | promtool check metrics").output == "")
            #expect(
                try curl("\(address)/metrics").contains(#"http_requests_total{server="stats",code="2xx"} 3"#))
        }
    }

    @Test("/healthz answers while the agent runs; /readyz judges, with reasons")
    func readiness() async throws {
        let obstacles = Mutex<[String]>([])
        try await withServer(readiness: { Readiness(obstacles: obstacles.withLock { $0 }) }) {
            (address, _) async throws in
            #expect(try curl("-w '%{http_code}' \(address)/healthz") == "ok\n200")
            #expect(try curl("-w '%{http_code}' \(address)/readyz") == "ready\n200")
            obstacles.withLock {
                $0 = ["nothing was committed for 5 min although 3 files wait", "the disk is full"]
            }
            #expect(
                try curl("-w '%{http_code}' \(address)/readyz")
                    == "not ready\n- nothing was committed for 5 min although 3 files wait\n- the disk is full\n503"
            )
        }
    }

    private static let destinations = [
        Readiness.Destination(name: "a", isReady: true, line: "a: active; nothing waits"),
        Readiness.Destination(
            name: "b/c", isReady: false, line: "b/c: held: answered 401\n\u{1B}[31m; 3 waiting",
            failing: "since yesterday"),
    ]

    @Test("/readyz lists the failing destinations, and /readyz/NAME judges one of them")
    func readinessOfDestinations() async throws {
        let obstacles = Mutex<[String]>([])
        try await withServer(readiness: {
            Readiness(obstacles: obstacles.withLock { $0 }, destinations: StatsServerTests.destinations)
        }) { (address, _) async throws in
            func get(_ path: String) throws -> String { try curl("-w '%{http_code}' '\(address)\(path)'") }
            #expect(try get("/readyz") == "ready; failing: b/c since yesterday\n200")
            #expect(try get("/readyz/a") == "ready; a: active; nothing waits\n200")
            let held = "not ready; b/c: held: answered 401\\u000a\\u001b[31m; 3 waiting\n503"
            #expect(try get("/readyz/b%2Fc") == held)
            #expect(try get("/readyz/b/c?x=1") == held)
            for unknown in ["/readyz/", "/readyz/A", "/readyz/%3Cb%3E"] {
                #expect(try get(unknown) == "unknown destination; known are a, b/c\n404", "\(unknown)")
            }
            #expect(try get("/readyzz").hasSuffix("404"))
            #expect(try curl("-o /dev/null -w '%{http_code}' -I \(address)/readyz/b%2Fc") == "503")
            obstacles.withLock { $0 = ["the disk is full"] }
            #expect(
                try get("/readyz") == "not ready; failing: b/c since yesterday\n- the disk is full\n503")
        }
        try await withServer { (address, _) async throws in
            #expect(try curl("\(address)/readyz/main") == "unknown destination; none is configured\n")
        }
    }

    @Test("many clients share the answers of a second; the next second has new ones")
    func crowd() async throws {
        let asked = Mutex(0)
        let time = ManualTime()
        try await withServer(
            readiness: {
                asked.withLock { $0 += 1 }
                return Readiness(destinations: StatsServerTests.destinations)
            }, time: time
        ) { (address, _) async throws in
            let many = try curl("-w '%{http_code}' '\(address)/readyz?[1-200]'")
            let ready = "ready; failing: b/c since yesterday\n"
            #expect(many == String(repeating: "\(ready)200", count: 200))
            #expect(asked.withLock { $0 } == StatsServer.answersOfASecond)
            // Other names, and other spellings of a name, share the report of that second too.
            for name in ["a", "%61", "b/c", "nobody"] {
                _ = try curl("\(address)/readyz/\(name)")
            }
            #expect(asked.withLock { $0 } == StatsServer.answersOfASecond)
            time.advance(by: .seconds(1))
            #expect(try curl("\(address)/readyz") == ready)
            #expect(asked.withLock { $0 } == StatsServer.answersOfASecond + 1)
        }
    }

    @Test("the port is read-only: other methods and paths, and oversized requests, are refused")
    func refusals() async throws {
        try await withServer { (address, _) async throws in
            let status = "-o /dev/null -w '%{http_code}'"
            #expect(try curl("\(status) -X POST -d x \(address)/metrics") == "405")
            #expect(try curl("\(status) -X DELETE \(address)/metrics") == "405")
            #expect(try curl("\(status) \(address)/etc/passwd") == "404")
            #expect(try curl("\(status) --path-as-is \(address)/../../etc/passwd") == "404")
            #expect(try curl("\(status) -I \(address)/metrics") == "200")
            let large = try curl(
                "\(status) -H 'X: \(String(repeating: "x", count: 60_000))' \(address)/metrics")
            #expect(["431", "413", "414", "000"].contains(large))
            let posted = try runShell(
                "head -c 3000000 /dev/zero | curl -s \(status) --data-binary @- \(address)/metrics")
            #expect(["405", "413"].contains(posted.output))
            #expect(try curl("\(address)/healthz") == "ok\n")
        }
    }

    @Test("the status page is one page that loads nothing from other servers")
    func page() async throws {
        try await withServer(page: { "<!doctype html><title>Spoolship</title>" }) {
            (address, _) async throws in
            let answer = try curl("-i \(address)/")
            #expect(answer.contains("Content-Type: text/html; charset=utf-8"))
            #expect(answer.contains("Content-Security-Policy: default-src 'none'"))
            #expect(answer.hasSuffix("<title>Spoolship</title>"))
        }
    }

    @Test("messages about a used port and an invalid address say what to do")
    func badAddresses() async throws {
        try await withServer { (address, loop) async throws in
            let taken = try #require(UInt16(address.split(separator: ":")[2]))
            func start(_ host: String, _ port: UInt16) async -> ControlError? {
                let server = StatsServer(on: loop, host: host, port: port)
                do {
                    try await server.start()
                    await server.stop()
                    return nil
                } catch {
                    return error
                }
            }
            let inUse = await start("127.0.0.1", taken)
            #expect(inUse?.code == .addressInUse)
            #expect(inUse?.message.contains("ss -ltnp") == true)
            #expect(inUse?.message.contains("stats.listen") == true)
            for text in ["localhost", "127.0.0.1:", "example.com", "[::1]", "192.0.2.1"] {
                #expect(await start(text, 9464)?.code == .badAddress, "\(text)")
            }
            let refusal = await start("192.0.2.1", 1)?.message
            #expect(
                refusal
                    == "cannot listen on 192.0.2.1:1: it is no address of this machine; change stats.listen")
            #expect(await start("127.0.0.1", 0) == nil)
        }
    }

    @Test("too few file descriptors are reported as such, with the limit to raise")
    func descriptors() {
        #expect(
            StatsServer.failure(SystemError("socket", number: EMFILE), at: "127.0.0.1", port: 9464).message
                == "cannot listen on 127.0.0.1:9464: Too many open files"
                + " (raise LimitNOFILE= of the unit, or ulimit -n)")
        #expect(
            StatsServer.failure(SystemError("socket", number: ENFILE), at: "::1", port: 9464).message
                == "cannot listen on [::1]:9464: Too many open files in system"
                + " (raise fs.file-max of this machine)")
    }

    @Test("a client that sends half a request is disconnected, and the number of connections is limited")
    func boundedConnections() async throws {
        try await withLoop { loop in
            let options = HTTPServerOptions(connections: 4, request: .seconds(1))
            let server = HTTPServer(on: loop, options: options) { _ in .text("ok\n") }
            let listener = try InternetSocket.listen(at: "127.0.0.1", port: 0)
            let port = InternetSocket.port(of: listener.raw)
            try await server.start(listener)
            let script = """
                for i in 1 2 3 4 5 6; do exec {s}<>/dev/tcp/127.0.0.1/\(port); printf 'GET / HT' >&$s; done
                curl -s --max-time 20 --retry 100 --retry-all-errors --retry-delay 1 http://127.0.0.1:\(port)/
                """
            #expect(try runShell("bash -c \"$(cat <<'EOF'\n\(script)\nEOF\n)\"").output.hasSuffix("ok\n"))
            await server.stop()
        }
    }

    @Test("without clients its thread sleeps")
    func sleepsWhenIdle() async throws {
        try await withServer(thread: "stats-idle") { (address, _) async throws in
            #expect(try curl("\(address)/healthz") == "ok\n")
            func switches() throws -> String {
                let command = "grep -l '^stats-idle' /proc/\(getpid())/task/*/comm | xargs -n1 dirname"
                let task = try runShell("\(command) | tail -1").output.split(separator: "\n").joined()
                return try runShell("grep ^voluntary_ctxt \(task)/status").output
            }
            // The closed connection is noticed at its own time.
            pause(.milliseconds(500))
            let before = try switches()
            #expect(before.contains("voluntary_ctxt_switches:"))
            pause(.seconds(3))
            #expect(try switches() == before)
        }
    }
}
