@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Batches leased ahead")
struct AheadTests {
    /// A backlog at a destination that takes a second for each answer.
    private func busyWorld(_ change: (inout DestinationOptions) -> Void = { _ in }) -> World {
        var world = World(options(change))
        world.answer = { _, _ in (.seconds(1), .acknowledged) }
        world.accept(1000)
        world.run(.milliseconds(500))
        return world
    }

    private func ready(_ world: World) -> Int { world.shown.attempts - world.shown.inFlight }

    @Test("ac04: a batch leased ahead waits for a slot, and is sent as soon as one is free")
    func ac04_readyWaits() {
        var world = busyWorld()
        #expect(world.inFlight.count == 3)
        #expect(ready(world) == 5)
        #expect(world.store.leased.count == 8)
        let shown = world.machine.snapshot(at: world.now).destinations[0]
        #expect(shown.inFlight == 3 && shown.attempts == 8, "in flight is what is being sent")
        // The queue has become slow: nobody has to wait for it.
        world.storeLatency = { _ in .seconds(60) }
        world.run(.milliseconds(510))
        #expect(world.sent.count == 6)
        #expect(world.mostInFlight["main"] == 3)
    }

    @Test("several batches are requested with one call, and calls are rare")
    func severalAtOnce() {
        var world = World(options())
        world.answer = { world, _ in (.milliseconds(5), .acknowledged) }
        var asked: [BootInstant] = []
        world.asking = { world, _ in asked.append(world.boot) }
        world.accept(20_000)
        world.run(.seconds(60))
        #expect(world.store.queued == 0)
        #expect(asked.count >= 400)
        #expect(Set(asked.map(\.nanoseconds)).count < 200)
    }

    @Test("ac06: critical events that arrive are sent before batches leased ahead")
    func ac06_criticalBeforeReady() {
        var world = busyWorld()
        world.accept(50, .critical)
        world.run(.milliseconds(1000))
        // One besides the three at once, and no normal one before it.
        #expect(world.sent[3].priority == .critical)
        world.runUntilQuiet()
        #expect(world.store.queued == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "batches leased ahead are returned on pause, disable, network off, a failure and the end",
        arguments: ["pause", "disable", "network", "held", "retryAfter", "stop", "hurry"])
    func givenBack(obstacle: String) {
        var world = busyWorld()
        switch obstacle {
        case "pause": world.input(.pause(token: "t", nil, ttl: nil, untilRestart: false))
        case "disable": world.input(.enabled(false))
        case "network": world.input(.network(on: false))
        case "stop":
            world.input(.pause(token: "t", nil, ttl: nil, untilRestart: false))
            world.input(.stop(grace: .seconds(60)))
        case "hurry": world.input(.hurry)
        case "held": world.answer = { _, _ in (.seconds(1), .held(.unauthorised)) }
        default: world.answer = { _, _ in (.seconds(1), .retryAfter(.seconds(600), .unavailable)) }
        }
        let before = world.sent.count
        // Three were on their way, three more may go with the old answers.
        world.run(.milliseconds(2600))
        #expect(ready(world) == 0)
        #expect(world.sent.count <= before + 3)
        #expect(world.store.leased.isEmpty)
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("batches leased ahead go back to the queue when events must not be sent any more")
    func givenBackForWithheldEvents() {
        var world = busyWorld()
        #expect(world.store.leased.count == 8)
        world.input(.eventsWithheld)
        world.run(.milliseconds(100))
        #expect(world.store.leased.count == 3, "only what is on its way stays leased")
        world.run(.seconds(3600))
        #expect(world.store.queued == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("ga05: a dispatch includes batches leased ahead, and a drain waits for them")
    func ga05_commandsTakeIt() {
        var world = busyWorld()
        world.input(.drain(CommandID(number: 1), nil, timeout: .seconds(600)))
        world.run(.seconds(30))
        #expect(world.results[CommandID(number: 1)] == .done)
        #expect(world.store.queued == 0)
        #expect(world.sent.count == 20)

        var other = busyWorld()
        other.input(.interval(.off, isDurable: false))
        other.input(.dispatch(CommandID(number: 2), nil))
        other.run(.seconds(30))
        #expect(other.results[CommandID(number: 2)] == .done)
        #expect(other.store.queued == 0)
    }

    @Test("large batches, a rate limit or few events: nothing is leased ahead")
    func notAhead() {
        #expect(ready(busyWorld { $0.batchEvents = 200 }) == 0)
        #expect(ready(busyWorld { $0.requestsPerSecond = 100 }) == 0)
        var few = World(options())
        few.answer = { _, _ in (.seconds(1), .acknowledged) }
        few.accept(199)
        few.run(.milliseconds(500))
        #expect(few.inFlight.count == 3)
        #expect(ready(few) == 0)
    }
}
