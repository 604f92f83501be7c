import EventLoops
import Synchronization
import TestKit
import Testing

@testable import Control

/// What becomes of a request once its head has arrived.
@Suite("Reception of requests", .timeLimit(.minutes(1)))
struct ReceptionTests {
    private let batch = "POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"

    /// Runs `body` with the port of a server that receives requests in this way.
    private func withServer(
        _ options: HTTPServerOptions = HTTPServerOptions(),
        cipher: (@Sendable () -> (any ConnectionCipher)?)? = nil,
        receive: @escaping @Sendable (HTTPRequestHead) -> Reception, use: (UInt16) async throws -> Void
    ) async throws {
        try await withLoop("reception") { loop in
            let server = HTTPServer(
                on: loop, options: options, figures: ServerFigures(of: "test"), makeCipher: cipher
            ) { head, _ in receive(head) }
            let listener = try InternetSocket.listen(at: "127.0.0.1", port: 0)
            let port = InternetSocket.port(of: listener.raw)
            try await server.start(listener)
            try await use(port)
            await server.stop()
        }
    }

    @Test("a connection that is to be reset is reset when its body arrives, and not before")
    func reset() async throws {
        try await withServer(receive: { _ in
            .reset
        }) { port in
            let client = try Client(port: port)
            client.send(Array(batch.replacing("\r\n\r\n", with: "\r\nExpect: 100-continue\r\n\r\n").utf8))
            let said = try await onThread { client.read() }
            #expect(said == "HTTP/1.1 100 Continue\r\n\r\n")
            client.send(Array("ab".utf8))
            #expect(try await onThread { client.isCut() })
            client.close()
        }
    }

    @Test("a handler without an answer ends the connection")
    func cut() async throws {
        try await withServer(receive: { _ in
            .answer { _ in nil }
        }) { port in
            let client = try Client(port: port)
            client.send(Array((batch + "abcd").utf8))
            #expect(try await onThread { client.isCut() })
            client.close()
        }
    }

    @Test("each request has its own handler, and the head tells how the body is packed and repeated")
    func handlers() async throws {
        try await withServer(receive: { head in
            .answer { request in
                .text(
                    "\(head.path) \(head.contentEncoding ?? "-") \(head.idempotencyKey ?? "-") \(request.body.count)\n"
                )
            }
        }) { port in
            let client = try Client(port: port)
            let packed =
                "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nIdempotency-Key:  k 1 \r\nContent-Length: 2\r\n\r\nab"
            client.send(Array((batch + "abcd" + packed).utf8))
            client.finishSending()
            let said = try await onThread { client.readAll() }
            #expect(
                said.contains("\r\n\r\n/batch - - 4\n") && said.contains("\r\n\r\n/b gzip k 1 2\n"), "\(said)"
            )
            client.close()
        }
    }

    @Test(
        "an answer without a body says no length, and the next one on the connection is whole",
        arguments: [204, 304])
    func bodiless(status: Int) async throws {
        try await withServer(receive: { head in
            .answer { _ in .text("body\n", status: head.method == "POST" ? status : 200) }
        }) { port in
            let client = try Client(port: port)
            client.send(Array((batch + "abcdGET / HTTP/1.1\r\nHost: x\r\n\r\n").utf8))
            client.finishSending()
            let answers = try await onThread { client.readAll() }.split(separator: "HTTP/1.1 ")
            #expect(answers.count == 2)
            #expect(answers.first?.hasPrefix("\(status) ") == true)
            #expect(
                answers.first?.contains("Length") == false && answers.first?.hasSuffix("\r\n\r\n") == true)
            #expect(
                answers.last?.hasPrefix("200 ") == true && answers.last?.hasSuffix("\r\n\r\nbody\n") == true)
            client.close()
        }
    }

    @Test(
        "bodies that arrive are bounded together: the one that exceeds the bound is refused, the others go on"
    )
    func allBodies() async throws {
        var options = HTTPServerOptions()
        options.room = BodyRoom(bytes: 1000)
        let read = Mutex(0)
        try await withServer(
            options,
            receive: { _ in
                .answer { request in
                    read.withLock { $0 += request.body.count }
                    return .text("ok\n")
                }
            }
        ) { port in
            /// A client that has sent a part of its body; the server has read its head.
            func sender(_ count: Int, of length: Int) async throws -> Client {
                let client = try Client(port: port)
                let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n"
                client.send(Array((head + "Expect: 100-continue\r\n\r\n").utf8))
                let go = try await onThread { client.read() }
                #expect(go.hasPrefix("HTTP/1.1 100 "))
                client.send([UInt8](repeating: 0x20, count: count))
                return client
            }
            /// Another connection is answered after what was sent before was read.
            func waitUntilRead() async throws {
                let client = try Client(port: port)
                client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
                let answer = try await onThread { client.read() }
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
                client.close()
            }
            let first = try await sender(600, of: 800)
            try await waitUntilRead()
            let second = try await sender(600, of: 800)
            let refused = try await onThread { second.readAll() }
            #expect(refused.hasPrefix("HTTP/1.1 413 "), "\(refused)")
            // What was refused counts no more, although its connection is still drained.
            let third = try await sender(100, of: 300)
            try await waitUntilRead()
            third.send([UInt8](repeating: 0x20, count: 200))
            let answer = try await onThread { third.read() }
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            first.send([UInt8](repeating: 0x20, count: 200))
            let last = try await onThread { first.read() }
            #expect(last.hasPrefix("HTTP/1.1 200 "), "\(last)")
            #expect(read.withLock { $0 } == 1_100)
            first.close()
            second.close()
            third.close()
        }
    }

    /// Turns each byte over, and begins with a greeting.
    private final class Mirror: ConnectionCipher {
        private var greeting = Array("hello".utf8)

        private func turned(_ bytes: some Sequence<UInt8>) -> [UInt8] { bytes.map { ~$0 } }
        func decrypt(_ bytes: UnsafeRawBufferPointer) -> (bytes: [UInt8], isEnded: Bool) {
            (turned(bytes), bytes.last == 0)
        }
        func encrypt(_ bytes: [UInt8]) -> [UInt8] { turned(bytes) }
        func takeOutput() -> [UInt8] {
            defer { greeting = [] }
            return greeting
        }
        func end() -> [UInt8] { Array("bye".utf8) }
    }

    @Test("an encrypted connection is decrypted and encrypted, with the cipher's own words around")
    func cipher() async throws {
        try await withServer(
            cipher: { Mirror() },
            receive: { _ in
                .answer { request in .text(String(decoding: request.body, as: UTF8.self)) }
            }
        ) { port in
            let client = try Client(port: port)
            client.send(
                (batch.replacing("\r\n\r\n", with: "\r\nConnection: close\r\n\r\n") + "abcd").utf8.map { ~$0 }
            )
            let said = try await onThread { client.readAllBytes() }
            #expect(said.starts(with: "hello".utf8) && said.suffix(3).elementsEqual("bye".utf8))
            let answer = String(decoding: said.dropFirst(5).dropLast(3).map { ~$0 }, as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("\r\n\r\nabcd"), "\(answer)")
            client.close()
        }
    }
}
