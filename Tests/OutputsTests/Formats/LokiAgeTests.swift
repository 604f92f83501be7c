import EventLoops
import Model
import Testing

@testable import Outputs

/// Loki as it is by default: entries older than a week are refused, the others of the request are stored, and the answer is 400.
///
/// Source: Loki's `pkg/distributor/distributor.go` and `pkg/validation/validate.go` (`reject_old_samples_max_age`).
@Suite("Format loki, events that are older than Loki accepts")
struct LokiAgeTests {
    private func outcome(_ times: [String], _ text: String, status: Int = 400) throws -> Outcome {
        let lines = times.map { #"{"name":"a","timestamp":"\#($0)","app":"web","id":"\#($0)"}"# + "\n" }
            .joined()
        let header = BatchHeader(
            id: BatchID(high: 0x0193_0000_0000_7000, low: 1), destination: "main", priority: .normal,
            events: times.count, bytes: lines.utf8.count, acceptedAt: Sample.accepted,
            firstEventTime: Sample.accepted)
        let reader = AnswerReader(table: AnswerTable(), encoder: LokiEncoder())
        return reader.outcome(
            of: HTTPAnswer(status: status, body: Array(text.utf8)), for: header, wireBytes: 100,
            now: Sample.accepted,
            lines: { () throws(OutputError) in Array(lines.utf8) })
    }

    private func words(_ stream: String = #"{app="web"}"#, oldest: String = "2026-11-13T10:00:00Z") -> String
    {
        "entry for stream '\(stream)' has timestamp too old: 2026-11-01T00:00:00Z, oldest acceptable timestamp is: \(oldest)"
    }

    private let times = ["2026-11-01T00:00:00Z", "2026-11-20T07:00:00Z", "2026-11-13T09:59:59.999Z"]

    @Test(
        "entries that are too old are rejected for good with Loki's reason; the others are sent again without them"
    )
    func tooOld() throws {
        guard case .partial(let rejected, let retry) = try outcome(times, "2 errors like: \(words()).") else {
            Issue.record("not rejected event by event")
            return
        }
        #expect(rejected.map(\.index) == [0, 2] && rejected.allSatisfy(\.isFinal) && retry == [1])
        #expect(rejected[0].failure.excerpt.contains("timestamp too old"))
    }

    @Test("an event of the same second is rejected only if none is older")
    func sameSecond() throws {
        let same = ["2026-11-13T10:00:00.500Z", "2026-11-13T10:00:01Z"]
        guard case .partial(let rejected, let retry) = try outcome(same, words()) else {
            Issue.record("not rejected event by event")
            return
        }
        #expect(rejected.map(\.index) == [0] && retry == [1])
        guard case .partial(let older, let kept) = try outcome(same + [times[0]], words()) else {
            Issue.record("not rejected event by event")
            return
        }
        #expect(older.map(\.index) == [2] && kept == [0, 1])
    }

    @Test("a label with the words of the message makes no event too old")
    func hostileLabel() throws {
        let hostile = #"{app="has timestamp too old, oldest acceptable timestamp is: 2030-01-01T00:00:00Z"}"#
        guard case .partial(let rejected, let retry) = try outcome(times, words(hostile)) else {
            Issue.record("not rejected event by event")
            return
        }
        #expect(rejected.map(\.index) == [0, 2] && retry == [1])
    }

    @Test("if no event is that old, or no time is given, the batch is split as usual")
    func otherAnswers() throws {
        for text in [words(oldest: "2020-01-01T00:00:00Z"), words(oldest: "soon"), "has timestamp too old"] {
            guard case .rejected = try outcome(times, text) else {
                Issue.record("\(text): not left to be cut")
                continue
            }
        }
        guard case .retry = try outcome(times, words(), status: 500) else {
            Issue.record("another status is about age")
            return
        }
    }
}
