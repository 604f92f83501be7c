@testable import Delivery
import EventLoops
import Model
import Testing

@Suite("Promises of dispatch")
struct DispatchTests {
    let first = CommandID(number: 1)

    /// A world whose queue tells what waits as the agent's does: late, or before it answers.
    private func world(_ interval: DispatchInterval, overtakes: Bool, lag: Int) -> World {
        var world = World(options(interval: interval))
        world.summariesOvertake = overtakes
        world.summaryLag = { _ in .milliseconds(lag) }
        world.answer = { _, _ in (.milliseconds(50), .acknowledged) }
        return world
    }

    @Test(
        "ga05: dispatch leaves no event that was waiting, and reports 0 only then", arguments: [false, true],
        [0, 3, 80, 180])
    func ga05_dispatchLeavesNothing(overtakes: Bool, lag: Int) {
        for events in [49, 50, 99, 149, 150, 199, 249, 499] {
            for start in [0, 1, 2, 10, 49, 50, 51, 60, 100, 149, 151] {
                for interval in [DispatchInterval.off, .every(.seconds(6))] {
                    var world = world(interval, overtakes: overtakes, lag: lag)
                    world.accept(events)
                    world.run(.milliseconds(lag + start))
                    world.input(.dispatch(first, nil))
                    let begun = world.boot
                    while world.results[first] == nil, world.elapsed(since: begun) < .seconds(30) {
                        world.run(.milliseconds(1))
                    }
                    let place = "\(events) events, \(start) ms, \(interval)"
                    #expect(world.results[first] == .done, "\(place)")
                    #expect(world.elapsed(since: begun) < .seconds(2), "\(place)")
                    let left = world.store.waiting.values.reduce(0) { $0 + $1.count }
                    #expect(left == 0, "\(place)")
                }
            }
        }
    }

    @Test(
        "ga05: each report says how many events have not arrived yet, and the last one says 0",
        arguments: [false, true],
        [0, 3, 80])
    func ga05_waitingIsRight(overtakes: Bool, lag: Int) {
        for events in [1, 50, 149, 199, 249, 1000] {
            var world = world(.off, overtakes: overtakes, lag: lag)
            world.accept(events)
            world.run(.milliseconds(lag))
            world.input(.drain(first, nil, timeout: .seconds(60)))
            var seen = 0
            while world.results[first] == nil, seen < 100_000 {
                let reports = world.reports.count
                world.run(.milliseconds(1))
                // Answers of the same millisecond are reported one after the other.
                guard world.reports.count > reports, case .good(_, let waiting)? = world.reports.last else {
                    continue
                }
                let arrived = world.store.received.count
                #expect(waiting == events - arrived, "\(events) events")
                seen += 1
            }
            guard case .good(_, let last)? = world.reports.last else {
                Issue.record("no report of \(events) events")
                continue
            }
            #expect(last == 0, "\(events) events")
        }
    }
}
