import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("One app's rejected events")
struct AppRejectionTests {
    /// Every fifth event is the bad app's; of the next app one in a hundred is bad.
    private static func isBad(_ event: Int) -> Bool { event % 5 == 0 || event % 500 == 1 }

    @Test(
        "28.1: of one app all are rejected: the others' pass, theirs that are rejected are given up at once, its own are kept and go after `resume`",
        arguments: Seeds.list(1...8))
    func oneBadApp(seed: UInt64) {
        var world = World(options { $0.batchMostEvents = 50 }, seed: seed)
        world.store.apps = 5
        let isRepaired = Flag()
        world.answer = { _, sent in
            let bad = isRepaired.value ? [] : sent.events.filter { AppRejectionTests.isBad($0) }
            return (.milliseconds(20), ScriptedReceiver(manner: .wholly, bad: Set(bad)).answer(sent))
        }
        for _ in 0..<1_000 {
            world.accept(5)
            world.run(.seconds(1))
        }
        world.run(.seconds(120))
        let again = Seeds.again(seed)
        #expect(world.alerts == 0, "\(again)")
        let others = (1...5_000).filter { $0 % 5 != 0 }
        let good = others.filter { !AppRejectionTests.isBad($0) }
        #expect(good.allSatisfy { world.store.acknowledged[$0] == 1 }, "\(again)")
        #expect(
            others.allSatisfy { world.store.acknowledged[$0] != nil || world.store.deadLettered[$0] != nil }, "\(again)"
        )
        // Its own: given up, or kept and shown.
        let kept = world.store.batches.values.flatMap(\.events).count
        let own = world.store.deadLettered.keys.count { $0 % 5 == 0 }
        #expect(own + kept == 1_000 && own >= 100 && kept > 100, "\(again): \(own) and \(kept)")
        let shown = world.machine.snapshot(at: world.now).destinations[0].setAside
        #expect(
            shown.keys.allSatisfy { $0 == "app0" } && abs(shown["app0", default: 0] - kept) <= 3, "\(again): \(shown)")
        isRepaired.value = true
        world.input(.resume(token: nil, nil))
        world.run(.seconds(600))
        #expect(world.store.queued == 0 && world.store.acknowledged.keys.count { $0 % 5 == 0 } == kept, "\(again)")
        #expect(world.faults.isEmpty && world.store.faults.isEmpty, "\(again)")
    }

    private final class Flag {
        var value = false
    }
}
