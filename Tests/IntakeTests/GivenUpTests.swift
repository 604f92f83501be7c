import EventLoops
import Events
import Logs
import Model
import Spool
import Synchronization
import TestKit
import Testing

@testable import Intake

/// A store without room, until somebody makes some.
private final class FullStore: CommitStore {
    let isFull = Mutex(true)
    /// How many commits are still to be told to wait although there is room: it came just then.
    let isLate = Mutex(0)
    let asked = Mutex(0)
    /// How far each commit reached that was stored.
    let stored = Mutex<[Int64]>([])

    var storesNothing: Bool { isFull.withLock { $0 } }

    func store(_ commit: Commit) async throws -> StoreResult {
        asked.withLock { $0 += 1 }
        let isLate = isLate.withLock { left in
            defer { left = max(0, left - 1) }
            return left > 0
        }
        guard !storesNothing, !isLate else { return .wait(.full) }
        stored.withLock { $0 += commit.progress.checkpoints.map(\.offset) }
        return .stored(refused: 0)
    }

    func sync() async throws {}

    func mustStay(_ file: [UInt8]) -> Bool { false }
}

/// An intake on a loop of its own.
private actor CommittingIntake {
    let loop: EventLoop
    private let intake: Intake

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ store: FullStore, on loop: EventLoop, time: ManualTime) {
        self.loop = loop
        let limits = ChunkLimits(batchEvents: 50, batchBytes: 1 << 20, cap: 10 << 20)
        let route = Route(destinations: ["main"], compression: .gzip, chunks: limits, batchFrom: nil)
        let settings = IntakeSettings(
            events: EventOptions(), routes: [route], table: RouteTable(standard: limits), cap: 10 << 20)
        intake = Intake(
            settings, store: store, memory: [:], figures: IntakeFigures(), clock: ClockTrust { true },
            tap: nil,
            on: loop, time: time, log: Log(KeptLog()))
    }

    func commit(upTo offset: Int64) async throws {
        var progress = SpoolProgress()
        progress.checkpoints = [Checkpoint(key: [1], path: "shop/a.jsonl", offset: offset, state: [])]
        try await intake.commit(progress)
    }

    func stopWaiting() { intake.stopWaiting() }
}

@Suite("Abandoned commits")
struct GivenUpTests {
    @Test("after an abandoned commit nothing is stored, even with room, because its events would be skipped")
    func nothingOvertakes() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = FullStore()
        let committer = CommittingIntake(store, on: loop, time: ManualTime())
        let first = Task { try await committer.commit(upTo: 100) }
        #expect(await eventually { store.asked.withLock { $0 } == 1 })
        await committer.stopWaiting()
        await #expect(throws: Committer.GivenUp.self) { try await first.value }
        store.isFull.withLock { $0 = false }
        await #expect(throws: Committer.GivenUp.self) { try await committer.commit(upTo: 200) }
        #expect(store.stored.withLock { $0 } == [])
    }

    @Test("the log says in words why a commit was not stored, or why a piece was refused")
    func words() {
        #expect("\(Committer.GivenUp())" == "not stored before the agent stopped")
        #expect("\(IntakeError(.later, "other events go first"))" == "other events go first")
    }

    @Test("a commit that begins after the end of waiting does not wait", .timeLimit(.minutes(1)))
    func noWaitAfterTheEnd() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let committer = CommittingIntake(FullStore(), on: loop, time: ManualTime())
        await committer.stopWaiting()
        await #expect(throws: Committer.GivenUp.self) { try await committer.commit(upTo: 100) }
    }

    @Test("room that appears between the answer and the wait is noticed", .timeLimit(.minutes(1)))
    func roomJustThen() async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        let store = FullStore()
        store.isFull.withLock { $0 = false }
        store.isLate.withLock { $0 = 2 }
        try await CommittingIntake(store, on: loop, time: ManualTime()).commit(upTo: 100)
        #expect(store.stored.withLock { $0 } == [100])
    }
}
