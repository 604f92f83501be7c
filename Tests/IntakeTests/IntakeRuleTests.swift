import Containers
import Control
import EventLoops
import Events
import Frames
import Logs
import Model
import Queue
import Spool
import TestKit
import Testing

@testable import Intake

/// Functions that answer when the test says so; on the reader's loop.
private final class HeldFunctions: FunctionCaller {
    private(set) var calls: [FunctionCall] = []
    private var waiting: [(JSONValue) -> Void] = []

    var hasFunctions: Bool { true }

    func cachedResult(of call: FunctionCall) -> JSONValue? { nil }

    func call(_ call: FunctionCall, for app: String, answer: @escaping (JSONValue) -> Void) {
        calls.append(call)
        waiting.append(answer)
    }

    func answerAll(_ value: JSONValue) {
        let answered = waiting
        waiting = []
        for answer in answered { answer(value) }
    }
}

/// An intake with containers on a reader's loop of its own, and a real queue behind it.
actor RuleHost {
    let loop: EventLoop
    let store: QueueStore
    let inForce = ContainersInForce()
    nonisolated let log = KeptLog()
    private let functions = HeldFunctions()
    private let figures = IntakeFigures()
    private var intake: Intake?
    private let rules: IntakeRules

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        in directory: TemporaryDirectory, storeLoop: EventLoop, loop: EventLoop, time: ManualTime,
        memory: [String: [UInt8]] = [:], byDefault: [String] = ["main"],
        events: EventOptions = .withoutSessions, schemas: SchemaRules = SchemaRules()
    ) throws {
        self.loop = loop
        let options = QueueOptions(
            stateDirectory: "\(directory.path)/state", destinations: ["main", "ga4", "other"])
        store = try QueueStore(options, on: storeLoop, time: time, log: Log(KeptLog())) { _ in }
        let limits = ChunkLimits(batchEvents: 50, batchBytes: 1 << 20, cap: 10 << 20)
        let table = RouteTable(
            destinations: ["main", "ga4", "other"].map {
                RouteTable.Destination(name: $0, compression: .gzip, batches: limits)
            }, standard: limits)
        var settings = IntakeSettings(
            events: events, routes: [table.route(to: byDefault)], table: table, cap: 10 << 20)
        settings.schemas = schemas
        rules = IntakeRules(inForce, functions: functions, figures: figures)
        intake = Intake(
            settings, store: store, memory: memory, figures: figures, clock: ClockTrust { true },
            rules: rules,
            on: loop, time: time, log: Log(log))
    }

    func publish(
        _ documents: String..., mayCall: Set<String> = [], awaiting awaited: [AwaitedContainer] = []
    ) throws {
        inForce.publish(
            try documents.map { text in
                try CompiledContainer(try ContainerDocument(reading: Array(text.utf8)), mayCall: mayCall)
            }, awaiting: awaited)
    }

    func withdraw() { inForce.publish([]) }

    func await(_ apps: Set<String>) {
        inForce.publish([], awaiting: [AwaitedContainer(id: "GTM-1", apps: apps)])
    }
    func documentsChanged() { rules.documentsChanged() }

    func quarantined() async throws -> [QuarantineRecord] {
        try await store.quarantined(RecordSelection(), after: 0).map(\.record)
    }

    func quarantine(_ content: String) {
        intake?.quarantine(
            QuarantineRecord(
                reason: .tooLong, detail: "", app: "shop", path: "a", offset: 0, length: 9000,
                content: Array(content.utf8), time: Timestamp(milliseconds: 0)))
    }

    /// Offers lines once.
    func take(_ lines: [String], app: String = "shop") -> Int {
        let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
        return bytes.withUnsafeBytes { raw in
            intake?.take(raw, from: SpoolSource(app: app, path: "a.jsonl", producer: [1]), at: 0) ?? 0
        }
    }

    private var resumed: [String] = []

    /// Offers a line; one that is not taken is parked, and stands in `takeResumed` when it is to be offered again.
    func offer(_ line: String, app: String = "shop") -> Bool {
        if take([line], app: app) > 0 { return true }
        #expect(intake?.park { self.resumed.append(line) } == true)
        return false
    }

    func takeResumed() -> [String] {
        defer { resumed = [] }
        return resumed
    }

    func commit() async throws { try await intake?.commit(SpoolProgress()) }

    func takeAndCommit(_ lines: [String], app: String = "shop") async throws {
        #expect(take(lines, app: app) == lines.reduce(0) { $0 + $1.utf8.count + 1 })
        try await commit()
    }

    /// What the agent does when reading has ended.
    func stop() async throws {
        var left = Commit()
        left.memory = intake?.takeLeftCalls() ?? [:]
        if !left.memory.isEmpty { _ = try await store.store(left) }
    }

    /// The calls that a stop would store.
    func leftCalls() -> [String: [UInt8]?] { intake?.takeLeftCalls() ?? [:] }

    func calls() -> [FunctionCall] { functions.calls }
    func answer(_ value: JSONValue) { functions.answerAll(value) }
    func counts() -> IntakeFigures.Counts { figures.counts }
    func restored() async throws -> [String: [UInt8]] { try await store.restore().memory }

    func lines(of destination: DestinationName, _ priority: Priority) async throws -> [JSONValue] {
        var lines: [JSONValue] = []
        let decompressor = FrameDecompressor()
        let request = LeaseRequest(
            destination: destination, priority: priority, maxEvents: 1000, maxBytes: 1 << 20)
        while let batch = try await store.leaseNext(request) {
            for part in batch.parts {
                let bytes = try decompressor.decompress(part.frame, part.compression, limit: part.bytes)
                let all = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
                lines += try all[part.events].map { try JSONValue(parsing: $0) }
            }
            _ = try await store.settle(.acknowledged(batch.header))
        }
        return lines
    }

    func names(of destination: DestinationName, _ priority: Priority = .normal) async throws -> [String] {
        try await lines(of: destination, priority).compactMap { $0["name"]?.string }
    }
}

