import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("The environment of a start")
    struct EarlySignalTests {
        @Test("SIGHUP during the start does not end the agent")
        func hangUp() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent(waits: false)
            // It has taken its state directory, and is far from ready.
            try wait(.seconds(30), "the start") { access("\(bench.state)/queue.sqlite", F_OK) == 0 }
            for _ in 0..<5 { bench.agent?.send(SIGHUP) }
            try bench.waitForAgent()
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(10)
            #expect(try bench.stopAgent() == 0)
        }

        @Test("SSLKEYLOGFILE is ignored: no connection keys are written")
        func keysStayHere() throws {
            let bench = try Workbench()
            let keys = "\(bench.path)/keys"
            try bench.startReceiver()
            try bench.startAgent(environment: ["SSLKEYLOGFILE=\(keys)"])
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(10)
            #expect(access(keys, F_OK) != 0)
            #expect(try bench.stopAgent() == 0)
        }
    }
}
