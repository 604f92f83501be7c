import EventLoops
import Events
import Logs
import Model
import Spool
import Synchronization
import TestKit
import Testing

@testable import Intake

/// A queue that keeps what commits store: what an agent finds after its death.
private final class KeepingStore: CommitStore {
    struct Stored {
        var memory: [String: [UInt8]] = [:]
        var accepted = 0
        var repeats = 0
    }

    let stored = Mutex(Stored())

    var storesNothing: Bool { false }

    func store(_ commit: Commit) async throws -> StoreResult {
        stored.withLock { stored in
            stored.accepted += commit.chunks.reduce(0) { $0 + $1.events }
            stored.repeats += commit.notStored.reduce(0) {
                $0 + ($1.fate == .discarded(reason: "repeat") ? $1.events : 0)
            }
            for (name, value) in commit.memory { stored.memory[name] = value }
        }
        return .stored(refused: 0)
    }

    func sync() async throws {}

    func mustStay(_ file: [UInt8]) -> Bool { false }
}

/// The intakes of one life of an agent: the spool's, and one of files that are read in place.
private actor Life {
    let loop: EventLoop
    private let spool: Intake
    private let place: Intake
    let window: RepeatWindow

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        _ store: KeepingStore, on loop: EventLoop, time: ManualTime, window: Duration = .seconds(86_400),
        most: Int = 1000, isTrusted: Bool = true
    ) {
        self.loop = loop
        let limits = ChunkLimits(batchEvents: 50, batchBytes: 1 << 20, cap: 10 << 20)
        let route = Route(destinations: ["main"], compression: .none, chunks: limits, batchFrom: nil)
        var settings = IntakeSettings(
            events: .withoutSessions, routes: [route], table: RouteTable(standard: limits), cap: 10 << 20)
        settings.repeats = RepeatSettings(window: window, most: most)
        let repeats = RepeatWindow()
        self.window = repeats
        let memory = store.stored.withLock { $0.memory }
        func intake(_ place: String?) -> Intake {
            Intake(
                settings, ofPlace: place, store: store, memory: memory, figures: IntakeFigures(),
                clock: ClockTrust { isTrusted }, repeats: repeats, on: loop, time: time, log: Log(KeptLog()))
        }
        spool = intake(nil)
        place = intake("web/var/log")
    }

    private func intake(isPlace: Bool) -> Intake { isPlace ? place : spool }

    func take(_ lines: [String], of app: String = "shop", inPlace: Bool = false) {
        let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
        let taken = bytes.withUnsafeBytes { raw in
            intake(isPlace: inPlace).take(
                raw, from: SpoolSource(app: app, path: "a.jsonl", producer: [1]), at: 0)
        }
        #expect(taken == bytes.count)
    }

    func commit(inPlace: Bool = false) async throws {
        try await intake(isPlace: inPlace).commit(SpoolProgress())
    }

    var figures: RepeatFigures { window.counts }
}

@Suite("Repeats by event id")
struct RepeatTests {
    private let time = ManualTime()
    private let store = KeepingStore()