extension EventOptions {
    static var withoutSessions: EventOptions {
        var options = EventOptions()
        options.session.mode = .off
        return options
    }
}

@Suite("Containers in the intake")
struct IntakeRuleTests {
    private let directory: TemporaryDirectory
    private let time = ManualTime()

    init() throws { directory = try TemporaryDirectory() }

    func withHost(
        memory: [String: [UInt8]] = [:], byDefault: [String] = ["main"],
        events: EventOptions = .withoutSessions,
        _ body: (RuleHost) async throws -> Void
    ) async throws {
        let reader = try EventLoop(name: "reader")
        let storeLoop = try EventLoop(name: "store")
        try reader.start()
        try storeLoop.start()
        defer {
            reader.stop()
            storeLoop.stop()
        }
        let host = try RuleHost(
            in: directory, storeLoop: storeLoop, loop: reader, time: time, memory: memory,
            byDefault: byDefault,
            events: events)
        try await body(host)
        let snapshot = host.store.snapshot
        #expect(snapshot.lanes.allSatisfy { $0.ledger.balances })
        #expect(snapshot.intake.balances)
        await host.store.close()
    }

    static let document = """
        {"id": "GTM-1", "version": 1,
         "macros": {"user": {"type": "event_property", "path": "user"}},
         "rules": {"noise": {"conditions": [{"macro": "event", "equals": "Noise"}]},
                   "buy": {"conditions": [{"macro": "event", "equals": "Bought"}]},
                   "seen": {"conditions": [{"macro": "event", "equals": "Seen"}]},
                   "lost": {"conditions": [{"macro": "event", "equals": "Lost"}]}},
         "tags": [{"name": "no noise", "type": "discard", "rules": ["noise"]},
                  {"name": "buyers first", "type": "prioritise", "priority": "critical", "rules": ["buy"]},
                  {"name": "hide user", "type": "redact", "paths": ["properties.user"], "rules": ["buy"]},
                  {"name": "seen to ga4", "type": "ship", "destinations": ["ga4", "other"], "rules": ["seen"]},
                  {"name": "to nobody", "type": "ship", "destinations": ["unknown"], "rules": ["lost"]}]}
        """

    @Test("tm15: tags decide which events are queued, for whom, how urgently, and with which members")
    func tm15_tagsInTheIntake() async throws {
        try await withHost { host in
            try await host.publish(Self.document)
            try await host.takeAndCommit([
                #"{"name":"Noise"}"#, #"{"name":"Bought","properties":{"user":"u1","sum":5}}"#,
                #"{"name":"Seen"}"#,
                #"{"name":"Other"}"#, #"{"name":"Noise"}"#, #"{"name":"Lost"}"#,
            ])
            let bought = try #require(try await host.lines(of: "main", .critical).first)
            #expect(bought["name"] == "Bought")
            #expect(bought["properties"] == ["sum": 5])
            #expect(bought["id"] != nil)
            #expect(try await host.names(of: "main") == ["Other", "Lost"])
            #expect(try await host.names(of: "ga4") == ["Seen"])
            #expect(try await host.names(of: "other") == ["Seen"])
            // Every discard is in the ledger by rule name.
            let discarded = host.store.snapshot.discarded
            #expect(discarded.map(\.reason) == ["GTM-1/noise"])
            #expect(discarded.map(\.events) == [2])
            #expect(host.store.snapshot.intake.accepted == 6)
            #expect(await host.counts().rules.problems[.unknownDestination] == 1)
        }
    }

