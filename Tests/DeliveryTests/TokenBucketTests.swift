@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Rate limit")
struct TokenBucketTests {
    @Test(
        "requests a second are held over any stretch, with a second's worth beyond at most",
        arguments: [0.1, 1, 7.5, 200])
    func requestsASecond(rate: Double) {
        var now = BootInstant(nanoseconds: 0)
        var bucket = TokenBucket(.requests(rate), at: now)
        var sent = 0
        while now.nanoseconds < 60_000_000_000 {
            let wait = bucket.wait(at: now)
            if wait == .zero {
                bucket.chargeRequest(at: now)
                sent += 1
            } else {
                now = now + wait
            }
        }
        #expect(Double(sent) <= 60 * rate + max(1, rate) + 1)
        #expect(Double(sent) >= 60 * rate - 1)
    }

    @Test("bytes a second are held, although a batch is charged only when its size is known")
    func bytesASecond() {
        var world = World(options(interval: .every(.seconds(1))) { $0.rateLimit = .bytes(100_000) })
        world.accept(25_000)
        let start = world.boot
        world.run(.seconds(60))
        let bytes = world.sizes.reduce(0, +) * ModelStore.bytesPerEvent
        // A second's worth at the start, and the batches in flight when the level sank below nothing.
        #expect(bytes <= 61 * 100_000 + 4 * 50 * ModelStore.bytesPerEvent)
        #expect(bytes >= 59 * 100_000)
        world.runUntilQuiet()
        #expect(world.store.queued == 0)
        #expect(world.boot - start >= .seconds(98))
    }

    @Test("a limit on requests spreads them evenly")
    func requestsInTheMachine() {
        var world = World(options { $0.rateLimit = .requests(2) })
        world.accept(5000)
        world.run(.seconds(20))
        #expect((40...43).contains(world.sent.count))
        world.runUntilQuiet()
        #expect(world.store.queued == 0)
    }
}
