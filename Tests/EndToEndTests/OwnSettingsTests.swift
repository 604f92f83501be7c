import EventLoops
import Glibc
import Model
import Testing

extension EndToEnd {
    @Suite("What a destination sets for itself")
    struct OwnSettingsTests {
        private func keys(_ path: String) -> [String] {
            values(of: "key", in: (try? bytes(of: path)) ?? [])
        }

        private func waitForBatches(_ count: Int, of name: String, _ bench: Workbench) throws {
            let attempts = #"spoolship_delivery_attempts_total{destination="\#(name)",outcome="acknowledged"}"#
            var found: Int?
            try wait(.seconds(30), "\(count) batches of \(name), not \(found ?? 0)", every: .milliseconds(100)) {
                found = try bench.figures().value(attempts)
                return found == count
            }
        }

        @Test("each destination has its own interval and batches, also after kill -9; `interval` rules them all")
        func everyDestinationItsOwn() throws {
            let bench = try Workbench()
            let (archive, pager) = ("\(bench.path)/archive.jsonl", "\(bench.path)/pager.jsonl")
            for (section, name, path) in [("destination2", "archive", archive), ("destination3", "pager", pager)] {
                bench.settings["\(section).name"] = "\"\(name)\""
                bench.settings["\(section).type"] = "\"file\""
                bench.settings["\(section).path"] = "\"\(path)\""
            }
            bench.settings["destination2.interval"] = "\"off\""
            bench.settings["destination2.batch_events"] = "1000"
            bench.settings["destination3.batch_events"] = "1"
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<155), to: "app.jsonl")
            let all = Set((0..<155).map { "e\($0)" })
            try wait(.seconds(60), "main and pager; \(bench.agentLog.suffix(2000))", every: .milliseconds(100)) {
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
    }
}
