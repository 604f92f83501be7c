import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// Each alert's cause is brought about on a real agent; a real Prometheus must say so, and stop saying so.
    @Suite("Alerts, live")
    struct LiveAlertTests {
        private func reload(_ bench: Workbench) throws {
            try bench.configure()
            let answer = try bench.command("reload")
            #expect(answer.code == 0, "\(answer)")
        }

        /// A queue of a few dozen KiB that nothing compresses.
        private func small(_ bench: Workbench) {
            bench.settings["queue.max_size"] = "\"128KiB\""
            bench.settings["queue.compression"] = "\"none\""
        }

        @Test("every alert is triggered here, fires, and resolves")
        func everyAlertIsHere() throws {
            let tests = "\(GoldenFile.root)/Tests/EndToEndTests/Alerts"
            let source = try [
                "LiveAlertTests", "LiveContainerAlertTests", "LiveFleetTests", "LiveMachineAlertTests",
            ]
            .map {
                try contents(of: "\(tests)/\($0).swift")
            }
            .joined().split(whereSeparator: \.isWhitespace).joined(separator: " ")
            .replacing("expect( ", with: "expect(")
            let rules = try contents(of: "\(GoldenFile.root)/monitoring/alerts.yml")
            let names = rules.split(separator: "\n").compactMap { line -> Substring? in
                let text = line.drop { $0 == " " }
                return text.hasPrefix("- alert: ") ? text.dropFirst(9) : nil
            }
            #expect(names.count > 30)
            for word in ["fires", "resolves"] {
                let calls = source.split(separator: "expect(\(word): ").dropFirst().map {
                    $0.prefix { $0 != ")" }
                }
                for name in names {
                    #expect(calls.contains { $0.contains("\"\(name)\"") }, "\(name) never \(word)")
                }
            }
            let fast = FastRules.transform(rules)
            #expect(!fast.contains("[1h]") && !fast.contains("for: 5m") && fast.contains("[60s]"))
            // Only times were changed.
            #expect(fast.split(separator: "\n").count == rules.split(separator: "\n").count)
        }

        @Test(
            "alerts fire for lines that do not match an app's format, and for invalid lines that begin like JSON"
        )
        func textLines() throws {
            let bench = try Workbench()
            bench.settings["apps.web.read"] = #"["\#(bench.path)/web*.log"]"#
            bench.settings["apps.web.parse"] = "\"klog\""
            bench.settings["apps.cut.read"] = #"["\#(bench.path)/cut*.log"]"#
            bench.settings["apps.cut.text"] = "\"lines\""
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            func write(_ number: Int, klog: String, json: String) throws {
                let before = try prometheus.samples(of: "spoolship_app_events_total")
                for (name, line) in [("web", klog), ("cut", json)] {
                    let text = String(repeating: line + "\n", count: 10)
                    try WholeFile.replace(
                        "\(bench.path)/\(name)\(number).log", with: Array(text.utf8), mode: 0o644)
                }
                try wait(.seconds(30), "the lines to be scraped") {
                    let now = try prometheus.samples(of: "spoolship_app_events_total")
                    return !now.isEmpty && now != before
                }
            }
            try write(1, klog: "I1129 10:00:00.000000       1 main.go:7] well", json: #"{"msg":"well"}"#)
            for number in 2...3 { try write(number, klog: "nothing of klog", json: #"{"msg":"cut"#) }
            try prometheus.expect(fires: "SpoolshipLinesNotParsed", "SpoolshipBrokenJSON")
            try prometheus.expect(resolves: "SpoolshipLinesNotParsed", "SpoolshipBrokenJSON")
        }

        @Test("alerts fire while the agent is down, and while it restarts repeatedly")
        func downAndRestarts() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            bench.killAgent()
            try prometheus.expect(fires: "SpoolshipDown")
            try bench.startAgent()
            try prometheus.expect(resolves: "SpoolshipDown")
            for _ in 0..<5 {
                let before = try prometheus.samples(of: "process_start_time_seconds")
                bench.killAgent()
                try bench.startAgent()
                try wait(.seconds(30), "the next start to be scraped") {
                    let now = try prometheus.samples(of: "process_start_time_seconds")
                    return !now.isEmpty && now != before
                }
            }
            try prometheus.expect(fires: "SpoolshipRestartsOften")
            try prometheus.expect(resolves: "SpoolshipRestartsOften")
        }

        @Test("without a destination the agent is not ready and alerts; with one, all resolves")
        func noDestination() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let destination = bench.settings.filter { $0.key.hasPrefix("destination") }
            for key in destination.keys { bench.settings[key] = nil }
            try bench.append(keyed(0..<60), to: "app.jsonl")
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try prometheus.expect(fires: "SpoolshipNoDestination", "SpoolshipNotReady", "SpoolshipSpoolLag")
            let page = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
            #expect(page.status == 503 && page.body.contains("no destination is configured"), "\(page)")
            let status = try bench.command("status").text
            #expect(status.contains("not ready") && !status.contains("everything is read"), "\(status)")
            #expect(status.contains("unread, oldest") && status.contains("1 file in"), "\(status)")
            bench.settings.merge(destination) { $1 }
            try reload(bench)
            try bench.waitUntilDelivered(60)
            try prometheus.expect(
                resolves: "SpoolshipNoDestination", "SpoolshipNotReady", "SpoolshipSpoolLag")

            // None for one app: its events are discarded, and that is no green light either.
            bench.settings["apps.shop.destinations"] = "[]"
            try reload(bench)
            try #require(mkdir("\(bench.spool)/shop", 0o755) == 0)
            try bench.append(keyed(60..<70), to: "shop/app.jsonl")
            try prometheus.expect(fires: "SpoolshipNoDestination", "SpoolshipNotReady")
            let why = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
            #expect(
                why.body.contains("10 events discarded since the last reload: no destination wants them"),
                "\(why)")
            bench.settings["apps.shop.destinations"] = "[\"main\"]"
            try reload(bench)
            try prometheus.expect(resolves: "SpoolshipNoDestination", "SpoolshipNotReady")
        }

        @Test("a destination that refuses is held, and its alerts resolve when it accepts again")
        func held() throws {
            let bench = try Workbench()
            bench.settings["retry.probe_interval"] = "\"10s\""
            try bench.startReceiver("--fail", "401")
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            // A new destination that has acknowledged nothing yet is no reason for an alert.
            let quiet = try prometheus.alerts()
            // Whether this machine's clock is synchronised is not asked here.
            let named = quiet.firing.union(quiet.pending).subtracting(["SpoolshipClockUnsynchronised"])
            #expect(named.isEmpty, "\(quiet.text)")
            try bench.append(keyed(0..<20), to: "app.jsonl")
            try prometheus.expect(
                fires: "SpoolshipDestinationHeld", "SpoolshipNotReady", "SpoolshipNothingAcknowledged")
            try bench.stopReceiver()
            try bench.startReceiver()
            #expect(try bench.command("resume").code == 0)
            try bench.waitUntilDelivered(20)
            try prometheus.expect(
                resolves: "SpoolshipDestinationHeld", "SpoolshipNotReady", "SpoolshipNothingAcknowledged")
        }

        @Test("a destination that does not answer is failing, and its alert resolves when it is back")
        func failing() throws {
            let bench = try Workbench()
            bench.settings["retry.intervals"] = #"["200ms"]"#
            bench.settings["retry.probe_interval"] = "\"10s\""
            try bench.startReceiver()
            try bench.stopReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try bench.append(keyed(0..<20), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipDestinationFailing")
            try bench.startReceiver()
            #expect(try bench.command("resume").code == 0)
            try bench.waitUntilDelivered(20)
            try prometheus.expect(resolves: "SpoolshipDestinationFailing")
        }

        @Test(
            "a queue that fills during a pause fires an alert at each step, and so does an unread file's removal"
        )
        func fullQueue() throws {
            let bench = try Workbench()
            small(bench)
            bench.settings["spool.max_open_files"] = "16"
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            let prometheus = try LivePrometheus(bench)
            try prometheus.expect(fires: "SpoolshipSwitchedOff")
            try bench.append(keyed(0..<1000), to: "app.jsonl")
            try bench.append(keyed(1000..<9000), to: "app.jsonl")
            try prometheus.expect(
                fires: "SpoolshipQueueFullSoon", "SpoolshipQueueNearlyFull", "SpoolshipReadingWaits",
                "SpoolshipSpoolLag")
            // What is open is read although it has no name any more: more files than may be open.
            let late = (0..<60).map { "late\($0).jsonl" }
            for name in late { try bench.append(keyed(9000..<9010), to: name) }
            try wait(.seconds(30), "the late files to be seen") {
                try bench.figures().value(#"spoolship_spool_files{kind="append"}"#) > late.count
            }
            for name in late { try #require(unlink("\(bench.spool)/\(name)") == 0) }
            #expect(try bench.command("resume").code == 0)
            try prometheus.expect(fires: "SpoolshipSpoolBytesGivenUp")
            try prometheus.expect(
                resolves: "SpoolshipSwitchedOff", "SpoolshipQueueFullSoon", "SpoolshipQueueNearlyFull",
                "SpoolshipReadingWaits", "SpoolshipSpoolLag", "SpoolshipSpoolBytesGivenUp")
        }

        @Test("ac11: the alert of a limit below the stored size fires until there is room and a reload")
        func refusedCap() throws {
            let bench = try Workbench()
            bench.settings["queue.compression"] = "\"none\""
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<2000), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 2000
            }
            bench.settings["queue.max_size"] = "\"24KiB\""
            try bench.configure()
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent()
            try prometheus.expect(fires: "SpoolshipQueueCapRefused")
            #expect(try bench.command("resume").code == 0)
            #expect(try bench.command("drain").code == 0)
            try reload(bench)
            try prometheus.expect(resolves: "SpoolshipQueueCapRefused")
        }

        @Test("an alert fires for new events that a receiver takes for repeats")
        func unexpectedRepeats() throws {
            let bench = try Workbench()
            let server = """
                import http.server, json, sys
                class Bulk(http.server.BaseHTTPRequestHandler):
                    protocol_version = "HTTP/1.1"
                    def log_message(self, *words): pass
                    def do_POST(self):
                        body = self.rfile.read(int(self.headers["Content-Length"]))
                        items = [{"create": {"_id": "1", "status": 409}}] * (body.count(b"\\n") // 2)
                        answer = json.dumps({"errors": True, "items": items}).encode()
                        self.send_response(200)
                        self.send_header("Content-Length", str(len(answer)))
                        self.end_headers()
                        self.wfile.write(answer)
                http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Bulk).serve_forever()
                """
            let receiver = try RunningProgram(
                "python3", ["-c", server, "\(bench.receiverPort)"], output: "\(bench.path)/receiver.log")
            defer { receiver.kill9() }
            bench.settings["destination.url"] = "\"http://127.0.0.1:\(bench.receiverPort)/_bulk\""
            bench.settings["destination.format"] = "\"elasticsearch\""
            bench.settings["destination.compression"] = "\"none\""
            bench.settings["destination.tls.ca_file"] = nil
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipUnexpectedRepeats")
            try prometheus.expect(resolves: "SpoolshipUnexpectedRepeats")
        }

        @Test("alerts fire for events that are evicted, refused, quarantined, rejected or skipped")
        func notTaken() throws {
            let bench = try Workbench()
            small(bench)
            bench.settings["spool.when_full"] = "\"evict\""
            bench.settings["spool.quarantine_max_size"] = "\"64KiB\""
            bench.settings["limits.event_names"] = "2"
            // Quoted: an id of the agent's may have these digits in it.
            try bench.startReceiver("--marker", #""e9055""#)
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(10)
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(10..<6000), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipEventsEvicted")
            #expect(try bench.command("resume").code == 0)
            try prometheus.expect(resolves: "SpoolshipEventsEvicted")

            try bench.append(keyed(9000..<9100), to: "app.jsonl")
            try bench.append("no event\n", to: "app.jsonl")
            try bench.append("{\"name\":\"one too many\"}\n{\"name\":\"two too many\"}\n", to: "app.jsonl")
            try #require(symlink("/etc/passwd", "\(bench.spool)/link.jsonl") == 0)
            try prometheus.expect(
                fires: "SpoolshipDeadLetters", "SpoolshipQuarantine", "SpoolshipEventsRefused",
                "SpoolshipFilesRefused")
            try #require(unlink("\(bench.spool)/link.jsonl") == 0)
            try prometheus.expect(
                resolves: "SpoolshipDeadLetters", "SpoolshipQuarantine", "SpoolshipEventsRefused",
                "SpoolshipFilesRefused")

            // More bad lines than the quarantine holds.
            try bench.append(String(repeating: "no event\n", count: 4000), to: "bad.jsonl.1")
            try prometheus.expect(fires: "SpoolshipFilesStay")
            try #require(unlink("\(bench.spool)/bad.jsonl.1") == 0)
            try wait(.seconds(60), "the file to be forgotten") {
                try bench.command("quarantine", "retry", "--files").code == 0
                    && bench.figures().value("spoolship_spool_files_staying") == 0
            }
            try prometheus.expect(resolves: "SpoolshipFilesStay")
        }

        @Test(
            "OTLP: if some events of a batch are rejected without being named, an alert and status report the loss"
        )
        func unnamedRejections() throws {
            let bench = try Workbench()
            let certificates = try Certificates(in: bench.path)
            try certificates.issue("\(bench.path)/server")
            let receiver = try FaultyReceiver(
                in: bench.path, certificate: "\(bench.path)/server", store: bench.events,
                faults: ["partial-success"])
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(receiver.port)/v1/logs\""
            bench.settings["destination.format"] = "\"otlp\""
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try bench.append(keyed(0..<20), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipUnnamedRejections")
            let status = try bench.command("status").text
            #expect(
                status.contains(
                    "  3 events rejected without being named, and lost since the start; it says: too old"),
                "\(status)")
            #expect(!bench.agentLog.contains("too old"))
            try prometheus.expect(resolves: "SpoolshipUnnamedRejections")
        }

        /// Runs a program as the unit does, where `ProtectClock=` forbids to ask the kernel for its clock: then the agent judges
        /// by itself, and a machine without a time service, such as this one, can be trusted.
        private static let protectClock = """
            import ctypes, os, struct, sys
            calls = {"x86_64": (159, 305), "aarch64": (171, 266)}[os.uname().machine]
            def step(code, yes, no, value): return struct.pack("HBBI", code, yes, no, value)
            steps = [step(0x20, 0, 0, 0), step(0x15, 1, 0, calls[0]), step(0x15, 0, 1, calls[1]),
                     step(0x06, 0, 0, 0x00050001), step(0x06, 0, 0, 0x7fff0000)]
            code = ctypes.create_string_buffer(b"".join(steps))
            class Program(ctypes.Structure):
                _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
            program = Program(len(steps), ctypes.addressof(code))
            libc = ctypes.CDLL(None)
            assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
            os.execv(sys.argv[1], sys.argv[1:])
            """

        @Test("an alert fires for events that are too old")
        func expired() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            // A clock gets the machine's first ten minutes to become right.
            try wait(.seconds(620), "the machine to be up for ten minutes", every: .seconds(1)) {
                SystemTime().bootTime > BootInstant(nanoseconds: 601_000_000_000)
            }
            try bench.startAgent(under: ["python3", "-c", LiveAlertTests.protectClock])
            let prometheus = try LivePrometheus(bench)
            try bench.append("{\"name\":\"old\",\"timestamp\":\"2020-01-01T00:00:00Z\"}\n", to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipEventsExpired")
            try prometheus.expect(resolves: "SpoolshipEventsExpired")
        }

        @Test(
            "alerts fire for a mistake in the configuration, and for a renamed destination with waiting events"
        )
        func configuration() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            bench.settings["dispatch.batch_events"] = "\"many\""
            try bench.configure()
            #expect(try bench.command("reload").code != 0)
            try prometheus.expect(fires: "SpoolshipReloadFailed")
            bench.settings["dispatch.batch_events"] = nil
            try reload(bench)
            try prometheus.expect(resolves: "SpoolshipReloadFailed")

            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<30), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 30
            }
            bench.settings["destination.name"] = "\"other\""
            try bench.configure()
            let warning = "30 events wait for destination main, which is not in the configuration"
            let check = try bench.command("check")
            #expect(check.code == 0 && check.text.contains(warning), "\(check)")
            let reloaded = try bench.command("reload")
            #expect(reloaded.code == 0 && reloaded.text.contains(warning), "\(reloaded)")
            try prometheus.expect(fires: "SpoolshipOrphanedEvents")
            let command = "spoolship queue purge --destination main"
            #expect(try bench.command("status").text.contains(command))
            let purged = try bench.command("queue", "purge", "--destination", "main", "--yes")
            #expect(purged.code == 0 && purged.text == "30 removed\n", "\(purged)")
            try prometheus.expect(resolves: "SpoolshipOrphanedEvents")
            #expect(try !bench.command("status").text.contains("main"))
            #expect(try !bench.command("check").text.contains("main"))
            try bench.expectBalance()
        }

        @Test("after a rename during an outage, batches that wait for a retry can be removed with the others")
        func renamedWhileFailing() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.stopReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<30), to: "app.jsonl")
            try wait(.seconds(30), "a failed delivery") { bench.agentLog.contains("delivery failed") }
            bench.settings["destination.name"] = "\"other\""
            try reload(bench)
            let purged = try bench.command("queue", "purge", "--destination", "main", "--yes")
            #expect(purged.code == 0 && purged.text == "30 removed\n", "\(purged)")
            try bench.expectBalance()
        }

        @Test(
            "alerts fire for a ledger that does not balance, a damaged queue, and an unwritable spool state")
        func damage() throws {
            let bench = try Workbench()
            bench.settings["dispatch.interval"] = "\"off\""
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try bench.append(keyed(0..<200), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 200
            }
            // In both copies: one alone is a damaged page, and put right at the start.
            func count(_ wrong: Int, _ right: Int) throws {
                #expect(try bench.stopAgent() == 0)
                let script = """
                    import sqlite3, sys
                    d = sqlite3.connect(sys.argv[1])
                    for sql in sys.argv[2:]: assert d.execute(sql).rowcount == 1
                    d.commit()
                    """
                let result = try run(
                    "python3",
                    [
                        "-c", script, "\(bench.state)/queue.sqlite",
                        "UPDATE ledger SET accepted = \(right) WHERE queued = 200 AND accepted = \(wrong)",
                        "UPDATE total SET copy = replace(copy, ' \(wrong) 0 0', ' \(right) 0 0')",
                    ])
                try #require(result.code == 0, "\(result)")
                try bench.startAgent()
            }
            try count(200, 205)
            try prometheus.expect(fires: "SpoolshipLedgerUnbalanced")
            try count(205, 200)
            try prometheus.expect(resolves: "SpoolshipLedgerUnbalanced")

            #expect(try bench.stopAgent() == 0)
            let database = "\(bench.state)/queue.sqlite"
            var damaged = try bytes(of: database)
            for place in 100..<4000 { damaged[place] = 0xA5 }
            try write(damaged, to: database)
            try bench.startAgent()
            try prometheus.expect(fires: "SpoolshipEventsLost")
            try prometheus.expect(resolves: "SpoolshipEventsLost")

            let notice = "\(bench.spool)/.spoolship"
            // The lock against a second agent is in there too.
            try #require(
                unlink("\(notice)/state") == 0 && unlink("\(notice)/lock") == 0 && rmdir(notice) == 0)
            try write("in the way\n", to: notice)
            #expect(try bench.command("disable", "--yes").code == 0)
            try prometheus.expect(fires: "SpoolshipPersistenceFailing")
            try #require(unlink(notice) == 0)
            #expect(try bench.command("enable").code == 0)
            try prometheus.expect(resolves: "SpoolshipPersistenceFailing")
        }

        @Test(
            "the alert of a server certificate that expires soon comes from the handshake, and resolves on renewal"
        )
        func certificate() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let certificates = try Certificates(in: bench.path)
            let server = "\(bench.path)/server"
            try certificates.issue(server, until: .seconds(5 * 86_400))
            let nginx = try TLSNginx(in: bench.path, certificate: server, before: bench.receiverPort)
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(nginx.port)/\""
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipCertificateExpires")
            let series =
                #"spoolship_destination_certificate_expiry_timestamp_seconds{destination="main",certificate="server"}"#
            let wall = Int(SystemTime().wallTime.milliseconds / 1000)
            #expect(abs(try bench.figures().value(series) - wall - 5 * 86_400) < 600)
            let serial = try nginx.serial()
            try certificates.issue(server, until: .seconds(90 * 86_400))
            nginx.reload()
            try wait(.seconds(30), "nginx to show another certificate") { try nginx.serial() != serial }
            var next = 10
            // Connections that are open may go on for a while: the certificate shows with the next one.
            try wait(.seconds(60), "the new certificate to be seen", every: .milliseconds(500)) {
                try bench.append(keyed(next..<next + 10), to: "app.jsonl")
                next += 10
                return try bench.figures().value(series) > wall + 80 * 86_400
            }
            try prometheus.expect(resolves: "SpoolshipCertificateExpires")
        }

        @Test("the alert of a deadline fires at the first event that misses it")
        func deadline() throws {
            let bench = try Workbench()
            bench.settings["deadline.name"] = "\"reports\""
            bench.settings["deadline.time_zone"] = "\"UTC\""
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            let time = SystemTime().wallTime - .seconds(3 * 86_400)
            try bench.append("{\"name\":\"sale\",\"timestamp\":\"\(time)\"}\n", to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipDeadlineMissed")
            try prometheus.expect(resolves: "SpoolshipDeadlineMissed")
        }
    }
}
