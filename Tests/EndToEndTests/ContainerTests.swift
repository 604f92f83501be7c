import EventLoops
import Glibc
import Model
import SpoolshipClient
import TestKit
import Testing

extension EndToEnd {
    @Suite("Containers")
    struct ContainerTests {
        private let bench: Workbench
        private let nginx: ContainerNginx
        private var key: String { "\(bench.path)/signing.pem" }

        /// A receiver, nginx with the same certificate, and a key; the agent is not started yet.
        init() throws {
            bench = try Workbench()
            try bench.startReceiver()
            nginx = try ContainerNginx(bench)
            try nginx.start(bench)
            let made = try run(spoolship, ["container", "keygen", key])
            try #require(made.code == 0, "\(made)")
            bench.settings["container.id"] = "\"GTM-1234\""
            bench.settings["container.url"] = "\"\(nginx.url)\""
            bench.settings["container.ca_file"] = "\"\(bench.caFile)\""
            bench.settings["container.public_key"] = "\"\(made.text.filter { $0 != "\n" })\""
            bench.settings["container.may_set"] = #"["dispatch.interval", "queue.max_age"]"#
        }

        private func document(_ version: Int, interval: String = "2s", _ more: String = "") -> String {
            """
            {"id": "GTM-1234", "version": \(version)\(more),
             "values": {"dispatch.interval": "\(interval)", "greeting": "version \(version)", "share": 0.25}}
            """
        }

        private func signed(_ document: String, _ options: String...) throws -> [UInt8] {
            let file = "\(bench.path)/document.json"
            try write(document, to: file)
            let output = "\(bench.path)/document.signed"
            let result = try run(
                spoolship, ["container", "sign", file, "--key", key, "--output", output] + options)
            try #require(result.code == 0, "\(result)")
            return try bytes(of: output)
        }

        private func container() throws -> JSONValue {
            let answer = try bench.command("container", "list", "--json")
            let list = try JSONValue(parsing: answer.text)["containers"]?.array
            return try #require(list?.first, "\(answer)")
        }

        private func refresh() throws -> (code: Int32, result: String) {
            let answer = try bench.command("container", "refresh", "--json")
            let result = try JSONValue(parsing: answer.text)["result"]?.string
            return (answer.code, result ?? answer.text)
        }

        @Test(
            "tm07, tm08: each kind of published document has its effect: changed, withdrawn, garbled, unsigned, old, slow"
        )
        func lifeOfAContainer() throws {
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            let process = bench.agent?.process
            try wait(.seconds(30), "version 1: \(bench.agentLog)") { try container()["version"] == 1 }
            #expect(try container()["source"] == "network")
            try wait(.seconds(30), "the interval") {
                try bench.figures().value("spoolship_dispatch_interval_seconds") == 2
            }
            let status = try bench.command("status").text
            #expect(status.contains("dispatch every 2s (set by container GTM-1234)"), "\(status)")
            #expect(status.contains("container GTM-1234: version 1, network"), "\(status)")
            #expect(try bench.command("container", "get", "greeting").text == "version 1\n")

            // Changed: it takes over, nothing restarts.
            try nginx.publish(try signed(document(2, interval: "3s")))
            #expect(try refresh() == (0, "success"))
            #expect(try container()["version"] == 2)
            try wait(.seconds(30), "the new interval") {
                try bench.figures().value("spoolship_dispatch_interval_seconds") == 3
            }
            // Not changed: a 304.
            #expect(try refresh() == (0, "success"))
            #expect(nginx.accessLog.contains("\" 304 "))

            // Whatever comes now changes nothing.
            func stays(_ result: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
                let end = try refresh()
                #expect(end == (75, result), sourceLocation: sourceLocation)
                let now = try container()
                #expect(
                    now["version"] == 2 && now["last_fetch"]?.string == result, sourceLocation: sourceLocation
                )
                #expect(now["problem"]?.string?.isEmpty == false, sourceLocation: sourceLocation)
            }
            #expect(unlink("\(nginx.files)/GTM-1234") == 0)
            try stays("server_error")
            var garbled = try signed(document(3))
            garbled[garbled.count - 20] ^= 1
            try nginx.publish(garbled)
            try stays("signature")
            try nginx.publish(Array(document(3).utf8))
            try stays("signature")
            let other = #"{"id": "GTM-9999", "version": 3}"#
            try nginx.publish(try signed(other))
            try stays("form")
            try nginx.publish(try signed(document(1)))
            try stays("version")
            try nginx.publish([UInt8](repeating: 0x20, count: 3 << 20))
            try stays("form")

