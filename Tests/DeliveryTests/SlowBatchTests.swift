import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// A receiver that takes 2 ms an event, and an agent whose requests may take 4 s: what has waited during an outage makes larger batches.
@Suite("Batches that exceed the request timeout")
struct SlowBatchTests {
    private static let late = Failure(kind: .timeout, message: "no answer in time")

    /// A world whose receiver stores each batch that it gets, in the time that the batch's events need.
    private func world(_ change: @escaping (inout DestinationOptions) -> Void = { _ in }) -> World {
        var world = World(
            options {
                ($0.batchEvents, $0.batchMostEvents, $0.batchBytes) = (50, 5_000, 8 << 20)
                change(&$0)
            })
        world.answer = { _, sent in
            let (needed, allowed) = (
                Duration.milliseconds(2) * sent.events.count, Duration.seconds(4) * sent.timeFactor
            )
            return needed > allowed ? (allowed, .retry(SlowBatchTests.late)) : (needed, .acknowledged)
        }
        return world
    }

    /// An outage's 13,968 events, with new ones meanwhile; how many are acknowledged after four minutes.
    private func recover(_ world: inout World) {
        world.accept(50)
        world.run(.seconds(10))
        world.accept(13_968)
        for _ in 0..<240 {
            world.accept(2, .critical)
            world.run(.seconds(1))
        }
        world.run(.seconds(20))
    }

    @Test(
        "a batch that timed out gets more time under its id; later ones are smaller; all arrive within four minutes",
        arguments: [nil, 3])
    func moreTime(apps: Int?) {
        var world = world()
        world.store.apps = apps
        recover(&world)
        #expect(
            world.store.acknowledged.count == world.store.accepted,
            "\(world.store.accepted - world.store.acknowledged.count) wait")
        var ids: [Int: Set<BatchID>] = [:]
        for sent in world.sent {
            for event in sent.events { ids[event, default: []].insert(sent.batch) }
        }
        #expect(ids.values.allSatisfy { $0.count == 1 }, "each event is sent under one id")
        #expect(world.sent.map(\.timeFactor).max() == 4)
        let before = world.sent.count
        world.accept(10_000)
        world.run(.seconds(60))
        #expect(world.store.acknowledged.count == world.store.accepted)
        #expect(
            world.sent.dropFirst(before).count { $0.timeFactor > 1 } <= 3, "the size of batches was learned")
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("a receiver that recognises no repeats gets such a batch at most three times, then its halves")
    func noRepeats() {
        var world = world { $0.recognisesRepeats = false }
        world.answer = { _, sent in
            sent.events.count > 1_000
                ? (.seconds(4), .retry(SlowBatchTests.late)) : (.milliseconds(50), .acknowledged)
        }
        world.accept(50)
        world.run(.seconds(10))
        world.accept(3_000)
        for _ in 0..<900 {
            world.accept(2, .critical)
            world.run(.seconds(1))
        }
        world.run(.seconds(20))
        #expect(
            world.store.acknowledged.count == world.store.accepted,
            "\(world.store.accepted - world.store.acknowledged.count) wait")
        let tries = Dictionary(grouping: world.sent, by: \.batch).values.map(\.count)
        #expect(tries.max() ?? 0 <= 3)
        #expect(world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("an outage with timeouts gives one probe after the other more time, and no other batch")
    func outage() {
        var world = World(options())
        world.accept(50)
        world.run(.seconds(10))
        world.answer = { _, sent in (.seconds(4) * sent.timeFactor, .retry(SlowBatchTests.late)) }
        for _ in 0..<600 {
            world.accept(10)
            world.run(.seconds(2))
        }
        #expect(world.sent.dropFirst().allSatisfy { $0.timeFactor == 1 } || world.isBroken)
        #expect(world.sent.map(\.timeFactor).max() ?? 1 <= 8)
    }
}
