import EventLoops
import Glibc
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

/// With librdkafka's mock cluster in another process, which is read by its consumer.
@Suite("Kafka")
struct KafkaBrokerTests {
    /// A cluster with a topic `events` of three partitions, and what writes to it.
    private struct Stage {
        let bench: Bench
        let brokers: KafkaBrokers
        let output: KafkaOutput

        init(
            idle: Duration? = nil, search: Duration? = nil,
            _ change: (inout DestinationSettings) -> Void = { _ in }
        ) throws {
            bench = try Bench()
            brokers = try KafkaBrokers()
            try brokers.say("topic events 3")
            var settings = DestinationSettings(kafka: brokers.addresses, tls: false)
            change(&settings)
            var options = KafkaOptions(settings)
            options.idleTime = idle ?? options.idleTime
            options.searchTime = search ?? options.searchTime
            output = try KafkaOutput("main", options, on: bench.loop, log: Log(bench.log))
        }

        /// What was stored, once there is so much of it.
        func records(_ count: Int) async throws -> [Record] {
            #expect(try await eventually { try brokers.records().count >= count })
            return try brokers.records().map { try Record($0) }
        }
    }

    private struct Record {
        var partition: Int
        var key: String?
        var value: String
        var headers: [String: String] = [:]
        /// Milliseconds since 1970.
        var time: Int?

        init(_ line: String) throws {
            let json = try JSONValue(parsing: line)
            partition = try #require(json["partition"]?.integer)
            key = json["key"]?.string
            value = try #require(json["value"]?.string)
            time = json["time"]?.integer
            guard case .object(let members) = json["headers"] else { return }
            for member in members { headers[member.key] = member.value.string }
        }

        var number: Int? { try? JSONValue(parsing: value)["n"]?.integer }
    }

