import EventLoops
import Glibc
import Model
import Testing

extension EndToEnd {
    @Suite("Settings of a destination")
    struct OwnSettingsTests {
        private func keys(_ path: String) -> [String] {
            values(of: "key", in: (try? bytes(of: path)) ?? [])
        }

        private func waitForBatches(_ count: Int, of name: String, _ bench: Workbench) throws {
            let attempts =
                #"spoolship_delivery_attempts_total{destination="\#(name)",outcome="acknowledged"}"#
            var found: Int?
            try wait(
                .seconds(30), "\(count) batches of \(name), not \(found ?? 0)", every: .milliseconds(100)
            ) {
                found = try bench.figures().value(attempts)
                return found == count
            }
        }

        @Test(
            "each destination has its own interval and batches, also after a kill; `interval` overrides them all"
        )
        func everyDestinationItsOwn() throws {
            let bench = try Workbench()
            let (archive, pager) = ("\(bench.path)/archive.jsonl", "\(bench.path)/pager.jsonl")
            for (section, name, path) in [
                ("destination2", "archive", archive), ("destination3", "pager", pager),
            ] {
                bench.settings["\(section).name"] = "\"\(name)\""
                bench.settings["\(section).type"] = "\"file\""
                bench.settings["\(section).path"] = "\"\(path)\""
            }
            bench.settings["destination2.interval"] = "\"off\""
            bench.settings["destination2.batch_events"] = "1000"
            bench.settings["destination3.batch_most_events"] = "1"
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<155), to: "app.jsonl")
            let all = Set((0..<155).map { "e\($0)" })
            try wait(
                .seconds(60), "main and pager; \(bench.agentLog.suffix(2000))", every: .milliseconds(100)
            ) {
                bench.receiverFigure("events") == 155 && keys(pager).count == 155
            }
            try bench.expectOnce(all, member: "key")
            #expect(Set(keys(pager)) == all)
            try waitForBatches(155, of: "pager", bench)
            // Nothing goes to the archive by itself, and `status` says so.
            #expect(keys(archive).isEmpty)
            let status = try bench.command("status").text
            #expect(status.contains("dispatch every 1s; archive only by command, log level"), "\(status)")
            try bench.expectBalance()

            bench.killAgent()
            try bench.startAgent()
            #expect(keys(archive).isEmpty)
            // A person's word stands above every destination's own.
            #expect(try bench.command("interval", "2s").code == 0)
            try wait(.seconds(60), "the archive; \(bench.agentLog.suffix(2000))", every: .milliseconds(100)) {
                keys(archive).count >= 155
            }
            #expect(keys(archive).count == 155 && Set(keys(archive)) == all)
            // 155 events in chunks of 50 and less, in one batch.
            try waitForBatches(1, of: "archive", bench)
            #expect(try bench.command("interval", "default").code == 0)
            #expect(try bench.command("status").text.contains("dispatch every 1s; archive only by command"))
            try wait(.seconds(30), "an empty queue", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_deliveries_queued") == 0
            }
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "events beyond a destination's own max_age expire there only, counted, and never by an untrusted clock",
            arguments: [true, false])
        func ownAge(isTrusted: Bool) throws {
            let bench = try Workbench()
            let library = try bench.clockLibrary()
            for name in ["url", "tls.ca_file"] { bench.settings["destination.\(name)"] = nil }
            for (section, name) in [("destination", "brief"), ("destination2", "long")] {
                bench.settings["\(section).name"] = "\"\(name)\""
                bench.settings["\(section).type"] = "\"file\""
                bench.settings["\(section).path"] = "\"\(bench.path)/\(name).jsonl\""
                bench.settings["\(section).interval"] = "\"off\""
            }
            bench.settings["destination.max_age"] = "\"1d\""
            try bench.startAgent()
            try bench.append(keyed(0..<20), to: "app.jsonl")
            try wait(.seconds(60), "40 that wait; \(bench.agentLog.suffix(2000))", every: .milliseconds(100))
            {
                try bench.figures().total("spoolship_deliveries_queued") == 40
            }
            // Two days later, by the machine's clock.
            bench.killAgent()
            // Time that passes moves both clocks; by the queue's note this would be a step of one.
            let note = "import sqlite3; c = sqlite3.connect('\(bench.state)/queue.sqlite'); "
            let forget = "c.execute(\"DELETE FROM switch WHERE name = 'clock.steps'\"); c.commit()"
            try #require(try run("python3", ["-c", note + forget]).code == 0)
            let trust = isTrusted ? [] : ["CLOCK_UNSYNCHRONISED=1"]
            try bench.startAgent(environment: ["LD_PRELOAD=\(library)", "CLOCK_AHEAD=172800"] + trust)
            #expect(try bench.command("dispatch").code == 0)
            try wait(
                .seconds(60), "the end of what waits; \(bench.agentLog.suffix(2000))",
                every: .milliseconds(100)
            ) {
                try bench.figures().total("spoolship_deliveries_queued") == 0
            }
            #expect(Set(keys("\(bench.path)/long.jsonl")) == Set((0..<20).map { "e\($0)" }))
            #expect(keys("\(bench.path)/brief.jsonl").count == (isTrusted ? 0 : 20))
            let log = bench.agentLog
            #expect(
                (log.contains("events expired") && log.contains("total=20")) == isTrusted,
                "\(log.suffix(1000))")
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }
    }
}
