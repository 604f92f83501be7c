@testable import Delivery
import EventLoops
import Model
import Testing

@Suite("Precedence and reload")
struct PrecedenceTests {
    @Test("of several obstacles the one of highest rank is reported and holds, until the next one shows")
    func orderOfPrecedence() throws {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(1), .acknowledged) }
        let (now, later) = (world.now, world.boot + .seconds(86_400))
        func hold(_ standing: inout Standing) {
            standing.hold(for: .refusal, nextProbe: later, at: now)
            standing.openBreaker(nextProbe: later, at: now.wall)
        }
        world.machine.destinations.update("main") {
            hold(&$0.standing)
            _ = $0.standing.waitAsTold(later - now.boot, using: &$0.random, at: now)
        }
        world.input(.routes(["main": false]))
        world.input(.pause(token: "t", "main", ttl: nil, untilRestart: false))
        world.input(.network(on: false))
        world.input(.enabled(false))
        // Disabling forgets holds and breakers: put back to see all of them.
        world.machine.destinations.update("main") { hold(&$0.standing) }
        world.accept(500)
        world.accept(500, .critical)

        let steps: [(DestinationStateName, (inout World) -> Void)] = [
            (.disabled, { $0.input(.enabled(true)) }),
            (.networkOff, { $0.machine.isNetworkOn = true }),
            (.paused, { $0.input(.resume(token: "t", "main")) }),
            (.held, { $0.machine.destinations.update("main") { _ = $0.standing.liftHold() } }),
            (.retryAfter, { $0.machine.destinations.update("main") { _ = $0.standing.endRetryAfter() } }),
            (.offline, { $0.machine.destinations.update("main") { _ = $0.standing.setRoute(true) } }),
            (.breakerOpen, { $0.machine.destinations.update("main") { _ = $0.standing.closeBreaker() } }),
        ]
        for (reason, remove) in steps {
            world.run(.seconds(600))
            #expect(world.machine.snapshot(at: world.now).destinations[0].obstacle == reason)
            #expect(world.sent.isEmpty, "\(reason)")
            remove(&world)
            world.input(.timer)
        }
        world.run(.seconds(10))
        #expect(world.store.queued == 0)
        #expect(world.sent.prefix(10).allSatisfy { $0.priority == .critical })
    }

    @Test("at a reload the queue outlives destinations; holds are lifted, changed settings begin afresh")
    func fault23_reload() {
        var both = options { $0.fingerprint = "1" }
        both.destinations.append(DestinationOptions(name: "other"))
        var world = World(both)
        world.answer = { _, sent in
            (.seconds(5), sent.destination == "main" ? .held(.unauthorised) : .acknowledged)
        }
        world.accept(50)
        world.accept(150, to: "other")
        world.run(.seconds(1))
        // `other` goes while its batches are in flight: they end, nothing new begins.
        world.input(.reload(options { $0.fingerprint = "1" }))
        world.accept(50, to: "other")
        world.run(.seconds(100))
        #expect(world.store.acknowledged.count == 150)
        #expect(world.names.sorted() == ["main"])
        #expect(world.isHeld)
        // A container that changes some setting has mended nothing: only a person's reload says so.
        world.input(.reload(options { $0.fingerprint = "1" }, isByPerson: false))
        #expect(world.isHeld)
        // The mended setting lifts the hold at once.
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.input(.reload(both))
        world.run(.seconds(10))
        #expect(world.store.queued == 0 && world.faults.isEmpty)
    }

    @Test("a queue that cannot store acknowledgements does not keep the agent from stopping")
    func fault09_queueFailsDuringStop() {
        var world = World(options())
        world.accept(100)
        world.run(.milliseconds(10))
        world.storeFails = { _ in true }
        world.run(.seconds(3))
        #expect(world.shown.attempts == 2)
        world.input(.stop(grace: .seconds(10)))
        world.run(.seconds(60))
        #expect(world.isStopped)
        world.storeFails = { _ in false }
        world.restart()
        world.run(.seconds(10))
        #expect(world.store.queued == 0)
        #expect(world.sent.count == 4 && Set(world.sent.map(\.batch)).count == 2)
    }

    @Test("calls of the queue that fail together are one failure, and it is retried after a second")
    func queueFailsOnce() {
        var world = World(options())
        world.storeFails = { _ in true }
        world.accept(500)
        world.run(.milliseconds(500))
        #expect(world.shown.counters.storeFailures == 3)
        world.storeFails = { _ in false }
        world.run(.milliseconds(700))
        #expect(!world.sent.isEmpty)
    }

    @Test("a failing queue is retried at growing intervals, and loses nothing")
    func queueFails() {
        var world = World(options())
        world.storeFails = { _ in true }
        world.accept(500)
        world.run(.seconds(600))
        #expect(world.sent.isEmpty)
        #expect((20...90).contains(world.shown.counters.storeFailures))
        world.storeFails = { _ in false }
        world.run(.seconds(31))
        #expect(world.store.queued == 0)
    }
}
