import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// A receiver that answers 429 to a request of more events than its burst allows, whenever it comes.
@Suite("Batches beyond a receiver's burst")
struct BurstTests {
    private static let tooMany = Failure(kind: .status, status: 429, message: "too many requests")

    @Test(
        "a destination that keeps the order gets smaller pieces until they pass; each event arrives once; later batches are smaller",
        arguments: [DestinationOptions.Order.kept, .promised], [false, true])
    func cut(order: DestinationOptions.Order, saysWhen: Bool) {
        var world = World(options { $0.order = order })
        world.answer = { _, sent in
            let refusal: Outcome =
                saysWhen ? .retryAfter(.seconds(1), BurstTests.tooMany) : .retry(BurstTests.tooMany)
            return (.milliseconds(20), sent.events.count <= 20 ? .acknowledged : refusal)
        }
        world.accept(400)
        for _ in 0..<90 {
            world.accept(1)
            world.run(.seconds(2))
        }
        #expect(world.store.acknowledged.count >= 485, "\(order): \(world.store.acknowledged.count)")
        let before = world.sent.count
        world.accept(400)
        world.run(.seconds(60))
        #expect(world.store.acknowledged.count == 890 && world.store.received.values.allSatisfy { $0 == 1 })
        #expect(world.sizes.dropFirst(before).count { $0 > 20 } <= 3)
        #expect(world.alerts == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test(
        "a receiver that answers 429 to everything gets no more requests for it, and unclear batches are not cut"
    )
    func overload() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(20), .retry(BurstTests.tooMany)) }
        world.accept(400)
        world.run(.seconds(3600))
        #expect(world.sent.count <= 30, "\(world.sent.count) requests")
        #expect(!world.notes.contains { if case .split = $0 { true } else { false } })
    }
}
