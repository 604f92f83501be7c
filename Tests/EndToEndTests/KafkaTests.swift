import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// The agent and librdkafka's mock cluster, each a process.
    @Suite("Kafka")
    struct KafkaTests {
        private func bench(_ brokers: KafkaBrokers) throws -> Workbench {
            let bench = try Workbench()
            for name in ["url", "tls.ca_file"] { bench.settings["destination.\(name)"] = nil }
            bench.settings["destination.type"] = "\"kafka\""
            bench.settings["destination.kafka.brokers"] = brokers.list
            bench.settings["destination.kafka.topic"] = "\"events\""
            bench.settings["destination.kafka.tls"] = "false"
            bench.settings["retry.intervals"] = #"["100ms", "200ms", "400ms", "800ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            return bench
        }

        @Test(
            "killed ten times under load, 20,000 events: none is lost, and repeats have equal ids and bytes"
        )
        func killed() throws {
            let seed = Seeds.one(19)
            var random = SplitMix64(seed: seed)
            let brokers = try KafkaBrokers()
            try brokers.say("topic events 3")
            let bench = try bench(brokers)
            // Many batches, some of which are on their way at any moment.
            bench.settings["dispatch.batch_events"] = "50"
            try brokers.say("rtt 0 10")
            let each = 2000
            for round in 0..<10 {
                try bench.startAgent()
                let lines = (round * each..<round * each + each).map {
                    #"{"name":"load","properties":{"key":"e\#($0)"}}"# + "\n"
                }.joined()
                try bench.append(lines, to: "app.jsonl")
                let wanted = round * each + Int.random(in: 1...each, using: &random)
                try wait(.seconds(60), "\(wanted) records; the agent's log:\n\(bench.agentLog.suffix(2000))")
                {
                    try brokers.records().count >= wanted
                }
                bench.killAgent()
            }
            try brokers.say("rtt 0 0")
            try bench.startAgent()
            var keys: Set<String> = []
            var records: [String] = []
            try wait(
                .seconds(90), "all events; the agent's log:\n\(bench.agentLog.suffix(2000))",
                every: .milliseconds(200)
            ) {
                records = try brokers.records()
                keys = Set(records.compactMap(key))
                return keys.count >= 10 * each
            }
            #expect(keys == Set((0..<10 * each).map { "e\($0)" }))
            var values: [String: Set<String>] = [:]
            for record in records {
                let json = try JSONValue(parsing: record)
                let id = try #require(json["headers"]?["event_id"]?.string)
                values[id, default: []].insert(try #require(json["value"]?.string))
            }
            #expect(values.values.allSatisfy { $0.count == 1 }, "one id, two events")
            // One event has one id: repeats are found by it alone.
            #expect(values.count == 10 * each)
            print("Kafka, kill -9: seed \(seed), \(10 * each) events, \(records.count - 10 * each) repeats")
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        /// The key that the test gave an event; found without parsing, which is for the end.
        private func key(_ record: String) -> String? {
            let mark = #"\"key\":\""#
            guard let start = record.firstRange(of: mark)?.upperBound else { return nil }
            return String(record[start...].prefix { $0 != "\\" })
        }

        private func threads(of process: pid_t) throws -> [String] {
            let names = try run("sh", ["-c", "cat /proc/\(process)/task/*/comm"])
            return names.text.split(separator: "\n").map(String.init)
        }

        private func switches(of process: pid_t) throws -> Int {
            let lines = try run("sh", ["-c", "cat /proc/\(process)/task/*/status | grep voluntary_ctxt"])
            return lines.text.split(separator: "\n").compactMap { Int($0.split(separator: "\t").last ?? "") }
                .reduce(
                    0, +)
        }

        @Test("some seconds after the last batch librdkafka's threads have ended, and the agent sleeps again")
        func idle() throws {
            let brokers = try KafkaBrokers()
            try brokers.say("topic events 3")
            let bench = try bench(brokers)
            try bench.startAgent()
            let process = try #require(bench.agent?.process)
            #expect(try !threads(of: process).contains { $0.hasPrefix("rdk:") })
            try bench.append(#"{"name":"one"}"# + "\n", to: "app.jsonl")
            try wait(.seconds(30), "the record") { try brokers.records().count == 1 }
            #expect(try threads(of: process).contains { $0.hasPrefix("rdk:") })
            try wait(.seconds(40), "the end of librdkafka's threads") {
                try !threads(of: process).contains { $0.hasPrefix("rdk:") }
            }
            // A quiet stretch comes within some of them: what followed the batch takes its time.
            var last = -1
            try wait(.seconds(60), "five seconds without a context switch", every: .seconds(5)) {
                let now = try switches(of: process)
                defer { last = now }
                return now == last
            }
            #expect(try threads(of: process).count <= 5)
            #expect(try bench.stopAgent() == 0)
        }

        @Test("without librdkafka check and start name the package to install", .enabled(if: geteuid() == 0))
        func missing() throws {
            let brokers = try KafkaBrokers(1)
            let bench = try bench(brokers)
            try bench.configure()
            // Hidden from this one program, in a mount namespace of its own.
            let hidden =
                "for file in /usr/lib/*/librdkafka.so.1; do mount --bind /dev/null $file || exit 99; done; exec \"$@\""
            for command in ["check", "run"] {
                let answer = try run(
                    "unshare",
                    ["-m", "sh", "-c", hidden, "sh", spoolship, command, "--config", bench.configuration])
                #expect(answer.text.contains("install the package librdkafka1"), "\(command): \(answer)")
                #expect(answer.code == 78, "\(command)")
            }
            #expect(try bench.command("check").code == 0)
            #expect(try bench.command("check", "--connect").code == 0)
        }

        @Test(
            "topics from events, a limit on their number, and a missing topic: the fate of every event is visible"
        )
        func topicOfEvents() throws {
            let brokers = try KafkaBrokers()
            for topic in ["shop", "web", "third", "other", "lost"] {
                try brokers.say("topic events-\(topic) 1")
            }
            try brokers.say("topic-error events-lost 3")
            let bench = try bench(brokers)
            bench.settings["destination.kafka.topic"] = "\"events-{app}\""
            bench.settings["destination.kafka.options"] =
                "{ \"topic.metadata.propagation.max.ms\" = \"100\" }"
            // Each app may have two, all together four.
            bench.settings["destination.template_values"] = "2"
            try bench.startAgent()
            let apps = ["shop", "web", "lost", "third", "fourth", "fifth"]
            for app in apps {
                try #require(mkdir("\(bench.spool)/\(app)", 0o755) == 0)
                try bench.append(#"{"name":"\#(app)"}"# + "\n", to: "\(app)/a.jsonl")
                // In this order.
                let attempts = app == "lost" ? 0 : 1
                try wait(.seconds(60), "\(app); the agent's log:\n\(bench.agentLog)") {
                    let names = try brokers.records().filter { $0.contains(app) }
                    return names.count >= attempts
                }
                if app == "lost" {
                    try wait(.seconds(60), "a dead letter; the agent's log:\n\(bench.agentLog)") {
                        try bench.figures().total("spoolship_dead_letters") == 1
                    }
                }
            }
            var topics: [String: String] = [:]
            for record in try brokers.records() {
                let json = try JSONValue(parsing: record)
                let name = try #require(json["value"]?.string).split(separator: "\"")[3]
                topics[String(name)] = json["topic"]?.string
            }
            let expected = [
                "shop": "events-shop", "web": "events-web", "third": "events-third", "fourth": "events-other",
                "fifth": "events-other",
            ]
            #expect(topics == expected)
            let beyond = #"spoolship_delivery_template_fallbacks_total{destination="main",value="other"}"#
            #expect(try bench.figures().value(beyond) == 2)
            let status = try bench.command("status").text
            #expect(
                status.contains(#"2 events sent to main as "other": events have more values"#), "\(status)")
            #expect(try bench.command("dead-letters", "list").text.contains("create the topic"))
            #expect(
                bench.agentLog.contains("more values than template_values")
                    && !bench.agentLog.contains("fourth"))
            let check = try bench.command("check", "--connect")
            #expect(check.code == 0 && check.text.contains("events fill in its topic"), "\(check)")
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        @Test("{app} is the owner of an event's file, also after a kill; {member:app} is what the event says")
        func whoseTopic() throws {
            let brokers = try KafkaBrokers()
            for topic in ["shop.web", "web.shop", "shop.shop", "web.web"] {
                try brokers.say("topic \(topic) 1")
            }
            let bench = try bench(brokers)
            bench.settings["destination.kafka.topic"] = "\"{app}.{member:app}\""
            for name in ["shop", "web"] { try #require(mkdir("\(bench.spool)/\(name)", 0o755) == 0) }
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            // Records, which keep their own `app`, and an event, which gets its directory's.
            let (said, unsaid) = (#"{"app":"web","n":1}"#, #"{"n":2}"#)
            try bench.append("\(said)\n\(unsaid)\n", to: "shop/a.jsonl")
            let (record, event) = (#"{"app":"shop","n":3}"#, #"{"app":"shop","name":"e","n":4}"#)
            try bench.append("\(record)\n\(event)\n", to: "web/a.jsonl")
            try wait(.seconds(30), "all to be read; the agent's log:\n\(bench.agentLog)") {
                try bench.figures().total("spoolship_events_read_total") == 4
            }
            bench.killAgent()
            try bench.startAgent()
            #expect(try bench.command("resume").code == 0)
            try wait(.seconds(60), "all to arrive; the agent's log:\n\(bench.agentLog)") {
                try brokers.records().count >= 4
            }
            var topics: [Int: String] = [:]
            for record in try brokers.records().map({ try JSONValue(parsing: $0) }) {
                let line = try JSONValue(parsing: Array(try #require(record["value"]?.string).utf8))
                topics[try #require(line["n"]?.integer)] = record["topic"]?.string
            }
            #expect(topics == [1: "shop.web", 2: "shop.shop", 3: "web.shop", 4: "web.web"])
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        @Test("a missing topic holds the destination, status says what to do, and nothing is lost")
        func unknownTopic() throws {
            let brokers = try KafkaBrokers()
            try brokers.say("topic events 3")
            try brokers.say("topic-error events 3")
            let bench = try bench(brokers)
            bench.settings["destination.kafka.options"] =
                "{ \"topic.metadata.propagation.max.ms\" = \"100\" }"
            try bench.startAgent()
            try bench.append(#"{"name":"one"}"# + "\n", to: "app.jsonl")
            try wait(.seconds(60), "the hold; the agent's log:\n\(bench.agentLog)") {
                try bench.command("status").text.contains("create the topic, or check kafka.topic")
            }
            try brokers.say("topic-error events 0")
            _ = try bench.command("resume")
            try wait(.seconds(60), "the record; the agent's log:\n\(bench.agentLog)") {
                try brokers.records().count == 1
            }
            #expect(try bench.stopAgent() == 0)
        }
    }
}
