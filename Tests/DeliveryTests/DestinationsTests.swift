import EventLoops
import Model
import TestKit
import Testing
import TimeZones

@testable import Delivery

@Suite("Which destinations are advanced")
struct DestinationsTests {
    @Test(
        "advancing only what an input concerns has the effects of advancing all destinations",
        arguments: Seeds.list(0..<24))
    func agreesWithAdvancingAll(seed: UInt64) {
        var chaotic = ChaoticWorld(seed: seed, destinations: 2 + Int(seed % 5))
        if seed % 2 == 0 {
            chaotic.world.store.apps = 5
        }
        chaotic.world.compareWithTwin()
        chaotic.live(.seconds(3600), eventsPerMinute: 100)
        chaotic.heal()
        chaotic.world.run(.seconds(3600))
        #expect(chaotic.world.faults.isEmpty, "\(Seeds.again(seed)): \(chaotic.world.faults.prefix(3))")
        #expect(chaotic.world.sent.count > 10)
    }

    @Test("the same with deadlines, of which one is near whenever the clock is set")
    func agreesWithDeadlines() {
        let seed = Seeds.one(5)
        var chaotic = ChaoticWorld(seed: seed, destinations: 3)
        var options = chaotic.world.machine.options
        for index in options.destinations.indices {
            options.destinations[index].deadlines = [Deadline(name: "daily", zone: .utc)]
        }
        chaotic.world.input(.reload(options))
        chaotic.world.compareWithTwin()
        chaotic.live(.seconds(86_400), eventsPerMinute: 20)
        #expect(chaotic.world.faults.isEmpty, "\(Seeds.again(seed)): \(chaotic.world.faults.prefix(3))")
    }

    @Test("an input is about one destination, and summaries about those whose lanes have changed")
    func touched() {
        var all = Destinations()
        let now = Moment(boot: BootInstant(nanoseconds: 1), wall: Timestamp(milliseconds: 1))
        let names = ["c", "a", "b"].map { DestinationName($0) }
        for name in names {
            all[name] = DestinationMachine(
                DestinationOptions(to: name), startNotBefore: nil, retryAfterUntil: nil,
                acknowledgedFingerprint: nil, random: RepeatableRandom(seed: 1), at: now)
        }
        var effects: [DeliveryEffect] = []
        func advanceAll() -> [DestinationName] {
            let due = all.due(at: now.boot)
            for name in due { all.advance(name, Gate(), at: now, to: &effects) }
            return due
        }
        #expect(advanceAll() == ["a", "b", "c"] && advanceAll().isEmpty)
        all.update("b") { $0.kept.removeAll() }
        #expect(advanceAll() == ["b"])
        all.updateReport("b") { $0.counters.retries += 1 }
        #expect(advanceAll().isEmpty)

        var lanes: [DestinationName: Lanes] = ["a": Lanes(), "b": Lanes(), "unknown": Lanes()]
        lanes["a"]?.normal.revision = 1
        lanes["b"]?.normal.revision = 1
        lanes["b"]?.normal.waitingEvents = 1
        lanes["b"]?.normal.oldestAcceptedAt = now.wall
        all.show(lanes, at: now)
        #expect(advanceAll() == ["b"], "a revision alone changes nothing")
        all.show(lanes, at: now)
        #expect(advanceAll().isEmpty)

        all["b"] = nil
        #expect(all.names == ["a", "c"] && !all.contains("b") && all.contains("c"))
        all.touch(nil)
        #expect(advanceAll() == ["a", "c"] && effects.isEmpty)
    }

    @Test("a destination is advanced when its time has come, whichever input comes then")
    func timeHasCome() {
        var world = World(
            DeliveryOptions(
                startSpread: .zero,
                destinations: [DestinationOptions(name: "busy"), DestinationOptions(name: "idle")]))
        world.accept(1, to: "idle")
        world.run(.seconds(5))
        #expect(world.sent.isEmpty)
        // Nobody calls with `.timer`: the queue's summaries come for the other destination.
        world.boot = world.boot + .seconds(2)
        world.wall = world.wall + .seconds(2)
        world.store.accept(1, .normal, to: "busy", at: world.wall)
        world.publish()
        world.run(.milliseconds(10))
        #expect(world.sent.map(\.destination) == ["idle"])
    }

    @Test("what became due while a dispatch ran is sent when it ends, though nothing else happens")
    func afterACommand() {
        var world = World(options())
        world.answer = { _, _ in (.seconds(20), .acknowledged) }
        world.accept(1)
        world.input(.dispatch(CommandID(number: 1), nil))
        world.run(.seconds(1))
        // Not of the dispatch; its interval is over long before.
        world.accept(1)
        world.run(.seconds(25))
        #expect(world.results[CommandID(number: 1)] == .done)
        #expect(world.sent.count == 2)
    }
}
