import EventLoops
import Glibc
import Model
import Synchronization
import TestKit
import Testing

@testable import Control

@Suite("Control socket", .timeLimit(.minutes(2)))
struct ControlServerTests {
    @Test("a request reaches its function with path, query and body; the answer comes back")
    func requestAndAnswer() async throws {
        var routes = ControlRoutes()
        routes.add("POST", "/v1/things/{id}/do") { request in
            guard let body = try? request.json() else {
                return ControlRefusal(400, "bad_json", "the body is no JSON").response
            }
            return .json([
                "id": JSONValue(request.parameters["id"]), "query": JSONValue(request.query["a b"]),
                "body": body,
            ])
        }
        try await withControlServer(routes) { (client, _) async throws in
            let answer = try client.request(
                "POST", "/v1/things/x y/do", query: [("a b", "1&2=3"), ("c", "")], body: ["n": 1])
            #expect(answer.status == 200)
            #expect(
                try answer.json() == ["id": "x y", "query": "1&2=3", "body": ["n": 1]])
            #expect(try client.request("GET", "/v1/things/1/do").status == 405)
            #expect(try client.request("POST", "/v1/things/1").status == 404)
            let curl = "curl -s --unix-socket \(client.socket) -d '{\"n\":' http://localhost/v1/things/1/do"
            #expect(
                try runShell(curl).output
                    == #"{"error":{"status":400,"code":"bad_json","message":"the body is no JSON"}}"# + "\n")
        }
    }

    @Test("a body beyond the limit is refused")
    func largeBody() async throws {
        var routes = ControlRoutes()
        routes.add("POST", "/v1/echo") { .json(["size": .integer($0.body.count)]) }
        try await withControlServer(routes) { (client, _) async throws in
            let fits = JSONValue.string(String(repeating: "x", count: 1_048_574))
            #expect(try client.request("POST", "/v1/echo", body: fits).json()["size"] == 1_048_576)
            let large = JSONValue.string(String(repeating: "x", count: 5_000_000))
            #expect(try client.request("POST", "/v1/echo", body: large).status == 413)
        }
    }

    @Test(
        "the socket belongs to owner and group; a dead socket is replaced, a live one or another file is not")
    func socketFile() async throws {
        try await withControlServer(ControlRoutes()) { (client, _) async throws in
            var status = stat()
            #expect(lstat(client.socket, &status) == 0)
            #expect(status.st_mode & 0o7777 == 0o660)
            #expect(throws: ControlError.self) { _ = try UnixSocket.listen(at: client.socket, group: nil) }
            #expect(try client.request("GET", "/").status == 404)
        }
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/s"
        do { _ = try UnixSocket.listen(at: path, group: nil) }
        #expect(access(path, F_OK) == 0)
        _ = try UnixSocket.listen(at: path, group: nil)
        unlink(path)
        try writeFile(path, "precious")
        #expect(throws: ControlError.self) { _ = try UnixSocket.listen(at: path, group: nil) }
        #expect(try readFile(path) == "precious")
        unlink(path)
        #expect(symlink("/etc/passwd", path) == 0)
        #expect(throws: ControlError.self) { _ = try UnixSocket.listen(at: path, group: nil) }
        #expect(throws: ControlError.self) {
            _ = try UnixSocket.listen(at: "\(directory.path)/no/s", group: nil)
        }
        let long = directory.path + "/" + String(repeating: "x", count: 120)
        #expect(throws: ControlError.self) { _ = try UnixSocket.listen(at: long, group: nil) }
        #expect(throws: ControlError.self) { try ControlClient(socket: long).request("GET", "/") }
    }

    @Test("a client without permission gets an answer that says so")
    func peerIsChecked() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/s"
        try await withLoop { loop in
            let asked = Mutex<PeerCredentials?>(nil)
            let server = HTTPServer(
                on: loop, options: HTTPServerOptions(),
                refusal: { _, peer in
                    asked.withLock { $0 = peer }
                    return ControlRefusal(403, "not_permitted", "no")
                }, handler: { _ in .text("secret") })
            try await server.start(try UnixSocket.listen(at: path, group: getegid()))
            let answer = try ControlClient(socket: path).request("GET", "/")
            #expect(answer.status == 403)
            #expect(asked.withLock { $0?.processID } == getpid())
            await server.stop()
        }
    }

    @Test("a waiting request is cancelled when its client disconnects, and the server continues")
    func clientGone() async throws {
        let waiting = Mutex(false)
        let cancelled = Mutex(false)
        var routes = ControlRoutes()
        routes.add("POST", "/v1/drain") { _ in
            waiting.withLock { $0 = true }
            await waitForCancellation()
            cancelled.withLock { $0 = Task.isCancelled }
            return .json([:])
        }
        routes.add("GET", "/v1/ping") { _ in .json(["pong": true]) }
        try await withControlServer(routes) { (client, _) async throws in
            do {
                let descriptor = try connected(to: client.socket)
                let text = "POST /v1/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
                #expect(write(descriptor.raw, text, text.utf8.count) == text.utf8.count)
                #expect(await eventually { waiting.withLock { $0 } })
                #expect(!cancelled.withLock { $0 })
            }
            #expect(await eventually { cancelled.withLock { $0 } })
            #expect(try client.request("GET", "/v1/ping").json() == ["pong": true])
        }
    }

    @Test("a streamed answer arrives as a whole, however slowly it is read")
    func stream() async throws {
        var routes = ControlRoutes()
        routes.add("GET", "/v1/tap") { request in
            let lines = request.query["lines"].flatMap { Int($0) } ?? 0
            return .stream { stream in
                for number in 0..<lines {
                    guard
                        await stream.write([
                            "n": .integer(number), "pad": .string(String(repeating: "x", count: 90)),
                        ])
                    else { return }
                }
            }
        }
        try await withControlServer(routes) { (client, _) async throws in
            for lines in [0, 1, 50_000] {
                let body = try client.request("GET", "/v1/tap", query: [("lines", "\(lines)")]).body
                let received = body.split(separator: UInt8(ascii: "\n"))
                #expect(received.count == lines)
                #expect(received.last.map { $0.starts(with: "{\"n\":\(lines - 1),".utf8) } ?? (lines == 0))
            }
            let url = "http://localhost/v1/tap?lines=20000"
            let slow = try runShell(
                "curl -s --unix-socket \(client.socket) --limit-rate 8M '\(url)' | tail -1 | cut -c1-10")
            #expect(slow.output == "{\"n\":19999\n")
        }
    }

    @Test("an endless stream ends with its client")
    func endlessStream() async throws {
        let ended = Mutex(0)
        let begun = Mutex(0)
        var routes = ControlRoutes()
        routes.add("GET", "/v1/watch") { request in
            let fast = request.query["fast"] != nil
            return .stream { stream in
                begun.withLock { $0 += 1 }
                while await stream.write(["tick": true]) {
                    guard !fast else { continue }
                    await waitForCancellation()
                }
                ended.withLock { $0 += 1 }
            }
        }
        routes.add("GET", "/v1/ping") { _ in .json(["pong": true]) }
        try await withControlServer(routes) { (client, _) async throws in
            for query in [[("fast", "1")], []] {
                let status = try client.stream("GET", "/v1/watch", query: query) { _ in false }
                #expect(status == 200)
            }
            #expect(await eventually { ended.withLock { $0 } == 2 })
            #expect(try client.request("GET", "/v1/ping").status == 200)
        }
    }

    @Test("a client gives up on an agent that does not begin its answer, or stops in the middle of it")
    func standingStill() async throws {
        var routes = ControlRoutes()
        routes.add("GET", "/v1/never") { _ in
            await waitForCancellation()
            return .json([:])
        }
        routes.add("GET", "/v1/half") { _ in
            .stream { stream in
                _ = await stream.write(["tick": true])
                await waitForCancellation()
            }
        }
        try await withControlServer(routes) { (client, _) async throws in
            var impatient = client
            impatient.timeout = .milliseconds(300)
            let never = #expect(throws: ControlError.self) {
                try impatient.stream("GET", "/v1/never") { _ in true }
            }
            #expect(never?.code == .unreachable)
            var pieces = 0
            let half = #expect(throws: ControlError.self) {
                try client.stream("GET", "/v1/half", silence: .milliseconds(300)) { _ in
                    pieces += 1
                    return true
                }
            }
            #expect(half?.code == .unreachable && pieces == 1)
        }
    }

    @Test("waiting requests and streams end with the agent")
    func stopWhileWaiting() async throws {
        let waiting = Mutex(0)
        let ended = Mutex(0)
        let directory = try TemporaryDirectory()
        try await withLoop { loop in
            var routes = ControlRoutes()
            routes.add("GET", "/v1/watch") { _ in
                .stream { stream in
                    waiting.withLock { $0 += 1 }
                    while await stream.write([UInt8](repeating: 32, count: 4096)) {}
                    ended.withLock { $0 += 1 }
                }
            }
            let socket = "\(directory.path)/s"
            let server = try ControlServer(on: loop, socket: socket, routes: routes)
            try await server.start()
            let descriptor = try connected(to: socket)
            let text = "GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n"
            #expect(write(descriptor.raw, text, text.utf8.count) == text.utf8.count)
            #expect(await eventually { waiting.withLock { $0 } == 1 })
            await server.stop()
            #expect(await eventually { ended.withLock { $0 } == 1 })
            #expect(access(socket, F_OK) != 0)
        }
    }

    @Test("a missing agent, a missing permission and a foreign program have different messages")
    func clientErrors() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/s"
        let client = ControlClient(socket: path)
        #expect { try client.request("GET", "/") } throws: { ($0 as? ControlError)?.code == .unreachable }
        do { _ = try UnixSocket.listen(at: path, group: nil) }
        #expect { try client.request("GET", "/") } throws: { ($0 as? ControlError)?.code == .unreachable }
        #expect(client.connectionFailure(EACCES).code == .notPermitted)
        let listener = try UnixSocket.listen(at: path, group: nil)
        var hasty = client
        hasty.timeout = .milliseconds(50)
        #expect { try hasty.request("GET", "/") } throws: {
            ($0 as? ControlError)?.message.contains("in time") == true
        }
        _ = consume listener
    }
}