            // Slow: the agent goes on with its work, and takes it when it comes.
            try nginx.publish(try signed(document(4, interval: "1s")))
            nginx.freeze()
            let slow = try RunningProgram(
                spoolship, ["container", "refresh", "--config", bench.configuration],
                output: "\(bench.path)/refresh.log")
            try bench.append(keyed(0..<100), to: "app.jsonl")
            try bench.waitUntilDelivered(100)
            #expect(slow.exitStatus() == nil)
            #expect(try container()["version"] == 2)
            nginx.thaw()
            #expect(try slow.exit() == 0)
            #expect(try container()["version"] == 4)

            // Gone.
            nginx.stop()
            let end = try refresh()
            #expect(end == (75, "network_error"))
            #expect(try container()["version"] == 4)

            let figures = try bench.figures()
            for result in ["success", "server_error", "signature", "form", "version", "network_error"] {
                let series =
                    "spoolship_container_refreshes_total{container=\"GTM-1234\",type=\"network\",result=\"\(result)\"}"
                #expect(figures.value(series) > 0, "\(result)")
            }
            #expect(figures.value("spoolship_container_version{container=\"GTM-1234\"}") == 4)
            #expect(figures.value("spoolship_container_last_refresh_successful{container=\"GTM-1234\"}") == 0)
            #expect(bench.agent?.process == process && bench.agent?.exitStatus() == nil)

            // The saved one rules after a restart without network.
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent()
            try wait(.seconds(30), "the saved one: \(bench.agentLog)") { try container()["version"] == 4 }
            #expect(try container()["source"] == "saved")
            try bench.expectOnce(Set((0..<100).map { "e\($0)" }), member: "key")
        }

        @Test("tm08: a corrupt saved copy is refused, and an older version still is not accepted")
        func corruptCopy() throws {
            try nginx.publish(try signed(document(5)))
            try bench.startAgent()
            try wait(.seconds(30), "version 5") { try container()["version"] == 5 }
            #expect(try bench.stopAgent() == 0)
            let text = "replace(CAST(file AS TEXT), 'version 5', 'version 6')"
            let change = "UPDATE container SET file = CAST(\(text) AS BLOB)"
            let script =
                "import sqlite3; c = sqlite3.connect('\(bench.state)/queue.sqlite'); c.execute(\"\(change)\"); c.commit()"
            #expect(try run("python3", ["-c", script]).code == 0)
            try nginx.publish(try signed(document(4)))
            try bench.startAgent()
            try wait(.seconds(30), "both refusals: \(bench.agentLog)") {
                try container()["last_fetch"] == "version"
            }
            #expect(try container()["source"] == "none")
            #expect(bench.agentLog.contains("the saved copy"))
            try nginx.publish(try signed(document(6)))
            #expect(try refresh() == (0, "success"))
            #expect(try container()["version"] == 6)
        }

