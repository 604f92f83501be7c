import EventLoops
import Glibc
import Model
import Outputs
import Receiver
import TestKit
import Testing

/// What came back, and how long it took.
func timed(_ body: () async throws -> Outcome) async rethrows -> (outcome: Outcome, seconds: Double) {
    let start = SystemTime().bootTime
    let outcome = try await body()
    return (outcome, Double((SystemTime().bootTime - start).nanosecondsClamped) / 1e9)
}

/// The failure of an outcome that is to be tried again by the backoff.
func retried(_ outcome: Outcome) -> Failure? {
    if case .retry(let failure) = outcome { failure } else { nil }
}

/// The failure of an outcome that a person must look at.
func held(_ outcome: Outcome) -> Failure? {
    if case .held(let failure) = outcome { failure } else { nil }
}

@Suite("Servers that misbehave")
struct HostileServerTests {
    private let good = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test(
        "a success with a cut or endless body is no acknowledgement if the body matters: the batch is retried",
        arguments: ["otlp", "splunk_hec", "loki", "elasticsearch", "ndjson"], [true, false])
    func halfASuccess(format: String, breaks: Bool) async throws {
        let formats: [String: any BatchEncoder] = [
            "otlp": OTLPEncoder(.json), "splunk_hec": SplunkEncoder(), "loki": LokiEncoder(),
            "elasticsearch": ElasticsearchEncoder(index: "a"), "ndjson": NDJSONEncoder(),
        ]
        let encoder = try #require(formats[format])
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            if !breaks { connection.hang() }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: encoder) { $0.requestTimeout = .seconds(1) }
        let outcome = await output.send(try Sample.batch(5))
        if format == "ndjson" {
            #expect(outcome == .acknowledged)
        } else {
            #expect(
                retried(outcome)?.kind == .connection
                    && retried(outcome)?.message.contains("broke off") == true)
        }
    }

    @Test(
        "a success before the request was read is no acknowledgement, even if the kernel took all of it",
        arguments: [40_000, 400_000], [true, false])
    func earlySuccess(events: Int, closes: Bool) async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            _ = connection.read()
            connection.write("HTTP/1.1 200 OK\r\n\(closes ? "Connection: close\r\n" : "")")
            connection.write("Content-Length: 2\r\n\r\nok")
            if closes { connection.pause(milliseconds: 500) } else { connection.hang() }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.compression = .none }
        let failure = retried(await output.send(try Sample.batch(events)))
        #expect(failure?.kind == .connection && failure?.status == 200)
        #expect(
            failure?.message.hasPrefix("127.0.0.1 answered 200 before it had the events") == true,
            "\(failure as Any)")
    }

    @Test("a refusal before the request was read counts as that refusal")
    func earlyRefusal() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            _ = connection.read()
            connection.write("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n")
            connection.hang()
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.compression = .none }
        guard case .tooLarge = await output.send(try Sample.batch(400_000)) else {
            Issue.record("not too large")
            return
        }
    }

    @Test("a header of more than 100 KB counts as a broken connection, and is retried")
    func hugeHead() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nX: " + String(repeating: "a", count: 150_000) + "\r\n\r\n")
            connection.hang()
        }
        defer { peer.stop() }
        let outcome = await (try bench.output(to: peer.url)).send(try Sample.batch(5))
        #expect(retried(outcome)?.kind == .connection, "\(outcome)")
    }

    @Test("a server that never answers takes up the request timeout only")
    func fault10_hang() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { $0.hang() }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.requestTimeout = .milliseconds(500) }
        let (outcome, seconds) = try await timed { await output.send(try Sample.batch(5)) }
        #expect(retried(outcome)?.kind == .timeout)
        #expect(retried(outcome)?.message.contains("request_timeout") == true)
        #expect(retried(outcome)?.message.contains("its machine acknowledged all") == true, "\(outcome)")
        #expect((0.4...45).contains(seconds))
    }

    @Test(
        "over HTTP/2 a silent or senseless server is not taken for a name that was not resolved",
        arguments: [[], [UInt8](repeating: 0xFF, count: 64)])
    func hostileHTTP2(bytes: [UInt8]) async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity(), http2: true) { connection in
            connection.write(bytes)
            connection.hang()
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) {
            $0.http.version = .http2
            $0.requestTimeout = .seconds(1)
            $0.connectTimeout = .seconds(1)
        }
        // The second and the third wait for the connection that the first makes.
        async let first = output.send(try Sample.batch(5, number: 1))
        async let second = output.send(try Sample.batch(5, number: 2))
        async let third = output.send(try Sample.batch(5, number: 3))
        for outcome in [try await first, try await second, try await third] {
            let failure = retried(outcome)
            #expect(failure != nil && failure?.kind != .resolve, "\(outcome)")
            #expect(failure?.message.contains("resolved") == false, "\(outcome)")
        }
    }

    @Test("a batch with a longer timeout does not prolong the timeout of the next one on the connection")
    func longerRequest() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            for _ in 0..<2 {
                guard connection.request() != nil else { return }
                connection.pause(milliseconds: 1500)
                guard connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") else { return }
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.requestTimeout = .seconds(1) }
        var batch = try Sample.batch(5)
        batch.timeFactor = 8
        #expect(await output.send(batch) == .acknowledged)
        #expect(retried(await output.send(try Sample.batch(5)))?.kind == .timeout)
    }

    @Test("a server that answers one byte at a time takes up the request timeout only")
    func slowDrip() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            for byte in Array("HTTP/1.1 200 OK\r\nX: ".utf8) + Array(repeating: 0x61, count: 10_000) {
                guard connection.write([byte]) else { return }
                connection.pause(milliseconds: 20)
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.requestTimeout = .seconds(1) }
        let (outcome, seconds) = try await timed { await output.send(try Sample.batch(5)) }
        #expect(retried(outcome)?.kind == .timeout)
        #expect((0.9...45).contains(seconds))
    }

    @Test("if no bytes move, the stall timeout ends the request long before the request timeout")
    func stall() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { $0.hang() }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, stall: .seconds(1))
        let (outcome, seconds) = try await timed { await output.send(try Sample.batch(5)) }
        #expect(retried(outcome)?.kind == .timeout)
        #expect((0.9...45).contains(seconds))
    }

    @Test("a server that accepts and never speaks TLS takes up the connect timeout only")
    func silentHandshake() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { $0.hang() }
        defer { peer.stop() }
        let output = try bench.output(to: "https://127.0.0.1:\(peer.port)/") {
            $0.connectTimeout = .milliseconds(400)
        }
        let (outcome, seconds) = try await timed { await output.send(try Sample.batch(5)) }
        #expect(retried(outcome)?.kind == .timeout)
        #expect(retried(outcome)?.message.contains("no TLS with 127.0.0.1 in time:") == true)
        #expect(
            retried(outcome)?.message.contains("the handshake was acknowledged and not answered") == true,
            "\(outcome)")
        #expect((0.3...45).contains(seconds))
    }

    @Test("a reset while the body is sent is retried")
    func resetInRequestBody() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            _ = connection.read()
            connection.reset()
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.compression = .none }
        let outcome = await output.send(try Sample.batch(200_000))
        #expect(retried(outcome)?.kind == .connection)
    }

    @Test("a connection cut after the body, before the answer, is retried")
    func cutBeforeAnswer() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { _ = $0.request() }
        defer { peer.stop() }
        let outcome = try await bench.output(to: peer.url).send(try Sample.batch(5))
        #expect(retried(outcome)?.kind == .connection)
    }

    @Test("an answer that is cut in its body counts by its status")
    func cutInAnswer() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            let status = connection.number == 0 ? "200 OK" : "503 Busy"
            connection.write("HTTP/1.1 \(status)\r\nContent-Length: 1000\r\n\r\nonly so much")
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url)
        let first = await output.send(try Sample.batch(5))
        #expect(first == .acknowledged)
        let failure = retried(await output.send(try Sample.batch(5)))
        #expect(failure?.status == 503 && failure?.excerpt == "only so much")
    }

    @Test(
        "an answer that is not HTTP is retried, as a protocol violation",
        arguments: [
            "hello\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/7.7 200 OK\r\n\r\n",
        ])
    func garbage(answer: String) async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write(answer)
        }
        defer { peer.stop() }
        let outcome = try await bench.output(to: peer.url) { $0.requestTimeout = .seconds(3) }
            .send(try Sample.batch(5))
        #expect(retried(outcome)?.kind == .protocolViolation)
    }

    @Test("endless answers and headers are ended")
    func endlessAnswers() async throws {
        let bench = try Bench()
        let piece = Array(repeating: UInt8(ascii: "x"), count: 65_536)
        let body = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write("HTTP/1.1 400 Bad\r\n\r\n")
            while connection.write(piece) {}
        }
        let head = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\n")
            while connection.write("X-Padding: 0123456789012345678901234567890123456789\r\n") {}
        }
        defer {
            body.stop()
            head.stop()
        }
        let (first, seconds) = try await timed {
            try await bench.output(to: body.url).send(try Sample.batch(5))
        }
        guard case .rejected(let failure) = first else {
            Issue.record("became \(first)")
            return
        }
        #expect(failure.excerpt.utf8.count == 1024 && seconds < 45)
        let (second, more) = try await timed {
            try await bench.output(to: head.url).send(try Sample.batch(5))
        }
        let told = retried(second)
        #expect(told?.kind == .connection && more < 45)
        #expect(told?.message.hasSuffix("is longer than 64 KiB") == true, "\(second)")
    }

    @Test("a redirect holds the destination and is not followed")
    func redirectsAreNotFollowed() async throws {
        let bench = try Bench()
        let other = try ScriptedPeer(bench.identity()) { $0.hang() }
        let target = other.url
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write("HTTP/1.1 307 Over there\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n")
        }
        defer {
            peer.stop()
            other.stop()
        }
        guard case .held(let failure) = try await bench.output(to: peer.url).send(try Sample.batch(5)) else {
            Issue.record("a redirect was not held")
            return
        }
        #expect(failure.status == 307 && other.connections == 0)
    }

    @Test("cookies are not stored")
    func cookiesAreNotKept() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                let status = head.lowercased().contains("cookie") ? "400 Bad" : "200 OK"
                connection.write("HTTP/1.1 \(status)\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url)
        for _ in 0..<3 { #expect(await output.send(try Sample.batch(5)) == .acknowledged) }
    }

    @Test("one connection serves many requests, and is replaced when the server has closed it")
    func connectionsAreKept() async throws {
        let bench = try Bench()
        let answer = good
        let peer = try ScriptedPeer(bench.identity()) { connection in
            for _ in 0..<20 {
                guard connection.request() != nil else { return }
                connection.write(answer)
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url)
        for number in 0..<20 {
            #expect(await output.send(try Sample.batch(5, number: UInt64(number))) == .acknowledged)
        }
        #expect(peer.connections == 1)
        // A request that goes out before the end of the connection has come is lost with the connection.
        let deadline = SystemTime().bootTime + .seconds(30)
        while peer.closedConnections == 0, SystemTime().bootTime < deadline { sched_yield() }
        for number in 0..<20 {
            #expect(await output.send(try Sample.batch(5, number: UInt64(number))) == .acknowledged)
        }
        #expect(peer.connections == 2)
    }

    @Test("a connection beyond its maximum age is not reused")
    func fault24_connectionsAge() async throws {
        let bench = try Bench()
        let answer = good
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while connection.request() != nil { connection.write(answer) }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.maxConnectionAge = .seconds(1) }
        let deadline = SystemTime().bootTime + .seconds(20)
        while peer.connections < 2, SystemTime().bootTime < deadline {
            #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        }
        #expect(peer.connections == 2)
    }

    @Test("a cancelled request ends at once, and its slot is free again")
    func cancellation() async throws {
        let bench = try Bench()
        let answer = good
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            if connection.number == 0 { connection.hang() } else { connection.write(answer) }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url)
        let batch = try Sample.batch(5)
        let task = Task(executorPreference: bench.loop) { await output.send(batch) }
        while peer.connections == 0 { await Task.yield() }
        let (outcome, seconds) = await timed {
            task.cancel()
            return await task.value
        }
        #expect(retried(outcome)?.kind == .connection && seconds < 45)
        #expect(await output.send(batch) == .acknowledged)
    }

    @Test("a refused connection has a clear message")
    func refused() async throws {
        let bench = try Bench()
        let outcome = try await bench.output(to: "https://127.0.0.1:1/").send(try Sample.batch(5))
        let failure = try #require(retried(outcome))
        #expect(failure.kind == .connect && failure.message.contains("connection refused"))
    }

    @Test("a name that cannot be resolved has a clear message")
    func unresolved() async throws {
        let bench = try Bench()
        // A label that is too long for any name server: nobody is asked.
        let name = String(repeating: "x", count: 70)
        let outcome = try await bench.output(to: "https://\(name).test/").send(try Sample.batch(5))
        let failure = try #require(retried(outcome))
        #expect(failure.kind == .resolve && failure.message.contains("name servers"))
    }
}
