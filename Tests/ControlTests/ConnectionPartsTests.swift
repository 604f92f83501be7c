import Testing

@testable import Control

/// The parts of a connection, without a socket.
@Suite struct ConnectionPartsTests {
    private let text = "POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n"

    @Test("Wherever its bytes are cut, a request is the same, and the next one keeps its bytes")
    func cuts() throws {
        let bytes = Array(text.utf8)
        for cut in 0...bytes.count {
            var request = IncomingRequest()
            var isComplete = false
            for piece in [bytes[..<cut], bytes[cut...]] where !isComplete {
                request.add(piece)
                if request.head == nil {
                    guard try request.readHead(limit: 1000) != nil else { continue }
                    _ = try request.beginBody(limit: 10)
                }
                isComplete = try request.readBody()
                if isComplete, piece.endIndex == cut { request.add(bytes[cut...]) }
            }
            #expect(isComplete && request.head?.path == "/v1/x", "cut at \(cut)")
            let body = request.takeBody()
            #expect(body == Array("abc".utf8))
            request.beginAnew()
            #expect(request.head == nil && request.hasUnread && !request.isEmpty)
            request.drop()
            #expect(request.isEmpty)
        }
    }

    @Test("What is dropped of a request takes no room any more")
    func dropped() throws {
        var request = IncomingRequest()
        request.add("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab".utf8)
        _ = try request.readHead(limit: 1000)
        _ = try request.beginBody(limit: 10)
        let isComplete = try request.readBody()
        #expect(!isComplete && request.bodyBytes > 0)
        request.drop()
        #expect(request.bodyBytes == 0 && !request.hasUnread)
    }

    @Test("A head that grows too long is refused, complete or not")
    func longHead() throws {
        for end in ["", "\r\n\r\n"] {
            var request = IncomingRequest()
            request.add("GET / HTTP/1.1\r\nHost: \(String(repeating: "a", count: 100))\(end)".utf8)
            #expect(throws: ControlRefusal.self) { _ = try request.readHead(limit: 64) }
        }
    }

    @Test("A client that waits for 100 Continue gets it only before its body")
    func hesitation() throws {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
        for (body, waits) in [("", true), ("a", false)] {
            var request = IncomingRequest()
            request.add((head + body).utf8)
            _ = try request.readHead(limit: 1000)
            let isHesitant = try request.beginBody(limit: 1)
            #expect(isHesitant == waits)
        }
    }

    @Test("What the kernel has not accepted waits, in order")
    func outgoing() {
        var output = OutgoingBytes()
        output.add([1, 2, 3])
        output.advance(2)
        output.trim()
        output.add([4])
        #expect(output.waiting == 2 && output.withWaiting { Array($0) } == [3, 4])
        output.advance(2)
        output.trim()
        #expect(output.waiting == 0 && output.withWaiting { $0.isEmpty })
    }

    private func claim(_ id: UInt, _ owner: String, idle: Bool = false, closable: Bool = true) -> Claim {
        Claim(id: id, owner: owner, isIdle: idle, isClosable: closable)
    }

    @Test("The owner with the most connections yields, an idle one first, then the oldest")
    func weakest() {
        let claims = [
            claim(1, "a", idle: true), claim(2, "b"), claim(3, "b", idle: true), claim(4, "b", idle: true),
        ]
        #expect(Claim.weakest(of: claims, for: "c", places: 4)?.id == 3)
        #expect(Claim.weakest(of: [claim(2, "b"), claim(1, "a")], for: "c", places: 2)?.id == 1)
        #expect(Claim.weakest(of: [], for: "c", places: 4) == nil)
    }

    @Test("What is being answered yields only to another owner, if its own has most places")
    func answered() {
        let claims = (1...3).map { claim($0, "a", closable: false) } + [claim(4, "b", closable: false)]
        #expect(Claim.weakest(of: claims, for: "b", places: 4)?.id == 1)
        #expect(Claim.weakest(of: claims, for: "a", places: 4) == nil)
        #expect(Claim.weakest(of: claims, for: "b", places: 6) == nil)
        #expect(Claim.weakest(of: claims, for: nil, places: 4) == nil)
    }
}
