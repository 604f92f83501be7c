import EventLoops
import Glibc
import Testing

extension EndToEnd {
    @Suite("Stopping")
    struct StopTests {
        @Test("SIGTERM under load ends with 0 within the grace period, and nothing is lost or repeated")
        func stopUnderLoad() throws {
            let bench = try Workbench()
            bench.settings["agent.shutdown_drain_timeout"] = "\"1s\""
            bench.settings["dispatch.batch_most_events"] = "50"
            try bench.startReceiver("--delay", "20ms")
            try bench.startAgent()
            let count = 20_000
            try bench.append(keyed(0..<count), to: "app.jsonl")
            try wait(.seconds(30), "the first acknowledgements") {
                try bench.figures().total("spoolship_deliveries_acknowledged_total") > 0
            }
            #expect(try bench.stopAgent() == 0)
            #expect(bench.agentLog.contains("agent stopped"))
            #expect(bench.receiverFigure("events") < count, "it was over before the stop")
            try bench.startAgent()
            try bench.waitUntilDelivered(count)
            try bench.expectOnce(Set((0..<count).map { "e\($0)" }), member: "key")
        }

        @Test("ac05, ga03: events that waited at a kill are sent after the start, without new ones")
        func ga03_waitingEventsGoAfterAStart() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            bench.settings["dispatch.interval"] = "\"1h\""
            try bench.startAgent()
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 10
            }
            bench.killAgent()
            bench.settings["dispatch.interval"] = "\"1s\""
            try bench.startAgent()
            try bench.waitUntilDelivered(10)
            try bench.expectOnce(Set((0..<10).map { "e\($0)" }), member: "key")
        }

        @Test("ga07: a hanging receiver does not delay a stop beyond shutdown_drain_timeout")
        func ga07_hangingReceiver() throws {
            let bench = try hangingBench(drain: "1s")
            let begun = SystemTime().bootTime
            #expect(try bench.stopAgent() == 0)
            #expect(SystemTime().bootTime - begun < .seconds(10))
            // The one that hung has stored them without saying so; another receiver must get them all.
            #expect(bench.agentLog.contains("agent stopped queued=300"), "\(bench.agentLog)")
            try bench.stopReceiver()
            bench.events = "\(bench.path)/later.ndjson"
            try bench.startReceiver()
            try bench.startAgent()
            try bench.waitUntilDelivered(300)
            try bench.expectOnce(Set((0..<300).map { "e\($0)" }), member: "key")
        }

        @Test("ga07: a second SIGTERM ends a long drain at once")
        func ga07_secondSignal() throws {
            let bench = try hangingBench(drain: "10m")
            let agent = try #require(bench.agent)
            agent.send(SIGTERM)
            try wait(.seconds(10), "the stop to begin") { bench.agentLog.contains("agent stopping") }
            #expect(agent.exitStatus() == nil)
            let begun = SystemTime().bootTime
            agent.send(SIGTERM)
            #expect(try agent.exit(within: .seconds(10)) == 0)
            #expect(SystemTime().bootTime - begun < .seconds(5))
            #expect(bench.agentLog.contains("agent stopped queued=300"), "\(bench.agentLog)")
        }

        /// An agent with requests in flight that nobody answers.
        private func hangingBench(drain: String) throws -> Workbench {
            let bench = try Workbench()
            bench.settings["agent.shutdown_drain_timeout"] = "\"\(drain)\""
            try bench.startReceiver("--delay", "1h")
            try bench.startAgent()
            try bench.append(keyed(0..<300), to: "app.jsonl")
            try wait(.seconds(30), "requests in flight") { bench.receiverFigure("requests") > 0 }
            return bench
        }
    }
}
