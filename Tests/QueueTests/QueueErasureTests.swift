import EventLoops
import Frames
import Glibc
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Erasing single events from the queue")
struct QueueErasureTests {
    /// Finds the events of some numbers, and texts that mention `needle`.
    private func search(_ gone: Set<Int>, mentioning needle: String = "#") -> ErasureSearch {
        ErasureSearch(
            makeJudge: {
                { line, _ in
                    let digits = line.filter { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
                    return Int(String(decoding: digits, as: UTF8.self)).map(gone.contains) ?? false
                }
            }, isMentioned: { String(decoding: $0, as: UTF8.self).contains(needle) })
    }

    private func drain(_ store: QueueStore, _ name: DestinationName = "main") async throws -> [Int] {
        var found: [Int] = []
        for priority in [Priority.critical, .normal] {
            while let batch = try await store.leaseNext(request(name, priority, events: 100)) {
                found += try content(batch)
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        return found
    }

    private func content(_ batch: Batch) throws -> [Int] {
        try batch.parts.flatMap { part in
            let lines = try #require(
                FrameUnpacker().lines(
                    part.frame, part.compression, bytes: part.bytes, events: part.eventsInFrame))
            return part.events.map { line in
                let digits = lines.slice(line..<line + 1).filter {
                    UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
                }
                return Int(String(decoding: digits, as: UTF8.self)) ?? -1
            }
        }
    }

    private func lane(_ store: QueueStore, _ name: DestinationName = "main") -> QueueSnapshot.LaneState? {
        store.snapshot.lane(name, .normal)
    }

    private func discarded(_ store: QueueStore, _ name: DestinationName = "main") -> Int {
        store.snapshot.discarded.filter { $0.destination == name && $0.reason == "erased" }.reduce(0) {
            $0 + $1.events
        }
    }

    @Test("an event is erased from a shared chunk; the others keep their order, and the ledger balances")
    func sharedChunk() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["main", "other"] }
        var commit = Commit()
        commit.chunks = [maker.chunk(of: [("shop", 5), ("web", 5)], to: ["main", "other"])]
        _ = try await store.store(commit)
        let trial = try await store.erase(search([0, 3, 9]), isTrial: true)
        #expect(
            trial.events == 3 && trial.deliveries == ["main": 3, "other": 3] && trial.dissolvedBatches == 0)
        #expect(lane(store)?.ledger.queued == 10)
        var expected = trial
        #expect(try await store.erase(search([0, 3, 9])) == expected)
        expected = ErasedRecords()
        #expect(try await store.erase(search([0, 3, 9])) == expected)
        for name in ["main", "other"] as [DestinationName] {
            #expect(lane(store, name)?.ledger.queued == 7 && lane(store, name)?.ledger.balances == true)
            #expect(discarded(store, name) == 3)
        }
        await store.close()
        store = try fixture.open { $0.destinations = ["main", "other"] }
        let batch = try #require(try await store.leaseNext(request("other")))
        #expect(numbers(batch) == [1, 2, 4, 5, 6, 7, 8])
        #expect(
            await store.apps(of: batch.header.id) == ["shop", "shop", "shop", "web", "web", "web", "web"])
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(try await drain(store) == [1, 2, 4, 5, 6, 7, 8])
        await store.close()
        store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(store.snapshot.storedBytes == 0 && store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
    }

    @Test(
        "a batch that was tried is sent again without the erased event under another id; others keep their id"
    )
    func triedBatches() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<3 { _ = try await store.store(maker.commit(4)) }
        // Chunks 0–3, 4–7, 8–11: the first batch ends within the second chunk.
        let first = try #require(try await store.leaseNext(request(events: 6)))
        let second = try #require(try await store.leaseNext(request(events: 6)))
        #expect(numbers(first) == Array(0..<6) && numbers(second) == Array(6..<12))
        await store.release(first.header.id)
        await store.release(second.header.id)
        // A dry run finds the first batch in two chunks, and counts it once.
        #expect(try await store.erase(search([0, 5]), isTrial: true).dissolvedBatches == 1)
        let erased = try await store.erase(search([5]))
        #expect(erased.events == 1 && erased.dissolvedBatches == 1)
        // Asked for by its id, the batch is gone; the other one has the same events as before.
        #expect(try await store.lease(first.header.id, for: "main") == nil)
        let again = try #require(try await store.lease(second.header.id, for: "main"))
        #expect(numbers(again) == Array(6..<12))
        _ = try await store.settle(.acknowledged(again.header))
        let rest = try #require(try await store.leaseNext(request(events: 6)))
        #expect(rest.header.id != first.header.id && numbers(rest) == [0, 1, 2, 3, 4])
        _ = try await store.settle(.acknowledged(rest.header))
        try await store.flush()
        #expect(store.snapshot.storedBytes == 0 && lane(store)?.ledger.balances == true)
        await store.close()
    }

    @Test(
        "a full chunk that an earlier process sent is sent again without the erased event, under another id")
    func fullChunkOfEarlierProcess() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let sent = try #require(try await store.leaseNext(request()))
        await store.close()
        store = try fixture.open()
        #expect(try await store.erase(search([7])).dissolvedBatches == 1)
        let again = try #require(try await store.leaseNext(request()))
        #expect(again.header.id != sent.header.id && numbers(again) == (0..<50).filter { $0 != 7 })
        await store.close()
    }

    @Test(
        "an erasure waits for events in flight and erases those that return; acknowledged ones have arrived")
    func inFlight() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<2 { _ = try await store.store(maker.commit(50, full: true)) }
        let first = try #require(try await store.leaseNext(request()))
        let second = try #require(try await store.leaseNext(request()))
        let impatient = try await store.erase(search([3, 60]))
        #expect(impatient.events == 0 && impatient.eventsInFlight == 2)
        // The time of the fixture stands still, so patience never ends.
        let search = search([3, 60])
        let erasure = Task { try await store.erase(search, patience: .seconds(60)) }
        await store.release(first.header.id)
        _ = try await store.settle(.acknowledged(second.header))
        let erased = try await erasure.value
        #expect(erased.events == 1 && erased.eventsInFlight == 0 && erased.dissolvedBatches == 1)
        #expect(try await drain(store) == (0..<50).filter { $0 != 3 })
        #expect(lane(store)?.ledger.balances == true)
        await store.close()
    }

    @Test(
        "an erasure covers dead letters, quarantine, data layers, sessions and stored messages of receivers"
    )
    func otherPlaces() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        var commit = maker.commit(4)
        func line(_ text: String) -> QuarantineRecord {
            QuarantineRecord(
                reason: .notJSON, detail: "", app: "shop", path: "a", offset: 0, length: 1,
                content: Array(text.utf8),
                time: fixture.time.wallTime)
        }
        commit.quarantined = [line("{cut off 4711"), line("{cut off 17"), line("2")]
        commit.read += 3
        commit.memory = [
            "layer/shop": Array(#"{"user":"4711"}"#.utf8), "layer/web": Array(#"{"user":"17"}"#.utf8),
            "layer/news": Array(#"{"consent":{"ads":false},"user":"4711"}"#.utf8),
            "session/shop/process/\"4711\"": [1, 1], "session/4711": [1, 1], "names/4711": [1],
        ]
        _ = try await store.store(commit)
        let batch = try #require(try await store.leaseNext(request()))
        let answer = Failure(kind: .status, status: 400, message: "400", excerpt: "user 4711 is unknown")
        _ = try await store.settle(
            Settlement(
                batch: batch.header.id,
                parts: [.init(0..<3, .deadLetter(answer)), .init(3..<4, .acknowledged)]))
        var erased = ErasedRecords()
        (erased.deadLetters, erased.answers, erased.quarantined) = (1, 2, 1)
        (erased.dataLayers, erased.sessions) = (2, 1)
        let search = search([1], mentioning: "4711")
        #expect(try await store.erase(search, isTrial: true) == erased)
        #expect(try await store.erase(search) == erased)
        #expect(try await store.erase(search) == ErasedRecords())
        let letters = try await store.list(.deadLetters).records
        #expect(letters.count == 2)
        for letter in letters {
            let shown = try #require(try await store.show(.deadLetters, id: letter["id"]?.string ?? ""))
            #expect(shown["answer"] == "" && shown["message"] == "")
        }
        #expect(try await store.list(.quarantine).records.count == 2)
        let memory = try await store.restore().memory
        #expect(memory.keys.sorted() == ["layer/news", "layer/web", "names/4711", "session/4711"])
        // What a layer says about consent stays.
        #expect(memory["layer/news"] == Array(#"{"consent":{"ads":false}}"#.utf8))
        #expect(store.snapshot.deadLetters.count == 2 && store.snapshot.deadLetters.purged == 1)
        #expect(lane(store)?.ledger.balances == true)
        // The figures agree with the rows, or the next start counts others.
        let bytes = store.snapshot.deadLetters.bytes
        await store.close()
        let again = try fixture.open()
        #expect(again.snapshot.deadLetters.bytes == bytes)
        await again.close()
    }

    @Test("nothing of an erased event is left in the files, whatever was stored, sent or removed before")
    func nothingLeft() async throws {
        let fixture = try QueueFixture()
        let store = try fixture.open()
        let marker = "ann@example.com"
        for round in 0..<40 {
            var frame: [UInt8] = []
            for event in 0..<20 {
                let user = event % 4 == 1 ? marker : "bob-\(round)-\(event)"
                frame +=
                    Array(
                        #"{"name":"x","user":"\#(user)","pad":"\#(String(repeating: "p", count: 300))"}"#.utf8
                    ) + [10]
            }
            let time = fixture.time.wallTime
            var commit = Commit()
            commit.chunks = [
                NewChunk(
                    priority: .normal, destinations: ["main"], events: 20, bytes: frame.count,
                    eventTimes: time...time,
                    acceptedAt: time, compression: .none, frame: frame, isFull: true)
            ]
            commit.read = 20
            _ = try await store.store(commit)
            if round % 3 == 0, let batch = try await store.leaseNext(request()) {
                _ = try await store.settle(.acknowledged(batch.header))
            }
        }
        try await store.flush()
        let mentions: @Sendable ([UInt8]) -> Bool = { String(decoding: $0, as: UTF8.self).contains(marker) }
        let erased = try await store.erase(
            ErasureSearch(makeJudge: { { line, _ in mentions(Array(line)) } }, isMentioned: mentions))
        #expect(erased.events == 26 * 5)
        for name in try WholeFile.names(in: fixture.options.stateDirectory)
        where name.hasPrefix("queue.sqlite") {
            let path = "\(fixture.options.stateDirectory)/\(name)"
            let bytes = try #require(try WholeFile.bytes(of: path, atMost: 64 << 20))
            #expect(!String(decoding: bytes, as: UTF8.self).contains(marker), "\(name)")
        }
        #expect(lane(store)?.ledger.queued == 26 * 15 && lane(store)?.ledger.balances == true)
        await store.close()
    }

    @Test("an erasure that a crash interrupts at any write is consistent, and the next one completes it")
    func crashes() async throws {
        try await CrashDisk.exclusively {
            let fixture = try QueueFixture(in: "/dev/shm")
            var maker = ChunkMaker()
            CrashDisk.reset()
            CrashDisk.record()
            defer { CrashDisk.reset() }
            let writing = try fixture.open { $0.vfs = CrashDisk.name }
            for _ in 0..<4 { _ = try await writing.store(maker.commit(10, size: 400)) }
            let tried = try #require(try await writing.leaseNext(request(events: 15)))
            await writing.release(tried.header.id)
            let gone = Set((0..<40).filter { $0 % 7 == 3 })
            let before = CrashDisk.operations
            #expect(try await writing.erase(search(gone)).events == gone.count)
            let after = CrashDisk.operations
            await writing.close()
            var found: Set<Int> = []
            for place in before...after {
                CrashDisk.cut(.power, after: place, seed: UInt64(place))
                let store = try fixture.open { $0.vfs = CrashDisk.name }
                let erased = try await store.erase(search(gone))
                found.insert(erased.events)
                #expect(discarded(store) == gone.count, "cut after \(place)")
                #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
                #expect(
                    try await drain(store).sorted() == (0..<40).filter { !gone.contains($0) },
                    "cut after \(place)")
                await store.close()
            }
            // Cuts before its first transaction and behind it were met.
            #expect(found.contains(gone.count) && found.contains(0))
        }
    }

    @Test("after any leases, settlements and returns, all events except the erased ones are sent, once")
    func randomQueues() async throws {
        for round in 0..<20 {
            var random = SplitMix64(seed: Seeds.one(UInt64(round)))
            let fixture = try QueueFixture(in: "/dev/shm")
            var maker = ChunkMaker()
            var store = try fixture.open()
            var gone: Set<Int> = []
            var arrived: [Int] = []
            var held: [Batch] = []
            for _ in 0..<60 {
                switch random.next() % 7 {
                case 0, 1, 2:
                    let count = Int(random.next() % 12) + 1
                    var chunk = maker.chunk(count, full: random.next() % 3 == 0)
                    if random.next() % 2 == 0 {
                        chunk.compression = .gzip
                        chunk.frame = try FrameCompressor(.gzip).compress(chunk.frame)
                    }
                    var commit = Commit()
                    (commit.chunks, commit.read) = ([chunk], count)
                    _ = try await store.store(commit)
                case 3:
                    if let batch = try await store.leaseNext(request(events: Int(random.next() % 20) + 1)) {
                        held.append(batch)
                    }
                case 4:
                    guard let batch = held.popLast() else { continue }
                    let count = batch.header.events
                    let split = Int(random.next() % UInt64(count + 1))
                    var parts: [Settlement.Part] = []
                    if split > 0 { parts.append(.init(0..<split, .acknowledged)) }
                    if split < count { parts.append(.init(split..<count, .again(group: 0))) }
                    arrived += try content(batch).prefix(split)
                    _ = try await store.settle(Settlement(batch: batch.header.id, parts: parts))
                case 5:
                    for batch in held { await store.release(batch.header.id) }
                    held = []
                    if random.next() % 3 == 0 {
                        await store.close()
                        store = try fixture.open()
                    }
                default:
                    let modulus = Int(random.next() % 11) + 2
                    let wanted = Set((0..<maker.next).filter { $0 % modulus == 1 })
                    let erased = try await store.erase(search(wanted))
                    if erased.eventsInFlight == 0 { gone.formUnion(wanted) }
                    #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
                }
            }
            for batch in held { await store.release(batch.header.id) }
            let last = Set((0..<maker.next).filter { $0 % 5 == 2 })
            _ = try await store.erase(search(last))
            gone.formUnion(last)
            let rest = try await drain(store)
            let left = Set(rest)
            #expect(left.count == rest.count, "\(Seeds.again(Seeds.one(UInt64(round))))")
            #expect(
                left.isDisjoint(with: gone) && left.isDisjoint(with: arrived),
                "\(Seeds.again(Seeds.one(UInt64(round))))")
            try await store.flush()
            let ledger = try #require(lane(store)?.ledger)
            #expect(ledger.balances && ledger.queued == 0 && store.snapshot.storedBytes == 0)
            #expect(ledger.discarded == discarded(store))
            #expect(arrived.count + rest.count + ledger.discarded == maker.next)
            await store.close()
        }
    }
}
