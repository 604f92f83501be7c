import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Consent and waiting events")
struct QueueConsentTests {
    /// What commands have set: consent of `shop` to analytics is withdrawn, or its collection is off.
    private func withdrawn(disabled: Bool = false) -> ConsentStates {
        var states = ConsentStates()
        if disabled {
            states.setDisabled(true, "shop")
        } else {
            states["shop", "analytics"] = false
        }
        return states
    }

    private func open(_ fixture: QueueFixture) throws -> QueueStore {
        try fixture.open {
            $0.destinations = ["main", "stats"]
            $0.purposes = ["stats": ["analytics"]]
        }
    }

    /// A commit of five events of `shop` and five of `web`.
    private func commit(
        _ maker: inout ChunkMaker, isFull: Bool = false,
        to destinations: [DestinationName] = ["main", "stats"]
    ) -> Commit {
        var commit = Commit()
        commit.chunks = [maker.chunk(of: [("shop", 5), ("web", 5)], to: destinations, full: isFull)]
        return commit
    }

    private func discarded(
        _ store: QueueStore, _ name: DestinationName = "stats", _ reason: String = "withheld"
    ) -> Int {
        store.snapshot.discarded.filter { $0.destination == name && $0.reason == reason }
            .reduce(0) { $0 + $1.events }
    }

    private func expectBalance(_ store: QueueStore) {
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
    }

    @Test(
        "withdrawn consent takes an app's waiting events out of one destination, durably",
        arguments: [true, false])
    func withdrawal(isFull: Bool) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try open(fixture)
        _ = try await store.store(commit(&maker, isFull: isFull))
        try await store.setConsent(withdrawn())
        #expect(store.snapshot.consent == withdrawn())
        let found = try await store.withhold(patience: .zero)
        #expect(found.withheld == 5 && found.inFlight == 0)
        #expect(try await store.withhold(patience: .zero) == SiftedEvents())
        let main = try #require(try await store.leaseNext(request("main")))
        #expect(numbers(main) == Array(0..<10))
        let batch = try #require(try await store.leaseNext(request("stats")))
        #expect(numbers(batch) == Array(5..<10))
        #expect(discarded(store) == 5 && discarded(store, "main") == 0)
        expectBalance(store)
        _ = try await store.settle(.acknowledged(batch.header))
        _ = try await store.settle(.acknowledged(main.header))
        await store.close()

