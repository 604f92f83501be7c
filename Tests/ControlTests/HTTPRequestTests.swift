import EventLoops
import Glibc
import TestKit
import Testing

@testable import Control

/// What a request may look like, and what is refused, in words of bytes.
@Suite("HTTP requests", .timeLimit(.minutes(1)))
struct HTTPRequestTests {
    /// What the server says to bytes on a connection of their own.
    private func answers(_ texts: [String]) async throws -> [String] {
        try await withLoop("requests") { loop in
            let server = HTTPServer(on: loop, options: HTTPServerOptions(bodyBytes: 1000)) { request in
                .text(
                    "\(request.method) \(request.path) \(request.query.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }) "
                        + "\(String(decoding: request.body, as: UTF8.self))\n")
            }
            let listener = try InternetSocket.listen(at: "127.0.0.1", port: 0)
            let port = InternetSocket.port(of: listener.raw)
            try await server.start(listener)
            var answers: [String] = []
            for text in texts {
                let client = try Client(port: port)
                client.send(Array(text.utf8))
                client.finishSending()
                answers.append(try await onThread { client.readAll() })
                client.close()
            }
            await server.stop()
            return answers
        }
    }

    @Test("invalid and ambiguous requests are refused with 4xx and JSON, never HTML")
    func refusals() async throws {
        let host = "Host: x\r\n"
        let cases: [(String, Int)] = [
            ("GET /%00 HTTP/1.1\r\n\(host)\r\n", 400), ("GET /a%00b HTTP/1.1\r\n\(host)\r\n", 400),
            ("GET /?a=%00 HTTP/1.1\r\n\(host)\r\n", 400), ("GET /%zz HTTP/1.1\r\n\(host)\r\n", 400),
            ("GET /%ff HTTP/1.1\r\n\(host)\r\n", 400), ("GET\r\n\r\n", 400), ("GET /\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\n\(host)\r\n", 400), ("G(T / HTTP/1.1\r\n\(host)\r\n", 400),
            ("GET / HTTP/2.0\r\n\(host)\r\n", 505), ("GET / FTP/1.1\r\n\(host)\r\n", 400),
            ("GET / HTTP/1.1\n\(host)\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\(host)\(host)\r\n", 400), ("GET / HTTP/1.1\r\n\(host)A : b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\(host)A: b\r\n c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
            ("GET relative HTTP/1.1\r\n\(host)\r\n", 400), ("\u{16}\u{3}\u{1}", 400),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: 1, 1\r\n\r\na", 400),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: -1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: +1\r\n\r\na", 400),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: 1001\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: 99999999999999999999\r\n\r\n", 413),
            (
                "POST / HTTP/1.1\r\n\(host)Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400
            ),
            ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", 400),
            ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFF\r\n", 413),
            ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\(host)X: \(String(repeating: "x", count: 20_000))\r\n\r\n", 431),
        ]
        let answers = try await answers(cases.map(\.0))
        for ((text, status), answer) in zip(cases, answers) {
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(text.prefix(80).debugDescription): \(answer)")
            #expect(answer.contains("\r\n\r\n{\"error\":{\"status\":\(status),"), "\(answer)")
            #expect(!answer.contains("<html"))
        }
    }