        @Test(
            "tm08: a document that cannot be saved is in force and saved later, and an older one stays refused"
        )
        func savedLater() throws {
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            try wait(.seconds(30), "version 1: \(bench.agentLog)") { try container()["version"] == 1 }
            let database = "\(bench.state)/queue.sqlite"
            func saved() throws -> String {
                let script =
                    "import sqlite3; print(sqlite3.connect('\(database)').execute('SELECT version FROM container').fetchall())"
                return try run("python3", ["-c", script]).text
            }
            try wait(.seconds(30), "version 1 in the database") { try saved() == "[(1,)]\n" }

            let gate = "\(bench.path)/unlock"
            let script = """
                import os, sqlite3, sys, time
                c = sqlite3.connect('\(database)', timeout=60, isolation_level=None)
                c.execute('BEGIN IMMEDIATE'); print('locked', flush=True)
                for _ in range(6000):
                    if os.path.exists('\(gate)'): break
                    time.sleep(0.02)
                c.execute('ROLLBACK')
                """
            let holder = try RunningProgram("python3", ["-c", script], output: "\(bench.path)/holder.log")
            try wait(.seconds(30), "the lock: \(holder.printed)") { holder.printed.contains("locked") }
            try nginx.publish(try signed(document(2)))
            #expect(try refresh() == (75, "io_error"))
            #expect(try container()["version"] == 2)
            // What is refused meanwhile does not take its place.
            try nginx.publish(try signed(document(1)))
            #expect(try refresh() == (75, "version"))
            #expect(try saved() == "[(1,)]\n")
            try write("", to: gate)
            try wait(.seconds(60), "version 2 in the database: \(bench.agentLog)") {
                try saved() == "[(2,)]\n"
            }
            // After a crash it rules, and the older one is no better than before.
            bench.killAgent()
            try bench.startAgent()
            try wait(.seconds(30), "the saved one: \(bench.agentLog)") { try container()["version"] == 2 }
            #expect(try refresh() == (75, "version"))
            #expect(try container()["version"] == 2)
        }

        @Test(
            "tm05: opening never blocks writers; reading begins at the timeout, and a later document takes over"
        )
        func slowOpening() throws {
            try nginx.publish(try signed(document(1)))
            bench.settings["container.timeout"] = "\"3s\""
            nginx.freeze()
            try bench.append(keyed(0..<50), to: "app.jsonl")
            try bench.startAgent(waits: false)
            try bench.waitForAgent()
            try bench.append(keyed(50..<100), to: "app.jsonl")
            try bench.waitUntilDelivered(100)
            #expect(try container()["version"] == .null)
            nginx.thaw()
            try wait(.seconds(60), "the late one: \(bench.agentLog)") { try container()["version"] == 1 }
            #expect(bench.agentLog.contains("container in force"))
        }

        @Test("tm07: a first start offline reports no_saved_container and no_network, and uses the default")
        func firstStartOffline() throws {
            nginx.stop()
            try write(document(1), to: "\(bench.path)/GTM-1234")
            bench.settings["container.default_file"] = "\"\(bench.path)/GTM-1234\""
            try bench.startAgent()
            try wait(.seconds(30), "the failed fetch") { try container()["last_fetch"] == "network_error" }
            #expect(try container()["source"] == "default")
            let saved =
                "spoolship_container_refreshes_total{container=\"GTM-1234\",type=\"saved\",result=\"no_saved_container\"}"
            #expect(try bench.figures().value(saved) == 1)
            #expect(try bench.command("network", "off").code == 0)
            #expect(try refresh() == (75, "no_network"))
        }

