import EventLoops
import Glibc
import Model
import Testing

@testable import Containers

/// What tags cost on events that somebody made so that they cost much.
@Suite("Cost of edits")
struct EditingCostTests {
    private func trial(_ tags: [String]) throws -> Trial {
        let named = tags.enumerated().map { "{\"name\": \"t\($0)\", \"rules\": [\"all\"], \($1)}" }
        return try Trial(
            "\"rules\": {\"all\": {\"conditions\": []}}, \"tags\": [\(named.joined(separator: ","))]")
    }

    private func cpuTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The bytes that are copied for one event, and the seconds of CPU that it takes.
    private func cost(_ trial: Trial, _ event: String, largest: Int = 1 << 26) -> (
        bytes: Int, seconds: Double
    ) {
        let (copied, start) = (trial.engine.editor.copied, cpuTime())
        let outcome = trial.apply(event, largest: largest)
        #expect(outcome.fate == .kept && !outcome.line.contains("\"u1\""))
        return (trial.engine.editor.copied - copied, cpuTime() - start)
    }

    @Test(
        "a tag copies the line once and examines each value once, however many values it concerns",
        arguments: [
            #""type": "hash", "paths": ["list.user"], "salt": "s""#,
            #""type": "redact", "paths": ["list.user"]"#,
            #""type": "redact", "paths": ["**.user"], "with": "***""#,
            #""type": "redact", "pattern": "u[0-9]+""#,
            #""type": "rename", "path": "list.user", "to": "x""#,
            #""type": "set", "path": "list", "value": 1"#,
        ])
    func linear(tag: String) throws {
        let trial = try trial([tag])
        func cost(_ values: Int) -> (bytes: Int, seconds: Double) {
            let list = (0..<values).map {
                "{\"x\":1,\"user\":\"\(tag.contains("rename") ? "v" : "u")\($0)\",\"x\":2}"
            }
            return self.cost(trial, "{\"name\":\"n\",\"list\":[\(list.joined(separator: ","))]}")
        }
        let few = (0..<3).map { _ in cost(5000) }
        let many = cost(20_000)
        let line = 20_000 * 100
        #expect(many.bytes < line, "more than one copy")
        #expect(many.bytes <= few[0].bytes * 5)
        // Ten is between four, the number of values, and sixteen, its square.
        #expect(many.seconds < (few.map(\.seconds).min() ?? 0) * 10)
    }

    @Test("a hundred set tags copy the line once")
    func sets() throws {
        let members = (0..<100).map { "\"s\($0)\":\"some text\"" }.joined(separator: ",")
        let event = "{\"name\":\"n\",\"properties\":{\(members)}}"
        let tags = (0..<200).map { "\"type\":\"set\",\"path\":\"properties.s\($0)\",\"value\":\($0)" }
        let one = try cost(trial([tags[0]]), event)
        let all = try cost(trial(tags), event)
        #expect(one.bytes > event.utf8.count / 2)
        #expect(all.bytes < one.bytes * 3 / 2)
        // What waits is done before a tag that has to see it.
        let both = try trial([tags[0], #""type":"redact","paths":["properties.s1"]"#, tags[1]])
        let outcome = both.apply(event)
        #expect(outcome["properties", "s0"] == 0 && outcome["properties", "s1"] == 1)
    }

    @Test("120,000 digests that do not fit into an event are not computed, and nothing is kept")
    func tooMany() throws {
        let trial = try trial([#""type": "hash", "paths": ["list.a"], "salt": "s""#])
        let list = repeatElement(#"{"a":1}"#, count: 120_000).joined(separator: ",")
        let outcome = trial.apply("{\"name\":\"n\",\"list\":[\(list)]}", largest: 1 << 20)
        #expect(outcome.fate == .tooLarge && outcome.line.isEmpty)
        #expect(trial.engine.editor.copied == 0)
        #expect(trial.engine.counts.problems[.tooLarge, default: 0] == 1)
    }

    @Test(
        "the length limit of an event between two tags is exact to the byte, and applied before it is built",
        arguments: [0, 1])
    func ceiling(more: Int) throws {
        let (event, largest) = (#"{"name":"n","a":1}"#, 100)
        let ceiling = largest * 2 + 65_536
        // The line feed counts; the number goes, two quotes come.
        let text = String(repeating: "x", count: ceiling - (event.utf8.count + 1) - 1 + more)
        for tag in [
            "\"type\":\"set\",\"path\":\"a\",\"value\":\"\(text)\"",
            "\"type\":\"redact\",\"paths\":[\"a\"],\"with\":\"\(text)\"",
        ] {
            let outcome = try trial([tag]).apply(event, largest: largest)
            #expect(outcome.fate == .tooLarge)
            #expect(outcome.line.utf8.count == (more == 0 ? ceiling - 1 : 0), "\(tag.prefix(20))")
        }
    }

    @Test("a replacement for each character of a text cannot fill the memory")
    func scrubbing() throws {
        let other = String(repeating: "long", count: 100_000)
        let trial = try trial(["\"type\":\"redact\",\"pattern\":\"[0-9]\",\"with\":\"\(other)\""])
        let digits = String(repeating: "7", count: 100_000)
        let outcome = trial.apply("{\"name\":\"n\",\"a\":\"\(digits)\"}", largest: 1 << 20)
        #expect(outcome.fate == .tooLarge && outcome.line.isEmpty)
    }
}
