import CSQLite
import Model
import TestKit
import Testing

@testable import Queue

extension QueueStore {
    /// Bytes of the pages that SQLite has in memory, and of what it needs without any.
    private func cachedBytes() throws -> Int {
        var bytes: Int32 = 0
        var most: Int32 = 0
        let handle = try opened().database.handle
        #expect(sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_USED, &bytes, &most, 0) == SQLITE_OK)
        return Int(bytes)
    }

    /// Whether a look into a table has to read pages from the file.
    fileprivate func readsPages() throws -> Bool {
        let before = try cachedBytes()
        #expect(try opened().database.integer("SELECT count(*) FROM chunk") == 1)
        return try cachedBytes() >= before + opened().pageSize
    }
}

@Suite("A queue at rest")
struct QueueRestTests {
    @Test("two seconds after the last transaction no page is in memory, and the queue works as before")
    func pagesAreFreed() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        #expect(try await store.store(maker.commit(12)) == .stored(refused: 0))
        _ = try await store.readsPages()
        #expect(try await eventually { try await store.readsPages() })

        #expect(try await store.store(maker.commit(3)) == .stored(refused: 0))
        let batch = try #require(try await store.leaseNext(request()))
        #expect(batch.header.events == 15)
        await store.close()
    }
}
