import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("Batches between attempts")
struct KeptTests {
    private static let apps: [String?] = [nil, "web", "shop", "mail"]

    /// A batch drawn at random, of one of few ids.
    private func batch(_ ids: [BatchID], using random: inout SplitMix64) -> TrackedBatch {
        let header = BatchHeader(
            id: ids.randomElement(using: &random) ?? ids[0], destination: "main",
            priority: Priority.inOrder.randomElement(using: &random) ?? .normal,
            events: Int.random(in: 1...50, using: &random), bytes: 100,
            acceptedAt: Timestamp(milliseconds: Int64.random(in: 0...5, using: &random)),
            firstEventTime: Timestamp(milliseconds: 0))
        let now = BootInstant(nanoseconds: Int64.random(in: 1...100, using: &random))
        var batch = TrackedBatch(header: header, notBefore: now)
        batch.app = KeptTests.apps.randomElement(using: &random) ?? nil
        batch.aside = [nil, nil, .fails, .rejected].randomElement(using: &random) ?? nil
        batch.rejectedAt = Bool.random(using: &random) ? now : nil
        batch.failures = Int.random(in: 0...1, using: &random)
        batch.place =
            Bool.random(using: &random)
            ? PiecePlace().piece(Int.random(in: 0...3, using: &random)) : batch.place
        return batch
    }

    @Test(
        "after any changes the counts are those of the batches, each id exists once, and the oldest is found",
        arguments: Seeds.list(1...20))
    func counts(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var generator = UUIDv7Generator()
        let ids = (0..<40).map { generator.next(at: Timestamp(milliseconds: Int64($0)), using: &random) }
        var kept = Kept()
        var known: [BatchID: TrackedBatch] = [:]
        for _ in 0..<500 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let batch = batch(ids, using: &random)
                known[batch.header.id] = batch
                kept.keep(batch)
            case 2:
                let id = ids.randomElement(using: &random) ?? ids[0]
                #expect((kept.remove(id) != nil) == (known.removeValue(forKey: id) != nil))
            default:
                kept.updateAll(where: { $0.aside == .fails }) { $0.aside = .rejected }
                for (id, batch) in known where batch.aside == .fails { known[id]?.aside = .rejected }
            }
            let all = Array(known.values)
            #expect(kept.ids() == Set(known.keys) && kept.count == known.count)
            #expect(kept.counts.events == all.reduce(0) { $0 + $1.header.events })
            #expect(kept.counts.rejected == all.count { $0.rejectedAt != nil && !$0.isSetAside })
            for priority in Priority.inOrder {
                #expect(kept.counts.batches[priority] == all.count { $0.header.priority == priority })
                #expect(
                    kept.counts.retries[priority]
                        == all.count { $0.waitsForRetry && $0.header.priority == priority })
            }
            for aside in [TrackedBatch.Aside.fails, .rejected] {
                #expect(kept.count(of: aside) == all.count { $0.aside == aside })
            }
            let aside = all.filter(\.isSetAside)
            #expect(
                kept.eventsAside
                    == aside.reduce(into: [:]) { $0[$1.app ?? "", default: 0] += $1.header.events })
            let oldest = all.min {
                ($0.header.acceptedAt, $0.place, $0.header.id) < (
                    $1.header.acceptedAt, $1.place, $1.header.id
                )
            }
            #expect(kept.first(by: Kept.Card.isOlder)?.id == oldest?.header.id)
            let isOfWeb = kept.number(of: "web").map { number in kept.ids { $0.app == number } } ?? []
            #expect(isOfWeb == Set(all.filter { $0.app == "web" }.map(\.header.id)))
        }
    }

    @Test("apps take turns, also if the batch that was tried last is gone")
    func turns() {
        var kept = Kept()
        for (number, app) in ["bad", "bad", "bad", "good", "fine"].enumerated() {
            var batch = TrackedBatch.made(seed: UInt64(number + 1))
            batch.app = app
            kept.keep(batch)
        }
        #expect(kept.lastTried == nil)
        var apps: [String] = []
        while let next = kept.nextInTurn(isSetAside: false) {
            apps.append(kept.take(next.id)?.app ?? "")
        }
        #expect(apps == ["bad", "good", "fine", "bad", "bad"])
        #expect(kept.lastTried == Kept.LastTried(app: "bad"))
    }

    @Test("pieces keep the order of their events, however often they were cut")
    func places() {
        let whole = PiecePlace()
        let first = whole.piece(0)
        let second = whole.piece(1)
        #expect(whole.isWhole && !first.isWhole)
        #expect(
            [second, first.piece(1), first.piece(0)].sorted() == [first.piece(0), first.piece(1), second])
        var deep = whole
        for _ in 0..<40 { deep = deep.piece(200) }
        #expect(second < deep && !deep.isWhole)
    }

    @Test("the next refused batch is the one with the fewest tries, and of equals the newest")
    func refusedTurns() {
        var kept = Kept()
        for seed in 1...60 {
            var batch = TrackedBatch.made(seed: UInt64(seed))
            batch.aside = .rejected
            kept.keep(batch)
        }
        let newest = kept.first(by: { Kept.Card.isOlder($1, $0) })
        var tried: [BatchID] = []
        for _ in 0..<120 {
            guard let next = kept.nextInTurn(isSetAside: true, by: Kept.Card.isLessTried) else { break }
            tried.append(next.id)
            kept.update(next.id) { $0.history.tries += 1 }
        }
        #expect(tried.count == 120)
        #expect(tried.first == newest?.id && Set(tried.prefix(60)).count == 60)
        #expect(tried.prefix(60) == tried.suffix(60))
    }
}
