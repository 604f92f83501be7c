import Containers
import EventLoops
import Events
import Logs
import Model
import Spool
import Synchronization
import TestKit
import Testing

@testable import Intake

/// A queue that keeps the commits.
private final class CommitKeeper: CommitStore {
    let commits = Mutex<[Commit]>([])

    var storesNothing: Bool { false }

    func store(_ commit: Commit) async throws -> StoreResult {
        commits.withLock { $0.append(commit) }
        return .stored(refused: 0)
    }

    func sync() async throws {}

    func mustStay(_ file: [UInt8]) -> Bool { false }

    /// Number of events that were stored, by their destinations.
    var stored: [[DestinationName]: Int] {
        commits.withLock { commits in
            commits.flatMap(\.chunks).reduce(into: [:]) { $0[$1.destinations, default: 0] += $1.events }
        }
    }

    /// What was not stored.
    var notStored: [NotStored] { commits.withLock { $0.flatMap(\.notStored) } }
}

/// An intake on its loop, with the destinations `main`, without a purpose, and `stats`, for analytics.
private actor ConsentIntake {
    let loop: EventLoop
    private let intake: Intake
    private var settings: IntakeSettings

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ store: CommitKeeper, on loop: EventLoop, _ rules: ConsentRules, sessions: Bool = false) {
        self.loop = loop
        let limits = ChunkLimits(batchEvents: 50, batchBytes: 1 << 20, cap: 10 << 20)
        let table = RouteTable(
            destinations: ["main", "stats"].map {
                RouteTable.Destination(name: $0, compression: .none, batches: limits)
            }, standard: limits)
        settings = IntakeSettings(
            events: sessions ? EventOptions() : .withoutSessions,
            routes: [table.route(to: ["main", "stats"])], routeOfApp: [:], table: table, cap: 10 << 20)
        settings.consent = rules
        intake = Intake(
            settings, store: store, memory: [:], figures: IntakeFigures(), clock: ClockTrust { true },
            rules: IntakeRules(ContainersInForce(), functions: nil),
            on: loop, time: ManualTime(), log: Log(KeptLog()))
    }

    func take(_ lines: [String], of app: String = "shop") {
        let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
        let taken = bytes.withUnsafeBytes { raw in
            intake.take(raw, from: SpoolSource(app: app, path: "a.jsonl", producer: [1]), at: 0)
        }
        #expect(taken == bytes.count)
    }

    func use(_ rules: ConsentRules?) {
        settings.consent = rules
        intake.configure(settings)
    }

    func commit() async throws { try await intake.commit(SpoolProgress()) }
}

@Suite("Consent at reading")
struct ConsentIntakeTests {
    private static let rules = ConsentRules(purposes: ["stats": ["analytics"]], needs: ["shop": .all])

