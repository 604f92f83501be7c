@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Properties of delivery")
struct PropertyTests {
    @Test(
        "in random runs nothing forbidden is sent, limits hold, and in the end every event is settled",
        arguments: Seeds.list(0..<40))
    func everyEventIsSettledWhenAllIsWell(seed: UInt64) {
        var chaotic = ChaoticWorld(seed: seed, destinations: 1 + Int(seed % 3))
        chaotic.live(.seconds(3600), eventsPerMinute: 100)
        chaotic.heal()
        // The longest waits: Retry-After of 15 min, then a probe, then rounds of batches that were set aside.
        chaotic.world.run(.seconds(3 * 3600))
        expectAllSettled(chaotic, seed)
    }

    @Test("24 hours of virtual operation with random faults", arguments: Seeds.list([1001]))
    func aDayOfFaults(seed: UInt64) {
        var chaotic = ChaoticWorld(seed: seed, destinations: 3)
        chaotic.live(.seconds(86_400), eventsPerMinute: 60)
        chaotic.heal()
        chaotic.world.run(.seconds(3 * 3600))
        expectAllSettled(chaotic, seed)
        #expect(chaotic.world.store.accepted > 50_000)
    }

    private func expectAllSettled(_ chaotic: ChaoticWorld, _ seed: UInt64, test: String = #function) {
        let again = Seeds.again(seed, test: test)
        let world = chaotic.world
        #expect(world.faults.isEmpty, "\(again): \(world.faults.prefix(5))")
        #expect(world.store.faults.isEmpty, "\(again): \(world.store.faults.prefix(5))")
        #expect(world.store.queued == 0, "\(again): \(world.machine.snapshot(at: world.now))")
        #expect(world.store.leased.isEmpty, "\(again)")
        #expect(world.machine.commands.isEmpty, "\(again)")
        #expect(world.machine.wakeAt(world.now) == nil, "\(again): it wakes without a cause")
        #expect(
            world.wishes < 2 * world.sent.count + 500,
            "\(again): \(world.wishes) wishes, \(world.sent.count) sent")
        let acknowledged = world.store.acknowledged
        #expect(acknowledged.values.allSatisfy { $0 == 1 }, "\(again)")
        let ends = [Set(acknowledged.keys), Set(world.store.deadLettered.keys), world.store.removed]
        #expect(ends.reduce(0) { $0 + $1.count } == world.store.accepted, "\(again)")
        #expect(Set(ends.joined()).count == world.store.accepted, "\(again)")
        if chaotic.chaos.value.restarts == 0 {
            #expect(world.store.received.values.allSatisfy { $0 == 1 }, "\(again): sent again")
        }
        for (name, most) in world.mostInFlight {
            let limit = world.options(of: name)?.parallelBatches ?? 0
            #expect(most <= limit + 1, "\(again)")
        }
    }

    @Test("ac04: beyond the limit only one critical batch is in flight, if all others are normal")
    func ac04_limitHolds() {
        for seed in 0..<20 {
            var chaotic = ChaoticWorld(seed: UInt64(seed), destinations: 1)
            let check = chaotic.world.check
            let limit = chaotic.world.machine.options.destinations[0].parallelBatches
            chaotic.world.check = { world, sent in
                check(&world, sent)
                let others = world.inFlight.values
                if others.count >= limit,
                    sent.priority != .critical || others.contains(where: { $0.priority == .critical })
                {
                    world.faults.append("seed \(seed): \(others.count + 1) in flight")
                }
            }
            chaotic.live(.seconds(1800), eventsPerMinute: 1000)
            #expect(chaotic.world.faults.isEmpty, "\(chaotic.world.faults.prefix(3))")
        }
    }

    @Test(
        "ac06: during a drain no normal batch is sent while critical events wait, however small their batches are"
    )
    func ac06_criticalBeforeNormalInADrain() {
        for chunk in [7, 20, 34, 50] {
            for overtakes in [false, true] {
                var world = World(options(interval: .off))
                world.store.mostInChunk = chunk
                world.summariesOvertake = overtakes
                world.answer = { _, _ in (.milliseconds(50), .acknowledged) }
                world.accept(400)
                world.accept(210, .critical)
                world.check = { world, sent in
                    let lane = ModelStore.Lane(destination: "main", priority: .critical)
                    if sent.priority == .normal, world.store.waiting[lane]?.isEmpty == false {
                        world.faults.append("\(world.boot): normal before critical, chunks of \(chunk)")
                    }
                }
                world.input(.drain(CommandID(number: 1), nil, timeout: .seconds(60)))
                world.run(.seconds(60))
                #expect(world.results[CommandID(number: 1)] == .done)
                #expect(world.faults.isEmpty)
            }
        }
    }

    @Test("ac06: no new normal batch is requested while critical events wait that could be")
    func ac06_criticalBeforeNormal() {
        for seed in 0..<20 {
            var chaotic = ChaoticWorld(seed: UInt64(seed), destinations: 1, storeTrouble: false)
            chaotic.world.asking = { world, request in
                guard request.priority == .normal,
                    let machine = world.machine.destinations[request.destination]
                else {
                    return
                }
                let asked = machine.backlog.asked(.critical) * machine.backlog.largestBatch(.critical)
                let waiting = world.store.lanes[request.destination]?.critical.waitingEvents ?? 0
                let retries = machine.kept.all.count { $0.waitsForRetry && $0.header.priority == .critical }
                // A probe takes another batch than the last time: it may be a normal one.
                let isProbe = machine.hold != nil || machine.breaker != nil
                if waiting > asked, retries < 2 * machine.options.parallelBatches, !isProbe {
                    world.faults.append(
                        "seed \(seed) \(world.boot): \(waiting) critical events are passed over")
                }
            }
            chaotic.live(.seconds(1200), eventsPerMinute: 500)
            #expect(chaotic.world.faults.isEmpty, "\(chaotic.world.faults.prefix(3))")
        }
    }

    @Test("ga02: with the interval off nothing is sent without a command")
    func ga02_offInAllCircumstances() {
        for seed in 0..<20 {
            var random = SplitMix64(seed: UInt64(seed))
            var world = World(options(interval: .off), seed: UInt64(seed))
            world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
            for _ in 0..<200 {
                world.accept(
                    Int.random(in: 1...100, using: &random), Bool.random(using: &random) ? .critical : .normal
                )
                switch Int.random(in: 0..<8, using: &random) {
                case 0: world.input(.networkChanged)
                case 1: world.input(.resume(token: nil, nil))
                case 2: world.restart()
                case 3: world.input(.reload(world.machine.options))
                case 4: world.stepWall(by: .seconds(Int.random(in: -100_000...100_000, using: &random)))
                case 5:
                    world.input(.network(on: false))
                    world.input(.network(on: true))
                default: break
                }
                world.run(.seconds(Int.random(in: 0...1000, using: &random)))
            }
            #expect(world.sent.isEmpty)
        }
    }

    @Test("ac13: ten thousand retries wait as long as they should, each request separately")
    func ac13_tenThousandRetries() {
        var waits: [Int: [Duration]] = [:]
        for seed in 0..<3334 {
            var world = World(options { $0.whenExhausted = .suspend }, seed: UInt64(seed))
            world.answer = { _, _ in (.zero, .retry(.unavailable)) }
            world.accept(1)
            world.runUntilQuiet()
            for (index, pair) in zip(world.sent, world.sent.dropFirst()).enumerated() {
                waits[index, default: []].append(pair.1.at - pair.0.at)
            }
        }
        #expect(waits.values.map(\.count).reduce(0, +) >= 10_000)
        for (index, longest) in [Duration.seconds(10), .seconds(300), .seconds(1200)].enumerated() {
            let mine = waits[index] ?? []
            // A lease takes the queue a millisecond.
            let range = (longest / 2)...(longest + .milliseconds(2))
            #expect(mine.count == 3334 && mine.allSatisfy { range.contains($0) })
            let mean = mine.reduce(.zero, +) / mine.count
            #expect(((longest * 0.74)...(longest * 0.76)).contains(mean))
        }
    }

    @Test("a full day with a destination that hangs half of the time loses and delays nothing")
    func fault10_noStall() {
        var chaotic = ChaoticWorld(seed: 77, destinations: 1)
        chaotic.chaos.value.moods["d0"] = .hanging
        for minute in 0..<600 { chaotic.world.later(.seconds(60 * minute), .accept("d0", .normal, 40)) }
        chaotic.world.run(.seconds(36_000))
        chaotic.heal()
        chaotic.world.run(.seconds(7200))
        expectAllSettled(chaotic, 77)
    }
}
