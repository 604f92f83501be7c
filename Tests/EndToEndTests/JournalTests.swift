import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("The journal")
    struct JournalTests {
        @Test(
            "entries arrive once, with severity, through rotations, three kills and a queue that is too small"
        )
        func onceThroughKills() throws {
            let daemon = try JournalDaemon()
            let bench = try Workbench()
            bench.settings["apps.system.journal"] = "true"
            bench.settings["apps.system.journal_directory"] = "\"\(daemon.directory)\""
            bench.settings["apps.system.journal_since"] = "\"beginning\""
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["dispatch.interval"] = "\"1s\""
            bench.settings["priorities.rule"] = #"[{ level = "error" }]"#
            try daemon.write((0..<500).map { "before \($0)" })
            try bench.startReceiver()
            try bench.startAgent(waits: false)
            var keys: Set<String> = []
            for round in 0..<4 {
                // Some messages are JSON objects, some are larger than the queue's commits.
                let fill = String(repeating: "x", count: round == 2 ? 9000 : 40)
                let names = (0..<400).map { "r\(round)-\($0)" }
                keys.formUnion(names)
                try daemon.write(
                    names.map { #"{"key":"\#($0)","text":"\#(fill)"}"# }, priority: round == 1 ? 3 : 6)
                try daemon.ask("--rotate")
                guard round < 3 else { continue }
                try wait(.seconds(60), "some of the round to arrive") {
                    try bytes(of: bench.events).count > 20_000 * (round + 1)
                }
                bench.killAgent()
                try bench.startAgent(waits: false)
            }
            try bench.waitForAgent()
            try bench.waitForOnce(keys, member: "key", within: .seconds(120))
            let text = try contents(of: bench.events).split(separator: "\n")
            #expect(
                Set((0..<500).filter { n in text.contains { $0.contains("\"before \(n)\"") } }).count == 500)
            let figures = try bench.figures()
            let critical = #"spoolship_deliveries_acknowledged_total{destination="main",priority="critical"}"#
            #expect(figures.value(critical) == 400)
            #expect(figures.value(#"spoolship_journal_readable{app="system"}"#) == 1)
            #expect(figures.value(#"spoolship_journal_gaps_total{app="system"}"#) == 0)
            let status = try bench.command("status").text
            #expect(status.contains("of the journal in \(daemon.directory) for system"), "\(status)")
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        @Test("entries of two machines in one directory arrive once, through kills and a small queue")
        func severalMachines() throws {
            let bench = try Workbench()
            let directory = "\(bench.path)/remote"
            #expect(mkdir(directory, 0o755) == 0)
            bench.settings["apps.system.journal"] = "true"
            bench.settings["apps.system.journal_directory"] = "\"\(directory)\""
            bench.settings["apps.system.journal_since"] = "\"beginning\""
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["dispatch.interval"] = "\"1s\""
            try bench.startReceiver()
            try bench.startAgent(waits: false)
            var keys: Set<String> = []
            for round in 0..<3 {
                // The second machine's clock is right, but what it writes comes an hour late.
                for (machine, second) in [("a", 43_200), ("b", 39_600)] {
                    let names = (0..<60).map { "\(machine)\(round)-\($0)" }
                    let fill = String(repeating: "x", count: 200)
                    try JournalDaemon.makeFile(
                        "\(directory)/remote-\(machine).journal",
                        names.map { (second + 60 * round, #"{"key":"\#($0)","text":"\#(fill)"}"#) },
                        boot: "\(machine)1", uptime: 60 * round)
                    keys.formUnion(names)
                }
                try wait(.seconds(60), "some of the round to arrive") {
                    try values(of: "key", in: bytes(of: bench.events)).count >= keys.count - 60
                }
                guard round < 2 else { continue }
                bench.killAgent()
                try bench.startAgent(waits: false)
            }
            try bench.waitForAgent()
            try bench.waitForOnce(keys, member: "key", within: .seconds(60))
            #expect(try bench.figures().value(#"spoolship_journal_gaps_total{app="system"}"#) == 0)
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "a journal on a hanging file system is named and blocks nothing else; it is read once it answers",
            .enabled(if: SilentFileSystem.isPossible))
        func hangs() throws {
            let bench = try Workbench()
            for name in ["a", "b"] {
                let directory = "\(bench.path)/\(name)"
                try #require(mkdir(directory, 0o755) == 0)
                bench.settings["apps.j\(name).journal"] = "true"
                bench.settings["apps.j\(name).journal_directory"] = "\"\(directory)\""
                bench.settings["apps.j\(name).journal_since"] = "\"beginning\""
            }
            func write(_ name: String, _ number: Int) throws {
                try JournalDaemon.makeFile(
                    "\(bench.path)/\(name)/\(name).journal", [(43_200 + number, "\(name) \(number)")],
                    uptime: number)
            }
            func expect(_ message: String) throws {
                try wait(.seconds(60), "\(message): \(bench.agentLog.suffix(2000))") {
                    try contents(of: bench.events).contains("\"\(message)\"")
                }
            }
            /// All that tells of it, while the other journal and the spool are read.
            func expectHang(_ number: Int) throws {
                try wait(.seconds(60), "the journal to be named", every: .milliseconds(100)) {
                    let ready = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
                    return ready.status == 503
                        && ready.body.contains("the journal of jb loop has not answered")
                        && ready.body.contains("it waits for \(bench.path)/b: does that file system hang?")
                }
                let figures = try bench.figures()
                #expect(figures.value(#"spoolship_journal_readable{app="jb"}"#) == 0)
                #expect(figures.value(#"spoolship_journal_readable{app="ja"}"#) == 1)
                let status = try bench.command("status").text
                let line = "\(bench.path)/b for jb; not read: its file system does not answer"
                #expect(status.contains(line), "\(status)")
                try write("a", number)
                try expect("a \(number)")
                try bench.append(keyed(number..<number + 1), to: "app.jsonl")
                try expect("e\(number)")
                #expect(try bench.command("reload").code == 0)
            }
            try bench.startReceiver()
            try bench.startAgent()
            for name in ["a", "b"] {
                try write(name, 1)
                try expect("\(name) 1")
            }
            let silent = try #require(SilentFileSystem(over: "\(bench.path)/b"))
            defer { silent.end() }
            try expectHang(2)
            #expect(bench.agentLog.contains("reason=\"the journal of jb loop has not answered"))
            #expect(try bench.stopAgent() == 0)

            let check = try run(spoolship, ["check", "--config", bench.configuration]).text
            #expect(
                check.contains("apps.jb.journal cannot be read: its file system does not answer"), "\(check)")
            try bench.startAgent()
            try expectHang(3)
            silent.end()
            try write("b", 2)
            try expect("b 2")
            #expect(try fetch("http://127.0.0.1:\(bench.statsPort)/readyz").status == 200)
            #expect(try bench.figures().value(#"spoolship_journal_readable{app="jb"}"#) == 1)
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "entries removed unread are reported; a missing journal is reported by check, status and a metric"
        )
        func gapAndMissing() throws {
            let daemon = try JournalDaemon()
            let bench = try Workbench()
            bench.settings["apps.system.journal"] = "true"
            bench.settings["apps.system.journal_directory"] = "\"\(daemon.directory)\""
            bench.settings["apps.system.journal_since"] = "\"beginning\""
            try daemon.write(["one"])
            try bench.startReceiver()
            try bench.startAgent()
            try wait(.seconds(60), "the first entry") { try contents(of: bench.events).contains("\"one\"") }
            #expect(try bench.stopAgent() == 0)
            try daemon.write(["two", "three"])
            try daemon.ask("--rotate")
            try daemon.write(["four"])
            try daemon.ask("--vacuum-files=1")
            try bench.startAgent()
            try wait(.seconds(60), "what is left") { try contents(of: bench.events).contains("\"four\"") }
            #expect(try bench.figures().value(#"spoolship_journal_gaps_total{app="system"}"#) == 1)
            #expect(
                try bench.command("status").text.contains(
                    "entries were removed before they were read, 1 time"))
            #expect(try bench.stopAgent() == 0)

            bench.settings["apps.system.journal_directory"] = "\"\(bench.path)/nowhere\""
            try bench.configure()
            let check = try run(spoolship, ["check", "--config", bench.configuration])
            #expect(check.text.contains("there is no directory \(bench.path)/nowhere"), "\(check)")
            try bench.startAgent()
            try wait(.seconds(30), "the journal to be missed") {
                try bench.figures().value(#"spoolship_journal_readable{app="system"}"#) == 0
            }
            #expect(try bench.command("status").text.contains("not read: there is no directory"))
        }
    }
}
