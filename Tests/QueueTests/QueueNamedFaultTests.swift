import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

/// Faults of other agents that this module keeps away, where no other suite shows them.
@Suite("Queue: faults known from other agents", .serialized)
struct QueueNamedFaultTests {
    @Test("a database truncated anywhere starts, with positions that match its events")
    func fault06_tornFiles() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let state = fixture.options.stateDirectory
        let writing = try fixture.open()
        for _ in 0..<12 { _ = try await writing.store(positioned(&maker, 25)) }
        #expect(try names(in: state) == ["ballast", "queue.sqlite", "queue.sqlite-shm", "queue.sqlite-wal"])
        let images = try ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm"].map {
            ($0, try bytes("\(state)/\($0)"))
        }
        await writing.close()
        let wal = images[1].1.count
        #expect(wal > 20_000)
        // The WAL, which is what a crash tears: cut off, and in the middle of it bytes that were never written.
        var positions: Set<Int> = []
        for cut in Array(stride(from: 0, to: wal, by: wal / 40)) + [wal] {
            for isGarbled in [false, true] {
                var torn = images
                if isGarbled {
                    for index in cut..<min(cut + 512, wal) { torn[1].1[index] = 0xA5 }
                } else {
                    torn[1].1.removeSubrange(cut...)
                }
                if cut % 2 == 0 { torn[2].1 = [UInt8](repeating: 0x5A, count: 100) }
                for (name, content) in torn { try put(content, at: "\(state)/\(name)") }
                let store = try fixture.open()
                let (position, events) = try await standing(store)
                if isGarbled {
                    // Whole transactions stand behind it: what was in the damaged place is counted, the rest goes on.
                    let missing = Set(0..<position).subtracting(events).count
                    let lost = store.snapshot.lane("main", .normal)?.ledger.lost ?? 0
                    #expect(Set(events).count == events.count && missing <= lost, "WAL garbled at \(cut)")
                } else {
                    #expect(events == Array(0..<position), "WAL torn at \(cut)")
                }
                #expect(
                    store.snapshot.lanes.allSatisfy { $0.ledger.balances }
                        && store.snapshot.health.failure == nil)
                positions.insert(position)
                await store.close()
            }
        }
        #expect(positions.count > 5 && positions.contains(300))
        // The database itself: the agent starts, saves what can be read, and takes new events.
        for length in stride(from: 0, through: 4_096 * 6, by: 1_500) {
            for name in ["queue.sqlite-wal", "queue.sqlite-shm"] { unlink("\(state)/\(name)") }
            try put(Array(images[0].1.prefix(length)), at: "\(state)/queue.sqlite")
            let store = try fixture.open()
            #expect(try await store.store(maker.commit(5)) == .stored(refused: 0), "cut to \(length)")
            #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
            await store.close()
        }
    }

    @Test("a large backlog is opened and sent with memory for the batches in flight only")
    func fault16_memory() async throws {
        let fixture = try QueueFixture()
        var store = try fixture.open { $0.maxSize = 1 << 30 }
        // 100 MB in 100,000 chunks of a process that ends.
        let frame = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
        let chunk = NewChunk(
            priority: .normal, destinations: ["main"], events: 1, bytes: 1_000,
            eventTimes: fixture.time.wallTime...fixture.time.wallTime, acceptedAt: fixture.time.wallTime,
            compression: .none, frame: frame, isFull: true)
        for _ in 0..<100 {
            var commit = Commit()
            commit.chunks = Array(repeating: chunk, count: 1_000)
            commit.read = 1_000
            _ = try await store.store(commit)
        }
        await store.close()
        let before = try anonymousMemory()
        store = try fixture.open { $0.maxSize = 1 << 30 }
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 100_000)
        var greatest = 0
        for round in 0..<2_000 {
            let batch = try #require(try await store.leaseNext(request()))
            _ = try await store.settle(.acknowledged(batch.header))
            if round % 100 == 0 { greatest = max(greatest, try anonymousMemory() - before) }
        }
        // SQLite's cache is 2 MB; other tests run in this process as well.
        #expect(greatest < 40 << 20, "\(greatest) bytes more")
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.queued == 98_000 })
        await store.close()
    }

    @Test("a commit larger than the queue stores what fits, quarantines the rest, and does not wait for ever")
    func commitLargerThanTheQueue() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.maxSize = 24 << 10 }
        var commit = Commit()
        for _ in 0..<4 {
            var chunk = maker.chunk(100, size: 100, full: true)
            chunk.origins = [
                EventOrigin(app: "shop", path: "shop/a.jsonl", offsets: (0..<100).map { Int64($0 * 100) })
            ]
            commit.chunks.append(chunk)
            commit.read += 100
        }
        #expect(try await store.store(commit) == .stored(refused: 200))
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.accepted == 200 && ledger.queued == 200 && store.snapshot.intake.quarantined == 200)
        #expect(store.snapshot.intake.balances)
        let kept = try await store.quarantined().map(\.record)
        #expect(kept.allSatisfy { $0.reason == .neverFits && $0.app == "shop" && $0.path == "shop/a.jsonl" })
        #expect(kept.prefix(3).map(\.offset) == [0, 100, 200])
        // Where a smaller one has to wait for room, the rest of it waits too.
        #expect(try await store.store(commit) == .wait(.full))
        await store.close()
    }

    @Test(
        "ac12: from a chunk with some expired events those are removed, and the others are sent",
        arguments: [true, false])
    func ac12_expiryInsideAChunk(isFull: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let base = fixture.time.wallTime
        let day = Duration.seconds(86_400)
        // Event n happened n % 10 days before its acceptance.
        let store = try fixture.open { _ in
        } eventTime: { line, _ in
            let number = Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)) ?? 0
            return base - day * (number % 10)
        }
        var commit = maker.commit(50, full: isFull)
        commit.chunks[0].eventTimes = base - day * 9...base
        _ = try await store.store(commit)
        // Exactly 25 days is kept: those of 5 days are that old now.
        fixture.time.advance(by: day * 20)
        var taken: [Int] = []
        while let batch = try await store.leaseNext(request()) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(taken == (0..<50).filter { $0 % 10 <= 5 })
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.acknowledged == 30 })
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.expired == 20 && ledger.balances && store.snapshot.storedBytes == 0)
        await store.close()
    }

    @Test(
        "durability crash: syncs are once a second, however many are requested, and all requests are answered"
    )
    func syncsAreFew() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.durability = .crash }
        _ = try await store.store(maker.commit(5))
        try await store.sync()
        #expect(await store.syncs == 1)
        // The test's clock stands still: the next one is a second away.
        let started = SystemTime().bootTime
        async let first: Void = store.sync()
        async let second: Void = store.sync()
        _ = try await (first, second)
        #expect(await store.syncs == 2)
        #expect(SystemTime().bootTime - started > .milliseconds(900))
        fixture.time.advance(by: .seconds(5))
        try await store.sync()
        #expect(await store.syncs == 3)
        // Who waits when it closes gets an answer at once.
        async let last: Void = store.sync()
        #expect(await eventually { await !store.syncWaiters.isEmpty })
        await store.close()
        try await last
    }

    // MARK: Files

    private func bytes(_ path: String) throws -> [UInt8] {
        let file = try Descriptor(checking: open(path, O_RDONLY), "open")
        var all: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(file.raw, &block, block.count)
            guard count > 0 else { return all }
            all += block[..<count]
        }
    }

    private func put(_ content: [UInt8], at path: String) throws {
        let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600), "open")
        #expect(write(file.raw, content, content.count) == content.count)
    }

    private func names(in path: String) throws -> [String] {
        let directory = try #require(opendir(path))
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The private memory of this process in bytes.
    private func anonymousMemory() throws -> Int {
        let text = String(decoding: try bytes("/proc/self/status"), as: UTF8.self)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
        return (Int(line.filter(\.isNumber)) ?? 0) * 1024
    }
}
