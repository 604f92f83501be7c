import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Queue

/// What a salvage does with damage that is made where it hurts.
@Suite("Queue: salvage", .serialized)
struct QueueSalvageTests {
    /// How the damage is found.
    enum Finding: CaseIterable {
        case atStart
        case whileRunning
    }

    @Test(
        "if a row and its chunk are both lost, that counts as a loss, and no sent event takes their place",
        arguments: Finding.allCases)
    func nothingInPlaceOfLost(_ finding: Finding) async throws {
        let fixture = try await queue()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        // Of chunk 60 only the row: it is made again.
        func damage() throws {
            try change(
                path, "UPDATE delivery SET bytes = bytes + 1 WHERE chunk IN (30, 45, 60)",
                "UPDATE chunk SET frame = zeroblob(length(frame)) WHERE id = 30",
                "DELETE FROM chunk WHERE id = 45")
        }
        if finding == .atStart { try damage() }
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(store.snapshot.health.recoveries == (finding == .atStart ? 1 : 0))
        if finding == .whileRunning { try damage() }
        let main = try await take(25, store, "main") + take(.max, store, "main")
        let other = try await take(.max, store, "other")
        #expect(store.snapshot.health.recoveries == 1 && store.snapshot.unknownLosses == 0)
        let lost = Set(1_450..<1_500).union(2_200..<2_250)
        #expect(main == Array(0..<4_000).filter { !lost.contains($0) })
        #expect(other == Array(1_000..<4_000).filter { !lost.contains($0) })
        for lane in store.snapshot.lanes where lane.priority == .normal { #expect(lane.ledger.lost == 100) }
        await store.close()
    }

    @Test(
        "a delivery row with a flipped bit or out of order is found at the start, before any chunk is sent",
        arguments: Key.allCases)
    func wrongKeys(_ key: Key) async throws {
        let fixture = try await queue()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        switch key {
        case .destination:
            try change(path, "UPDATE delivery SET destination = 18 WHERE destination = 2 AND chunk = 31")
        case .chunk: try change(path, "UPDATE delivery SET chunk = 95 WHERE destination = 2 AND chunk = 31")
        case .order: try swapRows(path, destination: 2, chunk: 31)
        }
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(store.snapshot.health.recoveries == 1)
        #expect(try await take(.max, store, "main") == Array(0..<4_000))
        #expect(try await take(.max, store, "other") == Array(1_000..<4_000))
        for lane in store.snapshot.lanes { #expect(lane.ledger.lost == 0) }
        await store.close()
    }

    /// Where a delivery's row is damaged.
    enum Key: CaseIterable {
        case destination
        case chunk
        /// It has changed places with the one behind it.
        case order
    }

    @Test("a wrong page type in the pointer map hides no rows and restores none")
    func wrongKinds() async throws {
        let fixture = try await queue()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var map = Array(try bytes(path)[4_096..<8_192])
        for entry in 0..<map.count / 5 where map[5 * entry] > 1 { map[5 * entry] ^= 1 }
        try put(map, at: 4_096, path)
        try damageHead(path)
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(store.snapshot.health.recoveries == 1 && store.snapshot.unknownLosses == 0)
        #expect(try await take(.max, store, "main") == Array(0..<4_000))
        #expect(try await take(.max, store, "other") == Array(1_000..<4_000))
        await store.close()
    }

    @Test("with any bit of the file's header flipped, the agent starts, sends everything once, and writes")
    func everyByteOfTheHead() async throws {
        let fixture = try await queue()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var whole = try bytes(path)
        for place in 0..<100 {
            // The highest of the owner's and of the schema's number among them.
            let bit = UInt8(1) << ((place * 5 + 3) % 8)
            for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
            whole[place] ^= bit
            try put(whole, at: 0, path)
            whole[place] ^= bit
            let store = try fixture.open { $0.destinations = ["main", "other"] }
            #expect(try await take(.max, store, "main") == Array(0..<4_000), "byte \(place)")
            #expect(try await take(.max, store, "other") == Array(1_000..<4_000), "byte \(place)")
            #expect(
                store.snapshot.health.failure == nil && store.snapshot.unknownLosses == 0, "byte \(place)")
            await store.close()
        }
    }

    @Test("a chunk whose last time is before its first is damaged, and none of its events expires by it")
    func lastTimeBeforeFirst() async throws {
        let fixture = try await queue()
        try change(
            "\(fixture.options.stateDirectory)/queue.sqlite",
            "UPDATE chunk SET last_time = 5 WHERE id % 2 = 1")
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(try await store.expire() == 0)
        #expect(try await take(.max, store, "main") == Array(0..<4_000))
        await store.close()
    }

    @Test("events that never expire, and events of the year 2200, are salvaged like all others")
    func distantTimes() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open()
        let never = Timestamp(nanoseconds: .max)
        let distant = Timestamp(seconds: 7_258_118_400, nanoseconds: 0)
        for times in [maker.time...never, distant...distant, maker.time...maker.time] {
            var commit = maker.commit(50, size: 40, full: true)
            commit.chunks[0].eventTimes = times
            _ = try await store.store(commit)
        }
        await store.close()
        try damageHead("\(fixture.options.stateDirectory)/queue.sqlite")
        let again = try fixture.open()
        #expect(again.snapshot.health.recoveries == 1)
        #expect(again.snapshot.lanes.reduce(0) { $0 + $1.ledger.lost } == 0)
        #expect(try await take(.max, again, "main").sorted() == Array(0..<150))
        await again.close()
    }

