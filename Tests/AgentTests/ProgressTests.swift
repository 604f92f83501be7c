import EventLoops
import Model
import Queue
import TestKit
import Testing

@testable import Agent

@Suite("Progress")
struct ProgressTests {
    private func report(_ state: DestinationStateName) -> StatusReport {
        var report = SampleReport.failing
        report.destinations[0].state = state
        return report
    }

    @Test("fault 25: what fails or stands still is no readiness, whatever it calls itself")
    func fault25_standstill() {
        for state: DestinationStateName in [.active, .retryAfter, .offline, .breakerOpen, .waitingForRetry] {
            #expect(
                report(state).standstills(interval: { _ in .seconds(6) })
                    == ["main: nothing was acknowledged for 3h13m although 12,431 events wait"], "\(state)")
        }
        #expect(report(.held).standstills(interval: { _ in .seconds(6) }) == ["main is held: answered 503"])
    }

    @Test("what was ordered, what has nothing to do and what has just begun is no standstill")
    func noStandstill() {
        for state: DestinationStateName in [.paused, .networkOff, .disabled, .stopping, .orphaned] {
            #expect(report(state).standstills(interval: { _ in .seconds(6) }) == [], "\(state)")
        }
        #expect(report(.active).standstills(interval: { _ in nil }) == [])
        #expect(report(.breakerOpen).standstills(interval: { _ in nil }).count == 1)
        #expect(SampleReport.healthy.standstills(interval: { _ in .seconds(6) }) == [])
        // A long interval is waited for: the destination's own, whatever holds for others.
        #expect(report(.active).standstills(interval: { _ in .seconds(86_400) }) == [])
        #expect(report(.active).standstills(interval: { $0 == "main" ? .seconds(86_400) : .seconds(6) }) == [])
        var fresh = report(.breakerOpen)
        fresh.started = fresh.now - .seconds(300)
        #expect(fresh.standstills(interval: { _ in .seconds(6) }) == [])
        var idle = report(.breakerOpen)
        idle.destinations[0].lanes = []
        #expect(idle.standstills(interval: { _ in .seconds(6) }) == [])
        // What arrived just now has not waited yet, however long nothing went before.
        var quiet = report(.active)
        for lane in quiet.destinations[0].lanes.indices { quiet.destinations[0].lanes[lane].oldestQueuedAt = quiet.now }
        #expect(quiet.standstills(interval: { _ in .seconds(6) }) == [])
    }
}