    /// A batch of events with ids and sessions.
    private func batch(_ numbers: Range<Int>, id: UInt64 = 1, padding: Int = 0) -> Batch {
        let text = String(repeating: "x", count: padding)
        let lines = numbers.map {
            #"{"name":"a","n":\#($0),"id":"event-\#($0)","session_id":"s-\#($0 % 5)","text":"\#(text)"}"#
                + "\n"
        }.joined()
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count,
            eventsInFrame: numbers.count,
            events: 0..<numbers.count)
        return Sample.batch([part], id: BatchID(high: 0x0193_0000_0000_7000, low: id))
    }

    private func held(_ outcome: Outcome) -> String? {
        if case .held(let failure) = outcome { failure.message } else { nil }
    }

    private func deliver(_ batch: Batch, _ output: KafkaOutput) async -> Bool {
        await eventually { await output.send(batch) == .acknowledged }
    }

    @Test(
        "each event is a record as stored, in order, with session as key, and batch id and own id as headers",
        arguments: Compression.allCases)
    func records(compression: Compression) async throws {
        let stage = try Stage {
            $0.compression = compression
            $0.headers = ["source": Secret("shop")]
        }
        let batch = batch(0..<500)
        #expect(await stage.output.send(batch) == .acknowledged)
        let records: [Record] = try await stage.records(500)
        #expect(records.compactMap(\.number).sorted() == Array(0..<500))
        for record in records {
            let number = try #require(record.number)
            #expect(record.key == "s-\(number % 5)")
            #expect(
                record.headers == [
                    "batch_id": "\(batch.header.id)", "event_id": "/event-\(number)", "source": "shop",
                ])
        }
        for session in 0..<5 {
            let own = records.filter { $0.key == "s-\(session)" }
            #expect(Set(own.map(\.partition)).count == 1)
            #expect(own.compactMap(\.number) == (0..<500).filter { $0 % 5 == session })
        }
        #expect(await stage.output.takeSentBytes() > 500 * 50)
        #expect(await stage.output.takeSentBytes() == 0)
    }

    @Test("headers from events differ by record")
    func headersByEvent() async throws {
        let stage = try Stage {
            $0.headers = ["team": Secret("t-{member:session_id}"), "site": Secret("eu")]
        }
        #expect(stage.output.asksWhose)
        #expect(await stage.output.send(batch(0..<20)) == .acknowledged)
        let records: [Record] = try await stage.records(20)
        for record in records {
            let number = try #require(record.number)
            #expect(
                record.headers["team"] == "t-s-\(number % 5)" && record.headers["site"] == "eu", "\(record)")
        }
    }

    @Test("the time of a record is the event's, or the time of sending if the event has none")
    func recordTimes() async throws {
        let stage = try Stage()
        let lines =
            #"{"n":0,"timestamp":"2026-11-20T10:00:00.123456Z","id":"a"}"# + "\n" + #"{"n":1,"id":"b"}"#
            + "\n"
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count, eventsInFrame: 2,
            events: 0..<2)
        let before = SystemTime().wallTime
        #expect(await stage.output.send(Sample.batch([part])) == .acknowledged)
        let records = try await stage.records(2).sorted { ($0.number ?? 0) < ($1.number ?? 0) }
        #expect(records[0].time == 1_795_168_800_123)
        #expect(records[1].time.map { Int64($0) >= before.milliseconds } == true)
    }

    @Test("topics can come from events; a missing topic only affects its events")
    func byEvent() async throws {
        let topic = try Template("events-{member:user.kind}", for: .topic)
        let stage = try Stage {
            $0.kafka.options = ["topic.metadata.propagation.max.ms": "100"]
            $0.requestTimeout = .seconds(20)
            $0.kafka.topic = topic
        }
        for topic in ["events-buyer", "events-___", "events-none", "events-lost"] {
            try stage.brokers.say("topic \(topic) 1")
        }
        try stage.brokers.say("topic-error events-lost 3")
        let kinds = [#"{"kind":"buyer"}"#, #"{"kind":"/./"}"#, "{}", #"{"kind":"lost"}"#]
        let lines = (0..<8).map { #"{"n":\#($0),"user":\#(kinds[$0 % 4])}"# + "\n" }.joined()
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count, eventsInFrame: 8,
            events: 0..<8)
        guard case .partial(let rejected, let retry) = await stage.output.send(Sample.batch([part])) else {
            Issue.record("not in part")
            return
        }
        #expect(rejected.map(\.index) == [3, 7] && retry.isEmpty)
        #expect(rejected.allSatisfy { $0.failure.message.contains("create the topic") && !$0.isFinal })
        let records = try await stage.records(6)
        #expect(records.compactMap(\.number) == [0, 4, 1, 5, 2, 6])
        #expect(await stage.output.probe() == nil)
        #expect(stage.output.templates?.takeCounts() == EventTemplates.Counts(missing: 2, beyond: 0))
    }

    @Test("records have no key if the event lacks the member, or the topic is configured without keys")
    func withoutKey() async throws {
        let stage = try Stage { $0.kafka.key = "user.id" }
        #expect(await stage.output.send(batch(0..<20)) == .acknowledged)
        let records = try await stage.records(20)
        #expect(records.allSatisfy { $0.key == nil } && records.count == 20)
    }

    @Test("more records than the library's queue holds are handed over as it drains")
    func smallQueue() async throws {
        let stage = try Stage { $0.kafka.options = ["queue.buffering.max.messages": "100"] }
        #expect(await stage.output.send(batch(0..<2000)) == .acknowledged)
        let records = try await stage.records(2000)
        #expect(records.compactMap(\.number).sorted() == Array(0..<2000))
    }

    @Test("the library retries temporary errors; nothing is repeated, because the producer is idempotent")
    func passing() async throws {
        let stage = try Stage()
        // Leader elsewhere, too few replicas, timed out.
        try stage.brokers.say("errors 0 6 19 7")
        #expect(await deliver(batch(0..<50), stage.output))
        #expect(try await stage.records(50).compactMap(\.number).sorted() == Array(0..<50))
    }

    @Test(
        "an error of the brokers holds, splits or bisects the batch; afterwards the batch is delivered",
        arguments: [(29, "hold"), (10, "split"), (87, "bisect"), (76, "hold")])
    func refusals(code: Int, expected: String) async throws {
        let stage = try Stage { $0.kafka.options = ["sticky.partitioning.linger.ms": "0"] }
        let batch = batch(0..<1)
        try stage.brokers.say("errors 0 \(code) \(code) \(code) \(code)")
        let outcome = await stage.output.send(batch)
        let found =
            switch outcome {
            case .held: "hold"
            case .tooLarge: "split"
            case .rejected: "bisect"
            default: "\(outcome)"
            }
        #expect(found == expected)
        try stage.brokers.say("errors 0 0")
        #expect(await deliver(batch, stage.output))
    }

    @Test(
        "an unknown or forbidden topic holds the destination, with a hint",
        arguments: [(3, "create the topic"), (29, "may not write")])
    func topics(code: Int, hint: String) async throws {
        let stage = try Stage {
            $0.kafka.options = ["topic.metadata.propagation.max.ms": "100"]
            $0.requestTimeout = .seconds(10)
        }
        try stage.brokers.say("topic-error events \(code)")
        let message = held(await stage.output.send(batch(0..<3)))
        #expect(message?.contains(hint) == true, "\(message ?? "not held")")
        #expect(await stage.output.probe()?.message.contains(hint) == true)
        try stage.brokers.say("topic-error events 0")
        #expect(await deliver(batch(0..<3), stage.output))
        #expect(await stage.output.probe() == nil)
    }

    @Test("after a fatal error of the producer the next attempt has a new one", arguments: [45, 47, 59])
    func endedProducer(code: Int) async throws {
        let stage = try Stage(idle: .seconds(3600))
        #expect(await deliver(batch(0..<3), stage.output))
        try stage.brokers.say("errors 0 \(code)")
        #expect(await deliver(batch(3..<6, id: 2), stage.output))
        #expect(await deliver(batch(6..<9, id: 3), stage.output))
        // What was in the request that ended the producer may be there twice.
        let arrive = try await eventually {
            Set(try stage.brokers.records().compactMap { try Record($0).number }) == Set(0..<9)
        }
        #expect(arrive)
    }

    @Test("a single event beyond message.max.bytes is rejected as too large, and the others are stored")
    func largeEvent() async throws {
        let stage = try Stage { $0.kafka.options = ["message.max.bytes": "10000"] }
        guard case .tooLarge(let bytes, let failure) = await stage.output.send(batch(0..<1, padding: 20_000))
        else {
            Issue.record("not too large")
            return
        }
        #expect(bytes > 20_000 && failure.message.contains("message.max.bytes"))
        #expect(await stage.output.send(batch(1..<3)) == .acknowledged)
    }

    @Test("brokers that refuse connections are given up long before the timeout, and producers end")
    func refused() async throws {
        let bench = try Bench()
        var options = KafkaOptions(DestinationSettings(kafka: ["127.0.0.1:1"], tls: false))
        options.searchTime = .milliseconds(300)
        options.settings.requestTimeout = .seconds(600)
        let output = try KafkaOutput("main", options, on: bench.loop, log: Log(bench.log))
        let begun = SystemTime().bootTime
        let failure = retried(await output.send(batch(0..<10)))
        #expect(failure?.message.contains("check kafka.brokers") == true, "\(String(describing: failure))")
        #expect(failure?.words?.contains("Connection refused") == true, "\(String(describing: failure))")
        #expect(SystemTime().bootTime - begun < .seconds(60))
        #expect(await !output.isAwake)
    }

    @Test("brokers that hang up are given up in time, with the reason; later the same batch is delivered")
    func gone() async throws {
        let stage = try Stage {
            $0.connectTimeout = .seconds(1)
            $0.requestTimeout = .seconds(4)
        }
        try stage.brokers.say("down 0")
        let failure = retried(await stage.output.send(batch(0..<10)))
        #expect(failure?.message.contains("check kafka.brokers") == true, "\(String(describing: failure))")
        #expect(await eventually { await !stage.output.isAwake }, "the producer that found nobody is kept")
        #expect(await stage.output.probe()?.message.contains("check kafka.brokers") == true)
        try stage.brokers.say("up 0")
        #expect(await deliver(batch(0..<10), stage.output))
        #expect(try await stage.records(10).count == 10)
    }

    @Test("a batch that is not acknowledged in time is sent again, with equal ids and bytes")
    func late() async throws {
        let stage = try Stage { $0.requestTimeout = .seconds(2) }
        // A producer that has its connections.
        #expect(await deliver(batch(5..<6, id: 2), stage.output))
        try stage.brokers.say("rtt 0 6000")
        #expect(retried(await stage.output.send(batch(0..<5)))?.message.contains("request_timeout") == true)
        try stage.brokers.say("rtt 0 0")
        #expect(await deliver(batch(0..<5), stage.output))
        // Repeats of the first attempt may come before the last event.
        var records = try await stage.records(6)
        while Set(records.map { $0.headers["event_id"] }).count < 6, records.count < 11 {
            records = try await stage.records(records.count + 1)
        }
        #expect(Set(records.map { $0.headers["event_id"] }).count == 6)
        for copies in Dictionary(grouping: records, by: { $0.headers["event_id"] }).values {
            #expect(
                Set(copies.map(\.value)).count == 1 && Set(copies.map { $0.headers["batch_id"] }).count == 1)
        }
    }

    @Test("a cancelled attempt ends at once")
    func cancelled() async throws {
        let stage = try Stage(search: .seconds(60))
        try stage.brokers.say("down 0")
        let output = stage.output
        let batch = batch(0..<5)
        let task = Task { await output.send(batch) }
        #expect(await eventually { await output.isAwake })
        task.cancel()
        let begun = SystemTime().bootTime
        #expect(retried(await task.value)?.message.contains("the wait ended before") == true)
        #expect(SystemTime().bootTime - begun < .seconds(20))
        #expect(await eventually { await !output.isAwake })
    }

    @Test("a producer lives while batches arrive, and ends with its threads some time after the last one")
    func idle() async throws {
        let stage = try Stage(idle: .milliseconds(500))
        #expect(await stage.output.isAwake == false)
        #expect(await stage.output.send(batch(0..<5)) == .acknowledged)
        #expect(await stage.output.isAwake)
        #expect(await stage.output.send(batch(5..<10, id: 2)) == .acknowledged)
        #expect(await eventually { await !stage.output.isAwake })
        #expect(await stage.output.send(batch(10..<15, id: 3)) == .acknowledged)
        #expect(try await stage.records(15).compactMap(\.number).sorted() == Array(0..<15))
    }

    @Test("a changed password is used by a new producer, and the old one is not used again")
    func renewed() async throws {
        let bench = try Bench()
        let file = "\(bench.directory.path)/password"
        try PrivateFile.replace(file, with: "first")
        var options = KafkaOptions(DestinationSettings(kafka: ["127.0.0.1:1"], tls: false))
        options.kafka.mechanism = .plain
        options.settings.logIn("me", .file(file))
        let time = ManualTime()
        let output = try KafkaOutput("main", options, on: bench.loop, log: Log(bench.log), time: time)
        #expect(output.followsFiles)
        time.advance(by: .seconds(2))
        #expect(await output.hasNewCredentials() == false)
        try PrivateFile.replace(file, with: "second")
        time.advance(by: .seconds(2))
        #expect(await output.hasNewCredentials())
    }

    @Test("credentials that brokers refuse hold the destination, without the brokers' message in the log")
    func refusedCredentials() async throws {
        let stage = try Stage()
        var options = KafkaOptions(
            DestinationSettings(kafka: [try stage.brokers.say("fake refusing")], tls: false))
        options.kafka.mechanism = .plain
        options.settings.logIn("me", .inline(Secret("wrong")))
        let output = try KafkaOutput("main", options, on: stage.bench.loop, log: Log(stage.bench.log))
        guard case .held(let failure) = await output.send(batch(0..<3)) else {
            Issue.record("not held")
            return
        }
        #expect(
            failure.message.contains("refuse these credentials") && !failure.message.contains("no such user"))
        #expect(failure.words?.contains("no such user or password") == true, "\(failure.excerpt)")
        #expect(await output.probe()?.message.contains("refuse these credentials") == true)
    }

    @Test("without TLS a broker cannot redirect the agent to another machine")
    func elsewhere() async throws {
        let stage = try Stage()
        var options = KafkaOptions(
            DestinationSettings(kafka: [try stage.brokers.say("fake elsewhere")], tls: false))
        options.settings.requestTimeout = .seconds(3)
        let output = try KafkaOutput("main", options, on: stage.bench.loop, log: Log(stage.bench.log))
        let failure = retried(await output.send(batch(0..<3)))
        #expect(failure?.message.contains("advertised.listeners") == true, "\(String(describing: failure))")
        #expect(
            failure?.excerpt.contains("192.0.2.1:9092: Permission denied") == true,
            "\(failure?.excerpt ?? "")")
    }

    @Test("TLS to a plain port is retried with a clear message, and nothing is sent in clear")
    func noTLS() async throws {
        let stage = try Stage(search: .milliseconds(300)) {
            $0.kafka.tls = true
            $0.requestTimeout = .seconds(15)
        }
        #expect(retried(await stage.output.send(batch(0..<3))) != nil)
        #expect(try stage.brokers.records().isEmpty)
    }

    @Test(
        "a property or combination that librdkafka refuses is an error with its message",
        arguments: [
            (["no.such.property": "1"], "No such configuration property"), (["linger.ms": "x"], "linger.ms"),
            (["max.in.flight.requests.per.connection": "100"], "max.in.flight"),
        ])
    func refusedProperties(properties: [String: String], words: String) throws {
        let bench = try Bench()
        var options = KafkaOptions(DestinationSettings(kafka: ["127.0.0.1:1"], tls: false))
        options.kafka.options = properties
        let error = #expect(throws: OutputError.self) {
            try KafkaOutput("main", options, on: bench.loop, log: Log(bench.log))
        }
        #expect(
            error?.code == .invalidSetting && error?.message.contains(words) == true,
            "\(String(describing: error))")
    }

    @Test("brokers restart under load: every event is stored, and repeats have equal ids and bytes")
    func outages() async throws {
        let stage = try Stage(search: .milliseconds(200)) {
            $0.requestTimeout = .seconds(5)
        }
        let output = stage.output
        let lanes = (0..<3).map { lane in
            Task {
                for number in stride(from: lane, to: 120, by: 3) {
                    guard await deliver(batch(number * 20..<number * 20 + 20, id: UInt64(number)), output)
                    else {
                        return false
                    }
                }
                return true
            }
        }
        for round in 1...5 {
            #expect(try await eventually { try stage.brokers.records().count >= round * 300 })
            try stage.brokers.say("down \(round % 4)")
            try stage.brokers.say("errors 0 7 6 20")
            try stage.brokers.say("up 0")
        }
        for lane in lanes { #expect(await lane.value) }
        // What is stored is what a new consumer finds: the first one has been through the outages too, and may wait for an answer
        // from a broker that went down.
        try stage.brokers.say("again")
        var records = try await stage.records(2400)
        #expect(
            try await eventually {
                records = try stage.brokers.records().map { try Record($0) }
                return Set(records.compactMap(\.number)).count == 2400
            })
        for (id, copies) in Dictionary(grouping: records, by: { $0.headers["event_id"] }) {
            #expect(Set(copies.map(\.value)).count == 1, "\(id ?? "") differs")
        }
        print("Kafka brokers down and up: 2400 events, \(records.count - 2400) repeats")
    }
}
