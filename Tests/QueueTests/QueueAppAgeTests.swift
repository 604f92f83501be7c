import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("The age of an app's events")
struct QueueAppAgeTests {
    @Test("waiting events of one app expire before the others of their chunk, at a lease and by the round")
    func sharedChunk() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        // Events 0, 5, 10, … happened now, all others a minute ago.
        let now = fixture.time.wallTime
        let old = now - .seconds(60)
        let store = try fixture.open {
            $0.destinations = ["main", "stats"]
            $0.maxAge = .seconds(3600)
            $0.appMaxAges = ["shop": .seconds(30)]
        } eventTime: { line, _ in
            (Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)) ?? 0) % 5 == 0 ? now : old
        }
        var commit = Commit()
        commit.chunks = [maker.chunk(of: [("shop", 10), ("web", 10)], to: ["main", "stats"], full: true)]
        commit.chunks[0].eventTimes = old...now
        _ = try await store.store(commit)
        // A lease takes them out of its own lane.
        let sent = try #require(try await store.leaseNext(request("stats")))
        #expect(numbers(sent) == [0, 5] + Array(10..<20))
        #expect(store.snapshot.lane("stats", .normal)?.ledger.expired == 8)
        #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 0)
        #expect(try await store.expire() == 8)
        #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 8)
        #expect(store.snapshot.expiredByApp.mapValues(\.expired) == ["shop": 16])
        let main = try #require(try await store.leaseNext(request("main")))
        #expect(numbers(main) == [0, 5] + Array(10..<20))
        #expect(try await store.expire() == 0)
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        // Those that are too old for all, by app as well: web's only, of two destinations.
        commit.chunks = [maker.chunk(of: [("web", 3)], to: ["main", "stats"], full: true)]
        commit.chunks[0].eventTimes = (now - .seconds(7200))...(now - .seconds(7200))
        _ = try await store.store(commit)
        #expect(try await store.expire() == 6)
        #expect(store.snapshot.expiredByApp.mapValues(\.expired) == ["shop": 16, "web": 6])
        await store.close()
    }

    @Test("a lease gives out no event that is too old for its app; an older one of another app stays")
    func leases() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let now = fixture.time.wallTime
        // Of shop 0 to 4 and 10 to 14, the latter are fresh; of web 5 to 9 all are old.
        let store = try fixture.open {
            $0.maxAge = .seconds(3600)
            $0.appMaxAges = ["shop": .seconds(30)]
        } eventTime: { line, _ in
            let number = Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)) ?? 0
            return number < 10 ? now - .seconds(60) : now
        }
        var commit = Commit()
        commit.chunks = [maker.chunk(of: [("shop", 5), ("web", 5), ("shop", 5)], full: true)]
        commit.chunks[0].eventTimes = (now - .seconds(60))...now
        _ = try await store.store(commit)
        let batch = try #require(try await store.leaseNext(request()))
        #expect(numbers(batch) == Array(5..<15))
        // Tried, and given back: nothing of it has expired, so it keeps its id.
        await store.release(batch.header.id)
        let again = await store.leaseAgain(batch.header.id, for: "main")
        #expect(again.batches.map(numbers) == [Array(5..<15)])
        await store.release(batch.header.id)
        fixture.time.advance(by: .seconds(31))
        #expect(await store.leaseAgain(batch.header.id, for: "main").batches.isEmpty)
        let rest = try #require(try await store.leaseNext(request()))
        #expect(numbers(rest) == Array(5..<10))
        #expect(store.snapshot.lane("main", .normal)?.ledger.expired == 10)
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
    }

    @Test("nothing expires by its app's age while the clock is not trusted")
    func untrustedClock() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let old = fixture.time.wallTime - .seconds(60)
        let store = try fixture.open({ $0.appMaxAges = ["shop": .seconds(30)] }, eventTime: { _, _ in old }) {
            _ in false
        }
        var commit = Commit()
        commit.chunks = [maker.chunk(of: [("shop", 5)])]
        commit.chunks[0].eventTimes = old...old
        _ = try await store.store(commit)
        #expect(try await store.expire() == 0)
        #expect(numbers(try #require(try await store.leaseNext(request()))) == Array(0..<5))
        await store.close()
    }
}
