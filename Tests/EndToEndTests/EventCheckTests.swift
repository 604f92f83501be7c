import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// Schemas and the window for repeats in a running agent.
    @Suite("Schemas and repeats")
    struct EventCheckTests {
        private static let schema =
            #"{"version":"2","properties":{"key":{"type":"string","pattern":"^e[0-9]+$"},"amount":{"minimum":0}}}"#

        private func bought(_ number: Int, amount: Int = 1) -> String {
            #"{"name":"bought","id":"\#(number)","key":"e\#(number)","amount":\#(amount)}"# + "\n"
        }

        @Test("repeating app, killed agent: each id arrives once, and no event that the schema forbids")
        func killed() throws {
            let seed = Seeds.one(59)
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            mkdir("\(bench.path)/schemas", 0o755)
            try write(EventCheckTests.schema, to: "\(bench.path)/schemas/bought.json")
            bench.settings["schemas.directory"] = "\"\(bench.path)/schemas\""
            bench.settings["dedup.window"] = "\"24h\""
            try bench.startReceiver()
            try bench.startAgent()
            for round in 0..<6 {
                // Each file repeats the second half of the one before.
                for file in 0..<5 {
                    let first = (round * 5 + file) * 100
                    let lines = (max(0, first - 50)..<first + 100).map { bought($0) }
                    try bench.append(
                        (lines + [bought(first, amount: -1)]).joined(), to: "app-\(round)-\(file).jsonl")
                }
                usleep(UInt32.random(in: 0...150_000, using: &random))
                bench.killAgent()
                try bench.startAgent()
            }
            try bench.waitForOnce(Set((0..<3000).map { "e\($0)" }), member: "key", within: .seconds(60))
            try wait(.seconds(30), "all to be read, seed \(seed)") {
                try bench.figures().total("spoolship_events_quarantined_total") == 30
            }
            try bench.expectBalance()
            let figures = try bench.figures()
            #expect(
                figures.total("spoolship_events_discarded_total{reason=\"repeat\"}") == 29 * 50,
                "seed \(seed)")
            #expect(figures.total("spoolship_dedup_ids") == 3000)
            let status = try bench.command("status").text
            #expect(
                status.contains("repeats: 1,450 deliveries discarded, 3,000 ids remembered for 1d"),
                "\(status)")
            let list = try bench.command("quarantine", "list").text
            #expect(list.contains("bought: /amount is below minimum 0, at byte "), "\(list)")
            #expect(try bench.stopAgent() == 0)
        }

        @Test("a container's schemas act in the agent; check, --sample, container test and status know them")
        func document() throws {
            let bench = try Workbench()
            let file = "\(bench.path)/GTM-1"
            try write(
                #"{"id":"GTM-1","version":4,"schemas":{"bought":\#(EventCheckTests.schema),"#
                    + #""sold":{"properties":{"key":{"minLength":2}}}},"#
                    + #""tests":[{"name":"t","event":{"name":"bought","amount":-1},"#
                    + #""expect":{"schema_failure":"/amount"}}]}"#,
                to: file)
            bench.settings["container.id"] = "\"GTM-1\""
            bench.settings["container.default_file"] = "\"\(file)\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(
                bought(1) + bought(2, amount: -5) + "{\"name\":\"sold\",\"key\":\"s\"}\n" + bought(3),
                to: "app.jsonl")
            try bench.waitForOnce(["e1", "e3"], member: "key", within: .seconds(30))
            func invalid(_ event: String, _ version: String) throws -> Int {
                try bench.figures().total(
                    "spoolship_schema_events_total{app=\"\",event=\"\(event)\",version=\"\(version)\","
                        + "result=\"invalid\"}")
            }
            try wait(.seconds(30), "both to be counted") {
                try invalid("bought", "2") == 1 && invalid("sold", "4") == 1
            }
            let list = try bench.command("quarantine", "list").text
            #expect(list.contains("bought (GTM-1 version 4): /amount is below minimum 0"), "\(list)")
            // The directory's schema for an event replaces the document's.
            mkdir("\(bench.path)/schemas", 0o755)
            try write(#"{"properties":{"key":{"maxLength":1}}}"#, to: "\(bench.path)/schemas/sold.json")
            bench.settings["schemas.directory"] = "\"\(bench.path)/schemas\""
            try bench.configure()
            #expect(try bench.command("reload").code == 0)
            let status = try bench.command("status").text
            #expect(
                status.contains(
                    "schemas: not used, because schemas.directory or an earlier container has one for these"
                        + " events: sold (GTM-1 version 4)"),
                "\(status)")
            let check = try bench.command("check").text
            #expect(check.contains("sold (GTM-1 version 4)"), "\(check)")
            #expect(try bench.stopAgent() == 0)
            try bench.append(
                bought(2, amount: -5) + "{\"name\":\"sold\",\"key\":\"s\"}\n", to: "later.jsonl")
            let sample = try bench.command("check", "--sample", "\(bench.spool)/later.jsonl").text
            #expect(
                sample.contains("1: quarantined, schema: bought (GTM-1 version 4): /amount is below"),
                "\(sample)")
            #expect(!sample.contains("2: quarantined"), "\(sample)")
            let shown = try bench.command(
                "container", "test", file, "--events", "\(bench.spool)/later.jsonl")
            #expect(
                shown.code == 0 && shown.text.contains("quarantined  schema: bought (GTM-1 version 4)"),
                "\(shown.text)")
        }

        @Test(
            "with mode = report invalid events are sent and counted; check --sample, status and metrics show them"
        )
        func report() throws {
            let bench = try Workbench()
            mkdir("\(bench.path)/schemas", 0o755)
            try write(EventCheckTests.schema, to: "\(bench.path)/schemas/bought.json")
            bench.settings["schemas.directory"] = "\"\(bench.path)/schemas\""
            bench.settings["schemas.mode"] = "\"report\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(bought(1) + bought(2, amount: -5) + bought(3), to: "app.jsonl")
            try bench.waitForOnce(["e1", "e2", "e3"], member: "key", within: .seconds(30))
            let labels = "{app=\"\",event=\"bought\",version=\"2\",result="
            #expect(try bench.figures().total("spoolship_schema_events_total\(labels)\"invalid\"}") == 1)
            #expect(try bench.figures().total("spoolship_schema_events_total\(labels)\"valid\"}") == 2)
            #expect(
                try bench.command("status").text.contains(
                    "2 events that match their schemas, 1 not, sent: 1 of bought (2)")
            )
            #expect(try bench.stopAgent() == 0)
            try bench.append(bought(1) + bought(2, amount: -5), to: "later.jsonl")
            let sent = try bench.command("check", "--sample", "\(bench.spool)/later.jsonl").text
            #expect(
                sent.contains(
                    "2: sent, though its schema does not allow it: /amount is below minimum 0, at byte "),
                "\(sent)")
            bench.settings["schemas.mode"] = "\"quarantine\""
            try bench.configure()
            let kept = try bench.command("check", "--sample", "\(bench.spool)/later.jsonl").text
            #expect(
                kept.contains("2: quarantined, schema: bought: /amount is below minimum 0, at byte "),
                "\(kept)")
        }
    }
}
