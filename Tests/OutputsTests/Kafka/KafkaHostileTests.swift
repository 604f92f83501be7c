import Logs
import Model
import Synchronization
import TestKit
import Testing

@testable import Outputs

/// Servers that do what not a Kafka broker does.
@Suite("Kafka: hostile brokers")
struct KafkaHostileTests {
    private func output(_ bench: Bench, _ port: UInt16) throws -> KafkaOutput {
        var options = KafkaOptions(DestinationSettings(kafka: ["127.0.0.1:\(port)"], tls: false))
        options.settings.requestTimeout = .seconds(5)
        options.searchTime = .milliseconds(300)
        return try KafkaOutput("main", options, on: bench.loop, log: Log(bench.log))
    }

    private final class Counter: Sendable {
        private let bytes = Mutex(0)
        var total: Int { bytes.withLock { $0 } }
        func add(_ count: Int) { bytes.withLock { $0 += count } }
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    @Test("an answer of 95 MB is not read: a connection's memory is limited to answers of real brokers")
    func endless() async throws {
        let bench = try Bench()
        let counter = Counter()
        let peer = try ScriptedPeer(nil) { connection in
            let request = connection.read()
            guard request.count >= 12 else { return }
            connection.write(KafkaHostileTests.bigEndian(95_000_000) + request[8..<12])
            let zeros = [UInt8](repeating: 0, count: 1 << 16)
            for _ in 0..<1400 {
                guard connection.write(zeros) else { return }
                counter.add(zeros.count)
            }
        }
        let outcome = await (try output(bench, peer.port)).send(try Sample.batch(3))
        #expect(retried(outcome) != nil, "\(outcome)")
        // Some megabytes lie in sockets, for each of the attempts.
        #expect(counter.total < 60_000_000, "\(counter.total)")
    }

    @Test(
        "an answer that is not Kafka is retried, and is no acknowledgement",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\0", "\0\0\0\u{4}\0\0\0\u{1}",
            "SSH-2.0-OpenSSH_9.2\r\n",
        ])
    func nonsense(text: String) async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { connection in
            _ = connection.read()
            connection.write(text)
            connection.hang()
        }
        let failure = retried(await (try output(bench, peer.port)).send(try Sample.batch(3)))
        #expect(failure != nil)
        if text.hasPrefix("HTTP") {
            #expect(failure?.message.contains("not a Kafka broker") == true, "\(failure?.message ?? "")")
        }
    }
}
