import EventLoops
import TestKit
import Testing

@testable import Containers

/// A fleet whose agents fetch one document from one server, in virtual time: how many come at once after an outage.
///
/// Machines know nothing of each other, and the server answers at once, so each is followed by itself.
@Suite("A fleet fetches a container")
struct FleetTests {
    private static let size = FleetArrivals.size(short: 1000)

    /// When the server is down, in seconds; how often agents fetch.
    struct Scenario: CustomTestStringConvertible {
        var name: String
        var interval: Duration
        var outage: Range<Int>
        var end: Int
        /// What the server says instead of nothing.
        var retryAfter: Duration?
        /// The most requests in ten seconds after the outage, in thousandths of the fleet, where the everyday rate is lower.
        var bound: Int

        var testDescription: String { name }
    }

    static let scenarios = [
        Scenario(
            name: "fetch-12h-outage-24h", interval: .seconds(43_200), outage: 43_200..<129_600, end: 140_000,
            bound: 6),
        Scenario(
            name: "fetch-1m-outage-1h", interval: .seconds(60), outage: 600..<4_200, end: 9_000, bound: 30),
        Scenario(
            name: "fetch-1m-outage-1m", interval: .seconds(60), outage: 600..<660, end: 1_500, bound: 30),
        Scenario(
            name: "fetch-1m-retry-after-1h", interval: .seconds(60), outage: 600..<660, end: 6_000,
            retryAfter: .seconds(3_600), bound: 30),
    ]

    @Test(
        "after an outage a fleet makes no more requests than usual, and every agent is back in 75 minutes",
        arguments: scenarios)
    func outage(_ scenario: Scenario) {
        let seed = Seeds.one(7)
        var arrivals = FleetArrivals(seconds: scenario.end)
        var back = 0
        for agent in 0..<Self.size {
            let fetches = follow(scenario, seed: seed &* 1_000_003 &+ UInt64(agent))
            for second in fetches { arrivals.add(second: second) }
            let soon = scenario.outage.upperBound + 4_500 + 60
            if fetches.contains(where: { scenario.outage.upperBound <= $0 && $0 < soon }) { back += 1 }
        }
        let everyday = arrivals.mostInTenSeconds(of: 0..<scenario.outage.lowerBound - 10)
        let after = arrivals.mostInTenSeconds(of: scenario.outage.upperBound..<scenario.end)
        let during = arrivals.total(of: scenario.outage)
        arrivals.save(
            as: scenario.name,
            facts:
                "agents=\(Self.size) outage=\(scenario.outage) everyday_10s=\(everyday) after_10s=\(after) during=\(during)"
        )
        let bound = max(everyday + everyday / 4, Self.size * scenario.bound / 1000) + 10
        #expect(after <= bound, "\(after) in ten seconds, every day \(everyday); \(Seeds.again(seed))")
        if scenario.interval == .seconds(60) { #expect(back == Self.size, "\(Seeds.again(seed))") }
        #expect(during < Self.size * 30, "an outage is not hammered: \(during); \(Seeds.again(seed))")
    }

    /// The seconds in which one agent fetches.
    private func follow(_ scenario: Scenario, seed: UInt64) -> [Int] {
        var bench = MachineBench {
            $0.refreshInterval = scenario.interval
            $0.freshFor = max(scenario.interval, .seconds(43_200))
        }
        bench.random = SplitMix64(seed: seed)
        let start = bench.time.bootTime
        let copy = ContainerCopy(version: 1, expires: nil, content: [])
        bench.handle(.start(standard: nil))
        // They did not start together: each is at another place of its interval.
        let age = scenario.interval * Double.random(in: 0..<0.9, using: &bench.random)
        bench.handle(.saved(.copy(copy, etag: "\"1\"", confirmed: bench.time.wallTime - age)))
        var fetches: [Int] = []
        while true {
            if bench.machine.isFetching {
                let second = Int((bench.time.bootTime - start).components.seconds)
                fetches.append(second)
                let isDown = scenario.outage.contains(second)
                let failure = ContainerMachine.Fetched.failed(
                    .serverError, "503", retryAfter: scenario.retryAfter)
                bench.handle(.fetched(isDown ? failure : .notModified))
                continue
            }
            guard let wake = bench.machine.wake(at: bench.moment), wake - start < .seconds(scenario.end)
            else { break }
            bench.time.advance(by: max(.zero, wake - bench.time.bootTime))
            bench.handle(.timer)
        }
        return fetches
    }
}
