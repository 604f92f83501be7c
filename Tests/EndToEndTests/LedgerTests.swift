import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    @Suite("The ledger")
    struct LedgerTests {
        /// The figures of a lane, from `/metrics`; at rest from `status --json` as well, which must say the same.
        private func ledger(
            _ bench: Workbench, _ destination: String, _ priority: String, isAtRest: Bool = true,
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws -> [String: Int] {
            let names = [
                "accepted", "retried", "acknowledged", "dead_lettered", "evicted", "expired", "discarded",
                "lost",
            ]
            let labels = #"{destination="\#(destination)",priority="\#(priority)"}"#
            var ledger: [String: Int] = [:]
            let figures = try bench.figures()
            for name in names { ledger[name] = figures.value("spoolship_deliveries_\(name)_total\(labels)") }
            ledger["queued"] = figures.value("spoolship_deliveries_queued\(labels)")
            guard isAtRest else { return ledger }
            let status = try bench.command("status", "--json").text
            let start = try #require(status.firstIndex(of: "{"))
            let json = try JSONValue(parsing: String(status[start...]))
            let lanes = json["destinations"]?.array?.first { $0["name"]?.string == destination }?["lanes"]?
                .array
            let lane = lanes?.first { $0["priority"]?.string == priority }
            for (name, value) in ledger {
                #expect(
                    lane?[name]?.integer == value, "\(destination) \(priority) \(name)",
                    sourceLocation: sourceLocation)
            }
            return ledger.filter { $0.value != 0 }
        }

        @Test("a program that blocks checkpoints of the WAL is named, and storing continues when it ends")
        func walReaderIsNamed() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"256KiB\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<100), to: "app.jsonl")
            try bench.waitUntilDelivered(100)
            let script = """
                import sqlite3, sys, time
                database = sqlite3.connect(sys.argv[1], isolation_level=None)
                database.execute("BEGIN")
                database.execute("SELECT count(*) FROM ledger").fetchone()
                print("reading", flush=True)
                time.sleep(300)
                """
            let reader = try RunningProgram(
                "python3", ["-c", script, "\(bench.state)/queue.sqlite"], output: "\(bench.path)/reader.log")
            try wait(.seconds(30), "the reader") { reader.printed.contains("reading") }
            var written = 100
            let ready = "http://127.0.0.1:\(bench.statsPort)/readyz"
            try wait(
                .seconds(90), "storing to stop: \(bench.agentLog.suffix(1000))", every: .milliseconds(20)
            ) {
                try bench.append(keyed(written..<written + 2_000), to: "app.jsonl")
                written += 2_000
                return try fetch(ready).body.contains("(pid \(reader.process)) keeps the queue's WAL")
            }
            #expect(bench.agentLog.contains("storing waits for a reader of the database"))
            reader.kill9()
            try bench.waitUntilDelivered(written, within: .seconds(90))
            try bench.expectOnce(Set((0..<written).map { "e\($0)" }), member: "key")
        }

        @Test("each destination and priority has a ledger that balances through faults, kills and commands")
        func byDestinationAndPriority() throws {
            let bench = try Workbench()
            // The second destination is down from beginning to end.
            let nobody = try freePort()
            bench.settings["destination2.name"] = "\"down\""
            bench.settings["destination2.type"] = "\"http\""
            bench.settings["destination2.url"] = "\"https://127.0.0.1:\(nobody)/\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startReceiver("--marker", "POISON")
            try bench.startAgent()
            func critical(_ numbers: Range<Int>) -> String {
                numbers.map {
                    #"{"name":"alarm","priority":"critical","properties":{"key":"c\#($0)"}}"# + "\n"
                }
                .joined()
            }
            func delivered(_ normal: Int, _ critical: Int, dead: Int = 0) throws {
                try wait(
                    .seconds(60), "the events: \(bench.agentLog.suffix(1000))", every: .milliseconds(100)
                ) {
                    let main = try ledger(bench, "main", "normal", isAtRest: false)
                    let urgent = try ledger(bench, "main", "critical", isAtRest: false)
                    return main["acknowledged"] == normal && main["dead_lettered"] ?? 0 == dead
                        && urgent["acknowledged"] == critical
                }
                try bench.expectBalance()
            }
            try bench.append(keyed(0..<100) + critical(0..<20), to: "app.jsonl")
            try delivered(100, 20)

            // A rejected event, and a line that is none.
            let poison = #"{"name":"POISON","properties":{"key":"p"}}"# + "\n"
            try bench.append(poison + keyed(100..<130) + "no event\n", to: "app.jsonl")
            try delivered(130, 20, dead: 1)
            #expect(
                try ledger(bench, "main", "normal")
                    == ["accepted": 131, "acknowledged": 130, "dead_lettered": 1])
            #expect(try ledger(bench, "down", "normal") == ["accepted": 131, "queued": 131])
            #expect(try ledger(bench, "down", "critical") == ["accepted": 20, "queued": 20])

            bench.killAgent()
            try bench.startAgent()
            try bench.expectBalance()
            #expect(try ledger(bench, "down", "normal") == ["accepted": 131, "queued": 131])

            // A person sends the dead letter again, to a receiver that takes it now, and gives up what cannot go.
            try bench.stopReceiver()
            try bench.startReceiver()
            #expect(try bench.command("dead-letters", "retry").text == "1 retried\n")
            try delivered(131, 20, dead: 1)
            #expect(
                try ledger(bench, "main", "normal")
                    == ["accepted": 131, "retried": 1, "acknowledged": 131, "dead_lettered": 1])
            let purged = try bench.command(
                "queue", "purge", "--destination", "down", "--priority", "critical", "--yes")
            #expect(purged.text == "20 removed\n", "\(purged)")
            #expect(try ledger(bench, "down", "critical") == ["accepted": 20, "discarded": 20])

            // A destination that is configured no more keeps its books, and is shown until it is purged.
            for key in bench.settings.keys.filter({ $0.hasPrefix("destination2") }) {
                bench.settings[key] = nil
            }
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent()
            #expect(try ledger(bench, "down", "normal") == ["accepted": 131, "queued": 131])
            #expect(try bench.command("queue", "list", "--destination", "down").text.contains("events="))
            #expect(
                try bench.command("queue", "purge", "--destination", "down", "--yes").text == "131 removed\n")
            try bench.expectBalance()
            #expect(try bench.figures().value("spoolship_queue_bytes") == 0)
            try bench.expectOnce(
                Set((0..<130).map { "e\($0)" } + (0..<20).map { "c\($0)" } + ["p"]), member: "key")
        }
    }
}
