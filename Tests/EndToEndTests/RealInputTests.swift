import EventLoops
import Glibc
import Testing

extension EndToEnd {
    @Suite("Real input")
    struct RealInputTests {
        @Test(
            "every request that nginx answered arrives once, through three rotations and a kill of the agent"
        )
        func nginxAccessLogUnderLoad() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            let nginx = try LoggingNginx(in: bench.path, log: "\(bench.spool)/access.log")
            // The body of each answer is the id of its request.
            let answers = ["\(bench.path)/answers.1", "\(bench.path)/answers.2"]
            let each = 6000
            let clients = try answers.map { output in
                try RunningProgram(
                    "curl", ["-s", "--noproxy", "*", "http://127.0.0.1:\(nginx.port)/shop/[1-\(each)]"],
                    output: output)
            }
            func answered() throws -> Int { try answers.reduce(0) { try $0 + bytes(of: $1).count / 33 } }
            for rotation in 1...3 {
                try wait(.seconds(60), "a quarter of the load") { try answered() >= rotation * each / 2 }
                try nginx.rotate(to: "\(bench.spool)/access.log.\(rotation)")
                if rotation == 2 {
                    try wait(.seconds(30), "some of it in the queue") {
                        try bench.figures().total("spoolship_events_read_total") > 0
                    }
                    bench.killAgent()
                    try bench.startAgent(waits: false)
                }
            }
            for client in clients { #expect(try client.exit(within: .seconds(60)) == 0) }
            nginx.stop()
            try bench.waitForAgent()
            try bench.waitUntilDelivered(2 * each)
            var ids: Set<String> = []
            for file in answers {
                ids.formUnion(try contents(of: file).split(separator: "\n").map { String($0) })
            }
            #expect(ids.count == 2 * each)
            try bench.expectOnce(ids, member: "request_id")
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "records of this machine, dropped as files in many forms, arrive once, and the files are removed")
        func recordsOfTheMachine() throws {
            let bench = try Workbench()
            bench.settings["apps.journal.default_event_name"] = "\"journal record\""
            try bench.startReceiver()
            try bench.startAgent()
            let form =
                #"{"name":"package","package":"${binary:Package}","properties":{"version":"${Version}"}}\n"#
            let listed = try run("dpkg-query", ["-W", "-f", form])
            try #require(listed.code == 0)
            let packages = listed.text.split(separator: "\n")
            try #require(packages.count > 20)
            // Some alone, some in one pretty-printed array, the rest as lines in packed files.
            let (alone, others) = (packages.prefix(10), packages.dropFirst(10))
            let (array, packed) = (others.prefix(others.count / 2), others.dropFirst(others.count / 2))
            for (number, package) in alone.enumerated() {
                try bench.drop(String(package), as: "package-\(number).json")
            }
            let pretty = array.map {
                "  " + $0.replacing("{", with: "{\n    ").replacing(",\"", with: ",\r\n    \"")
            }
            try bench.drop("[\n" + pretty.joined(separator: ",\n") + "\n]\n", as: "packages.json")
            for (lines, tool, ending) in [
                (packed.prefix(packed.count / 2), "gzip", "gz"),
                (packed.dropFirst(packed.count / 2), "zstd", "zst"),
            ] {
                let name = "\(tool).jsonl"
                try write(lines.map { $0 + "\n" }.joined(), to: "\(bench.path)/\(name)")
                try #require(try run(tool, ["-q", "\(bench.path)/\(name)"]).code == 0)
                try #require(
                    rename("\(bench.path)/\(name).\(ending)", "\(bench.spool)/\(name).\(ending)") == 0)
            }

            // What the kernel says of its memory, in the form of `journalctl -o json`.
            try #require(mkdir("\(bench.spool)/journal", 0o755) == 0)
            let now = SystemTime().wallTime.nanoseconds / 1000
            let records = try contents(of: "/proc/meminfo").split(separator: "\n").enumerated().map {
                number, line in
                #"{"__CURSOR":"c\#(number)","__REALTIME_TIMESTAMP":"\#(now)","PRIORITY":"6","MESSAGE":"\#(line)"}"#
            }
            try bench.drop(records.map { $0 + "\n" }.joined(), as: "journal/boot.jsonl")

            try bench.waitUntilDelivered(packages.count + records.count)
            try bench.expectOnce(Set(values(of: "package", in: Array(listed.text.utf8))), member: "package")
            try bench.expectOnce(Set(records.indices.map { "c\($0)" }), member: "__CURSOR")
            let stored = try contents(of: bench.events)
            #expect(stored.contains(#""name":"journal record""#))
            #expect(
                stored.contains(#""__REALTIME_TIMESTAMP":"\#(now)""#),
                "members of the record travel untouched")
            try wait(.seconds(30), "the drop files to go") {
                try run("find", [bench.spool, "-name", "*.json*", "-not", "-name", "boot.jsonl"]).text.isEmpty
            }
        }
    }
}
