import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// A receiver that refuses events by their age, as Loki does: those that waited before it came up, or a share of them.
///
/// While anything that waits would be accepted, it is delivered within 60 s of its turn, however many refused events are before it.
@Suite("Refused events that are too old for the receiver")
struct AgedRefusalTests {
    /// Where the refused events are among the first 3,000.
    enum Place: CaseIterable {
        /// The first 900.
        case ahead
        /// Of ten events three, from the first to the last.
        case among
    }

    private final class Arrivals {
        var at: [Int: BootInstant] = [:]
        var sendings: [Int: Int] = [:]
    }

    /// Whether an event of the waiting ones is too old.
    private static func isOld(_ event: Int, _ place: Place) -> Bool {
        switch place {
        case .ahead: event <= 900
        case .among: event <= 3000 && (UInt64(event) &* 0x9E37_79B9_7F4A_7C15) >> 32 % 10 < 3
        }
    }

    @Test(
        "behind 900 refused events of 3,000 each good one, and each new one, arrives within a minute",
        arguments: [DestinationOptions.Order.free, .kept, .promised], Place.allCases)
    func behindOldEvents(order: DestinationOptions.Order, place: Place) {
        for (manner, apps) in [(ScriptedReceiver.Manner.wholly, 1), (.byEvent, 1), (.wholly, 3)] {
            var world = World(options { $0.order = order })
            world.store.apps = apps
            let arrivals = Arrivals()
            world.answer = { world, sent in
                let bad = Set(sent.events.filter { AgedRefusalTests.isOld($0, place) })
                for event in sent.events { arrivals.sendings[event, default: 0] += 1 }
                return (.milliseconds(10), ScriptedReceiver(manner: manner, bad: bad).answer(sent))
            }
            world.answered = { world, sent, outcome in
                let rejected: Set<Int>
                switch outcome {
                case .acknowledged: rejected = []
                case .partial(let some, _): rejected = Set(some.map(\.index))
                default: return
                }
                for (index, event) in sent.events.enumerated() where !rejected.contains(index) {
                    arrivals.at[event] = arrivals.at[event] ?? world.boot
                }
            }
            var accepted: [Int: BootInstant] = [:]
            for event in 1...3000 { accepted[event] = world.boot }
            world.accept(3000)
            for second in 0..<300 {
                accepted[3001 + second] = world.boot
                world.accept(1)
                world.run(.seconds(1))
            }
            world.run(.seconds(70))
            let good = (1...3300).filter { !AgedRefusalTests.isOld($0, place) }
            let late = good.filter { event in
                guard let arrival = arrivals.at[event], let at = accepted[event] else { return true }
                return arrival - at > .seconds(66)
            }
            let most = good.map { arrivals.sendings[$0] ?? 0 }.max() ?? 0
            #expect(late.isEmpty, "\(manner), \(apps) apps: \(late.count) late, as \(late.first ?? 0)")
            // Of several apps, a batch that was on its way when a doubt began is sent once more, whole: its answer may have been about
            // the destination.
            #expect(
                most <= (apps == 1 || order != .free ? 3 : 4), "\(manner), \(apps) apps: sent \(most) times")
            #expect(world.alerts == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
        }
    }

    @Test("a small batch that timed out in this run is cut twice like any; one of an earlier run once")
    func smallBatches() {
        for restarts in [false, true] {
            var world = World(options())
            world.accept(1)
            world.run(.seconds(20))
            var isFirst = true
            world.answer = { _, sent in
                if isFirst {
                    isFirst = false
                    return (.seconds(1), .retry(Failure(kind: .timeout, message: "no answer")))
                }
                return (.milliseconds(10), sent.events.contains(4) ? .rejected(.badRequest) : .acknowledged)
            }
            world.accept(8)
            world.run(.seconds(8))
            if restarts { world.restart() }
            world.run(.seconds(60))
            let pieces = world.sizes.dropFirst(3)
            #expect(world.sizes.prefix(3) == [1, 8, 8], "\(world.sizes)")
            #expect(pieces.max() == (restarts ? 1 : 2), "\(world.sizes)")
            #expect(world.store.acknowledged.count == 8 && world.store.deadLettered.keys.sorted() == [4])
        }
    }
}
