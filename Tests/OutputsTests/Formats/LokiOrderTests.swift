import EventLoops
import Frames
import Model
import Synchronization
import Testing

@testable import Outputs

/// A receiver with Loki's rules: an entry more than an hour behind the newest of its stream is refused, the others are kept.
///
/// Source: Loki's `pkg/ingester/stream.go` (`errorForFailedEntries`) and `chunkenc.ErrTooFarBehind`.
private final class LokiRules: Sendable {
    struct State {
        var newest: [String: Int64] = [:]
        var kept: [(labels: String, line: String)] = []
    }
    let state = Mutex(State())
    /// How far behind an entry may be, in nanoseconds.
    let window: Int64

    init(window: Duration) { self.window = window.nanosecondsClamped }

    func push(_ body: [UInt8]) -> (status: Int, text: String) {
        state.withLock { state in
            for stream in JSONSlice(body[...])?["streams"]?.elements ?? [] {
                let labels = stream["stream"]?.text ?? ""
                var refused = 0
                let entries = stream["values"]?.elements ?? []
                for entry in entries {
                    let time = Int64(entry.elements?[0].string ?? "") ?? 0
                    let newest = max(time, state.newest[labels] ?? time)
                    state.newest[labels] = newest
                    if time < newest - window {
                        refused += 1
                    } else {
                        state.kept.append((labels, entry.elements?[1].string ?? ""))
                    }
                }
                guard refused == 0 else {
                    return (
                        400,
                        "entry with timestamp 2026-11-20 07:00:00 +0000 UTC ignored, reason: 'entry too far behind, entry "
                            + "timestamp is: 2026-11-20T07:00:00Z, oldest acceptable timestamp is: 2026-11-20T09:00:00Z',"
                            + "\nuser 'fake', total ignored: \(refused) out of \(entries.count) for stream: {}"
                    )
                }
            }
            return (204, "")
        }
    }

    func peer() throws -> ScriptedPeer {
        try ScriptedPeer(nil) { connection in
            while let (_, body) = connection.request() {
                let (status, text) = self.push(body)
                let reason = status == 204 ? "No Content" : "Bad Request"
                connection.write(
                    "HTTP/1.1 \(status) \(reason)\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
            }
        }
    }
}

@Suite("Format loki, events that are far behind their stream")
struct LokiOrderTests {
    private func batch(_ times: [String], _ priority: Priority = .normal, number: UInt64) throws -> Batch {
        let lines = times.map { #"{"name":"a","timestamp":"\#($0)","app":"web","id":"\#($0)"}"# + "\n" }
            .joined()
        let bytes = Array(lines.utf8)
        let part = Batch.Part(
            compression: .none, frame: bytes, bytes: bytes.count, eventsInFrame: times.count,
            events: 0..<times.count)
        return Batch(
            header: BatchHeader(
                id: BatchID(high: 0x0193_0000_0000_7000, low: number), destination: "main",
                priority: priority,
                events: times.count, bytes: bytes.count, acceptedAt: Sample.accepted,
                firstEventTime: Sample.accepted),
            parts: [part])
    }

    private let old = ["2026-11-20T07:00:00Z", "2026-11-20T07:30:00Z", "2026-11-20T08:59:59Z"]

    @Test("events too far behind are sent at once in a stream of their hour, without a hold")
    func late() async throws {
        let bench = try Bench()
        let loki = LokiRules(window: .seconds(3600))
        let peer = try loki.peer()
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: LokiEncoder()) { $0.compression = .none }
        #expect(await output.send(try batch(["2026-11-20T10:00:00Z"], number: 1)) == .acknowledged)
        #expect(await output.send(try batch(old, number: 2)) == .acknowledged)
        #expect(await output.send(try batch(["2026-11-20T10:00:05Z"], number: 3)) == .acknowledged)
        let kept = loki.state.withLock { $0.kept }
        for time in old {
            let labels = kept.filter { $0.line.contains(time) }.map(\.labels)
            #expect(labels == [#"{"app":"web","job":"spoolship","late":"\#(time.prefix(13))"}"#], "\(time)")
        }
        #expect(kept.count == 5)
    }

    @Test("events that Loki also refuses by hour are rejected with its reason; other answers are unchanged")
    func never() async throws {
        let bench = try Bench()
        let loki = LokiRules(window: .seconds(60))
        let peer = try loki.peer()
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: LokiEncoder()) { $0.compression = .none }
        guard
            case .partial(let rejected, let retry) = await output.send(
                try batch(["2026-11-20T07:59:00Z", "2026-11-20T07:01:00Z"], number: 1))
        else {
            Issue.record("not rejected event by event")
            return
        }
        #expect(rejected.map(\.index) == [0, 1] && rejected.allSatisfy(\.isFinal) && retry.isEmpty)
        #expect(rejected[0].failure.excerpt.contains("oldest acceptable timestamp is"))
        guard case .rejected = outcome(LokiEncoder(), events: 2, status: 400, "invalid labels") else {
            Issue.record("another answer is not bisected")
            return
        }
        #expect(outcome(LokiEncoder(), events: 2, status: 204, "") == .acknowledged)
    }

    @Test("critical events, which are sent first, have their own stream; a configured label overrides it")
    func critical() throws {
        let lines = Array(sampleLines.utf8)
        func streams(_ encoder: LokiEncoder, _ priority: Priority) throws -> [String] {
            let body = try encoder.encode(lines, of: try batch(old, priority, number: 1).header)
            return (JSONSlice(body[...])?["streams"]?.elements ?? []).compactMap {
                $0["stream"]?["priority"]?.string
            }
        }
        #expect(try streams(LokiEncoder(), .critical) == ["critical", "critical"])
        #expect(try streams(LokiEncoder(), .normal).isEmpty)
        #expect(try streams(LokiEncoder(labels: ["priority": "mine"]), .critical) == ["mine", "mine"])
        #expect(try streams(LokiEncoder(labels: ["job": "a", "priority": ""]), .critical).isEmpty)
    }
}
