import EventLoops
import Glibc
import Model
import Receiver
import Synchronization
import TestKit
import Testing

@testable import Outputs

@Suite("nginx")
struct NginxTests {
    @Test("bodies through nginx to a receiver arrive as a whole", arguments: [false, true])
    func throughProxy(http2: Bool) async throws {
        let bench = try Bench()
        let file = "\(bench.directory.path)/events.ndjson"
        let receiver = try bench.receiver {
            $0.identity = nil
            $0.store = .file(file, sync: false)
        }
        let nginx = try await Nginx(bench, locations: "location / { proxy_pass \(receiver.url); }")
        let output = try bench.output(to: "\(nginx.url)/in") { $0.http.version = http2 ? .http2 : .http1 }
        #expect(await output.send(try Sample.batch(20_000)) == .acknowledged)
        #expect(text(of: file) == String(decoding: Sample.lines(0..<20_000), as: UTF8.self))
        #expect(receiver.stats.answers == [200: 1])
    }

    @Test("a connection that became silent is left after one timeout", arguments: [false, true])
    func silentConnection(http2: Bool) async throws {
        let bench = try Bench()
        // It answers once it has the events; `return 200` would answer the head.
        let receiver = try bench.receiver { $0.identity = nil }
        let nginx = try await Nginx(bench, locations: "location / { proxy_pass \(receiver.url); }")
        let output = try bench.output(to: "\(nginx.url)/in") {
            $0.http.version = http2 ? .http2 : .http1
            $0.requestTimeout = .seconds(2)
        }
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        let silent = try await nginx.fallSilent()
        defer { kill(silent, SIGKILL) }
        #expect(retried(await output.send(try Sample.batch(5)))?.kind == .timeout)
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
    }

    @Test(
        "an answer before the body was read ends the transfer, also over HTTP/2",
        arguments: [false, true], [10, 20_000, 200_000])
    func earlyAnswers(http2: Bool, events: Int) async throws {
        let bench = try Bench()
        let nginx = try await Nginx(
            bench,
            locations: """
                location /ok { return 200 "ok"; }
                location /busy { return 503; }
                location /later { add_header Retry-After 7 always; return 429; }
                location /small { client_max_body_size 1; proxy_pass http://127.0.0.1:1; }
                """)
        func send(_ path: String) async throws -> Outcome {
            let output = try bench.output(to: "\(nginx.url)/\(path)") {
                $0.http.version = http2 ? .http2 : .http1
                $0.compression = .none
                $0.requestTimeout = .seconds(60)
            }
            let (outcome, seconds) = try await timed { await output.send(try Sample.batch(events)) }
            #expect(seconds < 45, "\(path): \(outcome)")
            return outcome
        }
        // Who has not read the events has acknowledged nothing.
        let ok = try await send("ok")
        let isEarly = retried(ok)?.message.contains("before it had the events") == true
        #expect(isEarly || events < 200_000 && ok == .acknowledged, "\(ok)")
        // Over HTTP/1.1 so few leave with the head.
        #expect(!isEarly || events > 10 || http2)
        #expect(retried(try await send("busy"))?.status == 503)
        guard case .retryAfter(.seconds(7), let failure) = try await send("later"), failure.status == 429
        else {
            Issue.record("429 did not say when")
            return
        }
        guard case .tooLarge(let bytes, _) = try await send("small") else {
            Issue.record("413 was not too large")
            return
        }
        #expect(bytes == Sample.lines(0..<events).count)
    }
}

@Suite("Proxies", .serialized)
struct ProxyTests {
    /// A proxy that tunnels nothing and notes what it is asked.
    private func proxy(_ seen: Seen, answer: String) throws -> ScriptedPeer {
        try ScriptedPeer(nil) { connection in
            guard let (head, _) = connection.request() else { return }
            seen.note(head)
            connection.write(answer)
        }
    }

