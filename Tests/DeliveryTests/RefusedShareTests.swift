import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("A receiver that refuses some events with 400")
struct RefusedShareTests {
    private final class Tally {
        var sendings: [Int: Int] = [:]
        var arrivals: [Int: BootInstant] = [:]
    }

    /// Whether the receiver refuses an event: one in `share`, decided by its content.
    private func isBad(_ event: Int, _ share: Int) -> Bool {
        (UInt64(event) &* 0x9E37_79B9_7F4A_7C15) >> 40 % UInt64(share) == 0
    }

    @Test(
        "each good event of a backlog of 6,000 arrives within a minute, with few requests for each refused one",
        arguments: [5, 3], [(50, 3, 12, false), (50, 1, 12, false), (500, 3, 12, false), (50, 3, 1, true)])
    func backlog(share: Int, how: (batch: Int, parallel: Int, apps: Int, isOrdered: Bool)) {
        var world = World(
            options {
                $0.batchEvents = how.batch
                $0.parallelBatches = how.parallel
                $0.order = how.isOrdered ? .kept : .free
            })
        world.store.apps = how.apps
        let tally = Tally()
        world.answer = { world, sent in
            for event in sent.events { tally.sendings[event, default: 0] += 1 }
            let bad = Set(sent.events.filter { isBad($0, share) })
            return (.milliseconds(4), ScriptedReceiver(manner: .wholly, bad: bad).answer(sent))
        }
        world.answered = { world, sent, outcome in
            guard outcome == .acknowledged else { return }
            for event in sent.events { tally.arrivals[event] = world.boot }
        }
        world.accept(200)
        world.run(.seconds(10))
        let start = world.boot
        let before = world.sent.count
        world.accept(6_000)
        world.run(.seconds(60))
        let good = (201...6_200).filter { !isBad($0, share) }
        let late = good.filter { tally.arrivals[$0].map { $0 - start > .seconds(60) } ?? true }
        #expect(late.isEmpty, "\(late.count) late")
        let requests = Double(world.sent.count - before) / Double(6_000 - good.count)
        #expect(requests <= (share == 5 ? 5.5 : 4), "\(requests) requests for each refused event")
        #expect(
            good.map { tally.sendings[$0] ?? 0 }.max() ?? 0 <= 3,
            "each good event is sent three times at most")
        #expect(world.alerts == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }
}
