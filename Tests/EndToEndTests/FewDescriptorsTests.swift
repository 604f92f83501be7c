import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Few file descriptors", .timeLimit(.minutes(5)))
    struct FewDescriptorsTests {
        @Test("with a limit of forty descriptors sixty directories are read, and the log reports it")
        func fewDescriptors() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            for number in 0..<60 {
                let directory = "\(bench.spool)/app\(number)"
                try #require(mkdir(directory, 0o755) == 0)
                try write("{\"name\":\"e\(number)\"}\n", to: "\(directory)/x.jsonl")
            }
            try bench.startAgent(under: ["prlimit", "--nofile=40:40"])
            // Not by the agent's port: with so few descriptors it may have none left for a moment.
            try wait(.seconds(60), "the events to arrive; the agent's log:\n\(bench.agentLog)") {
                bench.receiverFigure("events") >= 60
            }
            #expect(bench.agentLog.contains("fewer files are held open than spool.max_open_files allows"))
            #expect(try bench.stopAgent() == 0)
        }

        @Test("with a limit that leaves none for the control socket the limit is named, not another cause")
        func hardlyAny() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent(waits: false, under: ["prlimit", "--nofile=30:30"])
            try wait(.seconds(60), "the log to name the limit:\n\(bench.agentLog)") {
                bench.agentLog.contains("raise LimitNOFILE")
            }
            try wait(.seconds(60), "the log to name the socket:\n\(bench.agentLog)") {
                bench.agentLog.contains("control.sock")
            }
            #expect(!bench.agentLog.contains("another user's socket"), "\(bench.agentLog)")
            bench.killAgent()
        }
    }
}