        @Test(
            "tm04, tm07: the client opens a published container; a refresh ends with a version or a reason")
        func clientRefreshes() throws {
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            // A busy machine must not decide how a request ends.
            let client = AgentContainer(
                id: "GTM-1234", socket: "\(bench.path)/control.sock", timeout: .seconds(120))
            #expect(try client.open(.preferFresh, timeout: .seconds(60)))
            #expect(try !client.isDefault() && client.string(forKey: "greeting") == "version 1")
            let confirmed = try client.lastRefreshTime()
            #expect(confirmed > 0)
            try nginx.publish(try signed(document(2)))
            #expect(try client.refresh() == .success(version: 2))
            #expect(try client.refresh() == .success(version: 2))
            #expect(try client.string(forKey: "greeting") == "version 2")
            #expect(try client.lastRefreshTime() >= confirmed)

            func expect(
                _ reason: AgentContainer.RefreshFailure, sourceLocation: SourceLocation = #_sourceLocation
            ) throws {
                let end = try client.refresh()
                guard case .failure(reason, let message) = end, !message.isEmpty else {
                    Issue.record("\(end)", sourceLocation: sourceLocation)
                    return
                }
            }
            #expect(unlink("\(nginx.files)/GTM-1234") == 0)
            try expect(.serverError)
            try nginx.publish(try signed(document(1)))
            try expect(.refused)
            nginx.stop()
            try expect(.networkError)
            #expect(try bench.command("network", "off").code == 0)
            try expect(.noNetwork)
            #expect(try client.string(forKey: "greeting") == "version 2")

            // Without a server the saved document is opened.
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent()
            #expect(try client.open(.preferNonDefault, timeout: .seconds(60)))
            #expect(try !client.isDefault() && client.string(forKey: "greeting") == "version 2")
        }

