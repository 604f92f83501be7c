@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("A lane that changes during requests")
struct MoveTests {
    private static let names: [DestinationName] = ["d0", "d1"]

    @Test(
        "after moves both ways during requests all is sent, and no command waits",
        arguments: Seeds.list(0..<60))
    func readyMeansItMoves(seed: UInt64) {
        let retry = RetrySchedule(intervals: [.seconds(1), .seconds(1)])
        let all = MoveTests.names.map {
            DestinationOptions(name: $0, retry: retry, probeInterval: .seconds(1))
        }
        var world = World(
            DeliveryOptions(interval: .every(.seconds(1)), startSpread: .zero, destinations: all), seed: seed)
        world.storeLatency = { .microseconds(Int.random(in: 100...20_000, using: &$0.random)) }
        world.summaryLag = { .microseconds(Int.random(in: 0...50_000, using: &$0.random)) }
        world.answer = { world, _ in
            let wait = Duration.milliseconds(Int.random(in: 1...100, using: &world.random))
            return (
                wait, Int.random(in: 0..<10, using: &world.random) < 3 ? .retry(.unavailable) : .acknowledged
            )
        }
        var commands: UInt64 = 0
        func dispatch(_ world: inout World) {
            commands += 1
            world.input(.dispatch(CommandID(number: commands), nil))
        }
        let end = world.boot + .seconds(12)
        while world.boot < end {
            world.accept(60, to: "d0")
            switch Int.random(in: 0..<10, using: &world.random) {
            case 0, 1: world.move("d0", to: "d1")
            case 2, 3: world.move("d1", to: "d0")
            case 4: dispatch(&world)
            default: break
            }
            world.run(.milliseconds(Int.random(in: 0...150, using: &world.random)))
        }
        world.answer = { _, _ in (.milliseconds(50), .acknowledged) }
        dispatch(&world)
        world.run(.seconds(10))
        let again = Seeds.again(seed)
        #expect(
            world.faults.isEmpty && world.store.faults.isEmpty,
            "\(again): \(world.faults) \(world.store.faults)")
        #expect(world.store.queued == 0, "\(again): \(world.machine.snapshot(at: world.now))")
        #expect(world.results.count == Int(commands), "\(again)")
        #expect(world.store.received.count == world.store.accepted, "\(again)")
        #expect(world.store.received.values.allSatisfy { $0 == 1 }, "\(again)")
        world.run(.seconds(60))
        #expect(world.machine.wakeAt(world.now) == nil, "\(again): it wakes without a cause")
    }

    @Test(
        "events after a purge or a move do not wait for the retries of removed batches",
        arguments: [false, true])
    func retriesGoWithTheirBatches(moves: Bool) {
        var world = World(options { $0.retry = RetrySchedule(intervals: [.seconds(3600), .seconds(3600)]) })
        world.answer = { _, _ in (.milliseconds(50), .retry(.unavailable)) }
        world.accept(300)
        world.run(.seconds(120))
        #expect(world.shown.waitingForRetry >= 6)
        world.answer = { _, _ in (.milliseconds(50), .acknowledged) }
        if moves {
            world.move("main", to: "elsewhere")
        } else {
            world.purge("main")
        }
        #expect(world.keepsNothing)
        world.accept(10)
        world.run(.seconds(7))
        #expect(world.store.received.count == 10)
    }

    @Test("a moved batch is sent by its new destination only, even if the old one requests it again")
    func theOtherOneSendsIt() {
        var world = World(options { $0.retry = RetrySchedule(intervals: [.seconds(10), .seconds(10)]) })
        world.answer = { _, _ in (.milliseconds(50), .retry(.unavailable)) }
        world.accept(50)
        world.run(.seconds(1))
        let tried = world.sent.count
        #expect(tried == 1)
        // The machine has not heard of it yet.
        world.store.move(ModelStore.Lane(destination: "main", priority: .normal), to: "elsewhere")
        world.input(.resume(token: nil, nil))
        world.run(.seconds(60))
        #expect(world.sent.count == tried && world.store.queued == 50 && world.store.leased.isEmpty)
        #expect(world.keepsNothing)
    }

    @Test("a destination that was removed and restored during a request soon knows its backlog: a drain ends")
    func backDuringARequest() {
        var world = World(options())
        world.accept(500)
        world.run(.seconds(10))
        #expect(world.store.queued == 0)
        world.answer = { _, _ in (.seconds(20), .acknowledged) }
        world.accept(50)
        world.run(.seconds(7))
        let before = world.machine.options
        var without = before
        without.destinations = []
        world.input(.reload(without))
        world.input(.lanes([:]))
        world.run(.seconds(1))
        world.input(.reload(before))
        world.publish()
        world.input(.drain(CommandID(number: 1), nil, timeout: .seconds(60)))
        world.run(.seconds(50))
        #expect(world.results[CommandID(number: 1)] == .done)
        #expect(world.store.received.count == 550)
    }
}
