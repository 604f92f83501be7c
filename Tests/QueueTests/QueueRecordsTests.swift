import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Listing the queue")
struct QueueRecordsTests {
    private let both: [DestinationName] = ["main", "other"]

    private func events(_ lines: [UInt8]) -> [Int] {
        String(decoding: lines, as: UTF8.self).split(separator: "\n").compactMap {
            Int($0.filter { $0 != " " })
        }
    }

    @Test("the queue is listed by pages: critical first, by destination, the oldest first")
    func queueIsListed() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        _ = try await store.store(maker.commit(50, to: both, full: true))
        _ = try await store.store(maker.commit(7, priority: .critical))
        for _ in 0..<3 { _ = try await store.store(maker.commit(2, to: ["other"])) }
        let batch = try #require(try await store.leaseNext(request("other", events: 51)))
        var listed: [JSONValue] = []
        var after: String?
        repeat {
            let page = try await store.list(.queue, after: after, limit: 2)
            #expect(page.records.count <= 2)
            listed += page.records
            after = page.next
        } while after != nil
        #expect(
            listed.compactMap { $0["id"]?.string } == [
                "main/2.0", "main/1.0", "other/1.0", "other/3.0", "other/4.0", "other/5.0",
            ])
        #expect(
            listed.compactMap { $0["state"]?.string } == [
                "waiting", "full", "leased", "waiting", "waiting", "waiting",
            ])
        #expect(listed[0]["priority"] == "critical" && listed[0]["events"] == 7)
        var selection = RecordSelection()
        selection.destination = "other"
        #expect(try await store.list(.queue, selection).records.count == 4)
        selection.ids = [batch.header.id.description]
        #expect(try await store.list(.queue, selection).records.count == 1)
        await store.close()
    }

    @Test("a record is shown with its events, by its own id or its batch's id")
    func recordIsShown() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(3))
        #expect(try await store.show(.queue, id: "main/1.0")?["events"] == [0, 1, 2])
        let batch = try #require(try await store.leaseNext(request(events: 2)))
        #expect(try await store.show(.queue, id: batch.header.id.description)?["events"] == [0, 1])
        #expect(try await store.show(.queue, id: "main/1.2")?["events"] == [2])
        for unknown in ["main/9.0", "nobody/1.0", "x", "", "main/", UUIDv7(high: 1, low: 1).description] {
            #expect(try await store.show(.queue, id: unknown) == nil)
        }
        await store.close()
    }

    @Test("purged and forgotten content is removed from the files at once", arguments: [40, 9_000])
    func purgedIsGone(size: Int) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        let secret = Array(("SECRET-MARKER" + String(repeating: "y", count: size)).utf8)
        for number in 0..<40 {
            var commit = maker.commit(3)
            commit.memory = ["layer/\(number % 4)": number < 36 ? secret : nil]
            commit.quarantined = [
                QuarantineRecord(
                    reason: .notJSON, detail: "x", app: "shop", path: "shop/a.log", offset: Int64(number),
                    length: 1,
                    content: secret, time: maker.time)
            ]
            _ = try await store.store(commit)
        }
        #expect(try await store.purge(.quarantine, RecordSelection()) == 40)
        for isOpen in [true, false] {
            if !isOpen { await store.close() }
            let file = try readFile("\(fixture.directory.path)/state/queue.sqlite")
            #expect(!file.utf8.elementsEqual("".utf8) && !file.contains("SECRET-MARKER"))
            if isOpen { #expect(try readFile("\(fixture.directory.path)/state/queue.sqlite-wal").isEmpty) }
        }
        #expect(access("\(fixture.directory.path)/state/queue.sqlite-wal", F_OK) != 0)
    }

    @Test("an export has every waiting event, page by page")
    func queueIsExported() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<60 { _ = try await store.store(maker.commit(50, size: 1_000, full: true)) }
        var exported: [Int] = []
        var pages = 0
        var after: String?
        repeat {
            let page = try await store.export(.queue, after: after)
            exported += events(page.lines)
            after = page.next
            pages += 1
        } while after != nil
        #expect(exported == Array(0..<3_000) && pages > 1)
        await store.close()
    }

    @Test("dead letters are listed, shown, exported, retried and purged, and the ledger balances each time")
    func deadLetters() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let batch = try #require(try await store.leaseNext(request()))
        let failure = Failure(kind: .status, status: 422, message: "unprocessable", excerpt: "no such field")
        _ = try await store.settle(
            Settlement(
                batch: batch.header.id,
                parts: [.init(0..<45, .acknowledged), .init(45..<50, .deadLetter(failure))]))
        func kept() -> Int? { store.snapshot.lane("main", .normal)?.deadLetters }
        #expect(kept() == 5)
        let listed = try await store.list(.deadLetters).records
        #expect(listed.count == 5 && listed.allSatisfy { $0["reason"] == "status" && $0["status"] == 422 })
        #expect(listed[0]["batch"]?.string == batch.header.id.description)
        let id = try #require(listed[1]["id"]?.string)
        let shown = try await store.show(.deadLetters, id: id)
        #expect(shown?["event"] == 46 && shown?["answer"] == "no such field")
        #expect(events(try await store.export(.deadLetters).lines) == Array(45..<50))
        var one = RecordSelection()
        one.ids = [id]
        #expect(try await store.purge(.deadLetters, one) == 1)
        #expect(
            store.snapshot.deadLetters.count == 4 && store.snapshot.deadLetters.purged == 1 && kept() == 4)
        #expect(try await store.retryDeadLetters() == 4)
        #expect(store.snapshot.deadLetters == .init(count: 0, bytes: 0, purged: 1) && kept() == 0)
        let again = try #require(try await store.leaseNext(request()))
        #expect(numbers(again) == [45, 47, 48, 49])
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.retried == 4 && ledger.accepted == 50 && ledger.deadLettered == 5 && ledger.balances)
        #expect(store.snapshot.intake.accepted == 50)
        await store.close()
    }

    @Test("quarantined lines are listed, shown and purged, and removed by the commit that has reread them")
    func quarantine() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        var commit = Commit()
        commit.read = 3
        commit.quarantined = [[0x7B], [0xFF, 0x00], Array("x".utf8)].map { content in
            QuarantineRecord(
                reason: .notJSON, detail: "expected a value at byte 1", app: "shop", path: "shop/a.jsonl",
                offset: 9,
                length: Int64(content.count), content: content, time: maker.time)
        }
        _ = try await store.store(commit)
        let listed = try await store.list(.quarantine).records
        #expect(listed.count == 3 && listed[0]["app"] == "shop" && listed[0]["content"] == nil)
        #expect(try await store.show(.quarantine, id: "1")?["content"] == "{")
        #expect(try await store.show(.quarantine, id: "2")?["content_hex"] == "ff00")
        var others = RecordSelection()
        others.app = "blog"
        #expect(try await store.purge(.quarantine, others) == 0)
        let kept = try await store.quarantined()
        #expect(kept.map(\.record) == commit.quarantined)
        var again = maker.commit(1)
        again.requeued = [kept[0].id]
        _ = try await store.store(again)
        #expect(store.snapshot.quarantine.count == 2)
        #expect(store.snapshot.intake.balances && store.snapshot.intake.quarantined == 3)
        var bad = Commit()
        bad.read = 1
        bad.requeued = [kept[1].id]
        bad.quarantined = [kept[1].record]
        let before = store.snapshot.intake
        _ = try await store.store(bad)
        #expect(store.snapshot.intake == before && store.snapshot.quarantine.count == 2)
        #expect(try await store.purge(.quarantine) == 2)
        #expect(store.snapshot.quarantine == .init(count: 0, bytes: 0, purged: 2))
        await store.close()
    }

    @Test("an unknown reason of a newer version reads as that of a quarantined line; a retry counts nothing")
    func reasonOfANewerVersion() async throws {
        let fixture = try QueueFixture()
        let maker = ChunkMaker()
        var store = try fixture.open()
        var commit = Commit()
        commit.read = 1
        commit.quarantined = [
            QuarantineRecord(
                reason: .limit, detail: "", app: "shop", path: "shop/a.jsonl", offset: 9, length: 900,
                content: [0x7B],
                time: maker.time)
        ]
        _ = try await store.store(commit)
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("UPDATE quarantine SET reason = 'not_invented_yet'")
        store = try fixture.open()
        let kept = try #require(try await store.quarantined().first)
        #expect(kept.record.reason == .unknown)
        let before = store.snapshot.intake
        var back = Commit()
        back.read = 1
        back.requeued = [kept.id]
        back.quarantined = [kept.record]
        _ = try await store.store(back)
        #expect(store.snapshot.intake == before && before.balances && store.snapshot.quarantine.count == 1)
        await store.close()
    }

    @Test(
        "in a full quarantine no line of an app makes room for an app that has more",
        arguments: [1, 2, 3, 4] as [UInt64])
    func quarantineByHolder(seed: UInt64) async throws {
        let fixture = try QueueFixture()
        var random = SplitMix64(seed: seed)
        let bound = 64 << 10
        let store = try fixture.open { $0.quarantineMaxSize = bound }
        /// What is kept, by app.
        func held() async throws -> [String: Int] {
            var held: [String: Int] = [:]
            var after: String?
            repeat {
                let page = try await store.list(.quarantine, after: after)
                for record in page.records { held[record["app"]?.string ?? "", default: 0] += 1 }
                after = page.next
            } while after != nil
            return held
        }
        var before: [String: Int] = [:]
        for _ in 0..<60 {
            var commit = Commit()
            var added: [String: Int] = [:]
            for _ in 0..<Int.random(in: 1...100, using: &random) {
                // One of them floods.
                let app =
                    Bool.random(using: &random) ? "flood" : "app-\(Int.random(in: 0..<5, using: &random))"
                guard app == "flood" || (before[app] ?? 0) + (added[app] ?? 0) < 12 else { continue }
                added[app, default: 0] += 1
                commit.quarantined.append(
                    QuarantineRecord(
                        reason: .notJSON, detail: "", app: app, path: "a", offset: 9, length: 500,
                        content: [UInt8](repeating: 0x78, count: 500), time: fixture.time.wallTime))
            }
            commit.read = commit.quarantined.count
            // Only what is a day old makes room.
            fixture.time.advance(by: .seconds(86_401))
            _ = try await store.store(commit)
            let after = try await held()
            for app in 0..<5 {
                let app = "app-\(app)"
                #expect(after[app] ?? 0 == (before[app] ?? 0) + (added[app] ?? 0), "\(app)")
            }
            #expect(store.snapshot.quarantine.bytes <= bound)
            before = after
        }
        #expect(store.snapshot.quarantine.purged > 1000 && before["flood"] ?? 0 > 30)
        await store.close()
    }

    @Test("purging one entry of a batch removes none of the others; the batch's id removes all")
    func purgeOfABatch() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<3 { _ = try await store.store(maker.commit(20)) }
        let batch = try #require(try await store.leaseNext(request()))
        #expect(batch.header.events == 50)
        await store.release(batch.header.id)
        var selection = RecordSelection()
        for ids in [["main/1.0"], ["main/1.0", "main/2.0"], ["main/3.10", "main/3.0"]] {
            selection.ids = ids
            await #expect(throws: QueueError.self) { _ = try await store.purge(.queue, selection) }
            #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 60)
        }
        selection.ids = ["main/3.10"]
        #expect(try await store.purge(.queue, selection) == 10)
        selection.ids = ["main/1.0", "main/2.0", "main/3.0"]
        #expect(try await store.purge(.queue, selection) == 50)
        #expect(store.snapshot.lane("main", .normal)?.ledger.balances == true)
        await store.close()
    }

    @Test("purging removes the selected records, and leaves those in flight")
    func purge() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open { $0.destinations = ["main", "other"] }
        for _ in 0..<5 { _ = try await store.store(maker.commit(50, to: both, full: true)) }
        let batch = try #require(try await store.leaseNext(request()))
        var selection = RecordSelection()
        selection.ids = ["main/2.0", "main/1.0", "other/3.0"]
        #expect(try await store.purge(.queue, selection) == 100)
        selection.ids = nil
        selection.destination = "main"
        #expect(try await store.purge(.queue, selection) == 150)
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.acknowledged == 50 })
        #expect(store.snapshot.lane("main", .normal)?.ledger.queued == 0)
        #expect(store.snapshot.lane("other", .normal)?.ledger.queued == 200)
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
    }
}
