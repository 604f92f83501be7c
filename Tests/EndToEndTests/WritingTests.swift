import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Destinations that are not servers")
    struct WritingTests {
        private func bench(_ type: String) throws -> Workbench {
            let bench = try Workbench()
            for key in ["destination.url", "destination.tls.ca_file"] { bench.settings[key] = nil }
            bench.settings["destination.type"] = "\"\(type)\""
            return bench
        }

        @Test("type = file: each event is in the files, through rotation and kills")
        func file() throws {
            let bench = try bench("file")
            let out = "\(bench.path)/out.jsonl"
            bench.settings["destination.path"] = "\"\(out)\""
            #expect(try bench.command("check").code != 64)
            try bench.startAgent()
            try bench.append(keyed(0..<500), to: "app.jsonl")
            try bench.waitUntilDelivered(500)
            try #require(rename(out, out + ".1") == 0)
            try bench.append(keyed(500..<900), to: "app.jsonl")
            try bench.waitUntilDelivered(900)
            let before =
                values(of: "key", in: try bytes(of: out + ".1")) + values(of: "key", in: try bytes(of: out))
            #expect(before.count == 900 && Set(before) == Set((0..<900).map { "e\($0)" }))
            #expect(try bench.command("status", "--json").text.contains(out))

            try bench.append(keyed(900..<20_000), to: "app.jsonl")
            try wait(.seconds(30), "the first of many", every: .milliseconds(1)) {
                try bench.figures().total("spoolship_deliveries_acknowledged_total") > 1000
            }
            bench.killAgent()
            try bench.startAgent()
            try wait(.seconds(60), "all to be written", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_events_read_total") == 20_000
                    && figures.total("spoolship_deliveries_queued") == 0
            }
            try bench.expectBalance()
            let keys = values(of: "key", in: try bytes(of: out))
            #expect(Set(keys) == Set((500..<20_000).map { "e\($0)" }))
            // A kill in the midst of a write may cut one line, which is then ended by itself.
            let lines = try contents(of: out).split(separator: "\n")
            #expect(lines.count { !$0.hasPrefix("{\"name\":") || !$0.hasSuffix("}") } <= 1)
        }

        @Test(
            "type = file on a full disk: no line is torn or lost, and it recovers by itself",
            .enabled(if: getuid() == 0, "NOT TESTED: needs root to mount a small disk"))
        func fault08_fullDisk() throws {
            let bench = try bench("file")
            let small = "\(bench.path)/small"
            try #require(mkdir(small, 0o755) == 0)
            let mounted = try run("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", small])
            try #require(mounted.code == 0, "\(mounted)")
            defer {
                bench.killAgent()
                _ = try? run("umount", [small])
            }
            bench.settings["destination.path"] = "\"\(small)/out.jsonl\""
            bench.settings["retry.intervals"] = #"["200ms", "200ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startAgent()
            try bench.append(keyed(0..<5000), to: "app.jsonl")
            try wait(.seconds(30), "the disk to be full: \(bench.agentLog)") {
                try bench.figures().total("spoolship_delivery_failures_total") > 0
            }
            #expect(bench.agentLog.contains("no space left on device"), "\(bench.agentLog)")
            try #require(try run("mount", ["-o", "remount,size=64m", small]).code == 0)
            try bench.waitUntilDelivered(5000)
            let keys = values(of: "key", in: try bytes(of: "\(small)/out.jsonl"))
            #expect(keys.count == 5000 && Set(keys).count == 5000)
        }

        @Test("type = stdout: the output is the events, one each line, and nothing else")
        func stdout() throws {
            let bench = try bench("stdout")
            try bench.configure()
            let out = "\(bench.path)/stdout"
            let agent = try RunningProgram(
                "sh",
                [
                    "-c",
                    "exec '\(spoolship)' run --config '\(bench.configuration)' 2>'\(bench.path)/agent.log'",
                ],
                output: out)
            try bench.waitForAgent()
            try bench.append(keyed(0..<2000), to: "app.jsonl")
            try bench.waitUntilDelivered(2000)
            agent.send(SIGTERM)
            #expect(try agent.exit() == 0)
            let lines = try contents(of: out).split(separator: "\n")
            #expect(
                lines.count == 2000 && lines.allSatisfy { $0.hasPrefix("{\"name\":") && $0.hasSuffix("}") })
            #expect(Set(values(of: "key", in: try bytes(of: out))) == Set((0..<2000).map { "e\($0)" }))
        }
    }
}
