import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("Attempts at a destination that rejects everything")
struct HeldInDoubtTests {
    @Test(
        "events behind more rejections than memory holds are still tried, and memory stays bounded",
        arguments: ScriptedReceiver.Manner.allCases)
    func behindTheHeap(manner: ScriptedReceiver.Manner) {
        var world = World(options { $0.batchMostEvents = 50 })
        world.store.apps = 1
        let receiver = ScriptedReceiver(manner: manner, bad: Set(1...1_200))
        world.answer = { _, sent in (.milliseconds(20), receiver.answer(sent)) }
        world.accept(1_200)
        world.run(.seconds(600))
        #expect(world.saysHeld)
        world.accept(50)
        var late: [Int] { (1_201...1_250).filter { world.store.acknowledged[$0] == nil } }
        for _ in 0..<180 where !late.isEmpty {
            world.run(.seconds(60))
            #expect(world.main.kept.all.count { $0.rejectedAt != nil && !$0.isSetAside } <= 1_050)
        }
        #expect(late.isEmpty && world.sent.count < 5_000, "\(late.count) wait, \(world.sent.count) requests")
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    /// A destination that has rejected 3,000 events, and goes on to reject all of one app: the first so many, and then every other one.
    private func held(_ manner: ScriptedReceiver.Manner, _ priority: Priority, lastOfOneApp last: Int)
        -> World
    {
        var world = World(options { $0.batchMostEvents = 50 })
        (world.store.apps, world.store.lastOfOneApp) = (2, last)
        world.answer = { _, sent in
            let bad = sent.events.filter { $0 <= last || $0 % 2 == 0 }
            return (.milliseconds(20), ScriptedReceiver(manner: manner, bad: Set(bad)).answer(sent))
        }
        world.accept(3_000, priority)
        world.run(.seconds(600))
        #expect(world.saysHeld)
        return world
    }

    @Test(
        "a destination that rejects an app's events is offered another app's, however many come before them",
        arguments: ScriptedReceiver.Manner.allCases)
    func anotherApp(manner: ScriptedReceiver.Manner) {
        var world = held(manner, .normal, lastOfOneApp: 3_000)
        world.accept(20)
        world.run(.seconds(60))
        let late = (3_001...3_020).filter { $0 % 2 == 1 && world.store.acknowledged[$0] == nil }
        #expect(late.isEmpty, "\(late.count) wait")
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "a destination that rejects an app's events is offered another app's, however many critical ones wait",
        arguments: ScriptedReceiver.Manner.allCases)
    func anotherLane(manner: ScriptedReceiver.Manner) {
        var world = held(manner, .critical, lastOfOneApp: 9_000)
        world.accept(6_000, .critical)
        world.accept(20)
        // After a 413 for one event each is asked for alone, and critical ones go first while the destination is not held.
        world.run(.seconds(manner == .tooLarge ? 90 : 60))
        let late = (9_001...9_020).filter { $0 % 2 == 1 && world.store.acknowledged[$0] == nil }
        #expect(late.isEmpty, "\(late.count) wait")
        // What it took before a doubt began does not end that for ever: it would begin anew, and nobody would be told.
        world.run(.seconds(60))
        let requests = world.sent.count
        world.run(.seconds(600))
        #expect((!world.isHeld || world.saysHeld) && world.sent.count < requests + 200)
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    /// A destination that has set hundreds of events aside, refuses all of one app for ten seconds in which the
    /// last events come, and counts as held for those.
    private func quiet() -> World {
        var world = World(options { $0.batchMostEvents = 1 })
        world.store.apps = 5
        var refusesApp = false
        world.answer = { _, sent in
            let bad = sent.events.filter { $0 / 5 % 4 == 0 || refusesApp && $0 % 5 == 1 }
            return (.milliseconds(1), ScriptedReceiver(manner: .wholly, bad: Set(bad)).answer(sent))
        }
        for _ in 0..<300 {
            world.accept(5)
            world.run(.seconds(1))
        }
        refusesApp = true
        for _ in 0..<10 {
            world.accept(5)
            world.run(.seconds(1))
        }
        // Bad by their content: nothing of another app is accepted behind them.
        while world.store.accepted % 20 != 19 { world.accept(1) }
        world.accept(5)
        world.run(.seconds(100))
        #expect(world.saysHeld && world.store.batches.count > 200)
        let requests = world.sent.count
        world.run(.seconds(200))
        #expect(world.sent.count - requests <= 50, "a held destination gets few requests")
        refusesApp = false
        return world
    }

    /// Good events that wait.
    private func good(_ world: World) -> Int {
        world.store.batches.values.count { $0.events.contains { $0.number / 5 % 4 != 0 } }
    }

    @Test("what an app's repaired schema accepts goes soon, however many set-aside events are before it")
    func repairedInTheQuiet() {
        var world = quiet()
        #expect(good(world) >= 5)
        // Each of five apps has its turn within a minute, and its newest event may be bad by its content.
        world.run(.seconds(120))
        #expect(good(world) == 0)
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("a set-aside batch whose requests fail without a refusal does not get every turn of its app")
    func failsInsteadOfRefusing() {
        var world = quiet()
        let kept = world.main.kept
        let app = kept.number(of: "app1")
        // The one whose turn it is.
        let next = kept.first(by: Kept.Card.isLessTried) { $0.aside == .rejected && $0.app == app }
        guard let next, let failing = world.store.batches[next.id]?.events.first?.number else {
            Issue.record("nothing of app1 is set aside")
            return
        }
        let others = kept.count { $0.aside == .rejected && $0.app == app } - 1
        #expect(others >= 20)
        world.answer = { _, sent in
            let refused = ScriptedReceiver(manner: .wholly, bad: [], refusesAll: true).answer(sent)
            let fault = Failure(kind: .status, status: 500, message: "internal error")
            return (.milliseconds(1), sent.events == [failing] ? .retry(fault) : refused)
        }
        let before = world.sent.count
        // Time for each of the five apps to have twenty turns, of which there is one in ten seconds.
        world.run(.seconds(1000))
        let tries = world.sent[before...].count { $0.events == [failing] }
        #expect((1...8).contains(tries), "\(tries) of \(world.sent.count - before) requests")
        #expect(world.saysHeld && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("failures in an outage are no turns of set-aside batches, which would come last in the next doubt")
    func outageTakesNoTurns() {
        var world = World(options { $0.batchMostEvents = 1 })
        world.store.apps = 5
        world.answer = { _, sent in
            let bad = sent.events.filter { $0 / 5 % 4 == 0 }
            return (.milliseconds(1), ScriptedReceiver(manner: .wholly, bad: Set(bad)).answer(sent))
        }
        for _ in 0..<300 {
            world.accept(5)
            world.run(.seconds(1))
        }
        // The last events are good, so nothing is in doubt.
        while world.store.accepted % 20 != 19 { world.accept(1) }
        world.run(.seconds(100))
        #expect(world.main.hold == nil)
        func tries(_ world: World) -> [BatchID: Int] {
            world.main.kept.all.filter { $0.aside == .rejected }
                .reduce(into: [:]) { $0[$1.header.id] = $1.history.tries }
        }
        let before = tries(world)
        #expect(before.count > 20)
        world.answer = { _, _ in
            (.milliseconds(1), .retry(Failure(kind: .status, status: 500, message: "internal error")))
        }
        let requests = world.sent.count
        // Each is tried within the probe interval of twenty minutes.
        world.run(.seconds(7200))
        #expect(world.sent.count - requests >= before.count)
        let after = tries(world)
        #expect(after.count >= before.count - 1)
        #expect(after.allSatisfy { before[$0.key] ?? $0.value == $0.value })
        #expect(world.main.hold == nil && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "events set aside mean nothing after a change of settings: if all is rejected, the destination is held",
        arguments: ScriptedReceiver.Manner.allCases)
    func otherSettings(manner: ScriptedReceiver.Manner) {
        var world = World(options { $0.batchMostEvents = 5 })
        world.store.apps = 5
        var refusesAll = false
        world.answer = { _, sent in
            let bad = Set(sent.events.filter { $0 % 5 == 0 })
            return (
                .milliseconds(20),
                ScriptedReceiver(manner: manner, bad: bad, refusesAll: refusesAll).answer(sent)
            )
        }
        for _ in 0..<200 {
            world.accept(5)
            world.run(.seconds(1))
        }
        let before = world.store.deadLettered.count
        #expect(!world.shown.setAside.isEmpty && world.alerts == 0)
        refusesAll = true
        world.input(
            .reload(
                options {
                    $0.batchMostEvents = 5
                    $0.fingerprint = "another"
                }))
        world.accept(50)
        world.run(.seconds(1800))
        #expect(world.saysHeld && world.store.deadLettered.count == before)
    }
}
