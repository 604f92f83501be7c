import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("Rejected events of one app")
struct AppRejectionTests {
    /// Every fifth event is the bad app's; of the next app one in a hundred is bad.
    private static func isBad(_ event: Int) -> Bool { event % 5 == 0 || event % 500 == 1 }

    @Test(
        "if all events of one app are rejected, other apps' events pass or become dead letters, and its own wait for `resume`",
        arguments: Seeds.list(1...2), ScriptedReceiver.Manner.allCases)
    func oneBadApp(seed: UInt64, manner: ScriptedReceiver.Manner) {
        var world = World(options { $0.batchMostEvents = 50 }, seed: seed)
        world.store.apps = 5
        let isRepaired = Flag()
        world.answer = { _, sent in
            let bad = isRepaired.value ? [] : sent.events.filter { AppRejectionTests.isBad($0) }
            return (.milliseconds(20), ScriptedReceiver(manner: manner, bad: Set(bad)).answer(sent))
        }
        for _ in 0..<600 {
            world.accept(5)
            world.run(.seconds(1))
        }
        world.run(.seconds(120))
        let again = "\(Seeds.again(seed)), \(manner)"
        #expect(world.alerts == 0, "\(again)")
        let others = (1...3_000).filter { $0 % 5 != 0 }
        let good = others.filter { !AppRejectionTests.isBad($0) }
        #expect(good.allSatisfy { world.store.acknowledged[$0] == 1 }, "\(again)")
        #expect(
            others.allSatisfy { world.store.acknowledged[$0] != nil || world.store.deadLettered[$0] != nil },
            "\(again)"
        )
        // Its own: given up, or kept and shown.
        let kept = world.store.batches.values.flatMap(\.events).count
        let own = world.store.deadLettered.keys.count { $0 % 5 == 0 }
        #expect(own + kept == 600 && own >= 100 && kept > 100, "\(again): \(own) and \(kept)")
        let shown = world.machine.snapshot(at: world.now).destinations[0].setAside
        #expect(
            shown.keys.allSatisfy { $0 == "app0" } && abs(shown["app0", default: 0] - kept) <= 3,
            "\(again): \(shown)")
        isRepaired.value = true
        world.input(.resume(token: nil, nil))
        world.run(.seconds(600))
        #expect(
            world.store.queued == 0 && world.store.acknowledged.keys.count { $0 % 5 == 0 } == kept, "\(again)"
        )
        #expect(world.faults.isEmpty && world.store.faults.isEmpty, "\(again)")
    }

    @Test(
        "after a restart events that were set aside are not sent before those of others",
        arguments: ScriptedReceiver.Manner.allCases)
    func restart(manner: ScriptedReceiver.Manner) {
        var world = World(options { $0.batchMostEvents = 5 })
        world.store.apps = 5
        world.answer = { _, sent in
            let receiver = ScriptedReceiver(manner: manner, bad: Set(sent.events.filter { $0 % 5 == 0 }))
            return (.milliseconds(200), receiver.answer(sent))
        }
        for _ in 0..<400 {
            world.accept(5)
            world.run(.seconds(2))
        }
        #expect(world.store.batches.values.flatMap(\.events).count >= 200)
        world.restart()
        for _ in 0..<60 {
            world.accept(5)
            world.run(.seconds(2))
            let late = (1...world.store.accepted - 95).filter {
                $0 % 5 != 0 && world.store.acknowledged[$0] == nil
            }
            #expect(late.isEmpty, "\(late.count) wait for more than 36 s")
        }
        world.run(.seconds(300))
        let dead = world.store.deadLettered.keys
        #expect(dead.allSatisfy { $0 % 5 == 0 } && dead.count < 400, "\(dead.count) dead letters")
        #expect(
            world.alerts == 0 && world.faults.isEmpty && world.store.faults.isEmpty,
            "\(world.notes.suffix(3))")
    }

    @Test(
        "without new events, events that were set aside cause no hold",
        arguments: ScriptedReceiver.Manner.allCases)
    func quiet(manner: ScriptedReceiver.Manner) {
        var world = World(options { $0.batchMostEvents = 5 })
        world.store.apps = 5
        world.answer = { _, sent in
            let receiver = ScriptedReceiver(manner: manner, bad: Set(sent.events.filter { $0 % 5 == 0 }))
            return (.milliseconds(20), receiver.answer(sent))
        }
        for _ in 0..<200 {
            world.accept(5)
            world.run(.seconds(1))
        }
        #expect(world.store.queued > 50)
        world.run(.seconds(7200))
        #expect(world.store.queued > 50 && world.alerts == 0 && !world.isHeld)
    }

    @Test("events that were set aside are tried at once by command, of one app or all")
    func triedByCommand() {
        var world = World(options { $0.batchMostEvents = 50 })
        world.store.apps = 5
        let isRepaired = Flag()
        world.answer = { _, sent in
            let bad = isRepaired.value ? [] : sent.events.filter { $0 % 5 < 2 }
            return (.milliseconds(20), ScriptedReceiver(manner: .byEvent, bad: Set(bad)).answer(sent))
        }
        for _ in 0..<1_000 {
            world.accept(5)
            world.run(.seconds(1))
        }
        world.run(.seconds(120))
        isRepaired.value = true
        let shown = world.machine.snapshot(at: world.now).destinations[0].setAside
        let (first, second) = (shown["app0", default: 0], shown["app1", default: 0])
        #expect(first > 100 && second > 100 && shown.count == 2)
        let before = world.boot
        world.input(.retrySetAside("other", app: nil))
        world.input(.retrySetAside(nil, app: "app1"))
        world.run(.milliseconds(100))
        let soon = world.sent.filter { $0.at >= before }
        #expect(soon.contains { $0.events.allSatisfy { $0 % 5 == 1 } }, "\(soon.map(\.events))")
        world.run(.seconds(600))
        #expect(world.store.queued == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "if one app's events are all rejected, each batch costs a few more requests, and other apps' events pass",
        arguments: ScriptedReceiver.Manner.allCases.filter { $0 != .tooLarge })
    func busy(manner: ScriptedReceiver.Manner) {
        var world = World(
            options {
                $0.batchMostEvents = 1000
                $0.batchBytes = 4 << 20
            })
        world.store.apps = 5
        world.answer = { _, sent in
            let receiver = ScriptedReceiver(manner: manner, bad: Set(sent.events.filter { $0 % 5 == 0 }))
            return (.milliseconds(20), receiver.answer(sent))
        }
        for _ in 0..<120 {
            world.accept(200)
            world.run(.seconds(1))
        }
        world.run(.seconds(12))
        let late = (1...world.store.accepted).filter { $0 % 5 != 0 && world.store.acknowledged[$0] == nil }
        #expect(late.isEmpty && world.sent.count < 1500, "\(late.count) wait, \(world.sent.count) requests")
        #expect(world.alerts == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "when a destination accepts an app's events again in part, its good events that were set aside are sent"
    )
    func partlyRepaired() {
        var world = World(options())
        world.store.apps = 5
        let isRepaired = Flag()
        world.answer = { _, sent in
            let bad = sent.events.filter { $0 % (isRepaired.value ? 50 : 5) == 0 }
            return (.milliseconds(20), ScriptedReceiver(manner: .wholly, bad: Set(bad)).answer(sent))
        }
        for _ in 0..<300 {
            world.accept(10)
            world.run(.seconds(1))
        }
        #expect(world.store.batches.values.contains { $0.events.count > 1 } && !world.shown.setAside.isEmpty)
        isRepaired.value = true
        for _ in 0..<120 {
            world.accept(10)
            world.run(.seconds(1))
        }
        world.run(.seconds(60))
        let kept = Set(world.store.batches.values.flatMap(\.events).map(\.number))
        #expect(kept.allSatisfy { $0 % 50 == 0 }, "\(kept.filter { $0 % 50 != 0 }.count) good events wait")
        #expect(world.alerts == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "when an app's events are all rejected for a minute, the good ones are sent afterwards, even if it is quiet",
        arguments: ScriptedReceiver.Manner.allCases, [false, true])
    func schemaForAMinute(manner: ScriptedReceiver.Manner, isQuiet: Bool) {
        var world = World(options { $0.batchMostEvents = isQuiet ? 1 : 50 })
        world.store.apps = 5
        let isStopped = Flag()
        world.answer = { _, sent in
            let bad = sent.events.filter { $0 % 25 < 5 || isStopped.value && $0 % 5 == 1 }
            return (.milliseconds(20), ScriptedReceiver(manner: manner, bad: Set(bad)).answer(sent))
        }
        for second in 0..<460 {
            isStopped.value = second >= 400
            world.accept(5)
            world.run(.seconds(1))
        }
        world.run(.seconds(30))
        isStopped.value = false
        for _ in 0..<(isQuiet ? 0 : 30) {
            world.accept(5)
            world.run(.seconds(1))
        }
        world.run(.seconds(isQuiet ? 180 : 20))
        let late = (1...world.store.accepted).filter { $0 % 25 >= 5 && world.store.acknowledged[$0] == nil }
        #expect(
            late.allSatisfy { world.store.deadLettered[$0] != nil },
            "\(late.count) wait, as \(late.first ?? 0)")
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "a destination that rejects everything after fifty rejected events of its only app is held, and says so",
        arguments: ScriptedReceiver.Manner.allCases)
    func soleApp(manner: ScriptedReceiver.Manner) {
        var world = World(options { $0.batchMostEvents = 50 })
        world.store.apps = 1
        let refusesAll = Flag()
        world.answer = { _, sent in
            let bad = Set(sent.events.filter { $0 % 13 == 0 })
            let receiver = ScriptedReceiver(manner: manner, bad: bad, refusesAll: refusesAll.value)
            return (.milliseconds(20), receiver.answer(sent))
        }
        for _ in 0..<100 {
            world.accept(10)
            world.run(.seconds(1))
        }
        world.run(.seconds(20))
        let before = world.store.deadLettered.count
        #expect(before > 50 && world.alerts == 0)
        refusesAll.value = true
        for _ in 0..<60 {
            world.accept(5)
            world.run(.seconds(1))
        }
        world.run(.seconds(60))
        #expect(world.saysHeld && world.alerts == 1)
        #expect(world.store.deadLettered.count <= before + 10 && world.store.queued >= 290)
        refusesAll.value = false
        world.accept(50)
        world.run(.seconds(60))
        #expect(!world.isHeld && world.store.acknowledged.count > 1_200)
    }

    private final class Flag {
        var value = false
    }
}
