import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// `resume` says what it ended, and what another command has to end.
@Suite("What resume ends")
struct ResumptionTests {
    private func resumption(
        _ world: World, token: String? = nil, destination: DestinationName? = nil
    ) -> Resumption {
        Resumption(of: world.machine.snapshot(at: world.now), token: token, destination: destination)
    }

    @Test("without waits it ends nothing, and nothing remains")
    func nothing() {
        let world = World(options())
        #expect(resumption(world).ended.isEmpty)
        #expect(resumption(world).remaining.isEmpty)
    }

    @Test("it ends pauses of all destinations and of one, and of a named token only that")
    func pauses() {
        var world = World(options())
        world.input(.pause(token: "deploy", nil, ttl: nil, untilRestart: false))
        world.input(.pause(token: "manual", "main", ttl: nil, untilRestart: false))
        #expect(resumption(world).ended == ["pause deploy of all destinations", "pause manual of main"])
        #expect(resumption(world).remaining.isEmpty)
        let one = resumption(world, token: "manual")
        #expect(one.ended == ["pause manual of main"])
        #expect(one.remaining == ["main: paused by deploy (spoolship resume --token deploy)"])
        let alone = resumption(world, destination: "main")
        #expect(alone.ended == ["pause manual of main"])
        #expect(alone.remaining == ["main: paused by deploy (spoolship resume --token deploy)"])
        #expect(resumption(world, token: "unknown").ended.isEmpty)
    }

    @Test(
        "it ends waits after failures, each by its name",
        arguments: [
            (Outcome.held(.unauthorised), "hold of main"),
            (.retryAfter(.seconds(3600), .unavailable), "wait of main that its receiver asked for"),
            (.retry(.unavailable), "wait of main for its next retry"),
        ])
    func waits(outcome: Outcome, words: String) {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(10), outcome) }
        world.accept(50)
        world.run(.seconds(11))
        #expect(resumption(world).ended == [words])
        // A token alone ends no wait.
        #expect(resumption(world, token: "deploy").ended.isEmpty)
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.input(.resume(token: nil, nil))
        world.run(.seconds(1))
        #expect(world.store.queued == 0)
    }

    @Test("a pause over a suspended or held destination is not all that ends")
    func pauseOverWaits() {
        for (outcome, words) in [
            (Outcome.held(.unauthorised), "hold of main"),
            (.retryAfter(.seconds(3600), .unavailable), "wait of main that its receiver asked for"),
            (.offline, "wait of main for a route"),
        ] {
            var world = World(options())
            world.answer = { _, _ in (.milliseconds(10), outcome) }
            world.accept(50)
            world.run(.seconds(11))
            world.input(.pause(token: "deploy", nil, ttl: nil, untilRestart: false))
            #expect(resumption(world).ended == ["pause deploy of all destinations", words])
            #expect(resumption(world).remaining.isEmpty)
        }
    }

    @Test("a destination that waits for its receiver and is suspended names both")
    func twoWaits() {
        var standing = Standing()
        let now = Moment(boot: BootInstant(nanoseconds: 0), wall: Timestamp(milliseconds: 0))
        var random = SplitMix64(seed: 1)
        _ = standing.waitAsTold(.seconds(60), using: &random, at: now)
        standing.openBreaker(nextProbe: nil, at: now.wall)
        #expect(standing.waits == [.retryAfter, .breakerOpen])
    }

    @Test("behind a pause that ended, a missing route still holds the destination back")
    func pauseOverNoRoute() {
        var world = World(options())
        world.input(.routes(["main": false]))
        world.input(.pause(token: "deploy", nil, ttl: nil, untilRestart: false))
        #expect(resumption(world).ended == ["pause deploy of all destinations"])
        #expect(resumption(world).remaining == ["main: no route leads there"])
    }

    @Test("waits that only another command ends are listed with the command")
    func remaining() {
        var world = World(options())
        world.input(.network(on: false))
        #expect(
            resumption(world).remaining == ["main: the network is switched off (spoolship network on)"])
        world.input(.enabled(false))
        #expect(resumption(world).remaining == ["main: collection is disabled (spoolship enable)"])
    }
}