    @Test("tm15: ship reaches destinations that get nothing by default")
    func tm15_shipAlone() async throws {
        try await withHost(byDefault: []) { host in
            try await host.publish(Self.document)
            try await host.takeAndCommit([#"{"name":"Seen"}"#, #"{"name":"Other"}"#])
            #expect(try await host.names(of: "ga4") == ["Seen"])
            #expect(host.store.snapshot.discarded.map(\.reason) == ["no_destination"])
        }
    }

    @Test("a new version, or its withdrawal, takes effect between two events, and none is lost")
    func versions() async throws {
        try await withHost { host in
            try await host.takeAndCommit([#"{"name":"Noise"}"#])
            try await host.publish(Self.document)
            try await host.takeAndCommit([#"{"name":"Noise"}"#])
            host.inForce.publish([])
            try await host.takeAndCommit([#"{"name":"Noise"}"#])
            #expect(try await host.names(of: "main") == ["Noise", "Noise"])
            #expect(host.store.snapshot.discarded.map(\.events) == [1])
        }
    }

    @Test("a new version that samples one name to 10 % and makes another critical loses no event")
    func newVersionUnderLoad() async throws {
        func document(_ version: Int, _ tags: String) -> String {
            """
            {"id": "GTM-1", "version": \(version),
             "rules": {"video": {"conditions": [{"macro": "event", "equals": "Video clicked"}]},
                       "buy": {"conditions": [{"macro": "event", "equals": "Bought"}]}},
             "tags": [\(tags)]}
            """
        }
        let sample = #"{"name": "a tenth", "type": "sample", "rate": 0.1, "rules": ["video"]}"#
        let urgent =
            #"{"name": "buyers first", "type": "prioritise", "priority": "critical", "rules": ["buy"]}"#
        try await withHost { host in
            try await host.publish(document(1, ""))
            let names = ["Video clicked", "Bought", "Start"]
            for block in 0..<20 {
                if block == 10 { try await host.publish(document(2, "\(sample), \(urgent)")) }
                let lines = (0..<150).map { "{\"name\":\"\(names[$0 % 3])\",\"id\":\"\(block)-\($0)\"}" }
                try await host.takeAndCommit(lines)
            }
            let normal = try await host.lines(of: "main", .normal)
            let critical = try await host.lines(of: "main", .critical)
            let discarded = host.store.snapshot.discarded
            #expect(discarded.map(\.reason) == ["GTM-1/video"])
            let count = discarded.reduce(0) { $0 + $1.events }
            #expect((420...480).contains(count))
            #expect(normal.count + critical.count + count == 3000)
            let ids = Set((normal + critical).compactMap { $0["id"]?.string })
            #expect(ids.count == 3000 - count)
            #expect(critical.count == 500)
            #expect(critical.allSatisfy { $0["name"] == "Bought" })
            #expect(host.store.snapshot.intake.accepted == 3000)
        }
    }

    static let redacting = """
        {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}},
         "macros": {"copy": {"type": "event_member", "path": "text"}},
         "tags": [{"name": "hide", "type": "redact", "rules": ["all"], "paths": ["properties.email"]},
                  {"name": "a", "type": "set", "rules": ["all"], "path": "a", "value": {"macro": "copy"}},
                  {"name": "b", "type": "set", "rules": ["all"], "path": "b", "value": {"macro": "copy"}}]}
        """

    @Test("tm15: an event that tags make too large, and a line that is no event, are quarantined redacted")
    func tm15_quarantinedRedacted() async throws {
        try await withHost { host in
            try await host.publish(Self.redacting)
            let text = String(repeating: "t", count: 500_000)
            let large = "{\"name\":\"Large\",\"properties\":{\"email\":\"SECRET\"},\"text\":\"\(text)\"}"
            try await host.takeAndCommit([
                large, #"{"name":"Small","properties":{"email":"SECRET"}}"#,
                #"{"properties":{"email":"SECRET"}}"#,
                #"{"name":"Torn","properties":{"email":"SECRET"#,
            ])
            await host.quarantine("SECRET")
            try await host.commit()
            let sent = try await host.lines(of: "main", .normal)
            #expect(sent.compactMap { $0["name"]?.string } == ["Small", "log"])
            #expect(sent.allSatisfy { !"\($0)".contains("SECRET") })
            let kept = try await host.quarantined()
            #expect(kept.map(\.reason) == [.madeTooLarge, .cutShort, .tooLong])
            for record in kept {
                #expect(
                    !String(decoding: record.content, as: UTF8.self).contains("SECRET"), "\(record.reason)")
                #expect(!record.detail.contains("SECRET"))
                #expect(record.length != record.content.count, "it would be taken for the whole line")
            }
            #expect(kept[0].content.starts(with: Array(#"{"name":"Large""#.utf8)))
            let counts = await host.counts()
            #expect(counts.rules.problems[.tooLarge] == 1)
            #expect(counts.quarantined[.madeTooLarge] == 1)
            // A line of its own in the log, with the tags that did it, whatever else went to the quarantine.
            let told = host.log.messages.filter {
                $0.text == "tags made events too large, they are in quarantine"
            }
            #expect(told.count == 1 && told.first?.level == .warning)
            let fields = Dictionary(uniqueKeysWithValues: told.first?.fields.map { ($0.key, $0.value) } ?? [])
            #expect(fields["count"] == "1" && fields["app"] == "shop")
            #expect(fields["tags"]?.hasPrefix("GTM-1/") == true)
            #expect(!host.log.messages.contains { "\($0.fields)".contains("SECRET") })
        }
    }

    @Test("tm02: without a required document, events stay in the spool; they continue with it")
    func tm02_required() async throws {
        try await withHost { host in
            await host.await(["shop"])
            let line = #"{"name":"n","properties":{"email":"SECRET"}}"#
            #expect(await !host.offer(line))
            try await host.takeAndCommit([#"{"name":"free"}"#], app: "other")
            await host.documentsChanged()
            #expect(await host.takeResumed() == [line])
            #expect(await !host.offer(line))
            // What cannot be an event is kept as its shape: what is to be hidden is not known yet.
            await host.quarantine("SECRET")
            try await host.commit()
            #expect(try await host.quarantined().map(\.content) == [Array("xxxxx".utf8)])
            try await host.publish(Self.redacting)
            await host.documentsChanged()
            #expect(await host.takeResumed() == [line])
            try await host.takeAndCommit([line])
            #expect(try await host.lines(of: "main", .normal).map { $0["properties"] } == [nil, [:]])
        }
    }

    @Test(
        "while a reload is applied, what cannot be an event is kept as it came, unless a new container may hide it"
    )
    func reloadHidesNothingMore() async throws {
        try await withHost { host in
            try await host.publish(awaiting: [.reload])
            #expect(await !host.offer(#"{"name":"n"}"#))
            await host.quarantine(#"{"name":"n","properties":{"k":"kept""#)
            try await host.commit()
            let kept = try await host.quarantined().map { String(decoding: $0.content, as: UTF8.self) }
            #expect(kept == [#"{"name":"n","properties":{"k":"kept""#])
            // A container that the reload has added may hide more.
            let added = AwaitedContainer(id: "GTM-2", apps: ["shop"])
            try await host.publish(awaiting: [.reload, added])
            await host.quarantine("SECRET")
            try await host.commit()
            #expect(try await host.quarantined().map(\.content).last == Array("xxxxx".utf8))
        }
    }

    static let asking = """
        {"id": "GTM-1", "version": 1,
         "macros": {"plan": {"type": "function_call", "function": "plan", "parameters": {"event": {"macro": "event"}}}},
         "rules": {"free": {"conditions": [{"macro": "event", "starts_with": "Ask"}, {"macro": "plan", "equals": "free"}]}},
         "tags": [{"name": "only paying", "type": "discard", "rules": ["free"]}]}
        """

    @Test(
        "tm14: an event that needs a function waits for it in the spool; events before it become durable meanwhile"
    )
    func tm14_waiting() async throws {
        try await withHost { host in
            try await host.publish(Self.asking, mayCall: ["plan"])
            let first = #"{"name":"First"}"#
            let lines = [first, #"{"name":"Ask"}"#, #"{"name":"Last"}"#]
            #expect(await host.take(lines) == first.utf8.count + 1)
            async let committed: Void = host.commit()
            #expect(
                await eventually { await host.calls().count == 1 && host.store.snapshot.intake.accepted == 1 }
            )
            // Offered again too early, nothing is taken and nobody is asked again.
            #expect(await host.take(Array(lines.dropFirst())) == 0)
            #expect(await host.calls().count == 1)
            await host.answer("free")
            try await committed
            try await host.takeAndCommit(Array(lines.dropFirst()))
            #expect(try await host.names(of: "main") == ["First", "Last"])
            #expect(host.store.snapshot.discarded.map(\.reason) == ["GTM-1/free"])
            #expect(await host.calls() == [FunctionCall(function: "plan", parameters: ["event": "Ask"])])
            // An answer serves the event that asked; without a cache the next one asks again.
            #expect(await host.take([#"{"name":"Ask"}"#]) == 0)
            await host.answer(.null)
            try await host.commit()
            try await host.takeAndCommit([#"{"name":"Ask"}"#])
            #expect(try await host.names(of: "main") == ["Ask"])
        }
    }

    @Test("tm14: files beyond the number that may call wait for a slot; each is woken, and none calls twice")
    func tm14_manyWait() async throws {
        try await withHost { host in
            try await host.publish(Self.asking, mayCall: ["plan"])
            var waiting = Set((0..<200).map { "{\"name\":\"Ask\($0)\"}" })
            for line in waiting { #expect(await !host.offer(line)) }
            #expect(await host.calls().count == 64)
            while !waiting.isEmpty {
                await host.answer("paying")
                let woken = await host.takeResumed()
                try #require(!woken.isEmpty, "\(waiting.count) wait for ever")
                for line in woken where await host.offer(line) { waiting.remove(line) }
            }
            try await host.commit()
            #expect(try await host.names(of: "main").count == 200)
            #expect(await host.calls().count == 200)
        }
    }

    @Test(
        "tm14: an app whose files wait for a slow function leaves slots to other apps, and waiting files are counted"
    )
    func tm14_placesOfApps() async throws {
        try await withHost { host in
            try await host.publish(Self.asking, mayCall: ["plan"])
            for number in 0..<200 { #expect(await !host.offer("{\"name\":\"Ask\(number)\"}")) }
            #expect(await host.calls().count == 64)
            #expect(await !host.offer(#"{"name":"AskB"}"#, app: "b"))
            #expect(await host.calls().last?.parameters == ["event": "AskB"])
            #expect(await host.counts().waiting == ["plan": ["shop": 200, "b": 1]])
            await host.answer("paying")
            #expect(await host.takeResumed().contains(#"{"name":"AskB"}"#))
            #expect(await host.counts().waiting["plan"]?["b"] == nil)
        }
    }

    static let calling = """
        {"id": "GTM-1", "version": 1, "rules": {"buy": {"conditions": [{"macro": "event", "equals": "Bought"}]}},
         "tags": [{"name": "tell", "type": "function", "function": "tell", "parameters": {"what": {"macro": "event"}}, "rules": ["buy"]}]}
        """

    @Test(
        "tm14: a tag's function is called after the commit, and again after a crash in between: at least once"
    )
    func tm14_tagsCallAfterTheCommit() async throws {
        let call = FunctionCall(function: "tell", parameters: ["what": "Bought"])
        try await withHost { host in
            try await host.publish(Self.calling, mayCall: ["tell"])
            #expect(await host.take([#"{"name":"Bought"}"#]) > 0)
            #expect(await host.calls().isEmpty)
            try await host.commit()
            #expect(await host.calls() == [call])
        }
        // It never answered: the next process finds the call in the queue, and makes it at once, without an event.
        var memory: [String: [UInt8]] = [:]
        try await withHost { memory = try await $0.restored() }
        #expect(memory["calls"] != nil)
        try await withHost(memory: memory) { host in
            try await host.publish(Self.calling, mayCall: ["tell"])
            #expect(await eventually { await host.calls() == [call] })
            await host.answer(.null)
            try await host.takeAndCommit([#"{"name":"Other"}"#])
            #expect(try await host.restored()["calls"] == nil)
        }
    }

    @Test("after an orderly stop only unmade calls remain, and none of events that will be read again")
    func callsAtAStop() async throws {
        var memory: [String: [UInt8]] = [:]
        try await withHost { host in
            try await host.publish(Self.calling, mayCall: ["tell"])
            try await host.takeAndCommit([#"{"name":"Bought"}"#, #"{"name":"Bought"}"#])
            await host.answer(.null)
            #expect(await host.take([#"{"name":"Bought"}"#]) > 0)
            try await host.stop()
            memory = try await host.restored()
        }
        #expect(memory["calls"] == nil)
        try await withHost { host in
            try await host.publish(Self.calling, mayCall: ["tell"])
            try await host.takeAndCommit([#"{"name":"Bought"}"#])
            try await host.stop()
            memory = try await host.restored()
        }
        #expect(memory["calls"] != nil)
    }

    @Test("tm14: unanswered calls of tags stop the reading before they fill the memory")
    func tm14_callsAreBounded() async throws {
        try await withHost { host in
            try await host.publish(Self.calling, mayCall: ["tell"])
            let lines = Array(repeating: #"{"name":"Bought"}"#, count: 300)
            let taken = await host.take(lines)
            #expect(taken == 256 * (lines[0].utf8.count + 1))
            async let committed: Void = host.commit()
            #expect(await eventually { await host.calls().count == 256 })
            try await committed
            // Another app's events are read on.
            #expect(await host.take([lines[0]], app: "b") > 0)
            try await host.commit()
            // What comes now waits for room, not for a commit.
            #expect(await !host.offer(lines[0]))
            #expect(await host.takeResumed().isEmpty)
            await host.answer(.null)
            #expect(await host.takeResumed() == [lines[0]])
            #expect(await host.take(Array(lines.prefix(44))) == 44 * (lines[0].utf8.count + 1))
            try await host.commit()
            #expect(await host.calls().count == 301)
        }
    }

    @Test("tm11: data_layer lines are durable pushes that change the layer, and are not events")
    func tm11_pushesInTheIntake() async throws {
        let document = """
            {"id": "GTM-1", "version": 1, "macros": {"plan": {"type": "data_layer", "path": "plan"}},
             "rules": {"all": {"conditions": []}},
             "tags": [{"name": "plan", "type": "set", "path": "plan", "value": {"macro": "plan"}, "rules": ["all"]}]}
            """
        var memory: [String: [UInt8]] = [:]
        try await withHost { host in
            try await host.publish(document)
            try await host.takeAndCommit([#"{"type":"data_layer","plan":"gold"}"#, #"{"name":"a"}"#])
            #expect(try await host.lines(of: "main", .normal).map { $0["plan"] } == ["gold"])
            #expect(host.store.snapshot.intake.read == 1)
            memory = try await host.restored()
        }
        try await withHost(memory: memory) { host in
            try await host.publish(document)
            try await host.takeAndCommit([#"{"name":"b"}"#])
            #expect(try await host.lines(of: "main", .normal).map { $0["plan"] } == ["gold"])
            // Of another app nothing is known.
            try await host.takeAndCommit([#"{"name":"c"}"#], app: "other")
            #expect(try await host.lines(of: "main", .normal).map { $0["plan"] } == [.null])
        }
    }

    @Test("endless different sets of destinations do not fill the memory, and lose nothing")
    func manyRoutes() async throws {
        try await withHost { host in
            for round in 0..<200 {
                let names = ["ga4", "other", "main"].filter { _ in round % 3 > 0 } + ["x\(round)"]
                let list = names.map { "\"\($0)\"" }.joined(separator: ",")
                try await host.publish(
                    """
                    {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}},
                     "tags": [{"name": "s", "type": "ship", "destinations": [\(list)], "rules": ["all"]}]}
                    """)
                try await host.takeAndCommit([#"{"name":"n"}"#])
            }
            #expect(try await host.names(of: "main").count == 200)
        }
    }

    @Test(
        "calls of a commit that fails are not left for the next start: their events are read again and ask again"
    )
    func callsOfAFailedCommit() async throws {
        try await withHost { host in
            try await host.publish(Self.calling, mayCall: ["tell"])
            try await host.takeAndCommit([#"{"name":"Bought"}"#])
            #expect(await host.calls().count == 1)
            #expect(await host.take([#"{"name":"Bought"}"#]) > 0)
            await host.store.close()
            await #expect(throws: (any Error).self) { try await host.commit() }
            await host.answer(.null)
            let left = await host.leftCalls()
            #expect(left.count == 1 && left.values.allSatisfy { $0 == nil }, "\(left)")
            #expect(await host.calls().count == 1)
        }
    }
}
