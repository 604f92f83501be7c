import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    @Suite("The path of events through the agent")
    struct EventTests {
        /// What the receiver has stored of events of that name.
        private func arrived(_ name: String, _ bench: Workbench) throws -> [JSONValue] {
            try bytes(of: bench.events).split(separator: 0x0A).map { try JSONValue(parsing: Array($0)) }
                .filter { $0["name"]?.string == name }
        }

        @Test("an event of track appears in tap and arrives; tap shows only what was requested")
        func trackAndTap() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            mkdir("\(bench.spool)/shop", 0o755)
            func tap(_ words: String...) throws -> RunningProgram {
                try RunningProgram(
                    spoolship, ["tap", "--config", bench.configuration] + words,
                    output: "\(bench.path)/tap-\(words.joined())")
            }
            let all = try tap("--count", "3")
            let critical = try tap("--priority", "critical", "-n", "1")
            let shop = try tap("--app", "shop", "--name", "Order placed", "-n", "1")
            // A watcher is there once its request has been answered: until then events are tracked for it.
            var tracked = 0
            func track(_ words: String...) throws -> Bool {
                try run(spoolship, ["track"] + words + ["--config", bench.configuration]).code == 0
            }
            try wait(.seconds(30), "the watchers") {
                try #require(try track("waiting"))
                tracked += 1
                return !all.printed.isEmpty || all.exitStatus() != nil
            }
            try wait(.seconds(30), "the others: \(critical.printed) \(shop.printed)") {
                let isCritical = try track("Alarm", "--critical", "-p", "level=7")
                try #require(try track("Order placed", "--app", "shop", "-p", "sum=12.5") && isCritical)
                tracked += 2
                return critical.exitStatus() != nil && shop.exitStatus() != nil && all.exitStatus() != nil
            }
            for program in [all, critical, shop] { #expect(program.exitStatus() == 0) }
            #expect(all.printed.split(separator: "\n").count == 3)
            let alarm = try JSONValue(parsing: Array(critical.printed.utf8))
            #expect(alarm["name"]?.string == "Alarm" && alarm["properties"] == ["level": 7])
            let order = try JSONValue(parsing: Array(shop.printed.utf8))
            #expect(order["app"]?.string == "shop" && order["properties"] == ["sum": .double(12.5)])
            try bench.waitUntilDelivered(tracked)
            let alarms = try arrived("Alarm", bench)
            #expect(alarms.contains(alarm))
        }

        @Test(
            "ac19: an app's own limits override the general ones; truncations and other consequences are counted by kind"
        )
        func ac19_limitsByApp() throws {
            let bench = try Workbench()
            bench.settings["limits.like"] = "\"app_center\""
            bench.settings["limits.properties"] = "2"
            bench.settings["limits.beyond_name_length"] = "\"refuse\""
            bench.settings["apps.shop.limits.properties"] = "3"
            bench.settings["apps.shop.limits.beyond_property_value_length"] = "\"allow\""
            bench.settings["apps.bank.limits.beyond_property_key_length"] = "\"quarantine\""
            try bench.startReceiver()
            try bench.startAgent()
            for app in ["shop", "bank", "other"] { mkdir("\(bench.spool)/\(app)", 0o755) }
            let long = String(repeating: "x", count: 126)
            let rich = #"{"name":"rich","properties":{"a":1,"b":2,"c":3,"d":4}}"# + "\n"
            let value = #"{"name":"value","properties":{"v":"\#(long)"}}"# + "\n"
            let key = #"{"name":"key","properties":{"\#(long)":1}}"# + "\n"
            let name = #"{"name":"\#(String(repeating: "n", count: 257))"}"# + "\n"
            for app in ["shop", "bank", "other"] {
                try bench.append(rich + value + key + name, to: "\(app)/a.jsonl")
            }
            try wait(.seconds(30), "all to be read and delivered") {
                let figures = try bench.figures()
                return figures.total("spoolship_events_read_total") == 12
                    && figures.total("spoolship_deliveries_acknowledged_total") == 8
            }
            let figures = try bench.figures()
            #expect(figures.imbalances == [])
            func cut(_ kind: String) -> Int {
                figures.value("spoolship_event_truncations_total{kind=\"\(kind)\"}")
            }
            // One of shop's four properties, two of each of the others'.
            #expect(
                cut("properties") == 5 && cut("property_value") == 2 && cut("property_key") == 2
                    && cut("name") == 0)
            func beyond(_ limit: String, _ consequence: String) -> Int {
                figures.value(
                    "spoolship_events_beyond_limit_total{limit=\"\(limit)\",consequence=\"\(consequence)\"}")
            }
            #expect(beyond("name_length", "refuse") == 3 && beyond("property_value_length", "allow") == 1)
            #expect(beyond("property_key_length", "quarantine") == 1)
            #expect(figures.value("spoolship_events_refused_total") == 3)
            let counts = try arrived("rich", bench).map {
                ($0["app"]?.string, $0["properties"]?.members?.count)
            }
            #expect(Set(counts.map { "\($0.0 ?? "") \($0.1 ?? 0)" }) == ["shop 3", "bank 2", "other 2"])
            let lengths = try arrived("value", bench).map { $0["properties"]?["v"]?.string?.count ?? 0 }
            #expect(lengths.sorted() == [125, 125, 126])
        }

        @Test(
            "ac21: manual sessions begin by event and command; in automatic mode the command says it has no effect"
        )
        func ac21_manualSessions() throws {
            let bench = try Workbench()
            bench.settings["session.mode"] = "\"manual\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(
                #"{"name":"before"}"# + "\n" + #"{"type":"start_session"}"# + "\n", to: "app.jsonl")
            try bench.append(#"{"name":"first"}"# + "\n", to: "app.jsonl")
            try bench.waitUntilDelivered(3)
            let started = try bench.command("session", "start")
            #expect(
                started.code == 0 && started.text.contains("a new session of default has begun"), "\(started)"
            )
            // No line comes with it, and it goes all the same.
            try wait(.seconds(30), "the start of the session") {
                try arrived("start_session", bench).count == 2
            }
            bench.killAgent()
            try bench.startAgent()
            try bench.append(#"{"name":"second"}"# + "\n", to: "app.jsonl")
            try wait(.seconds(30), "the event after the restart") { try arrived("second", bench).count == 1 }
            func session(_ name: String) throws -> String? {
                try arrived(name, bench).first?["session_id"]?.string
            }
            let first = try #require(try session("first"))
            let before = try session("before")
            let announced = try session("start_session")
            #expect(before == nil && announced == first)
            let second = try session("second")
            #expect(second != nil && second != first)
            #expect(try bench.stopAgent() == 0)
            bench.settings["session.mode"] = "\"automatic\""
            try bench.startAgent()
            let ignored = try bench.command("session", "start")
            #expect(ignored.code == 0 && ignored.text.contains("automatic; nothing changed"), "\(ignored)")
        }

        @Test("ac23: the country is looked up and the address removed; a country set by hand wins and stays")
        func ac23_country() throws {
            let bench = try Workbench()
            try write(SmallCountryDatabase.bytes, to: "\(bench.path)/countries.mmdb")
            bench.settings["country.database"] = "\"\(bench.path)/countries.mmdb\""
            bench.settings["country.address_member"] = "\"ip\""
            bench.settings["country.remove_address"] = "true"
            try bench.startReceiver()
            try bench.startAgent()
            func event(_ name: String, _ address: String) -> String {
                #"{"name":"\#(name)","ip":"\#(address)"}"# + "\n"
            }
            try bench.append(event("known", "1.2.3.4") + event("unknown", "200.1.1.1"), to: "app.jsonl")
            try bench.waitUntilDelivered(2)
            #expect(try bench.command("country", "set", "es").code == 0)
            bench.killAgent()
            try bench.startAgent()
            #expect(
                try bench.command("status").text.contains("setting country.code = \"ES\" (set by command)"))
            try bench.append(event("set", "1.2.3.4"), to: "app.jsonl")
            try wait(.seconds(30), "the event after the restart") { try arrived("set", bench).count == 1 }
            #expect(try bench.command("country", "clear").code == 0)
            #expect(try !bench.command("status").text.contains("country.code"))
            try bench.append(event("cleared", "1.2.3.4"), to: "app.jsonl")
            try wait(.seconds(30), "the last event") { try arrived("cleared", bench).count == 1 }
            for (name, country) in [("known", "IT"), ("unknown", nil), ("set", "ES"), ("cleared", "IT")] {
                let found = try #require(try arrived(name, bench).first)
                #expect(found["country"]?.string == country && found["ip"] == nil, "\(found)")
            }
            #expect(try !contents(of: bench.events).contains("1.2.3.4"))
        }

        @Test("tm18: the log level changes at run time, and lines have the journal's form, or JSON")
        func tm18_logs() throws {
            let bench = try Workbench()
            bench.settings["agent.log"] = "\"error\""
            try bench.configure()
            try bench.startReceiver()
            // Standard error is the journal when this names it.
            let log = "\(bench.path)/agent.log"
            try write("", to: log)
            var status = stat()
            #expect(stat(log, &status) == 0)
            let agent = try RunningProgram(
                spoolship, ["run", "--config", bench.configuration], output: log,
                environment: ["JOURNAL_STREAM=\(status.st_dev):\(status.st_ino)"])
            try bench.waitForAgent()
            #expect(agent.printed.isEmpty, "\(agent.printed)")
            #expect(try bench.command("log-level", "info").code == 0)
            agent.send(SIGHUP)
            try wait(.seconds(30), "a line: \(agent.printed)") {
                agent.printed.contains("configuration reloaded")
            }
            #expect(
                agent.printed.split(separator: "\n").allSatisfy { $0.hasPrefix("<6>") }, "\(agent.printed)")
            #expect(try bench.command("log-level", "debug").code == 0)
            let loud = try bench.command("log-level", "loud")
            #expect(loud.code != 0 && loud.text.contains("error, warning, info, debug, verbose"), "\(loud)")
            bench.settings["agent.log"] = "{ level = \"error\", format = \"json\" }"
            try bench.configure()
            agent.send(SIGHUP)
            try wait(.seconds(30), "the second reload: \(agent.printed)") {
                agent.printed.split(separator: "\n").count { $0.contains("configuration reloaded") } == 2
            }
            try bench.append("no event\n", to: "app.jsonl")
            try wait(.seconds(30), "a warning: \(agent.printed)") { agent.printed.contains("quarantined") }
            let last = try #require(agent.printed.split(separator: "\n").last { $0.hasPrefix("<4>") })
            let json = try JSONValue(parsing: Array(last.utf8.dropFirst(3)))
            #expect(json["level"]?.string == "warning", "\(json)")
            #expect(!agent.printed.contains("no event"), "content in the log")
            agent.send(SIGTERM)
            #expect(try agent.exit(within: .seconds(40)) == 0)
        }
    }
}
