@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Rate limit")
struct TokenBucketTests {
    @Test(
        "the rate of requests holds over any period, with at most a second's worth beyond",
        arguments: [0.1, 1, 7.5, 200])
    func requestsASecond(rate: Double) {
        var now = BootInstant(nanoseconds: 0)
        var bucket = TokenBucket(perSecond: rate, at: now)
        var sent = 0
        while now.nanoseconds < 60_000_000_000 {
            let ready = bucket.readyAt
            if ready <= now {
                bucket.charge(1, at: now)
                sent += 1
            } else {
                now = ready
            }
        }
        #expect(Double(sent) <= 60 * rate + max(1, rate) + 1)
        #expect(Double(sent) >= 60 * rate - 1)
    }

    @Test("a batch with several requests is charged for all of them")
    func severalRequests() {
        var world = World(
            options {
                $0.requestsPerSecond = 10
                $0.eventsPerRequest = 25
            })
        world.accept(5000)
        world.run(.seconds(10))
        // A hundred batches of 50 events are two hundred requests.
        #expect((50...57).contains(world.sent.count))
        world.runUntilQuiet()
        #expect(world.store.queued == 0)
    }

    @Test("a critical batch that arrives while the limit is waited for is sent next")
    func criticalGoesFirst() {
        var world = World(options { $0.requestsPerSecond = 0.1 })
        world.accept(200)
        world.run(.seconds(5))
        #expect(world.sent.count == 1)
        world.accept(1, .critical)
        world.run(.seconds(12))
        #expect(world.sent.count == 2 && world.sent[1].priority == .critical)
    }

    @Test("a rate limit spreads requests evenly")
    func requestsInTheMachine() {
        var world = World(options { $0.requestsPerSecond = 2 })
        world.accept(5000)
        world.run(.seconds(20))
        #expect((40...43).contains(world.sent.count))
        world.runUntilQuiet()
        #expect(world.store.queued == 0)
    }
}
