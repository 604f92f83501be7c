import Foundation
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Existing logs")
    struct ExistingLogsTests {
        /// A logger that appends: what it has written, byte for byte.
        private final class Writer {
            let path: String
            let line: (Int) -> String
            var written = ""
            private var count = 0

            init(_ path: String, _ line: @escaping (Int) -> String) {
                self.path = path
                self.line = line
            }

            func write(_ lines: Int) throws {
                let text = (0..<lines).map { line(count + $0) + "\n" }.joined()
                count += lines
                written += text
                let file = try #require(fopen(path, "a"))
                fputs(text, file)
                fclose(file)
            }
        }

        /// The second that all lines are logged in, before now: RFC 3339 without zone, and since 1970.
        private static let second = Int(Date().timeIntervalSince1970) - 60
        private static func time(_ separator: String) -> String {
            var (seconds, parts) = (second, tm())
            gmtime_r(&seconds, &parts)
            return String(
                format: "%04d-%02d-%02d\(separator)%02d:%02d:%02d", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday,
                parts.tm_hour, parts.tm_min, parts.tm_sec)
        }

        @Test(
            "nginx, PostgreSQL and pino with logrotate, kills and a full queue: each line once, with its own time"
        )
        func story() throws {
            let bench = try Workbench()
            let logs = "\(bench.path)/log"
            for name in ["", "/nginx", "/postgresql", "/shop"] {
                try #require(mkdir(logs + name, 0o755) == 0)
            }
            let day = Self.time("T")
            let writers = [
                Writer("\(logs)/nginx/access.log") {
                    #"{"time":"\#(day)+00:00","status":200,"request":"GET /\#($0) HTTP/1.1","key":"n\#($0)"}"#
                },
                Writer("\(logs)/postgresql/postgresql.json") {
                    #"{"timestamp":"\#(Self.time(" ")).123 UTC","pid":9,"error_severity":"LOG","message":"checkpoint","key":"p\#($0)"}"#
                },
                Writer("\(logs)/shop/app.log") {
                    let level = $0 % 50 == 7 ? 50 : 30
                    return
                        #"{"level":\#(level),"time":\#(Self.second)123,"pid":41,"msg":"request completed","key":"s\#($0)"}"#
                },
            ]
            // Ten lines of configuration.
            bench.settings["apps.nginx.read"] = #"["\#(logs)/nginx/*.log"]"#
            bench.settings["apps.postgresql.read"] = #"["\#(logs)/postgresql/*.json"]"#
            bench.settings["apps.shop.read"] = #"["\#(logs)/shop/*.log"]"#
            bench.settings["priorities.rule"] = #"[{ level = "error" }]"#
            bench.settings["queue.max_size"] = "\"1MiB\""
            try write(
                "\(logs)/*/*.log \(logs)/*/*.json {\n rotate 20\n create 0644\n missingok\n nocompress\n}\n",
                to: "\(bench.path)/logrotate.conf")
            try bench.startReceiver()
            try bench.stopReceiver()
            try bench.startAgent()
            for round in 0..<6 {
                for writer in writers { try writer.write(1_000) }
                switch round {
                case 1, 4:
                    let rotated = try run(
                        "/usr/sbin/logrotate",
                        ["-f", "-s", "\(bench.path)/logrotate.state", "\(bench.path)/logrotate.conf"])
                    #expect(rotated.code == 0, "\(rotated.text)")
                case 2:
                    // Until now nobody took anything, and the queue is small.
                    bench.killAgent()
                    try bench.startReceiver()
                    try bench.startAgent(waits: false)
                case 3:
                    bench.killAgent()
                    try bench.startAgent(waits: false)
                default: break
                }
            }
            try wait(.seconds(120), "all to arrive") {
                try bytes(of: bench.events).count { $0 == 0x0A } >= 18_000
            }
            try bench.expectOnce(
                Set(["n", "p", "s"].flatMap { name in (0..<6_000).map { "\(name)\($0)" } }), member: "key")
            for line in try contents(of: bench.events).split(separator: "\n") {
                let name =
                    line.contains(#""key":"n"#)
                    ? "nginx" : line.contains(#""key":"p"#) ? "postgresql" : "shop"
                let time = name == "nginx" ? "" : ".123"
                #expect(
                    line.contains(#""app":"\#(name)""#)
                        && line.contains(#""timestamp":"\#(day)\#(time == "" ? ".000" : time)Z""#),
                    "\(line)")
                guard line.contains(#""app":"\#(name)""#) else { return }
            }
            try bench.waitForAgent()
            #expect(
                try bench.figures().value(
                    #"spoolship_deliveries_acknowledged_total{destination="main",priority="critical"}"#) > 0)
            #expect(try bench.stopAgent() == 0)
            // Not one byte of the logs is changed.
            for writer in writers {
                let names = (1...20).reversed().map { "\(writer.path).\($0)" } + [writer.path]
                let kept = try names.filter { access($0, F_OK) == 0 }.map { try contents(of: $0) }.joined()
                #expect(kept == writer.written, "\(writer.path)")
            }
        }

        @Test("below `read` no file is opened for writing, created, renamed, linked, locked or removed")
        func systemCalls() throws {
            let bench = try Workbench()
            let logs = "\(bench.path)/log"
            try #require(mkdir(logs, 0o755) == 0)
            bench.settings["apps.shop.read"] = #"["\#(logs)/*.log"]"#
            try bench.startReceiver()
            let trace = "\(bench.path)/trace"
            try bench.startAgent(
                under: ["/usr/bin/strace", "-D", "-f", "-y", "-qq", "-o", trace, "-e", "trace=%file,%desc"])
            let writer = Writer("\(logs)/app.log") { #"{"level":30,"msg":"x","key":"k\#($0)"}"# }
            for round in 1...3 {
                try writer.write(200)
                try wait(.seconds(60), "all to arrive") {
                    try bytes(of: bench.events).count { $0 == 0x0A } >= round * 200
                }
                #expect(rename(writer.path, "\(logs)/app.log.\(round)") == 0)
            }
            try writer.write(1)
            #expect(unlink("\(logs)/app.log.1") == 0)
            try wait(.seconds(60), "the last") { try bytes(of: bench.events).count { $0 == 0x0A } >= 601 }
            #expect(try bench.stopAgent() == 0)
            let calls = try contents(of: trace).split(separator: "\n").filter { $0.contains(logs) }
            #expect(calls.contains { $0.contains("openat") && $0.contains("app.log") }, "\(calls.prefix(20))")
            let harmless = [
                "openat", "openat2", "read", "pread64", "close", "statx", "fstat", "newfstatat", "fstatfs",
                "statfs",
                "getdents64",
                "name_to_handle_at", "inotify_add_watch", "lseek", "access", "faccessat2", "readlink",
                "readlinkat",
                "epoll_ctl", "fadvise64", "dup", "fcntl", "write", "execve", "ioctl", "mmap",
            ]
            for call in calls {
                let text = call.drop { $0 == " " || $0.isNumber }
                let name = String(text.prefix { $0 != "(" && $0 != " " })
                let arguments = text.dropFirst(name.count)
                // What is written, to the log of the agent for one, may name them.
                let isWrite =
                    ["write", "pwrite64", "writev"].contains(name) && !arguments.hasPrefix("(\(logs)")
                #expect(harmless.contains(name) || isWrite || name.hasPrefix("<..."), "\(call)")
                #expect(
                    !["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "F_SETLEASE", "F_SETLK"].contains {
                        call.contains($0)
                    }, "\(call)")
                if name == "write" { #expect(!call.contains("<\(logs)"), "\(call)") }
            }
        }

        @Test("check --sample shows the fate of each line, and contacts no server")
        func sample() throws {
            let bench = try Workbench()
            let file = "\(bench.path)/app.log"
            bench.settings["apps.shop.read"] = #"["\#(bench.path)/*.log"]"#
            bench.settings["apps.shop.text"] = "\"quarantine\""
            try bench.configure()
            try write(
                #"{"level":50,"time":\#(Self.second)123,"msg":"a"}"# + "\n"
                    + #"{"name":"paid","severity":"warn"}"# + "\n\nno JSON\n" + #"{"ts":"never","msg":"b"}"#,
                to: file)
            func check(_ more: String...) throws -> (code: Int32, text: String) {
                let ran = try run(spoolship, ["check", "--config", bench.configuration, "--sample"] + more)
                return (ran.code, ran.text)
            }
            let shown = try check(file)
            #expect(shown.code == 0)
            for part in [
                "app shop\n4 lines: 3 record, 1 quarantined\n", "time   2 (none: when it was read), 1 time\n",
                "level  1 (none), 1 level, 1 severity\n", "name   3 log\n",
                "added  name, timestamp, app, host_name, observed_at, log.file.path, id\n",
                "1: record log \(Self.time("T")).123Z (time) error (level)\n", "4: quarantined, not_json: ",
            ] { #expect(shown.text.contains(part), "\(part) in \(shown.text)") }
            let json = try check(file, "--json").text
            #expect(json.contains(#"{"line":5,"fate":"record","name":"log""#), "\(json)")
            // A file that the configuration does not read, as if it did.
            try write("no JSON\n", to: "\(bench.path)/other.txt")
            let other = try check("\(bench.path)/other.txt").text
            #expect(
                other.contains("not read by this configuration") && other.contains("1 line: 1 record"),
                "\(other)")
            #expect(try check("\(bench.path)/none").code == 74)
            #expect(access("\(bench.state)/install_id", F_OK) != 0)
        }

        @Test("truncations are reported with app and member in status and log; blocks of text are one record")
        func cutsAndBlocks() throws {
            let bench = try Workbench()
            let logs = "\(bench.path)/log"
            try #require(mkdir(logs, 0o755) == 0)
            bench.settings["limits.property_value_length"] = "10"
            bench.settings["apps.shop.read"] = #"["\#(logs)/*.log"]"#
            bench.settings["apps.shop.text"] = "\"blocks\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(#"{"name":"a","properties":{"text":"longer than ten"}}"# + "\n", to: "app.jsonl")
            try bench.waitUntilDelivered(1)
            let status = try bench.command("status").text
            let told =
                "limits cut 1 names and values, of app default properties.text (limits.property_value_length)"
            #expect(status.contains(told), "\(status)")
            #expect(
                bench.agentLog.contains(
                    "limits cut events app=default member=properties.text limit=limits.property_value_length"),
                "\(bench.agentLog)")
            let writer = Writer("\(logs)/app.log") { $0 == 0 ? "Traceback:" : "  at line \($0)" }
            for _ in 0..<5 {
                try writer.write(1)
                usleep(50_000)
            }
            try bench.waitUntilDelivered(2)
            let arrived = try contents(of: bench.events)
            #expect(arrived.contains(#"{"message":"Traceback:\n  at line 1\n  at line 2"#), "\(arrived)")
            #expect(try bench.stopAgent() == 0)
        }
    }
}