        @Test(
            "tm10: an invalid value for a setting is refused and reported; a value outside may_set is ignored"
        )
        func hostileValues() throws {
            let hostile = """
                {"id": "GTM-1234", "version": 1, "values": {"dispatch.interval": "3 weeks", "queue.max_age": "20d",
                 "agent.state_directory": "/tmp/elsewhere", "destination.main.url": "https://evil.example/",
                 "control.socket": "/tmp/mine", "functions.f.command": ["/bin/sh"]}}
                """
            try nginx.publish(try signed(hostile))
            try bench.startAgent()
            try wait(.seconds(30), "the document: \(bench.agentLog)") { try container()["version"] == 1 }
            try wait(.seconds(30), "the refusal") {
                try container()["settings_refused"]?["dispatch.interval"]?.string?.isEmpty == false
            }
            let status = try JSONValue(parsing: try bench.command("status", "--json").text)
            #expect(status["interval"] == "1s" && status["interval_origin"] == "configuration")
            let overrides = status["overrides"]?.array ?? []
            #expect(overrides.compactMap { $0["setting"]?.string } == ["queue.max_age"])
            #expect(overrides.first?["origin"] == "container GTM-1234")
            #expect(
                try bench.figures().value("spoolship_container_settings_refused{container=\"GTM-1234\"}") == 1
            )
            #expect(bench.agentLog.contains("value of a container refused"))
            // A configuration that is read again keeps what the container says on top.
            bench.agent?.send(SIGHUP)
            try wait(.seconds(30), "the reload") { bench.agentLog.contains("configuration reloaded") }
            let after = try JSONValue(parsing: try bench.command("status", "--json").text)
            #expect((after["overrides"]?.array ?? []).count == 1)
        }

        @Test(
            "tm16: a draft is visibly in force for its time, ends by command and by restart, and exit codes follow"
        )
        func preview() throws {
            try nginx.publish(try signed(document(7)))
            try bench.startAgent()
            try wait(.seconds(30), "version 7") { try container()["version"] == 7 }
            let draft = "\(bench.path)/draft.json"
            try write(document(3, interval: "5s"), to: draft)
            #expect(try bench.command("container", "preview", draft, "--ttl", "1h").code == 0)
            #expect(try container()["source"] == "preview" && (try container()["version"]) == 3)
            #expect(try bench.command("status").text.contains("preview, ends in"))
            let series = "spoolship_container_source{container=\"GTM-1234\",source=\"preview\"}"
            #expect(try bench.figures().value(series) == 1)
            try wait(.seconds(30), "the draft's interval") {
                try bench.figures().value("spoolship_dispatch_interval_seconds") == 5
            }
            #expect(try bench.command("container", "preview", "--end").code == 0)
            #expect(try container()["version"] == 7)

            try write("{", to: draft)
            #expect(try bench.command("container", "preview", draft).code == 65)
            try write(#"{"id": "GTM-9999", "version": 1}"#, to: draft)
            #expect(try bench.command("container", "preview", draft).code == 1)
            #expect(try container()["version"] == 7)

            try write(document(3), to: draft)
            #expect(try bench.command("container", "preview", draft, "--ttl", "1s").code == 0)
            try wait(.seconds(30), "the end by time") { try container()["version"] == 7 }
            #expect(try bench.command("container", "preview", draft).code == 0)
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent()
            try wait(.seconds(30), "the restart's end") { try container()["version"] == 7 }
            #expect(try container()["preview_ends_ms"] == .null)
        }

        @Test(
            "tm16: a link to a draft with a preview signature works; unsigned, published, foreign or expired ones do not"
        )
        func previewLink() throws {
            try nginx.publish(try signed(document(7)))
            try bench.startAgent()
            try wait(.seconds(30), "version 7") { try container()["version"] == 7 }
            let link = nginx.url + ".draft"
            func preview() throws -> (code: Int32, text: String) {
                try bench.command("container", "preview", link)
            }
            let missing = try preview()
            #expect(missing.code == 75 && missing.text.contains("404"), "\(missing)")
            try nginx.publish(Array(document(3).utf8), as: "GTM-1234.draft")
            let unsigned = try preview()
            #expect(unsigned.code == 65, "\(unsigned)")
            // What was published once is no draft: whoever controls the web server would go back with it.
            try nginx.publish(try signed(document(3)), as: "GTM-1234.draft")
            let published = try preview()
            #expect(published.code == 65 && published.text.contains("--preview"), "\(published)")
            try nginx.publish(
                try signed(#"{"id": "GTM-9999", "version": 3}"#, "--preview"), as: "GTM-1234.draft")
            #expect(try preview().code == 1)
            let now = SystemTime().wallTime
            let end = Timestamp(milliseconds: now.milliseconds + 20_000)
            try nginx.publish(
                try signed(document(3, ", \"expires\": \"\(end)\""), "--preview"), as: "GTM-1234.draft")
            try wait(.seconds(60), "its end") { SystemTime().wallTime > end }
            let expired = try preview()
            #expect(expired.code == 65 && expired.text.contains("expired"), "\(expired)")
            #expect(try container()["version"] == 7 && container()["source"] != "preview")
            let draft = try signed(document(8, interval: "5s"), "--preview")
            try nginx.publish(draft, as: "GTM-1234.draft")
            let good = try preview()
            #expect(good.code == 0 && good.text.contains("version 8 is in force as a draft"), "\(good)")
            #expect(try container()["source"] == "preview" && container()["version"] == 8)
            let exported = try bench.command("container", "export", "GTM-1234", "--directory", bench.path)
            #expect(exported.code == 0 && exported.text.contains("draft"), "\(exported)")
            // It is not kept, and published versions go on counting from theirs.
            #expect(try bench.command("container", "preview", "--end").code == 0)
            #expect(try container()["version"] == 7)
            #expect(
                try !bench.command("container", "export", "GTM-1234", "--directory", bench.path).text
                    .contains("draft"))
            // Nor can it be published by whoever controls the web server.
            try nginx.publish(draft)
            #expect(try refresh() == (75, "signature"))
            #expect(try container()["version"] == 7)
        }

        @Test(
            "tm02: a reload takes a changed default file; an unusable one leaves the last good one in force")
        func rereadDefault() throws {
            let file = "\(bench.path)/GTM-1234"
            nginx.stop()
            try write(document(1), to: file)
            bench.settings["container.default_file"] = "\"\(file)\""
            try bench.startAgent()
            try wait(.seconds(30), "the default") { try container()["source"] == "default" }
            #expect(try bench.command("container", "get", "greeting").text == "version 1\n")
            try write(document(2), to: file)
            let reloaded = try bench.command("reload")
            #expect(reloaded.code == 0, "\(reloaded)")
            try wait(.seconds(30), "version 2: \(bench.agentLog)") { try container()["version"] == 2 }
            try write("{", to: file)
            let refused = try bench.command("reload")
            #expect(
                refused.code == 0 && refused.text.contains("warning: container.GTM-1234.default_file: ")
                    && refused.text.contains("the last good one stays in force"), "\(refused)")
            #expect(bench.agentLog.contains("default file not reread"))
            #expect(try container()["version"] == 2)
        }

        @Test(
            "tm08: sign refuses what agents would refuse: an expired document, failing tests, a wrong version"
        )
        func signing() throws {
            func sign(_ document: String, _ options: String...) throws -> (code: Int32, text: String) {
                let file = "\(bench.path)/sign.json"
                try write(document, to: file)
                return try run(
                    spoolship,
                    ["container", "sign", file, "--key", key, "--output", "\(bench.path)/signed"] + options)
            }
            let old = try sign(document(1, #", "expires": "2021-01-01T00:00:00Z""#))
            #expect(old.code == 65 && old.text.contains("expires"), "\(old)")
            let tests = #", "tests": [{"name": "greets", "expect": {"values": {"greeting": "no"}}}]"#
            let failing = try sign(document(1, tests))
            #expect(failing.code == 65 && failing.text.contains("greets fails"), "\(failing)")
            #expect(access("\(bench.path)/signed", F_OK) != 0)
            // Against what is published, at the address where agents fetch it.
            let there = ["--after", nginx.url, "--ca-file", bench.caFile]
            let missing = try sign(document(5), there[0], there[1], there[2], there[3])
            #expect(missing.code == 75 && missing.text.contains("nothing is published there"), "\(missing)")
            try nginx.publish(try signed(document(5)))
            let same = try sign(
                document(5, #", "description": "other""#), there[0], there[1], there[2], there[3])
            #expect(same.code == 65 && same.text.contains("does not follow the published 5"), "\(same)")
            #expect(try sign(document(6), there[0], there[1], there[2], there[3]).code == 0)
        }

        @Test("tm06: switching the network on starts a fetch at once")
        func networkOn() throws {
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            try wait(.seconds(30), "version 1") { try container()["version"] == 1 }
            #expect(try bench.command("network", "off").code == 0)
            try nginx.publish(try signed(document(2)))
            #expect(try refresh() == (75, "no_network"))
            // Its own next try would come after a minute at the earliest.
            let start = SystemTime().bootTime
            #expect(try bench.command("network", "on").code == 0)
            try wait(.seconds(55), "version 2: \(bench.agentLog)") { try container()["version"] == 2 }
            #expect(SystemTime().bootTime - start < .seconds(55))
        }

        @Test(
            "tm09, tm19: values are readable by command, socket and file, and an export can be used as a default file"
        )
        func publishedValues() throws {
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            try wait(.seconds(30), "version 1") { try container()["version"] == 1 }
            func get(_ words: String...) throws -> String {
                try run(spoolship, ["container", "get"] + words + ["--config", bench.configuration]).text
            }
            #expect(try get("share", "--type", "double") == "0.25\n")
            #expect(try get("share", "--type", "integer") == "0\n")
            #expect(try get("none", "--type", "boolean") == "false\n")
            #expect(try JSONValue(parsing: try get("none", "--json"))["missing"] == true)
            #expect(try bench.command("container", "get", "share", "--type", "date").code == 64)

            let published = try JSONValue(parsing: try contents(of: "\(bench.path)/runtime/values.json"))
            #expect(published["values"]?["greeting"] == "version 1")
            var status = stat()
            #expect(
                stat("\(bench.path)/runtime/values.json", &status) == 0 && status.st_mode & 0o777 == 0o644)
            try nginx.publish(try signed(document(2)))
            #expect(try refresh() == (0, "success"))
            try wait(.seconds(30), "the new values") {
                try contents(of: "\(bench.path)/runtime/values.json").contains("version 2")
            }
            let exported = try bench.command("container", "export", "GTM-1234", "--directory", bench.path)
            #expect(exported.code == 0)
            #expect(try contents(of: "\(bench.path)/GTM-1234") == document(2))
        }

        @Test(
            "tm06, tm10, tm15: a new version changes sampling, priority and interval without a restart, and loses no event"
        )
        func changedRules() throws {
            let rules = """
                ,
                 "rules": {"played": {"conditions": [{"macro": "event", "equals": "Video played"}]},
                           "bought": {"conditions": [{"macro": "event", "equals": "Bought"}]}},
                 "tags": [{"name": "fewer", "type": "sample", "rate": 0.1, "rules": ["played"]},
                          {"name": "first", "type": "prioritise", "priority": "critical", "rules": ["bought"]}]
                """
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            let process = bench.agent?.process
            try wait(.seconds(30), "version 1") { try container()["version"] == 1 }
            func events(_ numbers: Range<Int>) -> String {
                numbers.map { number in
                    let name = number % 10 == 0 ? "Bought" : "Video played"
                    return #"{"name":"\#(name)","properties":{"key":"e\#(number)"}}"# + "\n"
                }.joined()
            }
            try bench.append(events(0..<1000), to: "app.jsonl")
            try bench.waitUntilDelivered(1000)

            try nginx.publish(try signed(document(2, interval: "1s", rules)))
            #expect(try refresh() == (0, "success"))
            try wait(.seconds(30), "the new interval") {
                try bench.figures().value("spoolship_dispatch_interval_seconds") == 1
            }
            try bench.append(events(1000..<11_000), to: "app.jsonl")
            try wait(.seconds(60), "all read, and nothing waits: \(bench.agentLog.suffix(2000))") {
                let figures = try bench.figures()
                return figures.total("spoolship_events_read_total") == 11_000
                    && figures.total("spoolship_deliveries_queued") == 0
            }
            let figures = try bench.figures()
            #expect(figures.imbalances == [])
            let discarded = figures.value("spoolship_events_discarded_total{reason=\"GTM-1234/played\"}")
            // 9,000 of them at 90 %: seven standard deviations on each side.
            #expect((7_900...8_300).contains(discarded), "\(discarded)")
            #expect(figures.total("spoolship_deliveries_acknowledged_total") == 11_000 - discarded)
            let critical =
                "spoolship_deliveries_acknowledged_total{destination=\"main\",priority=\"critical\"}"
            #expect(figures.value(critical) == 1000)
            #expect(bench.agent?.process == process && bench.agent?.exitStatus() == nil)
            let arrived = values(of: "key", in: try bytes(of: bench.events))
            #expect(Set(arrived).count == arrived.count, "each once")
            #expect(
                Set(arrived).isSuperset(
                    of: (0..<11_000).filter { $0 < 1000 || $0 % 10 == 0 }.map { "e\($0)" }))
        }

        @Test("tm07: watch prints the beginning and end of each refresh as JSON lines")
        func watch() throws {
            try nginx.publish(try signed(document(1)))
            try bench.startAgent()
            try wait(.seconds(30), "version 1") { try container()["version"] == 1 }
            let watch = try RunningProgram(
                spoolship, ["container", "watch", "--count", "3", "--config", bench.configuration],
                output: "\(bench.path)/watch.log")
            // It may connect after a refresh, then the next one shows; or in the middle of one, whose end comes first.
            try wait(.seconds(60), "three lines: \(watch.printed)", every: .milliseconds(200)) {
                _ = try refresh()
                return watch.exitStatus() != nil
            }
            let all = watch.printed.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
            #expect(all.count == 3)
            let lines = all.drop { $0["event"] == "refresh_ended" }.prefix(2)
            #expect(lines.compactMap { $0["event"]?.string } == ["refresh_began", "refresh_ended"])
            #expect(lines.last?["type"] == "network" && lines.last?["result"] == "success")
        }
    }
}
