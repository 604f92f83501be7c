import EventLoops
import Glibc
import Testing

extension EndToEnd {
    @Suite("check and a start")
    struct CheckTests {
        /// The exit codes of `check` and of a start with the same configuration.
        private func codes(_ bench: Workbench) throws -> (check: Int32, text: String, run: Int32, log: String)
        {
            try bench.configure()
            let check = try bench.command("check")
            let agent = try RunningProgram(
                spoolship, ["run", "--config", bench.configuration], output: "\(bench.path)/try.log")
            defer { agent.kill9() }
            let before = agent.printed.utf8.count
            try wait(.seconds(30), "the agent to start or to end") {
                try agent.exitStatus() != nil || bench.command("status", "--quiet").code < 2
            }
            return (
                check.code, check.text, agent.exitStatus() ?? 0,
                String(agent.printed.utf8.dropFirst(before)) ?? ""
            )
        }

        @Test("check refuses what a start refuses, with the line, and accepts what a start accepts")
        func fault22_checkDoesNotLie() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<2000), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 2000
            }
            #expect(try bench.stopAgent() == 0)
            try write("short key", to: "\(bench.path)/short.key")
            chmod("\(bench.path)/short.key", 0o600)
            try write(#"{"id":"GTM-1","version":1}"#, to: "\(bench.path)/GTM-1")
            mkdir("\(bench.path)/schemas", 0o755)
            try write(#"{"oneOf":[]}"#, to: "\(bench.path)/schemas/a.json")
            bench.settings["container.id"] = "\"GTM-1\""
            bench.settings["container.default_file"] = "\"\(bench.path)/GTM-1\""
            for (setting, value, says) in [
                ("destination.url", "\"http://192.0.2.1/\"", "use https"),
                ("agent.state_directory", "\"/proc/none\"", "does not exist"),
                ("destination.tls.ca_file", "\"/none\"", "no such file"),
                (
                    "schemas.directory", "\"\(bench.path)/schemas\"",
                    "a.json: /oneOf: the keyword is not supported"
                ),
                (
                    "container.hash_key", "\"file:\(bench.path)/none.key\"",
                    "none.key cannot be read: no such file"
                ),
                ("container.hash_key", "\"file:\(bench.path)/short.key\"", "short.key holds 9 bytes"),
            ] {
                let right = bench.settings[setting]
                bench.settings[setting] = value
                let found = try codes(bench)
                #expect(found.check == 78 && found.text.contains(says), "\(setting): \(found.text)")
                #expect(found.text.contains(".toml:"), "\(found.text)")
                #expect(found.run != 0, "\(setting): the agent started")
                bench.settings[setting] = right
            }
            let good = try codes(bench)
            #expect(good.check == 0 && good.run == 0, "\(good)")
        }

        @Test(
            "ac11: a limit below the stored size stops no start: check and start warn, status shows the one in force"
        )
        func ac11_capBelowStored() throws {
            let bench = try Workbench()
            bench.settings["queue.compression"] = "\"none\""
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<2000), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 2000
            }
            func expectWarning() throws {
                let check = try bench.command("check")
                #expect(
                    check.code == 0 && check.text.contains("a start continues with the cap"), "\(check)"
                )
                #expect(check.text.contains(".toml:"), "\(check)")
            }
            bench.settings["queue.max_size"] = "\"24KiB\""
            try bench.configure()
            try expectWarning()
            #expect(try bench.stopAgent() == 0)
            try expectWarning()
            try bench.startAgent()
            try expectWarning()
            #expect(
                bench.agentLog.contains("queue.max_size is below the size stored, the old one stays in force")
            )
            let figures = try bench.figures()
            #expect(figures.total("spoolship_queue_max_size_refused") == 1)
            #expect(figures.total("spoolship_queue_max_bytes") == 256 << 20)
            #expect(figures.total("spoolship_deliveries_queued") == 2000)
            let status = try bench.command("status")
            #expect(status.text.contains("the old one, 268435456 bytes, stays in force"), "\(status)")
            let reload = try bench.command("reload")
            #expect(
                reload.code != 0 && reload.text.contains("are stored; give at least that much"), "\(reload)")
            #expect(try bench.command("resume").code == 0)
            #expect(try bench.command("drain").code == 0)
            #expect(bench.receiverFigure("events") == 2000)
            let fits = try bench.command("reload")
            #expect(fits.code == 0 && fits.text == "queue.max_size 256MiB -> 24KiB\n", "\(fits)")
            #expect(try bench.command("reload").text == "nothing has changed\n")
            #expect(try bench.figures().total("spoolship_queue_max_size_refused") == 0)
            #expect(try bench.figures().total("spoolship_queue_max_bytes") == 24 << 10)
        }

        @Test("--connect opens a connection to each destination and sends nothing")
        func fault22_connect() throws {
            let bench = try Workbench()
            try bench.configure()
            try bench.startReceiver()
            let reached = try bench.command("check", "--connect")
            #expect(reached.code == 0 && reached.text.contains("main: connected in"), "\(reached)")
            // Asking for this figure is a request, and batches are counted apart.
            #expect(bench.receiverFigure("batches") == 0)
            try bench.stopReceiver()
            let refused = try bench.command("check", "--connect")
            #expect(refused.code == 75 && refused.text.contains("connection refused"), "\(refused)")
            #expect(refused.text.contains("\(bench.configuration):"), "\(refused)")
            let json = try bench.command("check", "--connect", "--json")
            #expect(
                json.code == 75 && json.text.contains(#""destination":"main","connected":false"#), "\(json)")
            #expect(try bench.command("check", "--connect", "--text-only").code == 64)
        }

        @Test("--connect --send sends each destination one test event and shows the answer")
        func connectAndSend() throws {
            let bench = try Workbench()
            bench.settings["destination2.name"] = "\"copy\""
            bench.settings["destination2.type"] = "\"file\""
            bench.settings["destination2.path"] = "\"\(bench.path)/copy.jsonl\""
            try bench.configure()
            try bench.startReceiver()
            let sent = try bench.command("check", "--connect", "--send")
            #expect(sent.code == 0 && sent.text.contains("main: test event acknowledged in"), "\(sent)")
            #expect(sent.text.contains("main: answer 200"), "\(sent)")
            #expect(bench.receiverFigure("events") == 1)
            let copy = try contents(of: "\(bench.path)/copy.jsonl")
            #expect(copy.contains(#""name":"spoolship_test","app":"spoolship""#), "\(copy)")
            #expect(try contents(of: bench.events).contains(#""name":"spoolship_test""#))
            bench.settings["destination.accept.body"] = "\"never said\""
            try bench.configure()
            let refused = try bench.command("check", "--connect", "--send")
            #expect(
                refused.code == 75 && refused.text.contains("test event not acknowledged in"), "\(refused)")
            #expect(refused.text.contains("lacks the text of accept.body"), "\(refused)")
            let json = try bench.command("check", "--connect", "--send", "--json")
            #expect(json.code == 75 && json.text.contains(#""test":{"acknowledged":false,"#), "\(json)")
            #expect(json.text.contains(#""answers":[{"status":200,"body":"#), "\(json)")
            #expect(json.text.contains(#""test":{"acknowledged":true,"#), "\(json)")
            #expect(try bench.command("check", "--send").code == 64)
        }

        private static let asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

        /// What `check` as root says of an agent that runs as nobody, and what a start as nobody does.
        private func expectAgreement(
            _ bench: Workbench, _ phrase: String, sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let check = try bench.command("check", "--user", "nobody")
            let words = CheckTests.asNobody + [spoolship, "run", "--config", bench.configuration]
            let agent = try RunningProgram(
                words[0], Array(words.dropFirst()), output: "\(bench.path)/try.log")
            let code = try agent.exit()
            #expect(
                check.code == 78 && check.text.contains(phrase), "\(check)", sourceLocation: sourceLocation)
            #expect(code != 0, "\(agent.printed)", sourceLocation: sourceLocation)
        }

        @Test(
            "check by root uses the rights of the agent: a file that only root may read is a mistake",
            .enabled(if: getuid() == 0))
        func fault22_agentsEyes() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.configure()
            for path in [bench.path, "\(bench.path)/receiver"] { chmod(path, 0o755) }
            for path in [bench.path, bench.state, bench.spool] { chown(path, 65534, 65534) }
            chmod(bench.caFile, 0o644)
            #expect(try bench.command("check", "--user", "nobody").code == 0)
            // umask 027, and a file that root wrote.
            mkdir("\(bench.path)/conf.d", 0o755)
            let part = "\(bench.path)/conf.d/main.toml"
            try write("[queue]\nmax_size = \"20MiB\"\n", to: part)
            chmod(part, 0o600)
            #expect(try bench.command("check", "--user", "root").code == 0)
            try expectAgreement(
                bench,
                "\(part) cannot be read: Permission denied; user nobody may not read it (owner root:root, mode 0600"
            )
            chmod(part, 0o644)
            chmod("\(bench.path)/conf.d", 0o700)
            try expectAgreement(bench, "cannot list \(bench.path)/conf.d")
            chmod("\(bench.path)/conf.d", 0o755)
            chmod(bench.caFile, 0o600)
            try expectAgreement(bench, "cannot be read by user nobody (owner root, mode 0600)")
            chmod(bench.caFile, 0o644)
            chmod("\(bench.path)/receiver", 0o700)
            try expectAgreement(bench, "is in \(bench.path)/receiver, which user nobody may not search")
            chmod("\(bench.path)/receiver", 0o755)
            chown(bench.state, 0, 0)
            try expectAgreement(bench, "cannot be read, written and entered by user nobody")
            chmod(bench.state, 0o700)
            let closed = try bench.command("check", "--user", "nobody").text
            #expect(closed.contains("run check as root") && !closed.contains("queue.sqlite"), "\(closed)")
            chown(bench.state, 65534, 65534)
            mkdir("\(bench.path)/logs", 0o755)
            for name in ["a.log", "b.log", "b.log.1.gz", "c.txt"] {
                try write("x\n", to: "\(bench.path)/logs/\(name)")
                chmod("\(bench.path)/logs/\(name)", 0o600)
            }
            bench.settings["apps.web.read"] = "[\"\(bench.path)/logs/*.log*\"]"
            try bench.configure()
            let unread = try bench.command("check", "--user", "nobody")
            #expect(
                unread.code == 0
                    && unread.text.contains(
                        "warning: apps.web.read \(bench.path)/logs/a.log cannot be read by user nobody (owner root, mode 0600); nor can 1 more files"
                    ), "\(unread)")
            bench.settings["apps.web.read"] = nil
            try bench.configure()
            mkdir("\(bench.spool)/shop", 0o700)
            let warned = try bench.command("check", "--user", "nobody")
            #expect(warned.code == 0 && warned.text.contains("its files are not shipped"), "\(warned)")
            #expect(try bench.command("check", "--user", "no-such-user").code == 64)
        }

        @Test("for a foreign or newer queue check and start end with 78, and systemd does not restart")
        func newerQueue() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.stopAgent() == 0)
            for (pragma, phrase) in [
                ("user_version = 99", "was written by a newer version (schema 99"),
                ("application_id = 7", "is not Spoolship's queue"),
            ] {
                let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA \(pragma)')"
                try #require(try run("python3", ["-c", script, "\(bench.state)/queue.sqlite"]).code == 0)
                let found = try codes(bench)
                #expect(found.check == 78 && found.text.contains(phrase), "\(found)")
                #expect(found.run == 78 && found.log.contains(phrase), "\(found)")
            }
        }
    }
}
