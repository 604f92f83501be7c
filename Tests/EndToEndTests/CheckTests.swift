import EventLoops
import Glibc
import Testing

extension EndToEnd {
    @Suite("check, against what a start does")
    struct CheckTests {
        /// The exit codes of `check` and of a start with the same configuration.
        private func codes(_ bench: Workbench) throws -> (check: Int32, text: String, run: Int32, log: String) {
            try bench.configure()
            let check = try bench.command("check")
            let agent = try RunningProgram(
                spoolship, ["run", "--config", bench.configuration], output: "\(bench.path)/try.log")
            defer { agent.kill9() }
            let before = agent.printed.utf8.count
            try wait(.seconds(30), "the agent to start or to end") {
                try agent.exitStatus() != nil || bench.command("status", "--quiet").code < 2
            }
            return (check.code, check.text, agent.exitStatus() ?? 0, String(agent.printed.utf8.dropFirst(before)) ?? "")
        }

        @Test("fault22: what a start refuses, check refuses, with the line; what it takes, check calls good")
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
            for (setting, value, says) in [
                ("queue.max_size", "\"24KiB\"", "are stored; give at least that much"),
                ("destination.url", "\"http://192.0.2.1/\"", "use https"),
                ("agent.state_directory", "\"/proc/none\"", "does not exist"),
                ("destination.tls.ca_file", "\"/none\"", "no such file"),
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

        @Test("fault22: --connect opens a connection to each destination and sends nothing")
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
            #expect(json.code == 75 && json.text.contains(#""destination":"main","connected":false"#), "\(json)")
            #expect(try bench.command("check", "--connect", "--text-only").code == 64)
        }
    }
}