        store = try open(fixture)
        #expect(store.snapshot.storedBytes == 0 && discarded(store) == 5)
        #expect(store.snapshot.consent == withdrawn())
        expectBalance(store)
        await store.close()
    }

    @Test("no lease gives out such an event, also without the command's search, after a kill or a move")
    func leases() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try open(fixture)
        _ = try await store.store(commit(&maker, isFull: true))
        _ = try await store.store(commit(&maker))
        try await store.setConsent(withdrawn())
        await store.close()
        store = try open(fixture)
        // What was read by older rules, and becomes durable later.
        _ = try await store.store(commit(&maker))
        _ = try await store.store(commit(&maker, to: ["main"]))
        #expect(try await store.move("main", to: "stats").moved == 10)
        var found: [Int] = []
        while let batch = try await store.leaseNext(request("stats")) {
            found += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(found.sorted() == (0..<40).filter { $0 % 10 >= 5 })
        #expect(discarded(store) == 20)
        try await store.flush()
        expectBalance(store)
        // Given back: what comes now is sent.
        try await store.setConsent(ConsentStates())
        _ = try await store.store(commit(&maker, to: ["stats"]))
        let batch = try #require(try await store.leaseNext(request("stats")))
        #expect(numbers(batch) == Array(40..<50))
        await store.close()
    }

    @Test("a batch in flight is not touched; given back, its other events go under a new id")
    func inFlight() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try open(fixture)
        _ = try await store.store(commit(&maker, isFull: true))
        let sent = try #require(try await store.leaseNext(request("stats")))
        try await store.setConsent(withdrawn())
        let found = try await store.withhold(patience: .zero)
        #expect(found.withheld == 0 && found.inFlight == 5)
        await store.release(sent.header.id)
        #expect(await store.leaseAgain(sent.header.id, for: "stats").batches.isEmpty)
        let rest = try #require(try await store.leaseNext(request("stats")))
        #expect(numbers(rest) == Array(5..<10) && rest.header.id != sent.header.id)
        #expect(discarded(store) == 5)
        expectBalance(store)
        await store.close()
    }

    @Test("a batch that was joined of several chunks, and tried, is sent again without them")
    func triedBatch() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try open(fixture)
        for _ in 0..<3 { _ = try await store.store(commit(&maker, to: ["stats"])) }
        let tried = try #require(try await store.leaseNext(request("stats", events: 27)))
        #expect(tried.header.events == 27)
        await store.close()
        store = try open(fixture)
        try await store.setConsent(withdrawn())
        #expect(try await store.withhold(patience: .zero).withheld == 15)
        let rest = try #require(try await store.leaseNext(request("stats")))
        #expect(numbers(rest) == (0..<30).filter { $0 % 10 >= 5 } && rest.header.id != tried.header.id)
        expectBalance(store)
        await store.close()
    }

    @Test("of an app that is off nothing stays, neither for a destination nor as text in a shared chunk")
    func disabled() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try open(fixture)
        var commit = commit(&maker)
        let secret = Array("secret-4711     \n".utf8)
        let chunk = commit.chunks[0]
        commit.chunks[0] = NewChunk(
            priority: .normal, destinations: chunk.destinations, events: 10, bytes: chunk.bytes + 1,
            eventTimes: chunk.eventTimes, acceptedAt: chunk.acceptedAt, compression: .none,
            frame: secret + chunk.frame.dropFirst(16), isFull: false, deadlines: nil)
        commit.chunks[0].origins = [
            EventOrigin(app: "shop", path: "", offsets: [0, 0, 0, 0, 0], bytes: 81),
            EventOrigin(app: "web", path: "", offsets: [0, 0, 0, 0, 0], bytes: 80),
        ]
        _ = try await store.store(commit)
        #expect(try await store.countQueued(of: "shop") == 10)
        #expect(try await store.countQueued(of: "nobody") == 0)
        let before = store.snapshot.storedBytes
        try await store.setConsent(withdrawn(disabled: true))
        #expect(try await store.withhold(patience: .zero).withheld == 10)
        #expect(discarded(store, "main", "disabled") == 5 && discarded(store, "stats", "disabled") == 5)
        #expect(store.snapshot.storedBytes < before)
        #expect(try await store.countQueued(of: "shop") == 0)
        for name in ["queue.sqlite", "queue.sqlite-wal"] {
            let path = "\(fixture.options.stateDirectory)/\(name)"
            let bytes = try WholeFile.bytes(of: path, atMost: 1 << 30) ?? []
            #expect(!String(decoding: bytes, as: UTF8.self).contains("secret-4711"), "\(name)")
        }
        let main = try #require(try await store.leaseNext(request("main")))
        #expect(numbers(main) == Array(5..<10))
        expectBalance(store)
        await store.close()
    }

    @Test("withdrawals at random moments leave nothing of the app, lose nothing else, and balance")
    func random() async throws {
        for seed in Seeds.list(1...20) { try await random(seed) }
    }

    private func random(_ seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let fixture = try QueueFixture(in: "/dev/shm")
        var maker = ChunkMaker()
        let store = try open(fixture)
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            _ = try await store.store(commit(&maker, isFull: Bool.random(using: &random)))
        }
        var flying: [Batch] = []
        for _ in 0..<3 {
            let size = Int.random(in: 1...25, using: &random)
            guard let batch = try await store.leaseNext(request("stats", events: size)) else { break }
            flying.append(batch)
        }
        try await store.setConsent(withdrawn(disabled: Bool.random(using: &random)))
        if Bool.random(using: &random) {
            _ = try await store.withhold(patience: .zero)
        }
        var arrived: Set<Int> = []
        for batch in flying {
            if Bool.random(using: &random) {
                arrived.formUnion(numbers(batch))
                _ = try await store.settle(.acknowledged(batch.header))
            } else {
                await store.release(batch.header.id)
            }
        }
        if Bool.random(using: &random) {
            #expect(try await store.withhold(patience: .zero).inFlight == 0, "\(Seeds.again(seed))")
        }
        var later: [Int] = []
        while let batch = try await store.leaseNext(request("stats")) {
            later += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(later.allSatisfy { $0 % 10 >= 5 }, "\(Seeds.again(seed))")
        #expect(arrived.isDisjoint(with: later) && Set(later).count == later.count, "\(Seeds.again(seed))")
        let web = (0..<maker.next).filter { $0 % 10 >= 5 }
        #expect(arrived.union(later).isSuperset(of: web), "\(Seeds.again(seed))")
        expectBalance(store)
        await store.close()
    }
}
