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

    @Test("a part that fails or makes no progress makes the agent not ready, whatever state it reports")
    func fault25_standstill() {
        for state: DestinationStateName in [.active, .retryAfter, .offline, .breakerOpen, .waitingForRetry] {
            #expect(
                report(state).standstills(interval: { _ in .seconds(6) }).map(\.reason)
                    == [
                        "main: nothing was acknowledged for 3h13m although 12,431 events wait: "
                            + (state == .offline ? "there is no route to it" : "answered 503")
                    ], "\(state)")
        }
        let held = report(.held).standstills(interval: { _ in .seconds(6) })
        #expect(held.map(\.reason) == ["main is held: answered 503"])
    }

    @Test("if a full queue waits for one of several destinations, it is named, with a remedy for the others")
    func fault52_blocker() {
        var full = report(.breakerOpen)
        var other = full.destinations[0]
        other.name = "other"
        other.state = .active
        other.lanes = []
        full.destinations.append(other)
        #expect(full.blockers.isEmpty, "the queue is not full")
        full.queue.accepting = .nothing(.full)
        #expect(
            full.blockers.map(\.reason) == [
                "the queue is full, no events are accepted for any destination: main acknowledged nothing for 3h13m and has "
                    + #"12,431 events in it; fix it, or set its when_behind = "skip" and reload"#
            ])
        full.queue.accepting = .critical
        #expect(full.blockers.count == 1)
        // What acknowledges is slow at worst.
        full.destinations[0].lastAcknowledged = full.now - .seconds(10)
        #expect(full.blockers.isEmpty)
        // Alone, its own state says it.
        var alone = report(.breakerOpen)
        alone.queue.accepting = .nothing(.full)
        #expect(alone.blockers.isEmpty)
    }

    @Test("requested pauses, idle parts and a start are not reported as standstill")
    func noStandstill() {
        for state: DestinationStateName in [.paused, .networkOff, .disabled, .stopping, .orphaned] {
            #expect(report(state).standstills(interval: { _ in .seconds(6) }).isEmpty, "\(state)")
        }
        #expect(report(.active).standstills(interval: { _ in nil }).isEmpty)
        #expect(report(.breakerOpen).standstills(interval: { _ in nil }).count == 1)
        #expect(SampleReport.healthy.standstills(interval: { _ in .seconds(6) }).isEmpty)
        // A long interval is waited for: the destination's own, whatever holds for others.
        #expect(report(.active).standstills(interval: { _ in .seconds(86_400) }).isEmpty)
        #expect(
            report(.active).standstills(interval: { $0 == "main" ? .seconds(86_400) : .seconds(6) }).isEmpty)
        var fresh = report(.breakerOpen)
        fresh.started = fresh.now - .seconds(300)
        #expect(fresh.standstills(interval: { _ in .seconds(6) }).isEmpty)
        var idle = report(.breakerOpen)
        idle.destinations[0].lanes = []
        #expect(idle.standstills(interval: { _ in .seconds(6) }).isEmpty)
        // What arrived just now has not waited yet, however long nothing went before.
        var quiet = report(.active)
        for lane in quiet.destinations[0].lanes.indices {
            quiet.destinations[0].lanes[lane].oldestQueuedAt = quiet.now
        }
        #expect(quiet.standstills(interval: { _ in .seconds(6) }).isEmpty)
    }
}
