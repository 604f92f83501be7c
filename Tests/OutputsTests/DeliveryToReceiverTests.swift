import EventLoops
import Model
import Outputs
import Receiver
import TestKit
import Testing

@Suite("Sending to a receiver over TLS")
struct DeliveryToReceiverTests {
    @Test(
        "what arrives is what was stored, with any storage and compression",
        arguments: Compression.allCases, Compression.allCases)
    func bodiesArriveWhole(stored: Compression, sent: Compression) async throws {
        let bench = try Bench()
        let file = "\(bench.directory.path)/events.ndjson"
        let receiver = try bench.receiver { $0.store = .file(file, sync: false) }
        let output = try bench.output(to: receiver.url) { $0.compression = sent }
        let whole = Sample.batch([try Sample.part(0..<50, stored)])
        #expect(await output.send(whole) == .acknowledged)
        let joined = Sample.batch(
            [
                try Sample.part(50..<60, stored), try Sample.part(60..<80, stored, events: 3..<20),
                try Sample.part(80..<90, .none, events: 0..<1),
            ], id: BatchID(high: 1, low: 2))
        #expect(await output.send(joined) == .acknowledged)
        #expect(
            text(of: file)
                == String(
                    decoding: Sample.lines(0..<60) + Sample.lines(63..<81), as: UTF8.self))
        #expect(receiver.stats.events == 78 && receiver.stats.batches == 2 && receiver.stats.unreadable == 0)
    }

    @Test("events arrive as a JSON array")
    func arraysArriveWhole() async throws {
        let bench = try Bench()
        let file = "\(bench.directory.path)/events.ndjson"
        let receiver = try bench.receiver { $0.store = .file(file, sync: false) }
        let output = try bench.output(to: receiver.url, format: JSONArrayEncoder())
        #expect(await output.send(try Sample.batch(7)) == .acknowledged)
        #expect(text(of: file) == String(decoding: Sample.lines(0..<7), as: UTF8.self))
    }

    @Test("a batch that is sent again is accepted once")
    func repeatsAreTakenOnce() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver()
        let output = try bench.output(to: receiver.url)
        for _ in 0..<3 { #expect(await output.send(try Sample.batch(5)) == .acknowledged) }
        #expect(receiver.stats.events == 5 && receiver.stats.batches == 1 && receiver.stats.repeats == 2)
    }

    @Test("concurrent batches arrive once each")
    func manyAtOnce() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.threads = 2 }
        let output = try bench.output(to: receiver.url)
        let outcomes = try await withThrowingTaskGroup(of: Outcome.self) { group in
            for number in 0..<100 {
                let batch = try Sample.batch(20, number: UInt64(number))
                group.addTask { @Sendable in await output.send(batch) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count == 100 && outcomes.allSatisfy { $0 == .acknowledged })
        #expect(receiver.stats.events == 2000 && receiver.stats.batches == 100 && receiver.stats.repeats == 0)
    }

    @Test("after concurrent requests only one connection stays open for single requests")
    func idleConnections() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.faults.delay = .milliseconds(50) }
        let output = try bench.output(to: receiver.url)
        let batches = try (0..<3).map { try Sample.batch(1, number: UInt64($0)) }
        await withTaskGroup(of: Outcome.self) { group in
            for batch in batches { group.addTask { @Sendable in await output.send(batch) } }
        }
        #expect(connections(to: receiver.port) == 3)
        for number in 3..<6 {
            #expect(await output.send(try Sample.batch(1, number: UInt64(number))) == .acknowledged)
        }
        #expect(await eventually { connections(to: receiver.port) == 1 })
    }

    /// How many connections this machine has to a port, as their client.
    private func connections(to port: UInt16) -> Int {
        text(of: "/proc/self/net/tcp").split(separator: "\n").count { line in
            let words = line.split(separator: " ")
            return words.count > 3 && words[2].hasSuffix(":" + String(port, radix: 16, uppercase: true))
                && words[3] == "01"
        }
    }

    @Test("a body of many megabytes arrives, and a small one after it")
    func largeBodies() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver()
        let output = try bench.output(to: receiver.url) { $0.compression = .none }
        #expect(await output.send(try Sample.batch(400_000)) == .acknowledged)
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(receiver.stats.events == 400_001)
    }
}
