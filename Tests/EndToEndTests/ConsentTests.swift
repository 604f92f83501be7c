import EventLoops
import Glibc
import Model
import Testing

extension EndToEnd {
    @Suite("Consent")
    struct ConsentTests {
        private func keys(_ path: String) -> [String] {
            values(of: "key", in: (try? bytes(of: path)) ?? [])
        }

        /// An agent whose receiver has no purpose, and a file for analytics that is sent to by command only.
        private func bench() throws -> Workbench {
            let bench = try Workbench()
            bench.settings["destination2.name"] = "\"stats\""
            bench.settings["destination2.type"] = "\"file\""
            bench.settings["destination2.path"] = "\"\(bench.path)/stats.jsonl\""
            bench.settings["destination2.interval"] = "\"off\""
            bench.settings["destination2.purpose"] = "\"analytics\""
            bench.settings["apps.shop.consent"] = "\"all\""
            try #require(mkdir("\(bench.spool)/shop", 0o755) == 0)
            try bench.startReceiver()
            return bench
        }

        private func line(_ key: String, _ consent: String = "") -> String {
            #"{"name":"a","key":"\#(key)"\#(consent.isEmpty ? "" : ",\"consent\":\(consent)")}"# + "\n"
        }

        private func withheld(_ bench: Workbench) throws -> Int {
            try bench.figures().value(#"spoolship_events_discarded_total{reason="withheld"}"#)
        }

        private func waitFor(_ count: Int, _ bench: Workbench) throws {
            try wait(
                .seconds(60), "\(count) withheld; \(bench.agentLog.suffix(2000))", every: .milliseconds(100)
            ) {
                try withheld(bench) == count
            }
        }

        @Test("consent decides at reading, and by command also over what waits, across a kill")
        func command() throws {
            let bench = try bench()
            bench.settings["session.mode"] = "\"off\""
            try bench.startAgent()
            try bench.append(
                line("silent") + line("yes", #"{"analytics":true}"#) + line("no", "false"), to: "shop/a.jsonl"
            )
            try waitFor(2, bench)
            // Given by command: a silent event goes, too.
            #expect(try bench.command("consent", "shop", "analytics", "on").code == 0)
            try bench.append(line("given"), to: "shop/a.jsonl")
            try wait(.seconds(60), "four events, two of which wait", every: .milliseconds(100)) {
                try bench.receiverFigure("events") == 4
                    && bench.figures().total("spoolship_deliveries_queued") == 2
            }
            #expect(try bench.command("consent").text == "shop analytics on\n")
            let mistaken = try bench.command("consent", "shop", "analytcs", "off")
            #expect(mistaken.code != 0 && mistaken.text.contains("there are analytics"), "\(mistaken)")
            let unknown = try bench.command("consent", "shpo", "analytics", "off")
            #expect(
                unknown.code == 0 && unknown.text.contains("no such app so far: shpo is not configured")
                    && unknown.text.contains("did you mean shop?"), "\(unknown)")
            #expect(
                try !bench.command("consent", "shpo", "analytics", "default").text.contains("no such app"))
            let mistyped = try bench.command("disable", "--app", "shpo", "--yes")
            #expect(
                mistyped.code == 0 && mistyped.text.contains("no such app so far: shpo is not configured")
                    && mistyped.text.contains("did you mean shop? (`spoolship enable --app shpo`"),
                "\(mistyped)")
            #expect(try bench.command("enable", "--app", "shpo").code == 0)
            try #require(mkdir("\(bench.spool)/fresh", 0o755) == 0)
            #expect(
                try bench.command("consent", "fresh", "analytics", "off").text
                    == "fresh, analytics: off; 0 queued deliveries withheld\n")
            #expect(try bench.command("consent", "fresh", "analytics", "default").code == 0)
            // Withdrawn: nothing of the app leaves, whatever its events say.
            let answer = try bench.command("consent", "shop", "analytics", "off")
            #expect(answer.code == 0 && answer.text.contains("2 queued deliveries withheld"), "\(answer)")
            try bench.append(line("late", "true"), to: "shop/a.jsonl")
            try waitFor(5, bench)
            bench.killAgent()
            try bench.startAgent()
            #expect(try bench.command("consent").text == "shop analytics off\n")
            try bench.append(line("later", "true"), to: "shop/a.jsonl")
            try waitFor(6, bench)
            let status = try bench.command("status").text
            #expect(
                status.contains("consent: 6 events withheld, 6 from stats; by command: shop analytics off"),
                "\(status)")
            #expect(try bench.command("consent", "shop", "analytics", "default").code == 0)
            // What the app has pushed holds for events that say nothing, also after a kill.
            try bench.append(#"{"type":"data_layer","consent":["analytics"]}"# + "\n", to: "shop/a.jsonl")
            try bench.append(line("refused", "false"), to: "shop/a.jsonl")
            try waitFor(7, bench)
            bench.killAgent()
            try bench.startAgent()
            try bench.append(line("last"), to: "shop/a.jsonl")
            try wait(.seconds(60), "the last; \(bench.agentLog.suffix(2000))", every: .milliseconds(500)) {
                _ = try bench.command("dispatch")
                return keys("\(bench.path)/stats.jsonl") == ["last"]
            }
            try wait(.seconds(60), "eight events", every: .milliseconds(100)) {
                bench.receiverFigure("events") == 8
            }
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        @Test("disable --app deletes what is queued of that app only, durably; enable --app ends it")
        func oneAppIsOff() throws {
            let bench = try bench()
            bench.settings["session.mode"] = "\"off\""
            bench.settings["destination2.purpose"] = nil
            bench.settings["apps.shop.consent"] = nil
            try bench.startAgent()
            try bench.append(line("secret-4711") + line("secret-4712"), to: "shop/a.jsonl")
            try bench.append(line("web"), to: "web.jsonl")
            try wait(.seconds(60), "three that wait", every: .milliseconds(100)) {
                try bench.receiverFigure("events") == 3
                    && bench.figures().total("spoolship_deliveries_queued") == 3
            }
            let asked = try bench.command("disable", "--app", "shop")
            #expect(asked.code != 0 && asked.text.contains("2 queued deliveries of shop"), "\(asked)")
            let answer = try bench.command("disable", "--app", "shop", "--yes")
            #expect(answer.code == 0 && answer.text.contains("2 deliveries discarded"), "\(answer)")
            for file in ["queue.sqlite", "queue.sqlite-wal"] {
                let content = try WholeFile.bytes(of: "\(bench.state)/\(file)", atMost: 1 << 30) ?? []
                #expect(!String(decoding: content, as: UTF8.self).contains("secret-471"), "\(file)")
            }
            bench.killAgent()
            try bench.startAgent()
            try bench.append(line("secret-4713"), to: "shop/a.jsonl")
            // Two that waited at one destination, and one at both.
            try wait(.seconds(60), "its new event to be discarded", every: .milliseconds(100)) {
                try bench.figures().value(#"spoolship_events_discarded_total{reason="disabled"}"#) == 4
            }
            #expect(try bench.command("status").text.contains("collection is off for shop"))
            #expect(try bench.command("enable", "--app", "shop").code == 0)
            try bench.append(line("after"), to: "shop/a.jsonl")
            try wait(.seconds(60), "the others; \(bench.agentLog.suffix(2000))", every: .milliseconds(500)) {
                _ = try bench.command("dispatch")
                return Set(keys("\(bench.path)/stats.jsonl")) == ["web", "after"]
            }
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }
    }
}
