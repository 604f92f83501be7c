import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

/// Queues that are damaged on purpose: each start succeeds, and what stands on sound pages survives.
///
/// `QUEUE_DAMAGES` says how many seeds of each kind are tried, `QUEUE_SEED` the first of them.
@Suite("Queue: deliberate damage", .serialized)
struct QueueDamageTests {
    private static let rounds = getenv("QUEUE_DAMAGES").flatMap { Int(String(cString: $0)) } ?? 8
    private static let seed = getenv("QUEUE_SEED").flatMap { UInt64(String(cString: $0)) } ?? 20_261_122

    /// What is done to a file.
    enum Damage: CaseIterable {
        case oneBit
        case manyBits
        case noise
        case noiseInARow
        case zeros
        case swapped
        /// Half a page is another one's, as after a power cut in the middle of a write.
        case torn
    }

    enum Target: CaseIterable {
        case database
        case wal
    }

    /// A queue as it was left: closed, or killed with everything in its WAL.
    private struct Original {
        var database: [UInt8]
        var wal: [UInt8]
        /// The chunks by their first event; each has 50.
        var chunks: [Int]
        /// The events that the second destination has acknowledged.
        var acknowledged: Set<Int>
    }

    private static let pageSize = 4_096
    private static let frameSize = pageSize + 24
    private static let events = 4_000

