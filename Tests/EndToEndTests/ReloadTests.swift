import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// What a reload answers is what happens: in force at once, in the right order, or after the restart that it names.
    @Suite("Reloads")
    struct ReloadTests {
        private let bench: Workbench

        /// A receiver, and a container from a file that redacts; no agent yet.
        init() throws {
            bench = try Workbench()
            try bench.startReceiver()
            let document = """
                {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}},
                 "tags": [{"name": "hide", "type": "redact", "rules": ["all"], "paths": ["**.email"]}]}
                """
            try write(document, to: "\(bench.path)/GTM-1")
            try #require(chmod("\(bench.path)/GTM-1", 0o644) == 0)
        }

        private func addContainer() {
            bench.settings["container.id"] = "\"GTM-1\""
            bench.settings["container.default_file"] = "\"\(bench.path)/GTM-1\""
            bench.settings["container.required"] = "[\"redaction\"]"
        }

        @Test("with the first destination and a required container in one reload, nothing is sent in clear")
        func firstDestination() throws {
            let destination = bench.settings.filter { $0.key.hasPrefix("destination.") }
            for key in destination.keys { bench.settings[key] = nil }
            try bench.startAgent()
            let lines = (0..<2000).map { "{\"name\":\"a\",\"key\":\"e\($0)\",\"email\":\"SECRET\"}\n" }
            try bench.append(lines.joined(), to: "app.jsonl")
            bench.settings.merge(destination) { $1 }
            addContainer()
            try bench.configure()
            let reloaded = try bench.command("reload")
            #expect(reloaded.code == 0, "\(reloaded)")
            try bench.waitUntilDelivered(2000)
            #expect(try !contents(of: bench.events).contains("SECRET"))
            try bench.expectOnce(Set((0..<2000).map { "e\($0)" }), member: "key")
        }

        @Test("a reload does not change how files in place are read; that takes a restart")
        func placesStay() throws {
            let logs = "\(bench.path)/logs"
            for directory in [logs, "\(logs)/docker", "\(logs)/text"] {
                try #require(mkdir(directory, 0o755) == 0)
            }
            addContainer()
            let sections = [
                "apps.docker.read": #"["\#(logs)/docker/*.log"]"#, "apps.docker.format": "\"docker\"",
                "apps.text.read": #"["\#(logs)/text/*.log"]"#,
            ]
            bench.settings.merge(sections) { $1 }
            try bench.startAgent()
            func add(_ text: String, to path: String) throws {
                let file = try #require(fopen(path, "a"))
                fputs(text, file)
                fclose(file)
            }
            func log(_ key: String) throws {
                let message = #"{\"email\":\"SECRET\",\"key\":\"\#(key)\"}\n"#
                try add(
                    #"{"log":"\#(message)","stream":"stdout","time":"2026-11-20T10:00:00Z"}"# + "\n",
                    to: "\(logs)/docker/a.log")
                try add("plain \(key)\n", to: "\(logs)/text/a.log")
            }
            try log("before")
            try bench.waitUntilDelivered(2)
            for key in sections.keys { bench.settings[key] = nil }
            try bench.configure()
            let reloaded = try bench.command("reload")
            #expect(
                reloaded.code == 0 && reloaded.text.contains("apps.docker.format (after a restart)"),
                "\(reloaded)")
            #expect(
                bench.agentLog.contains("changes need a restart")
                    && bench.agentLog.contains("apps.docker.format,"))
            try log("after")
            try bench.waitUntilDelivered(4)
            let arrived = try contents(of: bench.events)
            #expect(!arrived.contains("SECRET") && !arrived.contains("\"log\":"), "\(arrived)")
            for key in ["before", "after"] {
                #expect(
                    arrived.contains(#"{"key":"\#(key)","#) && arrived.contains("\"plain \(key)\""),
                    "\(arrived)")
            }
        }

        @Test(
            "a change of `text` applies to files that are being read: lines become blocks, and blocks lines"
        )
        func blocks() throws {
            let logs = "\(bench.path)/logs"
            try #require(mkdir(logs, 0o755) == 0)
            bench.settings["apps.text.read"] = "[\"\(logs)/*.log\"]"
            try bench.startAgent()
            /// Writes three lines, each by itself; gives the messages that arrive.
            func messages(of part: String, expecting count: Int) throws -> [String] {
                for number in 1...3 {
                    let file = try #require(fopen("\(logs)/a.log", "a"))
                    fputs("\(part) \(number)\n", file)
                    fclose(file)
                    usleep(150_000)
                }
                try bench.waitUntilDelivered(count)
                let arrived = try contents(of: bench.events)
                return arrived.split(separator: "\n").filter { $0.contains(part) }.map(String.init)
            }
            #expect(try messages(of: "first", expecting: 3).count == 3)
            for (text, part, count) in [("blocks", "second", 1), ("lines", "third", 3)] {
                bench.settings["apps.text.text"] = "\"\(text)\""
                try bench.configure()
                let reloaded = try bench.command("reload")
                #expect(reloaded.code == 0 && reloaded.text.contains("apps.text.text"), "\(reloaded)")
                let arrived = try messages(of: part, expecting: count == 1 ? 4 : 7)
                #expect(arrived.count == count, "\(arrived)")
            }
        }

        @Test(
            "what a start refuses, a reload refuses, check calls a mistake, and status warns of the restart"
        )
        func refusedAsByTheStart() throws {
            try bench.startAgent()
            let mistakes = [
                ["apps.x.text": "\"blocks\""], ["apps.x.journal_since": "\"boot\""],
                ["apps.x.format": "\"docker\""],
                ["apps.x.read": "[\"log/*.log\"]"], ["apps.x.read": "[\"\(bench.spool)/*.log\"]"],
                ["apps.x.time_zone": "\"Europe/Rom\""],
                [
                    "deadline.name": "\"d\"", "deadline.time": "\"12:00\"",
                    "deadline.time_zone": "\"Europe/Rom\"",
                ],
            ]
            let good = bench.settings
            for mistake in mistakes {
                bench.settings = good.merging(mistake) { $1 }
                try bench.configure()
                let key = try #require(mistake.keys.max())
                #expect(try bench.command("check").code == 78, "\(key)")
                let reloaded = try bench.command("reload")
                #expect(reloaded.code == 65, "\(key): \(reloaded)")
                try wait(.seconds(30), "the watch to see it: \(key)") {
                    try bench.command("status").text.contains("a restart would fail")
                }
            }
            bench.settings = good
            try bench.configure()
            #expect(try bench.command("reload").code == 0)
        }

        @Test("a failed reload is one line in status: its first mistake, and how many more there are")
        func failedReload() throws {
            bench.settings["apps.x.default_event_name"] = "\"a\""
            try bench.startAgent()
            func problem() throws -> String {
                try bench.configure()
                let reloaded = try bench.command("reload")
                #expect(reloaded.code == 65 && !reloaded.text.contains(#"\u000a"#), "\(reloaded)")
                let socket = "\(bench.path)/control.sock"
                let lines = try bench.command("status", "--socket", socket).text.split(separator: "\n")
                return String(try #require(lines.first { $0.contains("the last reload failed") }))
            }
            bench.settings["dispatch.batch_events"] = "\"many\""
            let one = try problem()
            #expect(
                one.contains("in force: \(bench.configuration):") && one.contains("batch_events"), "\(one)")
            #expect(!one.contains("note:") && !one.contains(#"\u000a"#) && !one.contains("more"), "\(one)")
            bench.settings["agent.log_level"] = "\"loud\""
            bench.settings["queue.max_size"] = "\"huge\""
            let several = try problem()
            #expect(several.hasSuffix("; and 2 more: spoolship check"), "\(several)")
        }

        @Test("a destination's series end when it is removed and empty; its ledger may remain")
        func removedDestination() throws {
            bench.settings["destination2.name"] = "\"two\""
            bench.settings["destination2.type"] = "\"file\""
            bench.settings["destination2.path"] = "\"\(bench.path)/two.ndjson\""
            let second = bench.settings.filter { $0.key.hasPrefix("destination2.") }
            try bench.startAgent()
            try bench.append("{\"name\":\"a\"}\n", to: "app.jsonl")
            func series() throws -> [Substring] {
                let page = try fetch("http://127.0.0.1:\(bench.statsPort)/metrics").body
                return page.split(separator: "\n").filter { $0.contains("\"two\"") }
            }
            let acknowledged =
                #"spoolship_deliveries_acknowledged_total{destination="two",priority="normal"} 1"#
            try wait(.seconds(30), "the event: \(bench.agentLog)") {
                try series().contains { $0 == acknowledged }
            }
            for key in second.keys { bench.settings[key] = nil }
            try bench.configure()
            #expect(try bench.command("reload").code == 0)
            #expect(try series() == [])
            // Of one that gets no event, all that waits is still to be seen, and what becomes of it.
            bench.settings.merge(second) { $1 }
            try bench.configure()
            #expect(try bench.command("reload").code == 0)
            #expect(try series().contains { $0 == acknowledged })
            #expect(try bench.command("pause", "--destination", "two").code == 0)
            try bench.append("{\"name\":\"b\"}\n", to: "app.jsonl")
            let queued = #"spoolship_deliveries_queued{destination="two",priority="normal"} "#
            try wait(.seconds(30), "the second event") { try series().contains { $0 == queued + "1" } }
            for key in second.keys { bench.settings[key] = nil }
            try bench.configure()
            #expect(try bench.command("reload").code == 0)
            #expect(try series().contains { $0 == queued + "1" })
            #expect(try bench.command("queue", "purge", "--destination", "two", "--yes").code == 0)
            #expect(try series().contains { $0 == queued + "0" })
        }

        @Test(
            "a container's value does not make a valid configuration fail, and its mistake ends with its correction"
        )
        func others() throws {
            try bench.stopReceiver()
            try bench.startAgent()
            let text = String(repeating: "x", count: 400)
            try bench.append(
                (0..<1000).map { "{\"name\":\"a\",\"n\":\($0),\"t\":\"\(text)\"}\n" }.joined(), to: "a.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 1000
            }
            addContainer()
            bench.settings["container.may_set"] = "[\"queue.max_size\"]"
            let document = try contents(of: "\(bench.path)/GTM-1")
            try write(
                document.replacing(
                    "\"version\": 1,", with: #""version": 1, "values": {"queue.max_size": "10KiB"},"#),
                to: "\(bench.path)/GTM-1")
            for size in ["20MiB", "30MiB"] {
                bench.settings["queue.max_size"] = "\"\(size)\""
                try bench.configure()
                let reloaded = try bench.command("reload")
                #expect(reloaded.code == 0, "\(reloaded)")
                try wait(.seconds(10), "\(size) in force") {
                    try bench.command("status").text.contains(size.dropLast(3))
                }
            }
            // Nor does a lower bound delete what is kept.
            try bench.append(String(repeating: "{bad\n", count: 4000), to: "bad.jsonl")
            try wait(.seconds(30), "the quarantine") {
                try bench.figures().total("spoolship_quarantine_records") == 4000
            }
            bench.settings["spool.quarantine_max_size"] = "\"64KiB\""
            try bench.configure()
            let refused = try bench.command("reload")
            #expect(
                refused.code != 0 && refused.text.contains("spool.quarantine_max_size is 65536 bytes"),
                "\(refused)")
            #expect(try bench.figures().total("spoolship_quarantine_records") == 4000)
            bench.settings["spool.quarantine_max_size"] = nil

            try #require(mkdir("\(bench.path)/conf.d", 0o755) == 0)
            try write("[queue]\nbogus = 1\n", to: "\(bench.path)/conf.d/a.toml")
            func fails() throws -> Bool { try bench.figures().total("spoolship_restart_would_fail") == 1 }
            try wait(.seconds(40), "the mistake to show") { try fails() }
            try write("", to: "\(bench.path)/conf.d/a.toml")
            try wait(.seconds(40), "the mistake to go") { try !fails() }
        }
    }
}
