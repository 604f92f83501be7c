import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

/// A transaction that fails leaves no trace: neither in the file nor in what the store knows.
@Suite("Queue rollback", .serialized)
struct QueueRollbackTests {
    @Test("ac11: settings whose transaction fails have no effect: the old limit still applies")
    func ac11_settingsThatFail() async throws {
        try await CrashDisk.exclusively { try await settingsThatFail() }
    }

    private func settingsThatFail() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        CrashDisk.reset()
        defer { CrashDisk.reset() }
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.vfs = CrashDisk.name
            $0.maxSize = 24 << 10
        }
        // More than half: a queue with less in it forgets a lowered cap by itself.
        for _ in 0..<15 { _ = try await store.store(maker.commit(10, size: 100, full: true)) }
        let bounds = await store.bounds
        var larger = await store.options
        larger.maxSize = 1 << 20
        CrashDisk.fail(EIO)
        await #expect(throws: QueueError.self) { try await store.apply(larger) }
        CrashDisk.fail(0)
        #expect(await eventually { store.snapshot.health.failure == nil })
        #expect(await store.bounds == bounds)
        #expect(await store.options.maxSize == 24 << 10)
        for _ in 0..<40 where store.snapshot.accepting == .all {
            _ = try await store.store(maker.commit(10, size: 100, full: true))
        }
        #expect(store.snapshot.accepting == .nothing(.full))
        #expect(store.snapshot.storedBytes <= 24 << 10)
        #expect(store.snapshot.maxSize == 24 << 10)
        await store.close()
    }

    @Test("ac07: evictions of a failed transaction are neither reported nor counted")
    func ac07_evictionThatFails() async throws {
        try await CrashDisk.exclusively { try await evictionThatFails() }
    }

    private func evictionThatFails() async throws {
        let fixture = try QueueFixture(in: "/dev/shm")
        CrashDisk.reset()
        defer { CrashDisk.reset() }
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.vfs = CrashDisk.name
            $0.maxSize = 24 << 10
            $0.whenFull = .evict
        }
        for _ in 0..<21 { _ = try await store.store(maker.commit(10, size: 100, full: true)) }
        CrashDisk.fail(EIO)
        #expect(try await store.store(maker.commit(10, size: 100, full: true)) == .wait(.notWritable))
        func said(_ text: String) -> [[String]] {
            fixture.log.messages.filter { $0.text == text }.map { message in
                message.fields.filter { $0.key == "evicted" }.map(\.value)
            }
        }
        #expect(said("queue is full, evicting").isEmpty)
        CrashDisk.fail(0)
        #expect(await eventually { store.snapshot.health.failure == nil })
        #expect(try await store.store(maker.commit(10, size: 100, full: true)) == .stored(refused: 0))
        #expect(said("queue is full, evicting").count == 1)
        _ = try await store.discardAll(reason: "purged")
        #expect(await eventually { !said("queue was full").isEmpty })
        #expect(said("queue was full") == [["10"]])
        #expect(store.snapshot.lane("main", .normal)?.ledger.evicted == 10)
        await store.close()
    }
}
