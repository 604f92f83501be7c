import EventLoops
import Foundation
import TestKit
import Testing

@testable import Receiver

/// What any client of HTTP may ask of the receiver.
@Suite("A receiver of plain HTTP", .timeLimit(.minutes(1)))
struct PlainHTTPTests {
    private func receiver(_ change: (inout ReceiverOptions) -> Void = { _ in }) throws -> DevelopmentReceiver
    {
        var options = ReceiverOptions()
        change(&options)
        return try DevelopmentReceiver(options)
    }

    /// All that the receiver answers on one connection.
    private func answers(_ receiver: DevelopmentReceiver, _ request: String) async throws -> String {
        let client = try Client(port: receiver.port)
        client.send(Array(request.utf8))
        client.finishSending()
        defer { client.close() }
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: client.readAll()) }
        }
    }

    private let event = #"{"a":1}"#
    private var batch: String { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n\(event)" }

    @Test("batches, chunks, questions and wrong paths are answered on one connection")
    func keptAlive() async throws {
        let receiver = try receiver()
        let chunks =
            "PUT /a/b?c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n"
        let rest = "GET /other HTTP/1.1\r\nHost: x\r\n\r\nGET /stats HTTP/1.1\r\nHost: x\r\n\r\n"
        let answers = try await answers(receiver, batch + chunks + rest).split(separator: "HTTP/1.1 ")
        #expect(answers.map { $0.prefix(3) } == ["200", "200", "404", "200"])
        #expect(answers.last?.hasSuffix(receiver.stats.json) == true)
        #expect(receiver.stats.events == 2 && receiver.stats.withoutKey == 2)
    }

    @Test("HTTP/1.0 is answered, and its connection closed")
    func oldClients() async throws {
        let receiver = try receiver()
        let answer = try await answers(receiver, "POST / HTTP/1.0\r\nContent-Length: 7\r\n\r\n\(event)")
        #expect(
            answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("\r\n\r\n{\"events\":1}\n"), "\(answer)")
    }

    @Test("every status can be demanded; one without a body leaves the connection usable")
    func statuses() async throws {
        for status in [200, 204, 302, 304, 418, 599] {
            let receiver = try receiver {
                $0.faults.fault = .status(status)
                $0.faults.first = 1
                $0.faults.retryAfter = 7
            }
            let answers = try await answers(receiver, batch + batch).split(separator: "HTTP/1.1 ")
            #expect(answers.map { $0.prefix(3) } == ["\(status)", "200"])
            #expect(answers.first?.contains("Retry-After: 7\r\n") == true)
            #expect(answers.first?.contains("told to fail") == (status != 204 && status != 304))
            #expect(receiver.stats.events == 1)
        }
    }

    @Test("a body beyond the bound is refused by its length, and counted")
    func tooLarge() async throws {
        let receiver = try receiver { $0.largestBody = 6 }
        #expect(try await answers(receiver, batch).hasPrefix("HTTP/1.1 413 "))
        #expect(receiver.stats.answers == [413: 1] && receiver.stats.requests == 1)
    }

    @Test("several threads answer; a receiver that is stopped twice stops once, and its port is free")
    func threads() async throws {
        let receiver = try receiver { $0.threads = 3 }
        for _ in 0..<12 {
            #expect(try await answers(receiver, batch).hasPrefix("HTTP/1.1 200 "))
        }
        #expect(receiver.stats.events == 12)
        receiver.stop()
        receiver.stop()
        #expect(throws: SystemError.self) { _ = try Client(port: receiver.port) }
        let other = try self.receiver { $0.address = "::1" }
        #expect(other.url == "http://[::1]:\(other.port)/")
    }

    @Test("a certificate with the key of another is refused, and so is no certificate at all")
    func wrongPairs() throws {
        let now = SystemTime().wallTime
        let authority = try CertificateAuthority(now: now)
        let request = CertificateAuthority.Request(notBefore: now, notAfter: now + .seconds(60))
        let (one, two) = (try authority.issue(request), try authority.issue(request))
        for (certificate, key) in [(one.certificate, two.key), ("", one.key), (one.certificate, "")] {
            let error = #expect(throws: ReceiverError.self) {
                _ = try receiver { $0.identity = .init(certificate: certificate, key: key) }
            }
            #expect(error?.code == .certificate)
        }
    }
}
