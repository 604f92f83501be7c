import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Moving what waits to another destination")
struct QueueMoveTests {
    private func ledger(_ store: QueueStore, _ name: DestinationName) -> Ledger {
        store.snapshot.lanes.filter { $0.destination == name }.reduce(into: Ledger()) { sum, lane in
            sum.accepted += lane.ledger.accepted
            sum.discarded += lane.ledger.discarded
            sum.queued += lane.ledger.queued
            sum.acknowledged += lane.ledger.acknowledged
        }
    }

    /// Acknowledgements leave the file by and by: after closing all of them have.
    private func expectEmpty(_ store: QueueStore, _ fixture: QueueFixture) async throws {
        await store.close()
        let again = try fixture.open { $0.destinations = ["old", "new"] }
        #expect(again.snapshot.storedBytes == 0)
        #expect(again.snapshot.lanes.allSatisfy { $0.ledger.queued == 0 && $0.ledger.balances })
        await again.close()
    }

    private func drain(_ store: QueueStore, _ name: DestinationName) async throws -> [Int] {
        var found: [Int] = []
        for priority in [Priority.critical, .normal] {
            while let batch = try await store.leaseNext(request(name, priority, events: 100)) {
                found += numbers(batch)
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        return found
    }

    @Test("all that waits goes to the other destination, in order; the ledger balances, across a start too")
    func everythingMoves() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["old"] }
        for _ in 0..<30 { _ = try await store.store(maker.commit(50, to: ["old"], full: true)) }
        _ = try await store.store(maker.commit(7, priority: .critical, to: ["old"]))
        _ = try await store.store(maker.commit(3, to: ["old"]))
        await store.close()
        store = try fixture.open { $0.destinations = ["new"] }
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 1510, kept: 0))
        #expect(ledger(store, "old").discarded == 1510 && ledger(store, "old").queued == 0)
        #expect(ledger(store, "new").accepted == 1510 && ledger(store, "new").queued == 1510)
        await store.close()
        store = try fixture.open { $0.destinations = ["new"] }
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        #expect(try await drain(store, "new") == Array(1500..<1507) + Array(0..<1500) + Array(1507..<1510))
        try await expectEmpty(store, fixture)
    }

    @Test("fault07: what was moved is salvaged for the destination that it was moved to, and for no other")
    func salvagedWhereItWent() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["old", "new", "third"] }
        for _ in 0..<4 { _ = try await store.store(maker.commit(50, to: ["old"], full: true)) }
        #expect(try await store.move("old", to: "new").moved == 200)
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("DELETE FROM delivery; UPDATE ledger SET queued = queued + 7 WHERE queued > 0")
        database.close()
        store = try fixture.open { $0.destinations = ["old", "new", "third"] }
        #expect(ledger(store, "old").queued == 0 && ledger(store, "third").queued == 0)
        #expect(try await drain(store, "new") == Array(0..<200))
        try await expectEmpty(store, fixture)
    }

    @Test("a batch that may have been sent keeps its id and its events; what is in flight stays")
    func batchesKeepTheirIDs() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["old", "new"] }
        _ = try await store.store(maker.commit(50, to: ["old"], full: true))
        for _ in 0..<3 { _ = try await store.store(maker.commit(4, to: ["old"])) }
        let full = try #require(try await store.leaseNext(request("old")))
        let joined = try #require(try await store.leaseNext(request("old", events: 6)))
        await store.release(full.header.id)
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 56, kept: 6))
        // Smaller limits of the new destination split neither.
        let again = try #require(try await store.leaseNext(request("new", events: 5)))
        #expect(again.header.id == full.header.id && numbers(again) == numbers(full))
        #expect(again.header.destination == "new")
        _ = try await store.settle(.acknowledged(again.header))
        await store.release(joined.header.id)
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 6, kept: 0))
        // Whoever had it before has not heard of it, perhaps.
        #expect(try await store.lease(joined.header.id, for: "old") == nil)
        #expect(store.snapshot.lane("old", .normal)?.summary.withdrawn == 62)
        let second = try #require(try await store.lease(joined.header.id, for: "new"))
        #expect(second.header.destination == "new" && numbers(second) == numbers(joined))
        _ = try await store.settle(.acknowledged(second.header))
        #expect(try await drain(store, "new") == Array(56..<62))
        try await expectEmpty(store, fixture)
    }

    @Test("what waits for both stays; a destination that is not configured takes nothing")
    func whatIsThereStays() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["old", "new"] }
        _ = try await store.store(maker.commit(5, to: ["old", "new"]))
        _ = try await store.store(maker.commit(5, to: ["old"]))
        #expect(try await store.move("old", to: "new") == MovedEvents(moved: 5, kept: 5))
        await #expect(throws: QueueError.self) { try await store.move("old", to: "nowhere") }
        await #expect(throws: QueueError.self) { try await store.move("old", to: "old") }
        #expect(try await drain(store, "new") == Array(0..<10))
        #expect(try await drain(store, "old") == Array(0..<5))
        try await expectEmpty(store, fixture)
    }
}
