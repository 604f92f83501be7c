import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Files read in place")
    struct PlaceTests {
        @Test(
            "nginx's own logs: each request arrives once, through three rotations and two kills; no byte is changed"
        )
        func nginxElsewhere() throws {
            let bench = try Workbench()
            let logs = "\(bench.path)/logs"
            try #require(mkdir(logs, 0o755) == 0)
            bench.settings["apps.web.read"] = #"["\#(logs)/*.log"]"#
            try bench.startReceiver()
            try bench.startAgent()
            let nginx = try LoggingNginx(in: bench.path, log: "\(logs)/access.log")
            let answers = "\(bench.path)/answers"
            let requests = 6000
            let client = try RunningProgram(
                "curl", ["-s", "--noproxy", "*", "http://127.0.0.1:\(nginx.port)/shop/[1-\(requests)]"],
                output: answers
            )
            for rotation in 1...3 {
                try wait(.seconds(60), "a quarter of the load") {
                    try bytes(of: answers).count / 33 >= rotation * requests / 4
                }
                try nginx.rotate(to: "\(logs)/access.log.\(rotation)")
                guard rotation != 2 else { continue }
                bench.killAgent()
                try bench.startAgent(waits: false)
            }
            #expect(try client.exit(within: .seconds(60)) == 0)
            nginx.stop()
            try bench.waitForAgent()
            let ids = Set(try contents(of: answers).split(separator: "\n").map { String($0) })
            try wait(.seconds(60), "all to arrive") {
                values(of: "request_id", in: try bytes(of: bench.events)).count >= requests
            }
            try bench.expectOnce(ids, member: "request_id")
            let left = try run("ls", [logs]).text.split(separator: "\n").sorted()
            #expect(left == ["access.log", "access.log.1", "access.log.2", "access.log.3"])
            let kept = try left.reduce(0) {
                try $0 + contents(of: "\(logs)/\($1)").split(separator: "\n").count
            }
            #expect(kept == requests)
            let status = try bench.command("status").text
            #expect(status.contains("4 files, 0 B unread in \(logs) for web"), "\(status)")
            let arrived =
                try contents(of: bench.events).split(separator: "\n").first { $0.contains("request_id") }
                ?? ""
            #expect(
                arrived.contains(#""app":"web""#) && !arrived.contains("session_id")
                    && !arrived.contains("device"))
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "forty apps with files in place and the time zone share one inotify instance; the spool has its own"
        )
        func instances() throws {
            let bench = try Workbench()
            try #require(mkdir("\(bench.path)/logs", 0o755) == 0)
            for app in 0..<40 {
                try #require(mkdir("\(bench.path)/logs/\(app)", 0o755) == 0)
                bench.settings["apps.a\(app).read"] = #"["\#(bench.path)/logs/\#(app)/*.log"]"#
            }
            try bench.startReceiver()
            try bench.startAgent()
            for app in 0..<40 {
                let file = try #require(fopen("\(bench.path)/logs/\(app)/x.log", "w"))
                fputs("{\"name\":\"line\",\"app\":\(app)}\n", file)
                fclose(file)
            }
            try wait(.seconds(60), "a line of each app") {
                try bytes(of: bench.events).count { $0 == 0x0A } >= 40
            }
            let process = try #require(bench.agent).process
            let open = try run("sh", ["-c", "readlink /proc/\(process)/fd/*"]).text.split(separator: "\n")
            #expect(open.count { $0 == "anon_inode:inotify" } == 2, "\(open)")
            #expect(try bench.stopAgent() == 0)
        }

        @Test("a directory created later, text between JSON lines, and critical errors first")
        func laterAndText() throws {
            let bench = try Workbench()
            let logs = "\(bench.path)/later"
            bench.settings["apps.shop.read"] = #"["\#(logs)/*/app.log"]"#
            bench.settings["priorities.rule"] = #"[{ level = "error" }]"#
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("status").text.contains("no such directory yet"))
            for name in ["", "/one"] { try #require(mkdir(logs + name, 0o755) == 0) }
            let lines = [
                #"{"level":30,"time":1795168800123,"msg":"fine","key":"a"}"#, "Traceback: a line of text",
                #"{"level":50,"time":1795168800124,"msg":"broken","key":"b"}"#,
            ]
            let file = try #require(fopen("\(logs)/one/app.log", "w"))
            fputs(lines.joined(separator: "\n") + "\n", file)
            fclose(file)
            try wait(.seconds(60), "three records") {
                try bytes(of: bench.events).count { $0 == 0x0A } >= 3
            }
            let arrived = try contents(of: bench.events).split(separator: "\n")
            #expect(
                arrived.contains {
                    $0.hasPrefix(#"{"message":"Traceback: a line of text","name":"log","app":"shop""#)
                })
            #expect(
                try bench.figures().value(
                    #"spoolship_deliveries_acknowledged_total{destination="main",priority="critical"}"#) == 1)
            try bench.expectBalance()
        }

        @Test("a first try destroys nothing: bad lines beyond the quarantine's bound stay in their files")
        func firstTry() throws {
            let bench = try Workbench()
            bench.settings["spool.quarantine_max_size"] = "\"64KiB\""
            bench.settings["queue.max_size"] = "\"64MiB\""
            try bench.startReceiver()
            try bench.startAgent()
            // Six rotated files and a drop file; every tenth line is an event, the others are text.
            func lines(_ file: Int) -> String {
                (0..<2_000).map { line in
                    let key = "k\(file)-\(line)"
                    return line % 10 == 0 ? "{\"name\":\"good\",\"key\":\"\(key)\"}\n" : "text of \(key)\n"
                }.joined()
            }
            for file in 0..<6 { try bench.append(lines(file), to: "app.jsonl.\(file + 1)") }
            try bench.waitUntilDelivered(12_000, quarantined: 10_800)
            let apps = try bench.command("status", "--apps").text.split(separator: "\n").map { line in
                line.split(separator: " ").map(String.init)
            }
            #expect(apps.count == 2 && apps[1].prefix(3) == ["default", "1,200", "0"], "\(apps)")
            #expect(apps[1].contains("10,800") && apps[1].last == "ago", "\(apps)")
            try wait(.seconds(60), "the agent to say that files stay") {
                try bench.figures().value("spoolship_spool_files_staying") >= 5
            }
            bench.killAgent()
            try bench.startAgent()
            let status = try bench.command("status").text
            #expect(
                status.contains("read and not removed") && status.contains("quarantine retry --files"),
                "\(status)")
            let left = try (0..<6).reduce(into: "") { text, file in
                let name = "\(bench.spool)/app.jsonl.\(file + 1)"
                if access(name, F_OK) == 0 { text += try contents(of: name) }
            }
            let kept = try bench.command("quarantine", "export").text
            for file in 0..<6 {
                for line in 0..<2_000 where line % 10 > 0 {
                    let text = "text of k\(file)-\(line)"
                    guard !left.contains(text + "\n"), !kept.contains(text) else { continue }
                    Issue.record("lost: \(text)")
                    return
                }
            }
            // The setting that was missing: each line becomes a record, once.
            _ = try bench.stopAgent()
            bench.settings["apps.default.text"] = "\"lines\""
            try bench.startAgent()
            #expect(try bench.command("quarantine", "retry").code == 0)
            let again = try bench.command("quarantine", "retry", "--files")
            #expect(again.code == 0, "\(again)")
            // Each line that was refused is read once more.
            try bench.waitUntilDelivered(22_800, quarantined: 10_800)
            let texts = try contents(of: bench.events).split(separator: "\n").compactMap { line in
                line.firstRange(of: "text of k").map { String(line[$0.lowerBound...].prefix { $0 != "\"" }) }
            }
            #expect(texts.count == 10_800 && Set(texts).count == 10_800)
            try wait(.seconds(60), "the files to go") {
                try bench.figures().value("spoolship_spool_files_staying") == 0
                    && (0..<6).allSatisfy { access("\(bench.spool)/app.jsonl.\($0 + 1)", F_OK) != 0 }
            }
            try bench.expectBalance()
        }

        @Test(
            "a directory in `read` is followed when it is removed and made again, moved, or replaced by a link"
        )
        func followed() throws {
            let bench = try Workbench()
            func append(_ range: Range<Int>, _ file: String) throws {
                let old = (try? contents(of: file)) ?? ""
                try WholeFile.replace(file, with: Array((old + keyed(range)).utf8), mode: 0o644)
            }
            func make(_ directory: String) throws {
                try #require(try run("mkdir", ["-p", directory]).code == 0)
            }
            let top = "\(bench.path)/top"
            for release in 1...2 { try make("\(bench.path)/releases/\(release)/logs") }
            try make("\(top)/logs")
            let link = "\(bench.path)/current"
            try #require(symlink("releases/1", link) == 0)
            bench.settings["apps.one.read"] = "[\"\(top)/logs/*.log\"]"
            bench.settings["apps.two.read"] = "[\"\(link)/logs/*.log\"]"
            try append(0..<10, "\(top)/logs/a.log")
            try append(10..<20, "\(bench.path)/releases/1/logs/a.log")
            try bench.startReceiver()
            try bench.startAgent()
            try bench.waitUntilDelivered(20)
            try #require(try run("rm", ["-r", "\(top)/logs"]).code == 0)
            try make("\(top)/logs")
            try append(20..<30, "\(top)/logs/a.log")
            try #require(unlink(link) == 0 && symlink("releases/2", link) == 0)
            try append(30..<40, "\(bench.path)/releases/2/logs/a.log")
            try bench.waitUntilDelivered(40)
            try #require(rename(top, "\(bench.path)/old") == 0)
            try wait(.seconds(40), "status to say that it is not there") {
                try bench.command("status").text.contains("it cannot be opened in \(top)/logs")
            }
            try make("\(top)/logs")
            try append(40..<50, "\(top)/logs/a.log")
            try bench.waitUntilDelivered(50)
            try bench.expectOnce(Set((0..<50).map { "e\($0)" }), member: "key")
            try bench.expectBalance()
        }

        @Test("a file is read once: overlapping patterns of an app are merged, those of two apps are refused")
        func meetingPatterns() throws {
            let bench = try Workbench()
            let logs = "\(bench.path)/logs"
            for directory in [logs, "\(logs)/web"] { try #require(mkdir(directory, 0o755) == 0) }
            try #require(symlink(logs, "\(bench.path)/link") == 0)
            try #require(symlink(bench.spool, "\(bench.path)/inside") == 0)
            try bench.startReceiver()
            for (one, two, words) in [
                ("\(logs)/web/*.log", "\(logs)/*/*.log", "overlaps that of"),
                ("\(logs)/web/a*.log", "\(bench.path)/link/web/*b.log", "overlaps that of"),
                ("\(bench.path)/inside/*.log", "\(logs)/x/*.log", "reaches into \(bench.spool)"),
            ] {
                bench.settings["apps.one.read"] = "[\"\(one)\"]"
                bench.settings["apps.two.read"] = "[\"\(two)\"]"
                try bench.configure()
                for command in ["check", "run"] {
                    let answer = try run(spoolship, [command, "--config", bench.configuration])
                    #expect(answer.code == 78 && answer.text.contains(words), "\(command): \(answer)")
                }
            }
            bench.settings["apps.two.read"] = nil
            bench.settings["apps.one.read"] = "[\"\(logs)/*/*.log\", \"\(logs)/web/*.log\"]"
            try WholeFile.replace("\(logs)/web/a.log", with: Array(keyed(0..<100).utf8), mode: 0o644)
            try bench.startAgent()
            try bench.waitUntilDelivered(100)
            try bench.expectOnce(Set((0..<100).map { "e\($0)" }), member: "key")
            try bench.expectBalance()
        }

        @Test(
            "nothing is sent of a file that a user's link points to, and check, status and log say so",
            .enabled(if: getuid() == 0, "giving a link away takes root"))
        func turnedLink() throws {
            let bench = try Workbench()
            let (home, secret) = ("\(bench.path)/home", "\(bench.path)/secret")
            for directory in [home, "\(home)/log", secret] { try #require(mkdir(directory, 0o755) == 0) }
            for path in [home, "\(home)/log"] { try #require(chown(path, 23_002, 23_002) == 0) }
            bench.settings["apps.ann.read"] = "[\"\(home)/log/*.log\", \"\(home)/log/*.jsonl\"]"
            try WholeFile.replace("\(home)/log/a.log", with: Array(keyed(0..<10).utf8), mode: 0o644)
            try WholeFile.replace("\(secret)/auth.log", with: Array(keyed(10..<20).utf8), mode: 0o640)
            try bench.startReceiver()
            try bench.startAgent()
            try bench.waitUntilDelivered(10)
            try #require(rename("\(home)/log", "\(home)/log.old") == 0)
            try #require(symlink(secret, "\(home)/log") == 0 && lchown("\(home)/log", 23_002, 23_002) == 0)
            let words = "the link \(home)/log is not followed"
            try wait(.seconds(40), "status to say so") { try bench.command("status").text.contains(words) }
            let check = try run(spoolship, ["check", "--config", bench.configuration])
            #expect(check.text.contains("apps.ann.read") && check.text.contains(words), "\(check)")
            #expect(bench.agentLog.contains("file refused path=\(home)/log reason=symbolic_link"))
            // Another app's spool, which its user may not read.
            try #require(mkdir("\(bench.spool)/other", 0o755) == 0)
            try #require(unlink("\(home)/log") == 0 && symlink("\(bench.spool)/other", "\(home)/log") == 0)
            try #require(lchown("\(home)/log", 23_002, 23_002) == 0)
            try bench.append(keyed(20..<30), to: "other/o.jsonl")
            try bench.waitUntilDelivered(20)
            // To the user's own directory there: a start goes on, without it.
            try #require(chown("\(bench.spool)/other", 23_002, 23_002) == 0)
            bench.killAgent()
            try bench.startAgent()
            let conflict = "reaches into \(bench.spool), which is the agent's own"
            try wait(.seconds(40), "status to say so") { try bench.command("status").text.contains(conflict) }
            try #require(unlink("\(home)/log") == 0 && rename("\(home)/log.old", "\(home)/log") == 0)
            try WholeFile.replace("\(home)/log/b.log", with: Array(keyed(30..<40).utf8), mode: 0o644)
            try bench.waitUntilDelivered(30)
            let expected = Set((Array(0..<10) + Array(20..<40)).map { "e\($0)" })
            try bench.expectOnce(expected, member: "key")
            #expect(!(try bench.command("status").text.contains(conflict)))
            try bench.expectBalance()
        }

        @Test(
            "hanging file systems delay neither check nor a start",
            .enabled(if: SilentFileSystem.isPossible))
        func silentMounts() throws {
            let bench = try Workbench()
            let (home, logs) = ("\(bench.path)/home", "\(bench.path)/logs")
            for directory in [home, "\(home)/log", logs, "\(bench.spool)/bad", "\(bench.spool)/app"] {
                try #require(mkdir(directory, 0o755) == 0)
            }
            let mounts = try [home, "\(bench.spool)/bad"].map { try #require(SilentFileSystem(over: $0)) }
            defer { for mount in mounts { mount.end() } }
            bench.settings["apps.ann.read"] = "[\"\(home)/log/*.log\"]"
            bench.settings["apps.web.read"] = "[\"\(logs)/*.log\"]"
            try WholeFile.replace("\(logs)/a.log", with: Array(keyed(0..<10).utf8), mode: 0o644)
            try bench.startReceiver()
            try bench.configure()
            let check = try run(spoolship, ["check", "--config", bench.configuration])
            #expect(check.code == 0, "\(check)")
            try bench.startAgent()
            try bench.append(keyed(10..<20), to: "app/o.jsonl")
            try bench.waitUntilDelivered(20)
            try wait(.seconds(40), "status to say so") {
                let status = try bench.command("status").text
                return status.contains("\(home)/log (owner root): its file system does not answer")
                    && status.contains("another file system is mounted here")
            }
            try bench.expectOnce(Set((0..<20).map { "e\($0)" }), member: "key")
        }

        @Test("a directory that was never a spool is refused by check and start")
        func foreignDirectory() throws {
            let bench = try Workbench()
            try #require(rmdir("\(bench.spool)/.spoolship") == 0)
            try bench.append("{\"log\":\"x\"}\n", to: "container-json.log")
            try bench.startReceiver()
            try bench.configure()
            let check = try run(spoolship, ["check", "--config", bench.configuration])
            #expect(check.code == 78 && check.text.contains("and no .spoolship directory"), "\(check)")
            let start = try run(spoolship, ["run", "--config", bench.configuration])
            #expect(start.code == 78 && access("\(bench.spool)/container-json.log", F_OK) == 0, "\(start)")
            bench.settings["spool.after_read"] = "\"delete\""
            try bench.startAgent()
            try bench.waitUntilDelivered(1)
        }
    }
}
