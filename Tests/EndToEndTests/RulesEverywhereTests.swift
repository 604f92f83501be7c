import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// Whatever way an event comes in, it passes the containers' rules, and waits for functions without holding others up.
    @Suite("Containers' rules for every event")
    struct RulesEverywhereTests {
        private let bench: Workbench
        private var gate: String { "\(bench.path)/gate" }

        /// A receiver, and a container from a file whose function answers once the gate is there; no agent yet.
        init() throws {
            bench = try Workbench()
            try bench.startReceiver()
            // Periods are counted from 1970: one that does not end while the test runs.
            let now = SystemTime().wallTime.milliseconds / 1000
            let period = try #require((80_000...86_400).last { now % $0 < $0 - 3_600 })
            let document = """
                {"id": "GTM-1", "version": 1,
                 "macros": {"plan": {"type": "data_layer", "path": "plan", "default": "none"},
                            "judged": {"type": "function_call", "function": "gate", "parameters": {"event": {"macro": "event"}}}},
                 "rules": {"noise": {"conditions": [{"macro": "event", "equals": "Noise"}]},
                           "limited": {"conditions": [{"macro": "event", "equals": "Limited"}]},
                           "bought": {"conditions": [{"macro": "event", "equals": "Bought"}]},
                           "bad": {"conditions": [{"macro": "event", "starts_with": "Ask"}, {"macro": "judged", "equals": "bad"}]},
                           "asked": {"conditions": [{"macro": "event", "starts_with": "Ask"}]}},
                 "tags": [{"name": "no noise", "type": "discard", "rules": ["noise"]},
                          {"name": "five", "type": "throttle", "events": 5, "seconds": \(period), "rules": ["limited"]},
                          {"name": "plan", "type": "set", "path": "plan", "value": {"macro": "plan"}, "rules": ["bought"]},
                          {"name": "no bad ones", "type": "discard", "rules": ["bad"]},
                          {"name": "judged", "type": "set", "path": "judged", "value": true, "rules": ["asked"]}]}
                """
            try write(document, to: "\(bench.path)/GTM-1")
            try #require(chmod("\(bench.path)/GTM-1", 0o644) == 0)
            bench.settings["container.id"] = "\"GTM-1\""
            bench.settings["container.default_file"] = "\"\(bench.path)/GTM-1\""
            bench.settings["container.may_call"] = #"["gate"]"#
            let script =
                #"while [ ! -e "$0" ]; do sleep 0.02; done; if grep -q AskBad; then echo '"bad"'; else echo '"good"'; fi"#
            bench.settings["functions.gate.command"] = #"["/bin/sh", "-c", '''\#(script)''', "\#(gate)"]"#
            bench.settings["functions.gate.timeout"] = "\"60s\""
        }

        private func events(_ name: String, _ numbers: Range<Int>, _ more: String = "") -> String {
            numbers.map { "{\"name\":\"\(name)\",\"properties\":{\"key\":\"\(name)\($0)\"\(more)}}\n" }
                .joined()
        }

        private func running() throws -> Int {
            try bench.figures().value("spoolship_function_running{function=\"gate\"}")
        }

        private func delivered() throws -> [String] { values(of: "key", in: try bytes(of: bench.events)) }

        /// Waits until so many events have arrived.
        private func arrive(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
            var arrived = -1
            try wait(
                .seconds(60),
                "\(count) events, not \(arrived); the agent's log: \(bench.agentLog.suffix(2000))",
                sourceLocation: sourceLocation
            ) {
                arrived = try delivered().count
                return arrived >= count
            }
            #expect(arrived == count, sourceLocation: sourceLocation)
        }

        private func discarded(_ rule: String) throws -> Int {
            try bench.figures().value("spoolship_events_discarded_total{reason=\"GTM-1/\(rule)\"}")
        }

        @Test(
            "tm14: an event that waits for a function blocks only its own file, and order and hand-over stay exact"
        )
        func parking() throws {
            try bench.startAgent()
            try bench.append(
                events("First", 0..<5) + events("Ask", 0..<1) + events("AskBad", 0..<1)
                    + events("Last", 0..<5),
                to: "a.jsonl")
            try bench.drop(events("Drop", 0..<1) + events("Ask", 1..<2) + events("Drop", 1..<2), as: "d.json")
            try wait(.seconds(30), "two questions") { try running() == 1 || running() == 2 }
            try bench.append(events("Other", 0..<200), to: "b.jsonl")
            try bench.drop(events("More", 0..<1), as: "e.json")
            // All but what stands behind the questions arrives while nobody has answered.
            try arrive(5 + 1 + 200 + 1)
            #expect(try !delivered().contains { $0.hasPrefix("Last") || $0.hasPrefix("Ask") })
            // Whoever dies meanwhile has lost nothing: what waits is still in its file.
            bench.killAgent()
            try bench.startAgent()
            try bench.append(events("Other", 200..<210), to: "b.jsonl")
            try wait(.seconds(30), "the others go on") { try delivered().contains("Other209") }
            try write("", to: gate)
            let all =
                (0..<5).map { "First\($0)" } + (0..<5).map { "Last\($0)" } + [
                    "Ask0", "Ask1", "Drop0", "Drop1", "More0",
                ]
                + (0..<210).map { "Other\($0)" }
            try wait(.seconds(30), "the rest: \(bench.agentLog.suffix(2000))") {
                try delivered().count >= all.count
            }
            try bench.expectOnce(Set(all), member: "key")
            let order = try delivered().filter {
                $0.hasPrefix("First") || $0.hasPrefix("Last") || $0 == "Ask0"
            }
            #expect(order == (0..<5).map { "First\($0)" } + ["Ask0"] + (0..<5).map { "Last\($0)" })
            #expect(try discarded("bad") == 1)
            try bench.expectBalance()
        }

        @Test(
            "run --once: old files pass the rules, count for throttles, wait for functions, and push nothing"
        )
        func oldFiles() throws {
            try bench.startAgent()
            try bench.append(
                "{\"type\":\"data_layer\",\"plan\":\"gold\"}\n" + events("Limited", 0..<3), to: "app.jsonl")
            try arrive(3)
            let file = "\(bench.path)/old.jsonl"
            try write(
                events("Limited", 3..<7) + events("Noise", 0..<10) + events("Old", 0..<5, ",\"plan\":\"old\"")
                    + events("Ask", 0..<2) + events("AskBad", 0..<1), to: file)
            let once = try RunningProgram(
                spoolship, ["run", "--once", file, "--config", bench.configuration],
                output: "\(bench.path)/once.log")
            try wait(.seconds(30), "the question: \(once.printed)") { try running() == 1 }
            // What comes from the spool does not wait for what an old file asks.
            try bench.append(events("Bought", 0..<1), to: "app.jsonl")
            try arrive(4)
            try write("", to: gate)
            #expect(try once.exit(within: .seconds(60)) == 0, "\(once.printed)")
            try arrive(4 + 2 + 5 + 2)
            try bench.expectOnce(
                Set(
                    (0..<5).map { "Limited\($0)" } + (0..<5).map { "Old\($0)" } + ["Ask0", "Ask1", "Bought0"]),
                member: "key")
            #expect(try discarded("noise") == 10)
            #expect(try discarded("limited") == 2)
            #expect(try discarded("bad") == 1)
            #expect(
                try bench.figures().value("spoolship_function_duration_seconds_count{function=\"gate\"}") == 3
            )
            #expect(values(of: "plan", in: try bytes(of: bench.events)).contains("gold"))
            // Taken once: the same command has nothing to do, and nothing is discarded twice.
            #expect(try bench.command("run", "--once", file).text.contains("was read before"))
            #expect(try discarded("noise") == 10)
            #expect(try bench.stopAgent() == 0)
            // What old events counted is remembered with the next events: the limit holds after a restart.
            try bench.startAgent()
            try bench.append(events("Limited", 7..<10) + events("Bought", 1..<2), to: "app.jsonl")
            try wait(.seconds(30), "the last") { try delivered().contains("Bought1") }
            #expect(try delivered().count { $0.hasPrefix("Limited") } == 5)
            try bench.expectBalance()
        }

        @Test(
            "quarantine retry: lines pass the rules when they are read again, and discards are counted once")
        func quarantined() throws {
            // One property too many, until the limit is off.
            let limit = ["limits.properties": "1", "limits.beyond_properties": "\"quarantine\""]
            bench.settings.merge(limit) { $1 }
            try bench.startAgent()
            func lines(_ name: String) -> String {
                (0..<6).map { #"{"name":"\#(name)","properties":{"key":"n\#($0)","more":1}}"# + "\n" }
                    .joined()
            }
            try bench.append(lines("Noise"), to: "app.jsonl")
            try wait(.seconds(30), "the quarantine") {
                try bench.figures().total("spoolship_quarantine_records") == 6
            }
            for (name, expected) in [("Noise", 0), ("Limited", 5)] {
                bench.settings["limits.properties"] = "0"
                try bench.configure()
                #expect(try bench.command("reload").code == 0)
                let retried = try bench.command("quarantine", "retry")
                #expect(retried.code == 0, "\(retried)")
                try arrive(expected)
                if name == "Noise" {
                    #expect(try discarded("noise") == 6)
                    #expect(try bench.figures().total("spoolship_quarantine_records") == 0)
                    bench.settings.merge(limit) { $1 }
                    try bench.configure()
                    #expect(try bench.command("reload").code == 0)
                    try bench.append(lines("Limited"), to: "app.jsonl")
                    try wait(.seconds(30), "the quarantine") {
                        try bench.figures().total("spoolship_quarantine_records") == 6
                    }
                }
            }
            #expect(try discarded("limited") == 1)
            #expect(try bench.figures().total("spoolship_quarantine_records") == 0)
            try bench.expectBalance()
            try bench.expectOnce(Set((0..<5).map { "n\($0)" }), member: "key")
        }
    }
}
