import EventLoops
import Glibc
import Model
@testable import Outputs
import Receiver
import TestKit
import Testing

/// A format that sends what the test says.
private struct RawEncoder: BatchEncoder {
    let bytes: [UInt8]
    var traits: FormatTraits { FormatTraits(contentType: "application/octet-stream") }
    func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] { bytes }
}

@Suite("A receiver under attack")
struct ReceiverAbuseTests {
    private func status(_ outcome: Outcome) -> Int? {
        switch outcome {
        case .acknowledged: 200
        case .rejected(let failure), .held(let failure), .tooLarge(_, let failure), .retry(let failure):
            failure.status
        default: nil
        }
    }

    @Test(
        "a body that decompresses beyond the limit is refused, in every compression",
        arguments: [Compression.gzip, .zstd])
    func bombs(compression: Compression) async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.largestUnpacked = 1 << 20 }
        let bomb = RawEncoder(bytes: [UInt8](repeating: 0x20, count: 32 << 20))
        let output = try bench.output(to: receiver.url, format: bomb) { $0.compression = compression }
        #expect(status(await output.send(try Sample.batch(1))) == 413)
        #expect(receiver.stats.unreadable == 1 && receiver.stats.events == 0)
    }

    @Test("a body beyond the limit on the wire is refused")
    func largeBodies() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.largestBody = 100_000 }
        let output = try bench.output(to: receiver.url) { $0.compression = .none }
        #expect(status(await output.send(try Sample.batch(20_000))) == 413)
        #expect(status(await output.send(try Sample.batch(20, number: 2))) == 200)
    }

    @Test("a body that is not JSON is answered with 400", arguments: ["hello", "{\"a\":1}\nhello\n", "[1,2"])
    func garbage(body: String) async throws {
        let bench = try Bench()
        let receiver = try bench.receiver()
        let output = try bench.output(to: receiver.url, format: RawEncoder(bytes: Array(body.utf8)))
        #expect(status(await output.send(try Sample.batch(1))) == 400)
        #expect(receiver.stats.unreadable == 1)
    }

    @Test("concurrent requests with one key are accepted once")
    func sameKeyAtOnce() async throws {
        let bench = try Bench()
        let file = "\(bench.directory.path)/events.ndjson"
        let receiver = try bench.receiver {
            $0.threads = 4
            $0.store = .file(file, sync: true)
        }
        let outputs = try (0..<8).map { _ in try bench.output(to: receiver.url) }
        let batch = try Sample.batch(10)
        await withTaskGroup(of: Void.self) { group in
            for output in outputs {
                group.addTask { @Sendable in
                    for _ in 0..<5 { #expect(await output.send(batch) == .acknowledged) }
                }
            }
        }
        #expect(receiver.stats.events == 10 && receiver.stats.repeats == 39)
        #expect(text(of: file) == String(decoding: Sample.lines(0..<10), as: UTF8.self))
    }

    @Test("events that cannot be stored are not acknowledged, and are sent again")
    func fullDisk() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.store = .file("/dev/full", sync: false) }
        #expect(status(try await bench.output(to: receiver.url).send(try Sample.batch(1))) == 503)
        #expect(receiver.stats.events == 0)
    }

    @Test("silent clients do not block others")
    func silentClients() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.threads = 2 }
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        for _ in 0..<200 {
            let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            sockets.append(raw)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = receiver.port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let connected = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            #expect(connected)
        }
        let (outcome, seconds) = try await timed {
            try await bench.output(to: receiver.url).send(try Sample.batch(5))
        }
        #expect(outcome == .acknowledged && seconds < 45)
    }
}
