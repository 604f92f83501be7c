@testable import Control
import EventLoops
import Events
import Frames
import Logs
import Model
import Queue
import Spool
import Synchronization
import TestKit
import Testing

@testable import Intake

/// Who asks the control API for events.
private final class Audience: EventAudience {
    private let tap: EventTap
    init(_ tap: EventTap) { self.tap = tap }

    var isWatched: Bool { tap.isWatched }

    func offer(app: String, priority: Priority, line: UnsafeRawBufferPointer) {
        tap.offer(app: app, priority: priority, line: line)
    }
}

/// An intake on a reader's loop of its own, and a real queue behind it.
private actor Host {
    let loop: EventLoop
    let store: QueueStore
    private var intake: Intake?
    nonisolated let figures = IntakeFigures()
    nonisolated let tap = EventTap()
    nonisolated let log = KeptLog()
    private let relay = Relay()

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Tells the intake of the queue's changes once there is one.
    private final class Relay: Sendable {
        let target = Mutex<(@Sendable (QueueSnapshot) -> Void)?>(nil)
    }

    init(
        in directory: TemporaryDirectory, storeLoop: EventLoop, loop: EventLoop, time: ManualTime,
        cap: Int = 10 << 20,
        batchEvents: Int = 50, batchFrom: Int? = nil
    ) throws {
        self.loop = loop
        var options = QueueOptions(stateDirectory: "\(directory.path)/state", destinations: ["main"])
        options.maxSize = cap
        let relay = relay
        store = try QueueStore(options, on: storeLoop, time: time, log: Log(KeptLog())) { snapshot in
            relay.target.withLock { $0 }?(snapshot)
        }
        let limits = ChunkLimits(batchEvents: batchEvents, batchBytes: 1 << 20, cap: cap)
        let settings = IntakeSettings(
            events: .withoutSessions,
            routes: [
                Route(destinations: ["main"], compression: .gzip, chunks: limits, batchFrom: batchFrom)
            ],
            table: RouteTable(standard: limits), cap: cap)
        intake = Intake(
            settings, store: store, memory: [:], figures: figures, clock: ClockTrust { true },
            tap: Audience(tap),
            on: loop, time: time, log: Log(log))
    }

    func start() {
        relay.target.withLock { target in
            target = { [weak self] snapshot in
                guard let self else { return }
                loop.post { self.assumeIsolated { $0.intake?.queueChanged() } }
            }
        }
    }

    /// Offers lines as the spool does: what is not taken is offered again after a commit has begun.
    func take(_ lines: [String], of app: String = "shop", at offset: Int64 = 0) -> Int {
        let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
        return bytes.withUnsafeBytes { raw in
            intake?.take(raw, from: SpoolSource(app: app, path: "\(app)/a.jsonl", producer: [1]), at: offset)
                ?? 0
        }
    }

    func configure(_ change: (inout IntakeSettings) -> Void) {
        guard let intake else { return }
        var settings = intake.settings
        change(&settings)
        intake.configure(settings)
    }

    func commit(_ offset: Int64 = 0) async throws {
        var progress = SpoolProgress()
        progress.checkpoints = [Checkpoint(key: [1], path: "shop/a.jsonl", offset: offset, state: [])]
        try await intake?.commit(progress)
    }

    func lines(of priority: Priority, most: Int = 1000) async throws -> [[String]] {
        var batches: [[String]] = []
        let decompressor = FrameDecompressor()
        let request = LeaseRequest(
            destination: "main", priority: priority, maxEvents: most, maxBytes: 1 << 20)
        while let batch = try await store.leaseNext(request) {
            var lines: [String] = []
            for part in batch.parts {
                let bytes = try decompressor.decompress(part.frame, part.compression, limit: part.bytes)
                let all = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
                lines += all[part.events]
            }
            batches.append(lines)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        return batches
    }
}

@Suite("Intake")
struct IntakeTests {
    private let directory: TemporaryDirectory
    private let time = ManualTime()

    init() throws { directory = try TemporaryDirectory() }

    private func withHost(
        cap: Int = 10 << 20, batchEvents: Int = 50, batchFrom: Int? = nil, _ body: (Host) async throws -> Void
    ) async throws {
        let reader = try EventLoop(name: "reader")
        let storeLoop = try EventLoop(name: "store")
        try reader.start()
        try storeLoop.start()
        defer {
            reader.stop()
            storeLoop.stop()
        }
        let host = try Host(
            in: directory, storeLoop: storeLoop, loop: reader, time: time, cap: cap, batchEvents: batchEvents,
            batchFrom: batchFrom)
        await host.start()
        try await body(host)
        await host.store.close()
    }

    @Test("JSON values that arrive one by one make no larger commit than lines that arrive together")
    func oneByOne() async throws {
        try await withHost { host in
            var taken = 0
            while taken < 100_000, await host.take(["1"], at: Int64(2 * taken)) == 2 { taken += 1 }
            #expect((100..<20_000).contains(taken))
            try await host.commit(Int64(2 * taken))
            #expect(await host.take(["1"], at: Int64(2 * taken)) == 2)
        }
    }

    @Test("pieces of two streams are joined across commits: no line of a container is torn, lost or repeated")
    func streams() async throws {
        try await withHost(cap: 4 << 20) { host in
            await host.configure {
                $0.events.defaults.kind = .log
                $0.events.defaults.text = .lines
                $0.events.defaults.format = .cri
            }
            var random = SplitMix64(seed: 7)
            var (lines, expected): ([String], Set<String>) = ([], [])
            for number in 0..<300 {
                let pieces = (0..<6).map { piece in
                    "\(number)-\(piece)-" + (0..<150).map { _ in String(random.next(), radix: 36) }.joined()
                }
                for (place, piece) in pieces.enumerated() {
                    lines.append("2026-11-20T10:00:00Z stdout \(place == 5 ? "F" : "P") \(piece)")
                    lines.append("2026-11-20T10:00:00Z stderr F \(number)-\(place)")
                    expected.insert("\(number)-\(place)")
                }
                expected.insert(pieces.joined())
            }
            var (offset, commits) = (0, 0)
            while offset < lines.count {
                let taken = await host.take(Array(lines[offset...]))
                var (count, bytes) = (0, 0)
                while bytes < taken {
                    bytes += lines[offset + count].utf8.count + 1
                    count += 1
                }
                try #require(bytes == taken && count > 0)
                offset += count
                // What is not committed now is read again after a crash: so nothing that was taken may reach beyond it.
                #expect(offset == lines.count || lines[offset].contains("-0-"), "\(lines[offset].prefix(60))")
                try await host.commit(Int64(offset))
                commits += 1
            }
            #expect(commits > 2)
            let found = try await host.lines(of: .normal).joined().compactMap {
                (try? JSONValue(parsing: $0))?.members?.first { $0.key == "message" }?.value.string
            }
            #expect(found.count == expected.count && Set(found) == expected)
        }
    }

    @Test("a watcher of an app sees its events as they are queued")
    func watchersSeeEvents() async throws {
        try await withHost { host in
            _ = await host.take([#"{"name":"before"}"#])
            let watcher = host.tap.add(.init(app: "shop", priority: .critical))
            let other = host.tap.add(.init(app: "bank"))
            _ = await host.take([#"{"name":"seen","priority":"critical"}"#, #"{"name":"normal"}"#])
            host.tap.remove(watcher)
            _ = await host.take([#"{"name":"after","priority":"critical"}"#])
            try await host.commit()
            let seen = try #require(await watcher.next())
            let queued = try await host.lines(of: .critical).joined()
            #expect(
                queued.count == 2 && String(decoding: seen.lines, as: UTF8.self) == "\(queued.first ?? "")\n")
            #expect(host.tap.isWatched)
            host.tap.remove(other)
            #expect(!host.tap.isWatched)
        }
    }

    @Test(
        "each app's figures count what it wrote, and their sum equals the ledger; apps beyond the limit share one"
    )
    func apps() async throws {
        try await withHost { host in
            var chance = SplitMix64(seed: Seeds.one(29))
            var expected: [String: AppCounts] = [:]
            for round in 0..<1_500 {
                // A few apps that write often among many that write once.
                let app = round % 3 == 0 ? "busy-\(round % 5)" : "app-\(round)"
                let lines = (0..<Int.random(in: 1...4, using: &chance)).map { _ in
                    ["{\"name\":\"n\"}", "{\"message\":\"m\"}", "{broken"].randomElement(using: &chance) ?? ""
                }
                let taken = await host.take(lines, of: app)
                var counts = AppCounts()
                counts.bytes = taken
                counts.quarantined = lines.count { !$0.hasSuffix("}") }
                counts.events = lines.count - counts.quarantined
                counts.records = lines.count { $0.contains("message") }
                counts.lastRead = counts.events > 0 ? time.wallTime : nil
                expected.note(app, counts)
                time.advance(by: .seconds(1))
                if round % 100 == 99 { try await host.commit() }
            }
            let apps = host.figures.counts.apps
            #expect(apps == expected)
            #expect(apps.count == 1000 && (apps["(others)"]?.events ?? 0) > 0)
            let ledger = host.store.snapshot.intake
            #expect(ledger.accepted == apps.values.reduce(0) { $0 + $1.events } && ledger.balances)
            #expect(ledger.quarantined == apps.values.reduce(0) { $0 + $1.quarantined })
        }
    }

    @Test("zeros that a power cut left are quarantined, and the line appended to them is an event")
    func fault20_zerosEatNoNeighbour() async throws {
        try await withHost { host in
            let zeros = String(repeating: "\0", count: 6000)
            let lines = [
                #"{"name":"a"}"#, zeros + #"{"name":"b"}"#, zeros, "\0{broken", #"{"name":"c"}"#,
                "\0" + #"{"name":"d"}"#,
            ]
            let size = lines.reduce(0) { $0 + $1.utf8.count + 1 }
            #expect(await host.take(lines) == size)
            try await host.commit(Int64(size))
            let figures = host.store.snapshot.intake
            #expect(figures.accepted == 4 && figures.quarantined == 5 && figures.balances)
            let names = try await host.lines(of: .normal).joined().compactMap {
                $0.firstMatch(of: /"name":"(\w)"/).map { String($0.1) }
            }
            #expect(names == ["a", "b", "c", "d"])
        }
    }

    @Test("events go to the lane of their priority, in order, in chunks of at most one batch")
    func eventsGoToTheirLane() async throws {
        try await withHost { host in
            let lines = (0..<120).map { number in
                #"{"name":"n\#(number % 7)","i":\#(number)\#(number % 10 == 0 ? #","priority":"critical""# : "")}"#
            }
            let size = lines.reduce(0) { $0 + $1.utf8.count + 1 }
            #expect(await host.take(lines) == size)
            try await host.commit(Int64(size))
            let figures = host.store.snapshot
            #expect(figures.intake.read == 120 && figures.intake.accepted == 120 && figures.intake.balances)

            let critical = try await host.lines(of: .critical).joined()
            #expect(critical.count == 12)
            let normal = try await host.lines(of: .normal, most: 50)
            #expect(normal.map(\.count) == [50, 50, 8])
            let numbers = normal.joined().compactMap { $0.firstMatch(of: /"i":(\d+)/).flatMap { Int($0.1) } }
            #expect(numbers == (0..<120).filter { $0 % 10 != 0 })
            for line in normal.joined() { #expect(line.contains(#""app":"shop""#) && line.hasSuffix("\"}")) }
        }
    }

    @Test("a chunk grows until its commit; a large one is a batch by itself, and smaller ones are joined")
    func chunksGrow() async throws {
        try await withHost(batchEvents: 5_000, batchFrom: 50) { host in
            for count in [300, 50, 49, 20] {
                _ = await host.take((0..<count).map { #"{"name":"n","i":\#($0)}"# })
                try await host.commit()
            }
            #expect(try await host.lines(of: .normal, most: 5_000).map(\.count) == [300, 50, 69])
        }
    }

    @Test("a bad line is quarantined as a whole, and its neighbours are unaffected")
    func badLinesAreQuarantined() async throws {
        try await withHost { host in
            _ = await host.take([#"{"name":"a"}"#, "not JSON", #"{"name":"b"}"#, #"{"cut":1"#], at: 1000)
            try await host.commit()
            let figures = host.store.snapshot.intake
            #expect(
                figures.read == 4 && figures.accepted == 2 && figures.quarantined == 2 && figures.balances)
            #expect(try await host.lines(of: .normal).joined().count == 2)
        }
    }

    @Test(
        "a chunk is as old as its first event; a session start counts as an event, and a refused line as read"
    )
    func counts() async throws {
        try await withHost { host in
            let first = time.wallTime
            #expect(await host.take([#"{"name":"a"}"#]) > 0)
            time.advance(by: .seconds(5))
            #expect(await host.take([#"{"name":"b"}"#]) > 0)
            try await host.commit()
            #expect(host.store.snapshot.lane("main", .normal)?.summary.oldestAcceptedAt == first)
            await host.configure {
                $0.events.session.mode = .automatic
                $0.events.defaults.limits.nameLength = Limit(3, .refuse)
            }
            #expect(await host.take([#"{"name":"refused"}"#, #"{"name":"c"}"#]) > 0)
            try await host.commit()
            let ledger = host.store.snapshot.intake
            #expect(ledger.read == 5 && ledger.accepted == 4 && ledger.refused == 1 && ledger.balances)
            let lines = Array(try await host.lines(of: .normal).joined())
            #expect(lines.count == 4 && lines[2].contains(#""name":"start_session""#))
        }
    }

    @Test(
        "the log reports quarantined lines every ten seconds, and truncations once an hour, if there were any"
    )
    func reports() async throws {
        try await withHost { host in
            await host.configure { $0.events.defaults.limits.nameLength = Limit(3, .cut) }
            func said(_ text: String) -> Int { host.log.messages.count { $0.text == text } }
            for (wait, quarantined, cut) in [(0, 1, 1), (1, 1, 1), (9, 2, 1), (3_590, 3, 2)] {
                time.advance(by: .seconds(wait))
                #expect(await host.take(["bad", #"{"name":"long"}"#]) > 0)
                try await host.commit()
                #expect(
                    said("lines quarantined") == quarantined && said("limits cut events") == cut,
                    "after \(wait) s")
            }
            time.advance(by: .seconds(3_600))
            #expect(await host.take([#"{"name":"a"}"#]) > 0)
            try await host.commit()
            #expect(said("lines quarantined") == 3 && said("limits cut events") == 2)
        }
    }

    @Test("events older than 25 days are accepted and expire at once")
    func ac12_oldEventsExpireAtAcceptance() async throws {
        try await withHost { host in
            _ = await host.take([
                #"{"name":"old","timestamp":"2026-10-25T00:00:00Z"}"#,
                #"{"name":"new","timestamp":"2026-11-20T00:00:00Z"}"#,
            ])
            try await host.commit()
            let ledger = try #require(host.store.snapshot.lane("main", .normal)).ledger
            #expect(ledger.accepted == 2 && ledger.expired == 1 && ledger.queued == 1 && ledger.balances)
        }
    }

    @Test("while the queue is full, commits wait in order, and continue when there is room")
    func commitsWaitForRoom() async throws {
        try await withHost(cap: 24 << 10) { host in
            // Chance does not pack: these fill the cap for sure.
            var random = SplitMix64(seed: Seeds.one(3))
            var stored: Int64 = 0
            let finished = Mutex<[Int64]>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for round in 1...40 {
                    let filler = (0..<60).map { _ in String(random.next(), radix: 36) }.joined()
                    _ = await host.take([#"{"name":"x","round":\#(round),"filler":"\#(filler)"}"#])
                    stored = Int64(round)
                    let mark = stored
                    group.addTask { @Sendable in
                        try await host.commit(mark)
                        finished.withLock { $0.append(mark) }
                    }
                    await Task.yield()
                }
                // The consumer makes room, batch by batch, until all commits are through.
                var seen: [Int] = []
                while seen.count < 40 {
                    for line in try await host.lines(of: .normal, most: 1).joined() {
                        seen.append(try #require(line.firstMatch(of: /"round":(\d+)/).flatMap { Int($0.1) }))
                    }
                    await Task.yield()
                }
                #expect(seen == Array(1...40))
                try await group.waitForAll()
            }
            #expect(finished.withLock { $0.sorted() } == Array(1...40).map { Int64($0) })
            #expect(host.store.snapshot.intake.balances)
        }
    }

    @Test("ac10: an event that can never fit evicts nothing and is quarantined")
    func ac10_neverFitting() async throws {
        try await withHost(cap: 24 << 10) { host in
            let huge = #"{"name":"huge","x":"\#(String(repeating: "x", count: 30_000))"}"#
            _ = await host.take([#"{"name":"a"}"#, huge, #"{"name":"b"}"#])
            try await host.commit()
            let figures = host.store.snapshot.intake
            #expect(
                figures.read == 3 && figures.accepted == 2 && figures.quarantined == 1 && figures.balances)
        }
    }

    @Test("an event that is large for the queue gets its own commit")
    func hugeEventsCommitAlone() async throws {
        try await withHost(cap: 24 << 10) { host in
            let small = #"{"name":"a"}"#
            let huge = #"{"name":"huge","x":"\#(String(repeating: "x", count: 12_000))"}"#
            #expect(await host.take([small, huge]) == small.utf8.count + 1)
            try await host.commit()
            #expect(await host.take([huge]) == huge.utf8.count + 1)
            try await host.commit()
            #expect(host.store.snapshot.intake.accepted == 2)
        }
    }

    @Test(
        "a commit fits a small queue, however much is offered at once", .timeLimit(.minutes(1)),
        arguments: [24 << 10, 64 << 10, 1 << 20])
    func commitsFitSmallCaps(cap: Int) async throws {
        try await withHost(cap: cap) { host in
            var random = SplitMix64(seed: Seeds.one(5))
            // Chunks end by their bytes, not by their events; chance keeps them from packing well.
            var lines = (0..<3_000).map { number in
                let length = number.isMultiple(of: 7) ? 20 : 3
                let filler = (0..<length).map { _ in String(random.next(), radix: 36) }.joined()
                return #"{"name":"x","i":\#(number),"filler":"\#(filler)"}"#
            }
            var arrived = 0
            while !lines.isEmpty {
                var taken = await host.take(lines)
                while taken > 0 { taken -= lines.removeFirst().utf8.count + 1 }
                try await host.commit()
                #expect(host.store.snapshot.storedBytes <= cap / 2)
                arrived += try await host.lines(of: .normal).joined().count
            }
            #expect(arrived == 3_000)
        }
    }

    @Test("a commit has at most the bad lines that fit, however many are offered, and all are stored")
    func badLinesFitSmallCaps() async throws {
        try await withHost(cap: 1 << 20) { host in
            var lines = (0..<3_000).map { "bad \($0)" }
            var commits = 0
            while !lines.isEmpty {
                var (taken, count) = (await host.take(lines), 0)
                while taken > 0 {
                    taken -= lines.removeFirst().utf8.count + 1
                    count += 1
                }
                #expect(0 < count && count <= (1 << 20) / 8 / 256 + 1)
                try await host.commit()
                commits += 1
            }
            #expect(commits > 5 && host.store.snapshot.intake.quarantined == 3_000)
        }
    }

    @Test("when collection is disabled, uncommitted and following events are discarded and counted")
    func disabled() async throws {
        try await withHost { host in
            _ = await host.take([#"{"name":"a"}"#, #"{"name":"b","priority":"critical"}"#])
            await host.configure { $0.isCollecting = false }
            _ = await host.take([#"{"name":"c"}"#, "bad"])
            try await host.commit()
            let figures = host.store.snapshot
            #expect(
                figures.intake.accepted == 3 && figures.intake.quarantined == 1 && figures.intake.balances)
            #expect(figures.lanes.reduce(0) { $0 + $1.ledger.discarded } == 3)
            #expect(figures.lanes.allSatisfy { $0.ledger.queued == 0 && $0.ledger.balances })
        }
    }

    @Test(
        "when collection is disabled, bad lines that were taken before still count for the size of the commit"
    )
    func disabledWithBadLines() async throws {
        try await withHost(cap: 1 << 20) { host in
            let bad = (0..<3_000).map { "bad \($0)" }
            let taken = await host.take(bad)
            #expect(0 < taken && taken < bad.reduce(0) { $0 + $1.utf8.count + 1 })
            await host.configure { $0.isCollecting = false }
            #expect(await host.take(bad) == 0)
            try await host.commit()
            #expect(await host.take(bad) > 0)
            try await host.commit()
        }
    }
}
