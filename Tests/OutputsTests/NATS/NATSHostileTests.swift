import EventLoops
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

/// Servers that do what no NATS server does.
@Suite("NATS: hostile servers")
struct NATSHostileTests {
    private static let info = "INFO {\"headers\":true,\"max_payload\":1048576}\r\n"

    private func output(
        _ bench: Bench, _ url: String, time: any TimeSource = SystemTime(),
        _ change: (inout DestinationSettings) -> Void = { _ in }
    ) throws -> NATSOutput {
        var settings = DestinationSettings(nats: [url])
        settings.tls.caFile = bench.caFile
        settings.requestTimeout = .seconds(10)
        settings.connectTimeout = .seconds(10)
        change(&settings)
        return try NATSOutput("main", NATSOptions(settings), on: bench.loop, log: Log(bench.log), time: time)
    }

    /// Takes a client in, and gives each message to the script, with the subject for the answer.
    private static func serve(
        _ connection: ScriptedPeer.Connection, info: String = NATSHostileTests.info, seen: Seen = Seen(),
        _ message: (String) -> Bool
    ) {
        connection.write(info)
        var text = ""
        while true {
            let bytes = connection.read()
            if bytes.isEmpty { return }
            seen.note(String(decoding: bytes, as: UTF8.self))
            text += String(decoding: bytes, as: UTF8.self)
            while let end = text.firstRange(of: "\r\n") {
                let line = text[..<end.lowerBound]
                text = String(text[end.upperBound...])
                if line == "PING" { connection.write("PONG\r\n") }
                if line.hasPrefix("HPUB "), !message(String(line.split(separator: " ")[2])) { return }
            }
        }
    }

