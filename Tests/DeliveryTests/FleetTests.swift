@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

/// A fleet that sends to one receiver, in virtual time: how many requests come at once after an outage.
///
/// Agents know nothing of each other, so each is followed by itself.
@Suite("Delivery by a fleet")
struct FleetTests {
    private static let size = FleetArrivals.size(short: 150)
    private static let period = 300
    private static let outage = 1_800..<5_400
    private static let end = 9_000

    @Test("after an outage of an hour all agents are back in 20 minutes, at most a fiftieth in ten seconds")
    func outage() {
        let seed = Seeds.one(11)
        var requests = FleetArrivals(seconds: Self.end)
        var first = FleetArrivals(seconds: Self.end)
        var lost = 0
        for agent in 0..<Self.size {
            var world = World(options(), seed: seed &* 1_000_003 &+ UInt64(agent))
            let start = world.boot
            func second(_ at: BootInstant) -> Int { Int((at - start).components.seconds) }
            world.answer = { world, sent in
                let isDown = Self.outage.contains(Int((sent.at - start).components.seconds))
                return isDown ? (.milliseconds(10), .retry(.unavailable)) : (.milliseconds(50), .acknowledged)
            }
            // Fifty events in five minutes; they did not start together.
            let phase = Int.random(in: 0..<Self.period, using: &world.random)
            for moment in stride(from: phase, to: Self.end - 1_200, by: Self.period) {
                world.later(.seconds(moment), .accept("main", .normal, 50))
            }
            world.run(.seconds(Self.end))
            for sent in world.sent { requests.add(second: second(sent.at)) }
            if let back = world.sent.first(where: { second($0.at) >= Self.outage.upperBound }) {
                first.add(second: second(back.at))
            }
            if world.store.queued > 0 { lost += 1 }
        }
        let everyday = requests.mostInTenSeconds(of: 300..<Self.outage.lowerBound - 10)
        let after = requests.mostInTenSeconds(of: Self.outage.upperBound..<Self.end)
        let firsts = first.mostInTenSeconds(of: Self.outage.upperBound..<Self.end)
        let during = requests.total(of: Self.outage)
        let facts =
            "agents=\(Self.size) outage=\(Self.outage) everyday_10s=\(everyday) after_10s=\(after) first_10s=\(firsts) during=\(during)"
        requests.save(as: "deliver-outage-1h", facts: facts)
        first.save(as: "deliver-outage-1h-first", facts: facts)
        #expect(lost == 0, "\(Seeds.again(seed))")
        #expect(
            first.total(of: Self.outage.upperBound..<Self.outage.upperBound + 1_260) == Self.size, "\(facts)")
        // Small fleets have large deviations: ten more.
        #expect(firsts <= Self.size / 50 + 10, "\(facts); \(Seeds.again(seed))")
        // Three batches are in flight, each tries four times, and then one probe comes every 10 to 20 minutes.
        #expect(during < Self.size * 20, "\(facts); \(Seeds.again(seed))")
    }

    /// Takes so many requests a second, those of a second at once, and refuses what is more.
    private final class Receiver {
        let perSecond: Double
        let retryAfter: Duration?
        var room: Double
        var tenth = 0
        var isDown = false
        var arrivals = FleetArrivals(seconds: FleetTests.overloadEnd)
        var accepted = FleetArrivals(seconds: FleetTests.overloadEnd)

        init(perSecond: Int, retryAfter: Duration?) {
            self.perSecond = Double(perSecond)
            room = self.perSecond
            self.retryAfter = retryAfter
        }

        func answer(at second: Int, tenth now: Int) -> (Duration, Outcome) {
            room = min(perSecond, room + Double(now - tenth) * perSecond / 10)
            tenth = now
            arrivals.add(second: second)
            if !isDown, room >= 1 {
                room -= 1
                accepted.add(second: second)
                return (.milliseconds(50), .acknowledged)
            }
            return (
                .milliseconds(10), retryAfter.map { .retryAfter($0, .unavailable) } ?? .retry(.unavailable)
            )
        }
    }

    private static let overloadOutage = 900..<2_700
    private static let overloadEnd = 5_400

    @Test(
        "a receiver with twice the usual capacity, which refuses more, is caught up with and not overloaded",
        arguments: [nil, Duration.seconds(20)])
    func overload(retryAfter: Duration?) {
        let seed = Seeds.one(34)
        var random = SplitMix64(seed: seed)
        let size = FleetArrivals.size(short: 200)
        // 500 requests a second for 10,000 agents, each of which has events every 40 s.
        let receiver = Receiver(perSecond: max(10, size / 20), retryAfter: retryAfter)
        var agents: [World] = []
        // Who has something to do in which tenth of a second.
        var agenda: [[Int]] = Array(repeating: [], count: Self.overloadEnd * 10)
        let start = World(options(), seed: 0).boot
        func tenth(_ at: BootInstant) -> Int { Int((at.nanoseconds - start.nanoseconds) / 100_000_000) }
        for agent in 0..<size {
            var options = options { $0.batchMostEvents = 5_000 }
            options.phase = Double.random(in: 0..<1, using: &random)
            var world = World(options, seed: random.next())
            world.answer = { _, sent in receiver.answer(at: tenth(sent.at) / 10, tenth: tenth(sent.at)) }
            for moment in stride(
                from: Int.random(in: 0..<40, using: &random), to: Self.overloadEnd - 600, by: 40)
            {
                world.later(.seconds(moment), .accept("main", .normal, 2))
            }
            agents.append(world)
            agenda[0].append(agent)
        }
        for now in agenda.indices {
            receiver.isDown = Self.overloadOutage.contains(now / 10)
            for agent in agenda[now].shuffled(using: &random) {
                let end = BootInstant(nanoseconds: start.nanoseconds + Int64(now + 1) * 100_000_000 - 1)
                agents[agent].run(end - agents[agent].boot)
                guard let next = agents[agent].nextPoint.map(tenth), next < agenda.count else { continue }
                agenda[max(next, now + 1)].append(agent)
            }
        }
        let capacity = Int(receiver.perSecond) * 10
        let back = Self.overloadOutage.upperBound
        let everyday = receiver.arrivals.mostInTenSeconds(of: 60..<Self.overloadOutage.lowerBound - 10)
        let most = receiver.arrivals.mostInTenSeconds(of: back..<Self.overloadEnd)
        let after = receiver.arrivals.total(of: back..<Self.overloadEnd)
        let refused = after - receiver.accepted.total(of: back..<Self.overloadEnd)
        let during = receiver.arrivals.total(of: Self.overloadOutage)
        let left = agents.count { $0.store.queued > 0 }
        let facts =
            "agents=\(size) outage=\(Self.overloadOutage) capacity_10s=\(capacity) everyday_10s=\(everyday) after_10s=\(most) "
            + "during=\(during) after=\(after) refused=\(refused) left=\(left)"
        receiver.arrivals.save(as: "deliver-overload\(retryAfter == nil ? "" : "-retry-after")", facts: facts)
        print(facts)
        #expect(left == 0, "\(facts); \(Seeds.again(seed))")
        #expect(most <= capacity * 3 / 2 + 10 && refused * 10 <= after, "\(facts); \(Seeds.again(seed))")
    }

    @Test("ac01: agents with a phase send critical events at once if the delay is zero")
    func noDelay() {
        var options = options { $0.criticalDelay = .zero }
        options.phase = 0.7
        var world = World(options)
        world.accept(1, .critical)
        world.run(.milliseconds(10))
        #expect(world.sent.count == 1)
    }

    @Test("an interval that was set is kept, by all agents at one moment, unless jitter is set too")
    func setInterval() {
        func waits(jitter: Double?, isSet: Bool, command: DispatchInterval? = nil) -> [Duration] {
            (0..<20).map { agent in
                var options = options {
                    $0.isIntervalSet = isSet
                    $0.jitter = jitter
                }
                options.phase = Double(agent) / 20
                var world = World(options, seed: 7)
                if let command { world.machine.intervalOverride = command }
                let start = world.boot
                world.accept(1)
                world.run(.seconds(20))
                return world.sent[0].at - start
            }
        }
        let kept = waits(jitter: nil, isSet: true)
        #expect(kept.allSatisfy { $0 >= .seconds(6) && $0 <= .milliseconds(6_010) }, "\(kept)")
        let byCommand = waits(jitter: nil, isSet: false, command: .every(.seconds(8)))
        #expect(byCommand.allSatisfy { $0 >= .seconds(8) && $0 <= .milliseconds(8_010) }, "\(byCommand)")
        let spread = waits(jitter: 0.25, isSet: true)
        #expect(spread.allSatisfy { $0 >= .milliseconds(4_500) && $0 <= .milliseconds(6_010) }, "\(spread)")
        #expect(Set(spread).count > 10, "\(spread)")
    }

    @Test("agents with events at one moment send in the second half of the interval, each at its own point")
    func phases() {
        var random = SplitMix64(seed: Seeds.one(12))
        var waits: [Duration] = []
        for agent in 0..<60 {
            var options = options()
            options.phase = Double(agent) / 60
            var world = World(options, seed: 7)
            let start = world.boot
            world.accept(1)
            world.run(.seconds(10))
            waits.append(world.sent[0].at - start)
            // Events all the time: a request an interval, as without a phase.
            let (before, from) = (world.sent.count, world.boot)
            for _ in 0..<600 {
                world.later(
                    .milliseconds(Int.random(in: 0..<60_000, using: &random)), .accept("main", .normal, 1))
            }
            world.machine.options.destinations[0].batchEvents = 5_000
            world.input(.reload(world.machine.options, isByPerson: false))
            world.run(.seconds(60))
            #expect((9...11).contains(world.sent.count - before), "\(from)")
        }
        #expect(waits.allSatisfy { $0 >= .seconds(3) && $0 <= .milliseconds(6_010) })
        for second in 3..<6 {
            let count = waits.count { $0 >= .seconds(second) && $0 < .seconds(second + 1) }
            #expect((15...25).contains(count), "\(count) in second \(second)")
        }
    }
}
