import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// `erase` on a running agent and on the files of one that was stopped or killed.
    @Suite("Erasure")
    struct ErasureTests {
        private static let words = ["erase", "--yes", "--where", "properties.user == 'ann@example.com'"]

        /// Events of two users, every fifth of them Ann's, in spellings that the agent accepts.
        private func line(_ number: Int) -> String {
            let ann = ["ann@example.com", #"ann\u0040example.com"#, #"\u0061nn@example.com"#][number / 5 % 3]
            let user = number % 5 == 0 ? ann : "bob\(number)@example.com"
            return #"{"name":"a","key":"e\#(number)","properties":{"user":"\#(user)"}}"#
        }

        /// Files of the agent's state in which Ann is found, by their names.
        private func found(_ bench: Workbench) throws -> [String] {
            try WholeFile.names(in: bench.state).filter { name in
                guard let bytes = try WholeFile.bytes(of: "\(bench.state)/\(name)", atMost: 1 << 30) else {
                    return false
                }
                let text = String(decoding: bytes, as: UTF8.self)
                return ["ann@example.com", #"ann\u0040example.com"#, #"\u0061nn@example.com"#].contains(
                    where: text.contains)
            }
        }

        private func erase(_ bench: Workbench, _ more: String...) throws -> (code: Int32, text: String) {
            try run(spoolship, ErasureTests.words + more + ["--config", bench.configuration])
        }

        @Test(
            "a user is erased during an outage, through a kill, and from the files; other events arrive once",
            arguments: ["none", "gzip"])
        func killed(compression: String) throws {
            let seed = Seeds.one(58)
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            bench.settings["retry.intervals"] = #"["100ms", "200ms"]"#
            bench.settings["destination.compression"] = "\"\(compression)\""
            try bench.startReceiver("--fail", "503", "--probability", "1")
            try bench.startAgent()
            for file in 0..<20 {
                let lines = (0..<200).map { line(file * 200 + $0) + "\n" }
                try bench.append(lines.joined(), to: "app-\(file).jsonl")
            }
            try bench.append(#"{"name":"cut","properties":{"user":"ann@example.com""# + "\n", to: "cut.jsonl")
            try wait(.seconds(30), "all to be read; \(bench.agentLog)") {
                try bench.figures().total("spoolship_events_read_total") == 4001
            }
            let trial = try erase(bench, "--dry-run")
            #expect(trial.code == 0 && trial.text.contains("\"events\": "), "\(trial.text)")
            for _ in 0..<3 {
                let command = try RunningProgram(
                    spoolship, ErasureTests.words + ["--config", bench.configuration],
                    output: "\(bench.path)/erase.log"
                )
                usleep(UInt32.random(in: 0...60_000, using: &random))
                bench.killAgent()
                _ = try command.exit(within: .seconds(90))
                try bench.startAgent()
                try bench.expectBalance()
            }
            bench.killAgent()
            let offline = try erase(bench)
            #expect(offline.code == 0, "seed \(seed): \(offline.text)")
            #expect(try found(bench) == [], "seed \(seed)")
            try bench.startAgent()
            try bench.expectBalance()
            let again = try JSONValue(parsing: Array(try erase(bench).text.utf8))
            #expect(
                again["queue"]?["events"] == 0 && again["quarantine"] == 0 && again["complete"] == true,
                "\(again)")
            try bench.stopReceiver()
            try bench.startReceiver()
            let others = Set((0..<4000).filter { $0 % 5 != 0 }.map { "e\($0)" })
            try bench.waitForOnce(others, member: "key", within: .seconds(60))
            #expect(try bench.stopAgent() == 0)
        }
    }
}