    @Test("an event goes where there is consent, and is counted as withheld elsewhere, once")
    func routing() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        let intake = ConsentIntake(store, on: loop, ConsentIntakeTests.rules)
        await intake.take([
            #"{"name":"a"}"#, #"{"name":"b","consent":{"analytics":true}}"#,
            #"{"name":"c","consent":{"analytics":false}}"#, #"{"name":"d"}"#,
        ])
        await intake.take([#"{"name":"e"}"#, #"{"name":"f","consent":false}"#], of: "web")
        try await intake.commit()
        #expect(store.stored == [["main"]: 4, ["main", "stats"]: 2])
        #expect(store.notStored.map(\.fate) == [.discarded(reason: NotStored.withheldReason)])
        #expect(store.notStored.map(\.destinations) == [["stats"]])
        #expect(store.notStored.map(\.events) == [4])
        // They are accepted with their chunks, for the other destination.
        #expect(store.notStored.map(\.isStoredForOthers) == [true])
    }

    @Test("an event that no destination may get is not stored, and counts as accepted here")
    func nowhere() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        var rules = ConsentIntakeTests.rules
        rules.purposes["main"] = ["support"]
        let intake = ConsentIntake(store, on: loop, rules)
        await intake.take([#"{"name":"a"}"#])
        try await intake.commit()
        #expect(store.stored.isEmpty)
        #expect(store.notStored.map(\.destinations) == [["main", "stats"]])
        #expect(store.notStored.map(\.isStoredForOthers) == [false])
    }

    @Test("the event of a session's start goes where the session's first event goes")
    func sessionStart() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        let intake = ConsentIntake(store, on: loop, ConsentIntakeTests.rules, sessions: true)
        await intake.take([#"{"name":"a","consent":{"analytics":true}}"#])
        try await intake.commit()
        #expect(store.stored == [["main", "stats"]: 2])
        #expect(store.notStored.isEmpty)
    }

    @Test("events of an app whose collection is off are discarded for all destinations; others are not")
    func disabled() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        var rules = ConsentRules(purposes: [:])
        rules.states.setDisabled(true, "shop")
        let intake = ConsentIntake(store, on: loop, rules)
        await intake.take([#"{"name":"a","consent":true}"#, #"{"name":"b"}"#])
        await intake.take([#"{"name":"c"}"#], of: "web")
        try await intake.commit()
        #expect(store.stored == [["main", "stats"]: 1])
        #expect(store.notStored.map(\.fate) == [.discarded(reason: "disabled")])
        #expect(store.notStored.map(\.destinations) == [["main", "stats"]])
        #expect(store.notStored.map(\.events) == [2])
    }

    @Test("consent that an app withdraws while its collection is off is withdrawn when it is on again")
    func withdrawnWhileDisabled() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        let intake = ConsentIntake(store, on: loop, ConsentIntakeTests.rules)
        await intake.take([#"{"type":"data_layer","consent":true}"#])
        var rules = ConsentIntakeTests.rules
        rules.states.setDisabled(true, "shop")
        await intake.use(rules)
        await intake.take([#"{"type":"data_layer","consent":false}"#])
        await intake.use(ConsentIntakeTests.rules)
        await intake.take([#"{"name":"a"}"#])
        try await intake.commit()
        #expect(store.stored == [["main"]: 1])
    }

    @Test("rules hold for the lines after them")
    func changedRules() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        var rules = ConsentIntakeTests.rules
        let intake = ConsentIntake(store, on: loop, rules)
        await intake.take([#"{"name":"a"}"#])
        rules.needs["shop"] = nil
        await intake.use(rules)
        await intake.take([#"{"name":"b"}"#])
        rules.needs["shop"] = .all
        await intake.use(rules)
        await intake.take([#"{"name":"c"}"#])
        await intake.use(nil)
        await intake.take([#"{"name":"d"}"#])
        try await intake.commit()
        #expect(store.stored == [["main"]: 2, ["main", "stats"]: 2])
        #expect(store.notStored.map(\.events) == [2])
    }

    @Test("what an app has pushed decides where its events say nothing; other apps have their own")
    func dataLayer() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = CommitKeeper()
        let intake = ConsentIntake(store, on: loop, ConsentIntakeTests.rules)
        let push = { (consent: String) in #"{"type":"data_layer",\#(consent)}"# }
        func stored(_ lines: String..., of app: String = "shop") async throws -> (both: Int, withheld: Int) {
            let before = (store.stored[["main", "stats"]] ?? 0, store.notStored.reduce(0) { $0 + $1.events })
            await intake.take(lines, of: app)
            try await intake.commit()
            return (
                (store.stored[["main", "stats"]] ?? 0) - before.0,
                store.notStored.reduce(0) { $0 + $1.events } - before.1
            )
        }
        #expect(try await stored(push(#""consent":{"analytics":true}"#), #"{"name":"a"}"#) == (1, 0))
        #expect(try await stored(#"{"name":"b","consent":false}"#, #"{"name":"c"}"#) == (1, 1))
        #expect(try await stored(push(#""consent":{"an\u0061lytics":"no"}"#), #"{"name":"d"}"#) == (0, 1))
        #expect(try await stored(push(#""consent":["analytics","ads"]"#), #"{"name":"e"}"#) == (1, 0))
        // A list replaces the one before.
        #expect(try await stored(push(#""consent":["ads"]"#), #"{"name":"f"}"#) == (0, 1))
        #expect(try await stored(push(#""consent":true"#), #"{"name":"g"}"#) == (1, 0))
        // An app that needs no consent can refuse all the same, in either form.
        #expect(try await stored(#"{"name":"h"}"#, of: "web") == (1, 0))
        #expect(
            try await stored(push(#""c\u006fnsent.analytics":false"#), #"{"name":"i"}"#, of: "web") == (0, 1))
        // Without room for what was pushed last, what was said before does not count.
        let large = String(repeating: "x", count: 16 << 10)
        #expect(try await stored(push(#""consent":{"\#(large)":true}"#), #"{"name":"j"}"#) == (0, 1))
        // Null says nothing, so what was said before decides.
        #expect(try await stored(push(#""consent":true"#), #"{"name":"k"}"#) == (1, 0))
        #expect(try await stored(push(#""consent":null"#), #"{"name":"l"}"#) == (1, 0))
        #expect(try await stored(push(#""consent.analytics":false"#), #"{"name":"m"}"#) == (0, 1))
        #expect(try await stored(push(#""consent":{"analytics":null}"#), #"{"name":"n"}"#) == (0, 1))
    }
}
