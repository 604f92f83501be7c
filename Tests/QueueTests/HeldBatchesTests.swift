import EventLoops
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Batches that the queue holds")
struct HeldBatchesTests {
    private static func batch(_ id: BatchID, events: Int) -> HeldBatch {
        // The pieces of a batch were accepted at the same time.
        let time = Timestamp(milliseconds: Int64(events / 7 * 7919 % 1000))
        let header = BatchHeader(
            id: id, destination: "main", priority: .normal, events: events, bytes: events, acceptedAt: time,
            firstEventTime: time)
        return HeldBatch(header: header, lane: events % 3, rows: [], soleCost: nil, status: .free)
    }

    @Test(
        "held batches are found by id and by lane, the oldest first; a copy does not change with them",
        arguments: Seeds.list(1...8))
    func dictionary(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var ids = UUIDv7Generator()
        var (held, expected) = (HeldBatches(), [BatchID: Int]())
        var known: [BatchID] = []
        for round in 0..<2_000 {
            let (before, expectedBefore) = (held, expected)
            let id =
                known.isEmpty || Int.random(in: 0..<3, using: &random) > 0
                ? ids.next(at: Timestamp(milliseconds: Int64(round)), using: &random)
                : known.randomElement(using: &random) ?? known[0]
            known.append(id)
            switch Int.random(in: 0..<600, using: &random) {
            case 0: (held, expected) = (HeldBatches(), [:])
            case 1..<60:
                #expect(held.removeValue(forKey: id)?.header.events == expected.removeValue(forKey: id))
            case 60..<90: (held[id], expected[id]) = (nil, nil)
            case 90..<150: held[id]?.lane = round % 4
            case 150..<200: held[id]?.status = .acknowledged
            default: (held[id], expected[id]) = (Self.batch(id, events: round), round)
            }
            let lane = Int.random(in: 0..<5, using: &random)
            let oldest = held.oldestAcceptance(in: lane)
            let waiting = held.values.filter { $0.lane == lane && $0.status != .acknowledged }
            #expect(oldest == waiting.map(\.header.acceptedAt).min())
            if round % 100 == 0 {
                #expect(before.count == expectedBefore.count)
                #expect(before.allSatisfy { expectedBefore[$0.key] == $0.value.header.events })
            }
        }
        #expect(
            held.count == expected.count
                && held.values.reduce(0) { $0 + $1.header.events } == expected.values.reduce(0, +))
        #expect(Dictionary(uniqueKeysWithValues: held.map { ($0.key, $0.value.header.events) }) == expected)
        held.removeAll()
        #expect(held.count == 0 && held.allSatisfy { _ in false })
    }
}