    private func live(_ body: (EventLoop) async throws -> Void) async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        try await body(loop)
    }

    private var counts: [Int] { store.stored.withLock { [$0.accepted, $0.repeats] } }

    private static func event(_ id: String) -> String { #"{"name":"bought","id":"\#(id)"}"# }

    @Test(
        "of three events with one id one is accepted, and the others are discarded and counted, in any commit"
    )
    func repeats() async throws {
        try await live { loop in
            let life = Life(store, on: loop, time: time)
            await life.take([RepeatTests.event("a"), RepeatTests.event("b"), RepeatTests.event("a")])
            try await life.commit()
            await life.take([RepeatTests.event("a")])
            await life.take([RepeatTests.event("b")], inPlace: true)
            try await life.commit()
            try await life.commit(inPlace: true)
            #expect(counts == [2, 3])
        }
    }

    @Test("ids belong to an app; events without an id, and records whose id is data, are never repeats")
    func others() async throws {
        try await live { loop in
            let life = Life(store, on: loop, time: time)
            await life.take([RepeatTests.event("a")])
            await life.take([RepeatTests.event("a")], of: "web")
            let free = [
                #"{"name":"bought"}"#, #"{"name":"bought","id":null}"#, #"{"id":"a","level":"info"}"#,
            ]
            await life.take(free + free)
            try await life.commit()
            #expect(counts == [8, 0])
        }
    }

    @Test("off by default: every event is accepted, and nothing is remembered")
    func off() async throws {
        try await live { loop in
            let life = Life(store, on: loop, time: time, window: .zero)
            await life.take([RepeatTests.event("a"), RepeatTests.event("a")])
            try await life.commit()
            #expect(counts == [2, 0])
            #expect(store.stored.withLock { $0.memory.isEmpty })
        }
    }

    @Test("after a restart an id is remembered exactly if its event was committed")
    func restarts() async throws {
        try await live { loop in
            let first = Life(store, on: loop, time: time)
            await first.take([RepeatTests.event("stored")])
            try await first.commit()
            await first.take([RepeatTests.event("lost")])
            await first.take([RepeatTests.event("placed")], inPlace: true)
            // The death comes before the spool's commit.
            try await first.commit(inPlace: true)
            #expect(counts == [2, 0])

            let second = Life(store, on: loop, time: time)
            await second.take(["stored", "lost", "placed"].map { RepeatTests.event($0) })
            try await second.commit()
            #expect(counts == [3, 2])
        }
    }

    @Test("the first commit of each intake stores the key of its hashes")
    func keys() async throws {
        try await live { loop in
            let first = Life(store, on: loop, time: time)
            // The spool's commit is on its way, and never arrives.
            await first.take([RepeatTests.event("lost")])
            await first.take([RepeatTests.event("placed")], inPlace: true)
            try await first.commit(inPlace: true)
            let second = Life(store, on: loop, time: time)
            await second.take([RepeatTests.event("placed")])
            try await second.commit()
            #expect(counts == [1, 1])
        }
    }

    @Test("an id and its row are forgotten after the window, unless the clock is not trusted")
    func window() async throws {
        try await live { loop in
            let life = Life(store, on: loop, time: time, window: .seconds(3600))
            await life.take([RepeatTests.event("a")])
            try await life.commit()
            time.advance(by: .seconds(3600))
            await life.take([RepeatTests.event("a")])
            try await life.commit()
            #expect(counts == [1, 1])
            time.advance(by: .seconds(1))
            let doubtful = Life(store, on: loop, time: time, window: .seconds(3600), isTrusted: false)
            await doubtful.take([RepeatTests.event("a")])
            try await doubtful.commit()
            #expect(counts == [1, 2])
            await life.take([RepeatTests.event("a")])
            try await life.commit()
            #expect(counts == [2, 2])
            #expect(store.stored.withLock { $0.memory.keys.filter { $0 != "dedup/key" }.count } == 1)
        }
    }

    @Test("beyond the limit of ids the oldest block is forgotten, and counted")
    func bound() async throws {
        try await live { loop in
            let life = Life(store, on: loop, time: time, most: 1000)
            for number in 0..<1500 { await life.take([RepeatTests.event("\(number)")]) }
            try await life.commit()
            let figures = await life.figures
            #expect(figures.ids <= 1000 && figures.ids + figures.forgottenEarly == 1500)
            await life.take([RepeatTests.event("1499"), RepeatTests.event("0")])
            try await life.commit()
            #expect(counts == [1501, 1])
            let rows = store.stored.withLock {
                $0.memory.filter { $0.key != "dedup/key" }.values.map(\.count)
            }
            #expect(rows.allSatisfy { $0 <= 3857 } && rows.count <= 4)
        }
    }

    @Test("after switching off and on again earlier ids are forgotten")
    func turnedOff() async throws {
        try await live { loop in
            let first = Life(store, on: loop, time: time)
            await first.take([RepeatTests.event("a")])
            try await first.commit()
            let second = Life(store, on: loop, time: time, window: .zero)
            await second.take([RepeatTests.event("b")])
            try await second.commit()
            #expect(store.stored.withLock { Array($0.memory.keys) } == ["dedup/key"])
            let third = Life(store, on: loop, time: time)
            await third.take([RepeatTests.event("a")])
            try await third.commit()
            #expect(counts == [3, 0])
        }
    }

    @Test("damaged rows are removed, and the others are used")
    func damage() async throws {
        try await live { loop in
            let first = Life(store, on: loop, time: time)
            await first.take([RepeatTests.event("a")])
            try await first.commit()
            store.stored.withLock {
                $0.memory["dedup/7"] = [1, 2, 3]
                $0.memory["dedup/x"] = []
            }
            let second = Life(store, on: loop, time: time)
            await second.take([RepeatTests.event("a")])
            try await second.commit()
            #expect(counts == [1, 1])
            #expect(store.stored.withLock { $0.memory.keys.sorted() } == ["dedup/1", "dedup/key"])
        }
    }

    @Test("the hash is SipHash-2-4, by its authors' test vector")
    func hash() {
        func word(_ first: UInt8) -> UInt64 {
            (0..<8).reduce(0) { $0 | UInt64(first + UInt8($1)) << UInt64(8 * $1) }
        }
        let hash = SipHash(key: (word(0), word(8)))
        // Of the bytes 0 to 14; the byte between the texts is not part of the vector.
        let bytes = (0..<15).map { UInt8($0) }
        #expect(bytes.withUnsafeBufferPointer { hash.hash(of: $0) } == 0xA129_CA61_49BE_45E5)
    }
}