    /// - Parameter padding: by how many bytes the schema's text is longer: whatever else the first pages hold is elsewhere then.
    private func original(_ target: Target, padding: Int = 0) async throws -> Original {
        let fixture = try QueueFixture(in: "/dev/shm")
        if padding > 0 { try makeTables(fixture, padding) }
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        var chunks: [Int] = []
        for _ in 0..<QueueDamageTests.events / 50 {
            chunks.append(maker.next)
            var commit = Commit()
            commit.chunks = [maker.chunk(of: [("shop", 50)], to: ["main", "other"], size: 40, full: true)]
            commit.read = 50
            commit.progress.checkpoints = [
                Checkpoint(key: [7], path: "a", offset: Int64(maker.next), state: [1])
            ]
            _ = try await store.store(commit)
        }
        var acknowledged: Set<Int> = []
        for _ in 0..<20 {
            let batch = try #require(try await store.leaseNext(request("other")))
            acknowledged.formUnion(numbers(batch))
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(await eventually { store.snapshot.lane("other", .normal)?.ledger.acknowledged == 1_000 })
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        if target == .database { await store.close() }
        let made = Original(
            database: try bytes(path), wal: target == .wal ? try bytes(path + "-wal") : [], chunks: chunks,
            acknowledged: acknowledged)
        if target == .wal { await store.close() }
        return made
    }

    @Test(
        "after damage each start succeeds, and every event on an intact page survives",
        arguments: Target.allCases,
        Damage.allCases)
    func survives(_ target: Target, _ damage: Damage) async throws {
        // Another layout for each kind of damage, and for each first seed.
        let kind = Damage.allCases.firstIndex(of: damage) ?? 0
        let padding = [0, 37, 120, 400][(kind + Int(QueueDamageTests.seed % 4)) % 4]
        let original = try await original(target, padding: padding)
        for round in 0..<QueueDamageTests.rounds {
            let seed = QueueDamageTests.seed &+ UInt64(round)
            var random = SplitMix64(seed: seed)
            var copy = original
            let bad = apply(damage, to: target, of: &copy, using: &random)
            try await check(
                copy, original, target, bad, "\(target), \(damage), padded by \(padding), seed \(seed)")
        }
    }

    @Test(
        "in a truncated file every event before the end survives, and each start succeeds",
        arguments: Target.allCases)
    func truncated(_ target: Target) async throws {
        let original = try await original(target)
        for round in 0..<QueueDamageTests.rounds {
            let seed = QueueDamageTests.seed &+ UInt64(round)
            var random = SplitMix64(seed: seed)
            var copy = original
            let unit = target == .database ? QueueDamageTests.pageSize : QueueDamageTests.frameSize
            let size = target == .database ? original.database.count : original.wal.count
            let length = Int.random(in: 0..<size, using: &random)
            if target == .database { copy.database = Array(copy.database.prefix(length)) }
            if target == .wal { copy.wal = Array(copy.wal.prefix(length)) }
            let first = target == .database ? length / unit : max(0, length - 32) / unit
            try await check(
                copy, original, target, Set(first..<size / unit + 1),
                "\(target) cut to \(length), seed \(seed)")
        }
    }

    @Test(
        "a wrong page number in the WAL, after a damaged frame, hides no page, however large it is",
        arguments: [UInt8(0x20), 0x08])
    func pageNumber(_ bit: UInt8) async throws {
        let original = try await original(.wal)
        let start = 32 + 100 * QueueDamageTests.frameSize
        var copy = original
        copy.wal[start + 2_000] ^= 1
        copy.wal[start + QueueDamageTests.frameSize] ^= bit
        try await check(copy, original, .wal, [100, 101], "bit \(bit) of a page's number")
    }

    @Test(
        "if the ledger and its copy are both lost, the number of lost events is reported as unknown, not as 0"
    )
    func unknownIsTheTruth() async throws {
        let original = try await original(.database)
        let fixture = try QueueFixture(in: "/dev/shm")
        try put(original, fixture)
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        let database = try Database(path: path, vfs: nil)
        var pages: [Int] = []
        for table in ["ledger", "total"] {
            pages.append(
                try #require(
                    try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'")))
        }
        database.close()
        var copy = original
        for page in pages {
            let start = (page - 1) * QueueDamageTests.pageSize
            for place in start..<start + QueueDamageTests.pageSize { copy.database[place] = 0xA5 }
        }
        try put(copy, fixture)
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(store.snapshot.unknownLosses == 1)
        let line = fixture.log.messages.first { $0.text == "queue database replaced" }
        #expect(line?.fields.contains { $0 == ("lost", "unknown") } == true)
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == QueueDamageTests.events)
        await store.close()
        let again = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(again.snapshot.unknownLosses == 1, "a restart does not forget it")
        await again.close()
    }

    @Test("an event is only sent to destinations for which it was accepted, whatever is lost")
    func nobodyElse() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["main", "other"] }
        for _ in 0..<20 { _ = try await store.store(maker.commit(50, size: 40, full: true)) }
        for _ in 0..<20 { _ = try await store.store(maker.commit(50, to: ["other"], size: 40, full: true)) }
        await store.close()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        let database = try Database(path: path, vfs: nil)
        try database.execute(
            "DELETE FROM delivery; UPDATE ledger SET queued = queued + 7 WHERE destination > 0")
        database.close()
        store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(store.snapshot.health.recoveries == 1)
        #expect(Set(try await drain(store, "main")) == Set(0..<1_000))
        #expect(Set(try await drain(store, "other")) == Set(1_000..<2_000))
        await store.close()
    }

    @Test(
        "a flipped bit in the file's version or owner counts as damage; other versions and owners are refused",
        arguments: [
            ("user_version = \(Schema.version ^ 1)", true), ("user_version = \(Schema.version | 64)", true),
            ("user_version = 0", true), ("user_version = \(Schema.version - 1 << 31)", true),
            ("application_id = \(Schema.applicationID ^ 4096)", true),
            ("application_id = \(Schema.applicationID - 1 << 31)", true), ("user_version = 99", false),
            ("user_version = -1", false), ("application_id = 7", false),
            ("user_version = \(Schema.version + 1); ALTER TABLE total ADD COLUMN more TEXT", false),
        ])
    func damagedHead(_ change: String, isDamage: Bool) async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("PRAGMA \(change)")
        database.close()
        if isDamage {
            let error = #expect(throws: QueueError.self) {
                try StoredQueue.look(in: fixture.options.stateDirectory)
            }
            #expect(error?.code == .corrupt)
        } else {
            #expect(try StoredQueue.look(in: fixture.options.stateDirectory)?.refusal != nil)
        }
        guard isDamage else {
            #expect(throws: QueueError.self) { try fixture.open() }
            return
        }
        let again = try fixture.open()
        #expect(again.snapshot.health.recoveries == 1 && again.snapshot.unknownLosses == 0)
        #expect(try await drain(again, "main") == Array(0..<50))
        await again.close()
    }

    /// A queue whose bookkeeping fills more pages than its events.
    private func busy() async throws -> Original {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        var chunks: [Int] = []
        for index in 0..<40 {
            chunks.append(maker.next)
            var commit = maker.commit(50, to: ["main", "other"], size: 40, full: true)
            commit.progress.checkpoints = (0..<20).map { file in
                Checkpoint(
                    key: Array("file \(index) \(file)".utf8), path: "shop/app-\(index)-\(file).jsonl",
                    offset: 1000,
                    state: [UInt8](repeating: 7, count: 90))
            }
            commit.progress.done = [DoneRecord(claim: Array("claim \(index)".utf8), handle: [1, 2, 3])]
            commit.memory["names/app\(index)"] = [UInt8](repeating: 9, count: 200)
            _ = try await store.store(commit)
        }
        for index in 0..<60 {
            try await store.setSwitch("switch.\(index)", String(repeating: "v", count: 100))
        }
        await store.close()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        return Original(database: try bytes(path), wal: [], chunks: chunks, acknowledged: [])
    }

    @Test(
        "a busy queue with any page zeroed, flipped, swapped or torn starts, with the events on intact pages",
        arguments: [Damage.zeros, .oneBit, .swapped, .torn])
    func everyPage(_ damage: Damage) async throws {
        let original = try await busy()
        let pages = original.database.count / QueueDamageTests.pageSize
        // Each page in two of the four ways, or with more rounds than by default in all of them.
        let step = QueueDamageTests.rounds > 8 ? 1 : 2
        let first = [.zeros, .torn].contains(damage) ? 0 : step - 1
        var random = SplitMix64(seed: QueueDamageTests.seed)
        var salvaged = 0
        for page in stride(from: first, to: pages, by: step) {
            var copy = original
            let start = page * QueueDamageTests.pageSize
            let other = (page + 7) % pages
            var bad: Set = [page]
            switch damage {
            case .zeros:
                for place in 0..<QueueDamageTests.pageSize { copy.database[start + place] = 0 }
            case .swapped:
                bad.insert(other)
                for place in 0..<QueueDamageTests.pageSize {
                    copy.database.swapAt(start + place, other * QueueDamageTests.pageSize + place)
                }
            case .torn:
                for place in QueueDamageTests.pageSize / 2..<QueueDamageTests.pageSize {
                    copy.database[start + place] = copy.database[other * QueueDamageTests.pageSize + place]
                }
            default:
                let place = start + Int.random(in: 0..<100, using: &random)
                copy.database[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            }
            let fixture = try QueueFixture(in: "/dev/shm", after: 1)
            try put(copy, fixture)
            let name = "\(damage), page \(page) of \(pages)"
            var stage = "open"
            do {
                let store = try fixture.open { $0.destinations = ["main", "other"] }
                stage = "restore"
                _ = try await store.restore()
                _ = try await store.switches()
                stage = "drain"
                let main = try await drain(store, "main")
                let other = try await drain(store, "other")
                #expect(
                    Set(main).count == main.count && Set(other).count == other.count,
                    "\(name): events come twice")
                for lane in store.snapshot.lanes { #expect(lane.ledger.balances, "\(name)") }
                let missing = Set(soundChunks(original, .database, bad).flatMap { $0..<$0 + 50 }).subtracting(
                    main)
                #expect(missing.isEmpty, "\(name): \(missing.count) are missing")
                stage = "commit"
                var maker = ChunkMaker(next: 100_000)
                var commit = maker.commit(50, full: true)
                commit.progress.checkpoints = [Checkpoint(key: [9], path: "b", offset: 1, state: [])]
                #expect(try await store.store(commit) == .stored(refused: 0), "\(name)")
                stage = "switch"
                try await store.setSwitch("switch.7", nil)
                salvaged += store.snapshot.health.recoveries
                #expect(store.snapshot.health.failure == nil, "\(name)")
                await store.close()
            } catch {
                Issue.record("\(name), \(stage): \(error)")
            }
        }
        #expect(salvaged > pages / step / 8, "\(salvaged) of \(pages)")
    }

    @Test("a queue that another process writes to is not damaged: the start fails, and nothing is replaced")
    func lockedIsNotDamaged() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        await store.close()
        let other = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try other.execute("BEGIN EXCLUSIVE")
        let error = #expect(throws: QueueError.self) { try fixture.open { $0.maxSize = 20 << 20 } }
        #expect(error?.code == .io && error?.isDamage == false)
        try other.execute("ROLLBACK")
        other.close()
        let again = try fixture.open()
        #expect(again.snapshot.health.recoveries == 0)
        #expect(try await drain(again, "main") == Array(0..<50))
        await again.close()
    }

    // MARK: Damage

    /// Damages one of the files; the pages or frames that are not sound any more, from 0.
    private func apply(
        _ damage: Damage, to target: Target, of copy: inout Original, using random: inout SplitMix64
    ) -> Set<Int> {
        var bytes = target == .database ? copy.database : copy.wal
        let unit = target == .database ? QueueDamageTests.pageSize : QueueDamageTests.frameSize
        let head = target == .database ? 0 : 32
        let count = (bytes.count - head) / unit
        func start(_ page: Int) -> Int { head + page * unit }
        var bad: Set<Int> = []
        switch damage {
        case .oneBit, .manyBits:
            for _ in 0..<(damage == .oneBit ? 1 : 64) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                bad.insert(place < head ? 0 : (place - head) / unit)
            }
        case .noise, .noiseInARow, .zeros:
            let length = damage == .noiseInARow ? 3 : 1
            let page = Int.random(in: 0...count - length, using: &random)
            for place in start(page)..<start(page + length) {
                bytes[place] = damage == .zeros ? 0 : UInt8.random(in: 0...255, using: &random)
            }
            bad.formUnion(page..<page + length)
        case .swapped:
            let one = Int.random(in: 0..<count, using: &random)
            let other = Int.random(in: 0..<count, using: &random)
            for place in 0..<unit { bytes.swapAt(start(one) + place, start(other) + place) }
            bad.formUnion([one, other])
        case .torn:
            let page = Int.random(in: 0..<count, using: &random)
            let other = Int.random(in: 0..<count, using: &random)
            for place in unit / 2..<unit { bytes[start(page) + place] = bytes[start(other) + place] }
            bad.insert(page)
        }
        if target == .database { copy.database = bytes } else { copy.wal = bytes }
        return bad
    }

    private func check(
        _ damaged: Original, _ original: Original, _ target: Target, _ bad: Set<Int>, _ name: String
    ) async throws {
        // Batches that are formed anew would get the ids of those in the queue.
        let fixture = try QueueFixture(in: "/dev/shm", after: 1)
        try put(damaged, fixture)
        let store: QueueStore
        do {
            store = try fixture.open { $0.destinations = ["main", "other"] }
        } catch {
            Issue.record("\(name): the start failed: \(error)")
            return
        }
        let sound = soundChunks(original, target, bad)
        let main = try await drain(store, "main")
        let other = try await drain(store, "other")
        #expect(
            Set(main).count == main.count && Set(other).count == other.count, "\(name): events come twice")
        let expected = Set(sound.flatMap { $0..<$0 + 50 })
        let missing = expected.subtracting(main)
        #expect(
            missing.isEmpty, "\(name): \(missing.count) of \(expected.count) are missing, bad \(bad.sorted())"
        )
        let missingOther = expected.subtracting(original.acknowledged).subtracting(other)
        #expect(
            missingOther.isEmpty,
            "\(name): \(missingOther.count) are missing at the second, bad \(bad.sorted())")
        for lane in store.snapshot.lanes { #expect(lane.ledger.balances && lane.ledger.lost >= 0, "\(name)") }
        if target == .database, store.snapshot.unknownLosses == 0 {
            #expect(
                original.acknowledged.isDisjoint(with: other), "\(name): what was acknowledged comes again")
            let all = (
                main: QueueDamageTests.events, other: QueueDamageTests.events - original.acknowledged.count
            )
            let lost = try ["main", "other"].map {
                try #require(store.snapshot.lane($0, .normal)?.ledger).lost
            }
            #expect(lost == [all.main - main.count, all.other - other.count], "\(name)")
        }
        #expect(store.snapshot.health.failure == nil, "\(name)")
        var maker = ChunkMaker(next: 100_000)
        #expect(try await store.store(maker.commit(50, full: true)) == .stored(refused: 0), "\(name)")
        await store.close()
    }

    /// The chunks whose rows lie on sound pages, or in sound frames up to the last one that a commit follows.
    private func soundChunks(_ original: Original, _ target: Target, _ bad: Set<Int>) -> [Int] {
        let bytes = target == .database ? original.database : original.wal
        let unit = target == .database ? QueueDamageTests.pageSize : QueueDamageTests.frameSize
        let head = target == .database ? 0 : 32
        let count = (bytes.count - head) / unit
        // By the page of each version; the last one counts.
        var places: [Int: Int] = [:]
        var commits: [Int] = []
        for page in 0..<count {
            let content = bytes[head + page * unit..<head + (page + 1) * unit]
            if target == .wal, content.prefix(8).suffix(4).contains(where: { $0 != 0 }) {
                commits.append(page)
            }
            let text = Array(content)
            for chunk in original.chunks {
                let line = Array("\n\(chunk + 1) ".utf8)
                if text.contains(line) { places[chunk] = page }
            }
        }
        let first = bad.min() ?? count
        var end = count
        if target == .wal, first < count,
            commits.count(where: { $0 > first && !bad.contains($0) }) < 4 || bad.contains(count)
        {
            end = (commits.last { $0 < first }).map { $0 + 1 } ?? 0
        }
        return original.chunks.filter { chunk in
            places[chunk].map { !bad.contains($0) && $0 < end } ?? false
        }
    }

    private func drain(_ store: QueueStore, _ destination: DestinationName) async throws -> [Int] {
        var taken: [Int] = []
        while let batch = try await store.leaseNext(request(destination)) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(await eventually { store.snapshot.lane(destination, .normal)?.ledger.queued ?? 0 == 0 })
        return taken
    }

    // MARK: Files

    /// Makes the tables before the store does.
    private func makeTables(_ fixture: QueueFixture, _ padding: Int) throws {
        mkdir(fixture.options.stateDirectory, 0o700)
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute(
            "PRAGMA page_size = \(QueueDamageTests.pageSize); PRAGMA auto_vacuum = INCREMENTAL")
        try database.execute(
            Schema.sql.replacing(
                "frame BLOB NOT NULL,",
                with: "frame BLOB NOT NULL, --\(String(repeating: "x", count: padding))\n"))
        database.close()
    }

    private func put(_ image: Original, _ fixture: QueueFixture) throws {
        let state = fixture.options.stateDirectory
        mkdir(state, 0o700)
        for (name, content) in [("queue.sqlite", image.database), ("queue.sqlite-wal", image.wal)] {
            unlink("\(state)/\(name)")
            guard name == "queue.sqlite" || !content.isEmpty else { continue }
            let file = try Descriptor(
                checking: open("\(state)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600), "open")
            #expect(write(file.raw, content, content.count) == content.count)
        }
        unlink("\(state)/queue.sqlite-shm")
    }

    private func bytes(_ path: String) throws -> [UInt8] {
        let file = try Descriptor(checking: open(path, O_RDONLY), "open")
        var all = [UInt8](repeating: 0, count: Int(lseek(file.raw, 0, SEEK_END)))
        #expect(pread(file.raw, &all, all.count, 0) == all.count)
        return all
    }
}

extension [UInt8] {
    fileprivate func contains(_ wanted: [UInt8]) -> Bool {
        guard let first = wanted.first, count >= wanted.count else { return false }
        return withUnsafeBytes { bytes in
            var start = 0
            while let base = bytes.baseAddress, start + wanted.count <= bytes.count,
                let found = memchr(base + start, Int32(first), bytes.count - start - wanted.count + 1)
            {
                if memcmp(found, wanted, wanted.count) == 0 { return true }
                start = UnsafeRawPointer(found) - base + 1
            }
            return false
        }
    }
}
