import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Queue migrations")
struct QueueMigrationTests {
    /// The tables and views of a database, as they were made.
    private func schema(_ database: Database) throws -> [String] {
        let rows = try database.prepare(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name")
        var statements: [String] = []
        while try rows.step() {
            let lines = rows.text(0).split(separator: "\n").map { line in
                line.prefix { $0 != "-" }.split(separator: " ").joined(separator: " ")
            }
            let text = lines.filter { !$0.isEmpty }.joined(separator: " ")
            // A column that was added begins with a comma on the next line.
            statements.append(text.replacing(" ,", with: ",").replacing(" )", with: ")"))
        }
        return statements
    }

    private func copyFixture(_ name: String, to path: String) throws {
        let folder = #filePath.split(separator: "/").dropLast().joined(separator: "/")
        let from = try Descriptor(checking: open("/\(folder)/Fixtures/\(name)", O_RDONLY), "open")
        let to = try Descriptor(checking: open(path, O_WRONLY | O_CREAT, 0o600), "open")
        var block = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(from.raw, &block, block.count)
            guard count > 0 else { break }
            #expect(write(to.raw, block, count) == count)
        }
    }

    @Test(
        "a database of an older schema is upgraded with its content",
        arguments: [1, 2, 3, 4, 5, 6, 7, 8])
    func olderSchema(_ version: Int) async throws {
        let fixture = try QueueFixture()
        #expect(mkdir(fixture.options.stateDirectory, 0o700) == 0)
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        try copyFixture("queue-schema-\(version).sqlite", to: path)
        let store = try fixture.open()
        #expect(store.snapshot.health.recoveries == 0)
        let restored = try await store.restore()
        #expect(restored.checkpoints == [Checkpoint(key: [1], path: "app/a.jsonl", offset: 77, state: [9])])
        #expect(restored.memory == ["sessions": [5, 6]])
        #expect(try await store.switches() == ["delivery.network": "off"])
        #expect(try await store.savedContainer("GTM-1234") == nil)
        let copy = SavedContainer(
            version: 7, etag: "\"a\"", confirmed: Timestamp(milliseconds: 5), file: [1, 2, 3])
        try await store.saveContainer("GTM-1234", copy)
        #expect(try await store.savedContainer("GTM-1234") == copy)
        #expect(store.snapshot.lane("main", .critical)?.summary.freeBatches == 1)
        #expect(try await store.list(.quarantine).records.count == 1)
        let letters = [Priority.normal, .critical].map { store.snapshot.lane("main", $0)?.deadLetters }
        #expect(letters == (version < 4 ? [0, 0] : [2, 1]))
        let formed = try #require(try await store.leaseNext(request("main", .critical)))
        #expect(formed.header.id.description == "019a9fa0-b000-7001-8000-00000000000b")
        #expect(numbers(formed) == Array(50..<54))
        let rest = try #require(try await store.leaseNext(request("main", .critical)))
        #expect(numbers(rest) == Array(54..<60))
        let full = try #require(try await store.leaseNext(request()))
        #expect(full.header.id.description == "019a9fa0-b000-7000-8000-00000000000a")
        for batch in [formed, rest, full] { _ = try await store.settle(.acknowledged(batch.header)) }
        await store.close()
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances && $0.ledger.queued == 0 })
        #expect(store.snapshot.storedBytes == 0)
    }

    @Test(
        "events rejected before the upgrade are not moved, because any destination may have them",
        arguments: 4...8)
    func movedAfterUpgrade(_ version: Int) async throws {
        let fixture = try QueueFixture()
        #expect(mkdir(fixture.options.stateDirectory, 0o700) == 0)
        try copyFixture(
            "queue-schema-\(version).sqlite", to: "\(fixture.options.stateDirectory)/queue.sqlite")
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        let old = try Database(path: path, vfs: nil)
        try old.execute("INSERT INTO destination (name) VALUES ('backup')")
        old.close()
        let store = try fixture.open { $0.destinations = ["main", "backup"] }
        _ = try await store.purge(.queue)
        #expect(try await store.retryDeadLetters() == 3)
        #expect(try await store.move("main", to: "backup") == MovedEvents(moved: 0, kept: 3))
        await store.close()
    }

    @Test("an upgraded database has the tables of a new one", arguments: [1, 2, 3, 4, 5, 6, 7, 8])
    func upgradedIsLikeNew(_ version: Int) async throws {
        let old = try QueueFixture()
        #expect(mkdir(old.options.stateDirectory, 0o700) == 0)
        try copyFixture("queue-schema-\(version).sqlite", to: "\(old.options.stateDirectory)/queue.sqlite")
        let new = try QueueFixture()
        var schemas: [[String]] = []
        for fixture in [old, new] {
            await (try fixture.open()).close()
            let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
            #expect(try database.integer("PRAGMA user_version") == Schema.version)
            schemas.append(try schema(database))
            database.close()
        }
        #expect(schemas[0] == schemas[1])
    }

    @Test("a damaged database of an older schema keeps what is readable, including the ledger")
    func damagedOlderSchema() async throws {
        let fixture = try QueueFixture()
        #expect(mkdir(fixture.options.stateDirectory, 0o700) == 0)
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        try copyFixture("queue-schema-4.sqlite", to: path)
        let database = try Database(path: path, vfs: nil)
        let page = try #require(
            try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'dead_letter'"))
        database.close()
        do {
            let file = try Descriptor(checking: open(path, O_WRONLY), "open")
            let garbage = [UInt8](repeating: 0xA5, count: 1_024)
            #expect(pwrite(file.raw, garbage, 1_024, off_t((page - 1) * 1_024)) == 1_024)
        }
        let store = try fixture.open()
        #expect(store.snapshot.health.recoveries == 1)
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(
            ledger.accepted == 152 && ledger.acknowledged == 100 && ledger.deadLettered == 2
                && ledger.queued == 50)
        #expect(ledger.lost == 0 && ledger.balances)
        // The rows are gone, and the figures know it.
        #expect(store.snapshot.deadLetters.count == 0 && store.snapshot.deadLetters.bytes == 0)
        #expect(store.snapshot.lane("main", .critical)?.ledger.queued == 10)
        let restored = try await store.restore()
        #expect(restored.checkpoints == [Checkpoint(key: [1], path: "app/a.jsonl", offset: 77, state: [9])])
        await store.close()
    }
}
