import EventLoops
import Glibc
import Testing

extension EndToEnd {
    @Suite("A running agent")
    struct RunningAgentTests {
        @Test("an idle agent makes no context switch in 20 seconds, and answers afterwards")
        func idleMeansIdle() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<1), to: "app.jsonl")
            try bench.waitUntilDelivered(1)
            let process = try #require(bench.agent).process
            // What follows a delivery (the connection's end, removals, the database's log) may take its time.
            var before = try contextSwitches(of: process)
            var quietSince = SystemTime().bootTime
            try wait(.seconds(60), "an agent that is quiet for 20 s", every: .milliseconds(500)) {
                let now = try contextSwitches(of: process)
                if now > before + 2 { (before, quietSince) = (now, SystemTime().bootTime) }
                return SystemTime().bootTime - quietSince >= .seconds(20)
            }
            #expect(try bench.command("status", "--quiet").code == 0)
            #expect(try contextSwitches(of: process) > before, "the count does not count")
        }

        @Test("the agent uses three threads and one for file requests, and no thread pool that wakes up")
        func threeThreads() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<2000), to: "app.jsonl")
            try bench.waitUntilDelivered(2000)
            let names = try run("sh", ["-c", "cat /proc/\(#require(bench.agent).process)/task/*/comm"]).text
            #expect(
                names.split(separator: "\n").sorted() == ["files", "reader", "spoolship", "store"], "\(names)"
            )
        }

        @Test("the metrics pass promtool, and health and readiness are reported")
        func metricsAndHealth() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<10) + "no event\n", to: "app.jsonl")
            try bench.waitUntilDelivered(11, quarantined: 1)
            let page = try fetch("http://127.0.0.1:\(bench.statsPort)/metrics")
            try write(page.body, to: "\(bench.path)/metrics")
            let check = try RunningProgram(
                "promtool", ["check", "metrics"], output: "\(bench.path)/promtool",
                input: "\(bench.path)/metrics")
            #expect(try check.exit() == 0, "\(check.printed)")
            #expect(check.printed.isEmpty, "\(check.printed)")
            #expect(try fetch("http://127.0.0.1:\(bench.statsPort)/healthz").status == 200)
            let ready = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
            #expect(ready.status == 200, "\(ready.body)")
            #expect(try bench.figures().value("spoolship_ready") == 1)
        }

        /// How often the threads of a process have been switched to or from.
        private func contextSwitches(of process: pid_t) throws -> Int {
            let directory = try #require(opendir("/proc/\(process)/task"))
            defer { closedir(directory) }
            var sum = 0
            while let entry = readdir(directory) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                guard Int(name) != nil else { continue }
                for line in try contents(of: "/proc/\(process)/task/\(name)/status").split(separator: "\n")
                where line.contains("ctxt_switches:") {
                    sum += Int(line.split(separator: "\t").last ?? "") ?? 0
                }
            }
            return sum
        }
    }
}
