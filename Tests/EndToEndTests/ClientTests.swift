import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    @Suite("The client library and a running agent")
    struct ClientTests {
        /// How many events: 50,000, or what `SPOOLSHIP_CLIENT_EVENTS` says.
        static let events = getenv("SPOOLSHIP_CLIENT_EVENTS").flatMap { Int(String(cString: $0)) } ?? 50_000

        /// The program that writes, beside the built tests.
        private static let writer: String = {
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            return "/\(root)/.build/debug/client-writer"
        }()

        @Test("two processes of eight threads write while the agent reads: every event arrives, once")
        func twoProcesses() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64MiB\""
            bench.settings["dispatch.batch_events"] = "1000"
            try bench.startReceiver()
            try bench.startAgent()
            let each = Self.events / 2
            let start = SystemTime().bootTime
            // The second one's files are complete at once; small ones, so that many are renamed, read and removed.
            let writers = try [("one", "append"), ("two", "drop")].map { name, style in
                try RunningProgram(
                    Self.writer, [bench.spool, name, "8", "\(each)", style, "60000"], output: "\(bench.path)/\(name)")
            }
            for writer in writers {
                #expect(try writer.exit(within: .seconds(600)) == 0, "\(writer.printed)")
                let report = try JSONValue(parsing: Array(writer.printed.utf8))
                #expect(report["written"]?.integer == each && report["refusals"]?.integer == 0, "\(report)")
            }
            try bench.waitUntilDelivered(2 * each, within: .seconds(600))
            let keys = ["one", "two"].flatMap { name in (0..<each).map { "\(name)-\($0)" } }
            try bench.expectOnce(Set(keys), member: "key")
            print("client: \(2 * each) events from two processes in \(SystemTime().bootTime - start)")
        }

        @Test(
            "a spool on a full disk: no call blocks longer than stated, the error says why, and what was taken is whole",
            .enabled(if: geteuid() == 0, "mounting a small file system takes root"))
        func fullSpool() throws {
            let directory = try TemporaryDirectory()
            try #require(mount("tmpfs", directory.path, "tmpfs", 0, "size=256k") == 0)
            defer { umount2(directory.path, 2) }
            let output = "\(directory.path).writer"
            defer { unlink(output) }
            let writer = try RunningProgram(
                Self.writer, [directory.path, "full", "4", "1000000", "append", "50", "65536"], output: output)
            #expect(try writer.exit(within: .seconds(120)) == 75, "\(writer.printed)")
            let report = try JSONValue(parsing: Array(writer.printed.utf8))
            #expect(report["failure"]?.string == "disk_full", "\(report)")
            // The bound is 50 ms; a busy machine may be slow to run a thread whose time is over.
            #expect((report["longest_ms"]?.integer ?? .max) < 5000, "\(report)")
            print("client: a full spool, the longest call took \(report["longest_ms"]?.integer ?? -1) ms of 50")
            let name = try #require(try names(in: directory.path).first { $0.hasSuffix(".jsonl") })
            let text = try bytes(of: "\(directory.path)/\(name)")
            #expect(text.last == 0x0A && values(of: "key", in: text).count == text.count { $0 == 0x0A })
        }
    }
}

/// The names in a directory, `.` and `..` left out.
func names(in directory: String) throws -> [String] {
    let stream = try #require(opendir(directory))
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}