    @Test("a destination whose row was lost at run time gets events again")
    func destinationLost() async throws {
        let fixture = try await queue()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        try change(
            path, "DELETE FROM destination WHERE name = 'other'",
            "DELETE FROM chunk WHERE id = 45")
        _ = try await take(.max, store, "main")
        #expect(store.snapshot.health.recoveries == 1)
        var maker = ChunkMaker()
        _ = try await store.store(maker.commit(50, to: ["other"], full: true))
        #expect(try await take(.max, store, "other").suffix(50) == Array(0..<50)[...])
        await store.close()
    }

    @Test("consent set by a command outlives a salvage that has lost its row, while a batch is leased")
    func consentLost() async throws {
        let fixture = try await queue()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var states = ConsentStates()
        states["shop", "analytics"] = false
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        try await store.setConsent(states)
        let leased = try #require(try await store.leaseNext(request("main", .normal, events: 50)))
        try change(path, "DELETE FROM switch", "DELETE FROM chunk WHERE id = 45")
        _ = try await take(.max, store, "main")
        #expect(store.snapshot.health.recoveries == 1)
        _ = try await store.settle(.acknowledged(leased.header))
        await store.close()
        let again = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(again.snapshot.consent == states)
        await again.close()
    }

    @Test("after a crash between the two renames of a replacement the damaged copy stays, and is reported")
    func interruptedReplacement() throws {
        let directory = try TemporaryDirectory()
        let base = "\(directory.path)/queue.sqlite"
        // The damaged database was moved aside, its WAL and the replacement not yet.
        try writeFile("\(base).damaged-1700000000", "damaged")
        try writeFile("\(base)-wal", "its WAL")
        try writeFile("\(base).salvaged", "saved")
        let state = try StateDirectory(directory.path, for: .agent)
        let aside = try state.finishSalvage(now: Timestamp(seconds: 1_800_000_000, nanoseconds: 0))
        #expect(aside == "\(base).damaged-1700000000")
        #expect(
            try WholeFile.names(in: directory.path).sorted() == [
                "queue.sqlite", "queue.sqlite.damaged-1700000000", "queue.sqlite.damaged-1700000000-wal",
            ])
        #expect(String(decoding: try bytes(base), as: UTF8.self) == "saved")
    }

    /// A closed queue of 80 chunks of 50 events for both destinations, of which the second has acknowledged 20.
    private func queue() async throws -> QueueFixture {
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        for _ in 0..<80 {
            var commit = Commit()
            commit.chunks = [maker.chunk(of: [("shop", 50)], to: ["main", "other"], size: 40, full: true)]
            commit.read = 50
            _ = try await store.store(commit)
        }
        #expect(try await take(20, store, "other") == Array(0..<1_000))
        await store.close()
        return fixture
    }

    /// The events of some batches, which are acknowledged durably.
    private func take(_ batches: Int, _ store: QueueStore, _ destination: DestinationName) async throws
        -> [Int]
    {
        var taken: [Int] = []
        var left = batches
        while left > 0, let batch = try await store.leaseNext(request(destination)) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
            left -= 1
        }
        try await store.flush()
        return taken
    }

    // MARK: Damage

    private func change(_ path: String, _ statements: String...) throws {
        let database = try Database(path: path, vfs: nil)
        for statement in statements { try database.execute(statement) }
        database.close()
    }

    /// Lets a delivery's row and the one behind it on its page change places.
    private func swapRows(_ path: String, destination: Int64, chunk: Int64) throws {
        let image = try #require(PageImage(path))
        for number in 2...image.count {
            guard let page = image.page(number), let tree = TreePage(page, isFirst: false),
                tree.kind == .indexLeaf
            else {
                continue
            }
            let place = tree.cells.firstIndex { cell in
                guard let values = tree.record(cell, page, image)?.values, values.count == 12,
                    case .integer(destination) = values[0], case .integer(chunk) = values[2]
                else { return false }
                return true
            }
            guard let place else { continue }
            let pointer = 8 + 2 * place
            let swapped = Array(page[pointer + 2..<pointer + 4] + page[pointer..<pointer + 2])
            return try put(swapped, at: off_t((number - 1) * image.pageSize + pointer), path)
        }
        Issue.record("no such row")
    }

    /// SQLite knows the file by its first bytes.
    private func damageHead(_ path: String) throws { try put([0, 0, 0, 0], at: 0, path) }

    private func put(_ bytes: [UInt8], at place: off_t, _ path: String) throws {
        let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT, 0o600), "open")
        #expect(pwrite(file.raw, bytes, bytes.count, place) == bytes.count)
    }

    private func bytes(_ path: String) throws -> [UInt8] {
        try #require(try WholeFile.bytes(of: path, atMost: 16 << 20))
    }
}