    @Test("valid requests are answered: absolute form, chunks, keep-alive, pipelining")
    func requests() async throws {
        let cases = [
            (
                "GET http://other:80/a%20b?x=1+2&y HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /a b [\"x=1 2\", \"y=\"] \n"
            ),
            ("GET http://other HTTP/1.0\r\n\r\n", "GET / [] \n"),
            (
                "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;e=1\r\nab\r\n1\r\nc\r\n0\r\nT: t\r\n\r\n",
                "POST /a [] abc\n"
            ),
            (
                "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
                "POST /a [] ab\n"
            ),
            ("\r\nGET /b HTTP/1.1\r\nHost: [::1]:9464\r\n\r\n", "GET /b [] \n"),
            (
                "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                "GET /2 [] \n"
            ),
        ]
        for ((_, expected), answer) in zip(cases, try await answers(cases.map(\.0))) {
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix(expected), "\(answer)")
        }
        let head = try await answers([
            "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        ])
        #expect(head[0].hasSuffix("\r\n\r\n") && head[0].contains("Content-Length: 12\r\n"), "\(head[0])")
        #expect(head[1].hasPrefix("HTTP/1.1 204 "))
    }

    @Test("the stats port accepts Host headers with addresses, localhost, its name and configured names only")
    func hosts() async throws {
        try await withLoop("hosts") { loop in
            let server = StatsServer(on: loop, names: ["Web1.example.com"])
            let port = try await server.start()
            var name = [CChar](repeating: 0, count: 256)
            try #require(gethostname(&name, 255) == 0)
            let own = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            for (host, status) in [
                ("127.0.0.1:\(port)", 200), ("10.1.2.3", 200), ("[::1]:1", 200), ("[fe80::1%eth0]", 200),
                ("localhost", 200), ("LOCALHOST.", 200), (own, 200), ("web1.example.com:9464", 200),
                ("evil.example", 421), ("web1.example.com.evil.example", 421), ("1.2.3.4.evil.example", 421),
            ] {
                let client = try Client(port: port)
                client.send(Array("GET /healthz HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8))
                let answer = try await onThread { client.readAll() }
                #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(host): \(answer)")
                client.close()
            }
            await server.stop()
        }
    }

    @Test("if the kernel must identify clients, a client that it does not know is refused")
    func peerIsNeeded() async throws {
        try await withLoop("peers") { loop in
            let server = HTTPServer(
                on: loop, options: HTTPServerOptions(),
                refusal: { ControlServer.refusal(of: $1, group: getegid()) },
                handler: { _ in .text("secret\n") })
            // A TCP socket has no such credentials.
            let listener = try InternetSocket.listen(at: "127.0.0.1", port: 0)
            let port = InternetSocket.port(of: listener.raw)
            try await server.start(listener)
            let client = try Client(port: port)
            client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
            let answer = try await onThread { client.readAll() }
            #expect(answer.hasPrefix("HTTP/1.1 403 ") && !answer.contains("secret"))
            client.close()
            await server.stop()
        }
    }

    @Test("a slow request ends after the time for a request with 408, a silent connection after its own time")
    func wholeTime() async throws {
        try await withLoop("slow") { loop in
            var options = HTTPServerOptions()
            options.request = .milliseconds(300)
            options.idle = .milliseconds(300)
            let server = HTTPServer(on: loop, options: options) { _ in .text("ok\n") }
            let listener = try InternetSocket.listen(at: "127.0.0.1", port: 0)
            let port = InternetSocket.port(of: listener.raw)
            try await server.start(listener)
            let began = SystemTime().bootTime
            for head in [
                "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
            ] {
                let trickler = try Client(port: port)
                trickler.send(Array(head.utf8))
                let answer = try await onThread {
                    // Each byte is traffic: an idle time would begin anew.
                    for _ in 0..<60 {
                        trickler.send([UInt8(ascii: "x")])
                        pause(.milliseconds(10))
                    }
                    return trickler.readAll()
                }
                #expect(answer.hasPrefix("HTTP/1.1 408 "), "\(answer)")
                trickler.close()
            }
            let silent = try Client(port: port)
            #expect(try await onThread { silent.readAll() } == "")
            silent.close()
            #expect(SystemTime().bootTime - began < .seconds(15))
            await server.stop()
        }
    }
}

@Suite("Ports that probe themselves", .timeLimit(.minutes(1)))
struct SelfAnsweringTests {
    @Test("a control socket that was removed or replaced is found not to answer, and opened again")
    func removedSocket() async throws {
        let directory = try TemporaryDirectory()
        try await withLoop { loop in
            let socket = "\(directory.path)/s"
            let server = try ControlServer(on: loop, socket: socket, routes: ControlRoutes())
            try await server.start()
            #expect(await server.isAnswering())
            unlink(socket)
            #expect(await !server.isAnswering())
            try await server.openAgain()
            #expect(await server.isAnswering())
            #expect(try ControlClient(socket: socket).request("GET", "/").status == 404)
            await server.stop()
            #expect(await !server.isAnswering())
        }
    }

    @Test("a stats port answers its own probe, even when full of silent connections; a closed one does not")
    func statsPort() async throws {
        try await withLoop { loop in
            let server = StatsServer(on: loop)
            let port = try await server.start()
            let silent = try (0..<64).map { _ in try Client(port: port) }
            #expect(await server.isAnswering())
            for client in silent { client.close() }
            await server.stop()
            #expect(await !server.isAnswering())
            try await server.openAgain()
            #expect(await server.isAnswering())
            #expect(
                try await onThread { try runShell("curl -s http://127.0.0.1:\(port)/healthz").output }
                    == "ok\n")
            await server.stop()
        }
    }
}
