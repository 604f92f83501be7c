import EventLoops
import Logs
import Model
import Queue
import Synchronization
import TestKit
import Testing

@testable import Agent

@Suite("The bound of unread bytes")
struct UnreadBoundTests {
    private let start = BootInstant(nanoseconds: 0)

    @Test(
        "events are given up only above the bound, with a full queue, after 30 s without an acknowledgement")
    func evictsWhereNothingElseHelps() {
        var bound = UnreadBound(most: 1000)
        func look(_ unread: Int64, _ acknowledged: Int, _ isFull: Bool, _ seconds: Int) -> UnreadBound.Change?
        {
            bound.look(
                unread: unread, ["main": (acknowledged: acknowledged, queued: 100)], isFull: isFull,
                at: start + .seconds(seconds))
        }
        #expect(look(2000, 5, false, -30) == nil)
        #expect(look(2000, 5, false, -1) == nil, "there is room")
        #expect(look(2000, 5, true, 0) == nil)
        #expect(look(2000, 5, true, 29) == nil)
        #expect(look(1000, 5, true, 31) == nil, "at the bound, not above it")
        #expect(look(2000, 5, true, 32) == .giveUp(["main"], 1100))
        #expect(look(1500, 5, true, 33) == .giveUp(["main"], 600) && bound.behind == ["main"])
        #expect(look(901, 5, false, 34) == .giveUp(["main"], 1), "within the tenth")
        #expect(look(900, 5, false, 35) == .wait && bound.behind.isEmpty)
        #expect(look(1001, 5, true, 36) == .giveUp(["main"], 101), "still nothing was acknowledged")
        #expect(look(5000, 6, true, 37) == .wait, "a destination is back")
        #expect(look(5000, 6, true, 66) == nil)
        #expect(look(5000, 6, true, 67) == .giveUp(["main"], 4100))
    }

    @Test("only destinations that block reading give up events, not one that acknowledges or has no events")
    func healthyOnesAreLeftAlone() {
        var bound = UnreadBound(most: 1000)
        for second in 0..<300 {
            let change = bound.look(
                unread: 2000,
                [
                    "dead": (acknowledged: 5, queued: 100), "idle": (acknowledged: 7, queued: 0),
                    "busy": (acknowledged: second / 10, queued: 50),
                    "late": (acknowledged: second < 100 ? 1 : 2, queued: 100),
                ],
                isFull: true, at: start + .seconds(second))
            let isLate = 30..<100 ~= second || second >= 130
            #expect(
                change == (second < 30 ? nil : .giveUp(isLate ? ["dead", "late"] : ["dead"], 1100)),
                "\(second)")
        }
    }

    @Test("without a bound nothing is evicted")
    func noBound() {
        var bound = UnreadBound(most: 0)
        for second in 0..<100 {
            let change = bound.look(
                unread: .max, ["main": (acknowledged: 0, queued: 1)], isFull: true,
                at: start + .seconds(second * 60))
            #expect(change == nil)
        }
    }

    @Test("above the bound a full queue evicts and stores; after an acknowledgement it waits again")
    func aFullQueueEvicts() async throws {
        let directory = try TemporaryDirectory()
        let time = ManualTime()
        let log = KeptLog()
        let (loop, storeLoop) = (try EventLoop(name: "main"), try EventLoop(name: "store"))
        try loop.start()
        try storeLoop.start()
        defer {
            loop.stop()
            storeLoop.stop()
        }
        var options = QueueOptions(stateDirectory: "\(directory.path)/state", destinations: ["main"])
        options.maxSize = 32 << 10
        let queue = try QueueStore(options, on: storeLoop, time: time, log: Log(log))
        func commit() -> Commit {
            let line = Array(String(repeating: "x", count: 999).utf8) + [0x0A]
            var commit = Commit()
            commit.read = 2
            let now = time.wallTime
            commit.chunks = [
                NewChunk(
                    priority: .normal, destinations: ["main"], events: 2, bytes: 2000, eventTimes: now...now,
                    acceptedAt: now, compression: .none, frame: line + line, isFull: true)
            ]
            return commit
        }
        while case .stored = try await queue.store(commit()) {}
        #expect(queue.snapshot.accepting == .nothing(.full))

        let unread = Mutex<Int64>(5000)
        let guarding = UnreadGuard(on: loop, queue: queue, time: time, log: Log(log)) {
            unread.withLock { $0 }
        }
        await guarding.configure(most: 4000)
        await guarding.look()
        #expect(guarding.behind.isEmpty)
        time.advance(by: .seconds(31))
        await guarding.look()
        #expect(guarding.behind == ["main"])
        // 1,400 bytes are too many: the commit that passes them is the last one, however long the next look takes.
        #expect(try await queue.store(commit()) == .stored(refused: 0))
        #expect(try await queue.store(commit()) == .wait(.full))
        let evicted = queue.snapshot.lane("main", .normal)?.ledger.evicted
        #expect(evicted == 2)
        unread.withLock { $0 = 13_000 }
        await guarding.look()
        #expect(guarding.behind == ["main"])
        for _ in 0..<5 { #expect(try await queue.store(commit()) == .stored(refused: 0)) }
        #expect(try await queue.store(commit()) == .wait(.full))
        let lane = try #require(queue.snapshot.lane("main", .normal))
        #expect(lane.ledger.evicted >= 8 && lane.ledger.balances)

        let request = LeaseRequest(destination: "main", priority: .normal, maxEvents: 2, maxBytes: 1 << 20)
        let batch = try #require(try await queue.leaseNext(request))
        _ = try await queue.settle(.acknowledged(batch.header))
        let clock = SystemTime()
        let deadline = clock.bootTime + .seconds(30)
        while queue.snapshot.lane("main", .normal)?.ledger.acknowledged != 2, clock.bootTime < deadline {
            await Task.yield()
        }
        await guarding.look()
        #expect(guarding.behind.isEmpty)
        while case .stored = try await queue.store(commit()) {}
        #expect(queue.snapshot.accepting == .nothing(.full), "it waits again")
        // Other settings begin anew.
        time.advance(by: .seconds(31))
        await guarding.look()
        #expect(guarding.behind == ["main"])
        await guarding.configure(most: 0)
        #expect(guarding.behind.isEmpty)
        await queue.close()
    }
}