    @Test("a proxy gets its own credentials, and not the destination's")
    func fault24_proxiesSeeNoSecrets() async throws {
        let bench = try Bench()
        let seen = Seen()
        let proxy = try proxy(seen, answer: "HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")
        defer { proxy.stop() }
        let output = try bench.output(to: "https://collector.test/in") {
            $0.proxy = EndpointURL("http://agent:proxypass@127.0.0.1:\(proxy.port)")
            $0.token.inline = Secret("hunter2")
            $0.headers = ["X-Key": Secret("hunter3")]
        }
        let outcome = await output.send(try Sample.batch(5))
        let failure = try #require(retried(outcome))
        #expect(failure.kind == .connect && failure.message.contains("407"))
        #expect(!"\(outcome)".contains("proxypass"))
        #expect(seen.last.hasPrefix("CONNECT collector.test:443 HTTP/1.1\r\n"))
        #expect(seen.last.contains("Proxy-Authorization: Basic YWdlbnQ6cHJveHlwYXNz"))
        #expect(!seen.last.contains("hunter") && !seen.last.contains("Idempotency"))
    }

    @Test("a proxy of the environment is used, except for this machine")
    func fault24_environment() async throws {
        let bench = try Bench()
        let seen = Seen()
        let proxy = try proxy(seen, answer: "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        defer { proxy.stop() }
        let receiver = try bench.receiver()
        setenv("https_proxy", "http://127.0.0.1:\(proxy.port)", 1)
        defer { unsetenv("https_proxy") }
        // What is for this machine goes to no proxy of the environment.
        let local = try bench.output(to: "https://localhost:\(receiver.port)/", heedsEnvironment: true)
        #expect(await local.send(try Sample.batch(5)) == .acknowledged)
        #expect(seen.all.isEmpty)
        let proxied = try bench.output(to: "https://collector.test/in", heedsEnvironment: true)
        #expect(retried(await proxied.send(try Sample.batch(5)))?.kind == .connect)
        #expect(seen.all.count == 1)
        let without = try bench.output(to: receiver.url)
        #expect(await without.send(try Sample.batch(6, number: 2)) == .acknowledged)
    }
}

@Suite("Addresses and requests")
struct RequestTests {
    @Test(
        "the batch's id is where the destination expects it, and a token in the address where a format needs it"
    )
    func argumentsAreAdded() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                seen.note(head)
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: "\(peer.url)?query=INSERT") {
            $0.http.batchIDParameter = "insert_deduplication_token"
            $0.headers = ["content-type": "text/plain", "X-Empty": "", "X-Scope-OrgID": "shop"].mapValues {
                Secret($0)
            }
        }
        for number in 1...2 {
            #expect(await output.send(try Sample.batch(3, number: UInt64(number))) == .acknowledged)
            let id = "01930000-0000-7000-0000-00000000000\(number)"
            #expect(seen.last.hasPrefix("POST /?query=INSERT&insert_deduplication_token=\(id) HTTP/1.1\r\n"))
            #expect(seen.last.contains("\r\nX-Spoolship-Events: 3\r\n"))
            #expect(seen.last.contains("\r\ncontent-type: text/plain\r\n") && !seen.last.contains("x-ndjson"))
            #expect(
                seen.last.contains("\r\nX-Empty:\r\n") && seen.last.contains("\r\nX-Scope-OrgID: shop\r\n"))
        }
    }

    @Test("arguments are added to any address")
    func adding() {
        #expect(HTTPAddress.adding(["a=1"], to: "https://h/p") == "https://h/p?a=1")
        #expect(HTTPAddress.adding(["a=1", "", "b=2"], to: "https://h/p?x#f") == "https://h/p?x&a=1&b=2")
        #expect(HTTPAddress.adding([""], to: "https://h/p?x") == "https://h/p?x")
        #expect("a b/é~".percentEncoded == "a%20b%2F%C3%A9~")
    }
}
