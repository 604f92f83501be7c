import EventLoops
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

/// libcurl repeats a request by itself when a reused connection ends without an answer. The agent must decide about each repeat.
@Suite("Every request on the wire is an attempt by the agent")
struct RepeatTests {
    private static let good = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    /// Answers the first request of a connection, and ends the connection behind the second, which it has whole.
    private func storingPeer(_ bench: Bench, _ seen: Seen) throws -> ScriptedPeer {
        try ScriptedPeer(bench.identity()) { connection in
            while let (_, body) = connection.request() {
                seen.note("\(connection.number): \(body.count)")
                guard seen.all.count != 2 else { break }
                connection.write(RepeatTests.good)
            }
        }
    }

    @Test(
        "the library does not repeat a batch that a reused connection swallowed",
        arguments: [5, 20_000], [HTTPRequest.Method.post, .put])
    func swallowed(events: Int, method: HTTPRequest.Method) async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try storingPeer(bench, seen)
        defer { peer.stop() }
        let client = try client(bench, to: peer.url)
        let request = HTTPRequest(
            method: method, url: peer.url, body: Sample.lines(0..<events), answerLimit: 2048)
        guard case .answered(let answer) = await client.perform(request), answer.status == 200 else {
            Issue.record("the first request failed")
            return
        }
        guard case .failed(let failure) = await client.perform(request) else {
            Issue.record("the second request was answered")
            return
        }
        #expect(failure.kind == .connection && failure.leavesOpen, "\(failure)")
        #expect(failure.message.contains("broke before an answer arrived"), "\(failure)")
        #expect(seen.all.count == 2, "\(seen.all)")
    }

    @Test("the agent's next attempt uses another connection")
    func nextAttempt() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try storingPeer(bench, seen)
        defer { peer.stop() }
        let output = try bench.output(to: peer.url)
        #expect(await output.send(try Sample.batch(5, number: 1)) == .acknowledged)
        #expect(retried(await output.send(try Sample.batch(5, number: 2)))?.kind == .connection)
        #expect(await output.send(try Sample.batch(5, number: 2)) == .acknowledged)
        #expect(seen.all.count == 3, "\(seen.all)")
    }

    @Test(
        "if a receiver stores a batch and disappears, the result stays unknown, whatever a later connection says"
    )
    func goneAfterStoring() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard connection.request() != nil else { return }
            connection.write(RepeatTests.good)
            guard connection.request() != nil else { return }
            seen.note("stored")
            connection.closeListener()
        }
        let output = try bench.output(to: peer.url)
        #expect(await output.send(try Sample.batch(5, number: 1)) == .acknowledged)
        let failure = retried(await output.send(try Sample.batch(5, number: 2)))
        #expect(seen.all.count == 1 && failure?.leavesOpen == true, "\(failure as Any)")
    }

    @Test("over HTTP/2 the library repeats no request", arguments: HTTP2Peer.End.allCases)
    func http2(end: HTTP2Peer.End) async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try HTTP2Peer.start(bench, seen, second: end)
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.http.version = .http2 }
        #expect(await output.send(try Sample.batch(5, number: 1)) == .acknowledged)
        let failure = retried(await output.send(try Sample.batch(5, number: 2)))
        #expect(failure?.leavesOpen == true && seen.all.count == 2, "\(failure as Any) \(seen.all)")
        #expect(await output.send(try Sample.batch(5, number: 2)) == .acknowledged)
        #expect(seen.all.count == 3, "\(seen.all)")
    }

    @Test("the library may repeat a GET, which stores nothing")
    func getIsRepeated() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try storingPeer(bench, seen)
        defer { peer.stop() }
        let client = try client(bench, to: peer.url)
        for _ in 1...2 {
            guard case .answered(let answer) = await client.perform(HTTPRequest(method: .get, url: peer.url))
            else {
                Issue.record("no answer to a GET")
                return
            }
            #expect(answer.status == 200)
        }
        #expect(seen.all.count == 3)
    }

    private func client(_ bench: Bench, to url: String) throws -> HTTPClient {
        var options = HTTPOptions(url: url)
        options.settings.tls.caFile = bench.caFile
        let tls = try TLSMaterial(options.settings.tls).contents
        return try HTTPClient(on: bench.loop, settings: TransferSettings(options: options, tls: tls))
    }
}

/// As much of an HTTP/2 server as answers requests whose bodies fit into the first window (RFC 9113).
enum HTTP2Peer {
    /// What ends the second request of a connection instead of an answer.
    enum End: CaseIterable {
        case closes
        /// REFUSED_STREAM: the server says that it did nothing.
        case refusesStream
        /// GOAWAY with an earlier stream as the last one, and the end of the connection.
        case goesAway
    }

    static func start(_ bench: Bench, _ seen: Seen, second end: End) throws -> ScriptedPeer {
        try ScriptedPeer(bench.identity(), http2: true) { connection in
            var frames = Frames(connection: connection)
            connection.write(frame(type: 4, flags: 0, stream: 0, []))
            while let frame = frames.next() {
                switch (frame.type, frame.flags & 1) {
                // Settings are confirmed.
                case (4, 0): connection.write(HTTP2Peer.frame(type: 4, flags: 1, stream: 0, []))
                // Data that ends the stream.
                case (0, 1):
                    seen.note("\(connection.number): \(frame.stream)")
                    guard seen.all.count == 2 else {
                        // ":status: 200" is entry 8 of the static table; the flags end headers and stream.
                        connection.write(HTTP2Peer.frame(type: 1, flags: 5, stream: frame.stream, [0x88]))
                        break
                    }
                    switch end {
                    case .closes: return
                    case .refusesStream:
                        connection.write(
                            HTTP2Peer.frame(type: 3, flags: 0, stream: frame.stream, [0, 0, 0, 7]))
                    case .goesAway:
                        connection.write(
                            HTTP2Peer.frame(type: 7, flags: 0, stream: 0, [0, 0, 0, 1, 0, 0, 0, 0]))
                        return
                    }
                default: break
                }
            }
        }
    }

    private struct Frames {
        let connection: ScriptedPeer.Connection
        private var bytes: [UInt8] = []
        private var hasPreface = false

        init(connection: ScriptedPeer.Connection) { self.connection = connection }

        mutating func next() -> (type: UInt8, flags: UInt8, stream: UInt32)? {
            if !hasPreface {
                guard take(24) != nil else { return nil }
                hasPreface = true
            }
            guard let head = take(9) else { return nil }
            let length = head[..<3].reduce(0) { $0 << 8 | Int($1) }
            guard take(length) != nil else { return nil }
            return (head[3], head[4], head[5...].reduce(0) { $0 << 8 | UInt32($1) })
        }

        private mutating func take(_ count: Int) -> [UInt8]? {
            while bytes.count < count {
                let more = connection.read()
                guard !more.isEmpty else { return nil }
                bytes += more
            }
            defer { bytes.removeFirst(count) }
            return Array(bytes[..<count])
        }
    }

    private static func frame(type: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let length = UInt32(payload.count)
        return (0..<3).reversed().map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + [type, flags]
            + (0..<4).reversed().map { UInt8(truncatingIfNeeded: stream >> (8 * $0)) } + payload
    }
}