    @Test(
        "whatever a server answers instead of an acknowledgement, the batch is kept and retried",
        arguments: [
            "garbage\r\n", "MSG REPLY 1 99999999999999999999\r\n", "MSG REPLY 1 70000\r\n",
            "MSG REPLY 1 2\r\n{}\r\n",
            "MSG REPLY 1 3\r\n+OK\r\n", "MSG REPLY 1 10\r\n{\"seq\":\r\n\r\n",
            "HMSG REPLY 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
            "-ERR 'Server Shutdown'\r\n", "-ERR\r\n", "INFO nonsense\r\n", "\r\n",
            "PONG\r\nPONG\r\nHTTP/1.1 200 OK\r\n\r\n",
            "", "RESET",
        ])
    func insteadOfAcknowledgements(answer: String) async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { connection in
            NATSHostileTests.serve(connection) { reply in
                if answer == "RESET" {
                    connection.reset()
                } else {
                    connection.write(answer.replacing("REPLY", with: reply))
                }
                return false
            }
        }
        defer { peer.stop() }
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)")
        #expect(retried(await output.send(try Sample.batch(3))) != nil)
    }

    @Test("an answer to no request, another's request or an old one acknowledges nothing")
    func foreignAnswers() async throws {
        let bench = try Bench()
        let good = "{\"stream\":\"A\",\"seq\":1}"
        let peer = try ScriptedPeer(nil) { connection in
            NATSHostileTests.serve(connection) { reply in
                for subject in [
                    reply + "1", "1", reply.dropLast() + "x", reply.uppercased(), reply.dropLast() + "-1",
                ] {
                    connection.write("MSG \(subject) 1 \(good.utf8.count)\r\n\(good)\r\n")
                }
                return true
            }
        }
        defer { peer.stop() }
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)") { $0.requestTimeout = .seconds(1) }
        #expect(retried(await output.send(try Sample.batch(3)))?.kind == .timeout)
    }

    @Test(
        "a server of another protocol is left in time",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "INFO {\r\n", "INFO {\"headers\":false}\r\n",
            "SSH-2.0-OpenSSH_9.2\r\n",
            String(repeating: "x", count: 100_000), "INFO " + String(repeating: " ", count: 100_000),
            "PING\r\n",
        ])
    func noServer(greeting: String) async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { connection in
            connection.write(greeting)
            connection.hang()
        }
        defer { peer.stop() }
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)") { $0.connectTimeout = .seconds(1) }
        switch await output.send(try Sample.batch(3)) {
        case .retry(let failure), .held(let failure):
            #expect(failure.message.contains("127.0.0.1"), "\(failure.message)")
        case let outcome: Issue.record("\(outcome)")
        }
    }

    @Test(
        "with tls:// the client sends nothing to a server without TLS, or to one that continues in clear text"
    )
    func stripped() async throws {
        let bench = try Bench()
        for (info, more) in [
            (NATSHostileTests.info, ""),
            ("INFO {\"headers\":true,\"tls_required\":true,\"nonce\":\"x\"}\r\n", "PING\r\n"),
        ] {
            let seen = Seen()
            let peer = try ScriptedPeer(nil) { connection in
                NATSHostileTests.serve(connection, info: info + more, seen: seen) { _ in true }
            }
            defer { peer.stop() }
            let output = try output(bench, "tls://127.0.0.1:\(peer.port)") {
                $0.token.inline = Secret("the-token")
            }
            let outcome = await output.send(try Sample.batch(3))
            if more.isEmpty {
                guard case .held(let failure) = outcome, failure.message.contains("offers no TLS") else {
                    Issue.record("\(outcome)")
                    continue
                }
            } else {
                #expect(retried(outcome)?.message.contains("in clear text") == true, "\(outcome)")
            }
            #expect(!seen.all.joined().contains("CONNECT"))
        }
    }

    @Test("tls_first: TLS begins before the server says anything")
    func tlsFirst() async throws {
        let bench = try Bench()
        let good = "{\"stream\":\"A\",\"seq\":1}"
        let peer = try ScriptedPeer(try bench.identity()) { connection in
            NATSHostileTests.serve(connection) { reply in
                connection.write("MSG \(reply) 1 \(good.utf8.count)\r\n\(good)\r\n")
            }
        }
        defer { peer.stop() }
        let output = try output(bench, "tls://127.0.0.1:\(peer.port)") { $0.nats.tlsFirst = true }
        #expect(await output.send(try Sample.batch(3)) == .acknowledged)
        #expect(await output.certificates.serverExpiry != nil)
    }

    @Test("announced servers are tried after the configured ones, or not at all if so configured")
    func learned() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        try NATSReader(server).makeStream()
        let info =
            "INFO {\"headers\":true,\"connect_urls\":[\"bad\",\"127.0.0.1:1\",\"127.0.0.1:\(server.port)\"]}\r\n"
        for follows in [true, false] {
            let peer = try ScriptedPeer(nil) { connection in
                NATSHostileTests.serve(connection, info: info) { _ in false }
            }
            defer { peer.stop() }
            let output = try output(bench, "nats://127.0.0.1:\(peer.port)") {
                $0.nats.followCluster = follows
            }
            #expect(retried(await output.send(try Sample.batch(3))) != nil)
            peer.stop()
            let found = await eventually {
                await output.send((try? Sample.batch(3)) ?? Sample.batch([])) == .acknowledged || !follows
            }
            #expect(found)
            if !follows { #expect(retried(await output.send(try Sample.batch(3)))?.kind == .connect) }
        }
    }

    @Test("pings are answered, and fragments of any size are joined")
    func fragments() async throws {
        let bench = try Bench()
        let seen = Seen()
        let good = "{\"stream\":\"A\",\"seq\":1}"
        let peer = try ScriptedPeer(nil) { connection in
            NATSHostileTests.serve(connection, seen: seen) { reply in
                for byte in "PING\r\nMSG \(reply) 1 \(good.utf8.count)\r\n\(good)\r\n".utf8 {
                    connection.write([byte])
                }
                return true
            }
        }
        defer { peer.stop() }
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)")
        #expect(await output.send(try Sample.batch(3)) == .acknowledged)
        #expect(await eventually { seen.all.joined().contains("PONG\r\n") })
        let hello = seen.all.joined()
        #expect(hello.contains("\"no_responders\":true") && hello.contains("SUB _INBOX."))
    }

    @Test("a cancelled call ends at once, and leaves a usable connection")
    func cancelled() async throws {
        let bench = try Bench()
        let good = "{\"stream\":\"A\",\"seq\":1}"
        let seen = Seen()
        let peer = try ScriptedPeer(nil) { connection in
            NATSHostileTests.serve(connection) { reply in
                if seen.all.isEmpty {
                    seen.note(reply)
                    return true
                }
                return connection.write("MSG \(reply) 1 \(good.utf8.count)\r\n\(good)\r\n")
            }
        }
        defer { peer.stop() }
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)") { $0.requestTimeout = .seconds(600) }
        let task = Task { await output.send(try Sample.batch(3)) }
        #expect(await eventually { !seen.all.isEmpty })
        task.cancel()
        #expect(retried(try await task.value)?.message.contains("the wait ended") == true)
        #expect(await output.send(try Sample.batch(3)) == .acknowledged)
        #expect(peer.connections == 1)
    }

    @Test("a connection beyond the maximum age is replaced, a younger one is kept")
    func age() async throws {
        let bench = try Bench()
        let good = "{\"stream\":\"A\",\"seq\":1}"
        let peer = try ScriptedPeer(nil) { connection in
            NATSHostileTests.serve(connection) { reply in
                connection.write("MSG \(reply) 1 \(good.utf8.count)\r\n\(good)\r\n")
            }
        }
        defer { peer.stop() }
        let time = ManualTime()
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)", time: time) {
            $0.maxConnectionAge = .seconds(60)
        }
        for connections in [1, 1, 1, 2] {
            #expect(await output.send(try Sample.batch(1)) == .acknowledged)
            #expect(peer.connections == connections)
            time.advance(by: .seconds(25))
        }
    }

    @Test("a server that accepts and hangs up at once is tried again later")
    func hangingUp() async throws {
        let bench = try Bench()
        let good = "{\"stream\":\"A\",\"seq\":1}"
        let peer = try ScriptedPeer(nil) { connection in
            guard connection.number >= 20 else {
                connection.write(NATSHostileTests.info)
                _ = connection.read()
                connection.write("PONG\r\n")
                return
            }
            NATSHostileTests.serve(connection) { reply in
                connection.write("MSG \(reply) 1 \(good.utf8.count)\r\n\(good)\r\n")
            }
        }
        defer { peer.stop() }
        // Were a closed connection used, the first attempt would take all of the test's time.
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)") { $0.requestTimeout = .seconds(600) }
        #expect(try await eventually { await output.send(try Sample.batch(3)) == .acknowledged })
    }

    @Test("a server that reads nothing is left before the output piles up, although it sends now and then")
    func readingNothing() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { connection in
            connection.write(NATSHostileTests.info)
            _ = connection.read()
            connection.write("PONG\r\n")
            while connection.write("PING\r\n") { connection.pause(milliseconds: 20) }
        }
        defer { peer.stop() }
        let output = try output(bench, "nats://127.0.0.1:\(peer.port)") {
            $0.requestTimeout = .milliseconds(200)
            $0.compression = .none
        }
        let large = Sample.batch([try Sample.part(0..<25_000, .none)])
        #expect(
            await eventually {
                _ = await output.send(large)
                return peer.connections > 1
            })
    }
}
