import EventLoops
import Model
import Queue
import Spool
import TestKit
import Testing

@testable import Agent
@testable import Delivery

@Suite("Progress, for the watchdog")
struct ProgressWatchTests {
    private let main = DestinationName("main")
    private let time = ManualTime()
    private let round = Duration.seconds(180)

    /// Asks, a round after the last time.
    private func ask(_ watch: inout ProgressWatch, _ state: ProgressWatch.State) -> [String] {
        time.advance(by: round)
        return watch.stalls(state, at: time.bootTime, wall: time.wallTime)
    }

    /// The pipeline while its destination is at that.
    private func sending(
        _ attempts: Int = 0, _ counters: DeliveryCounters = DeliveryCounters(), nextAttempt: Timestamp? = nil
    ) -> ProgressWatch.State {
        var delivery = DeliverySnapshot()
        delivery.destinations = [
            .init(
                name: main, obstacle: nil, waits: [], hasNoRoute: false, lanes: Lanes(), interval: .standard,
                inFlight: attempts, attempts: attempts, waitingForRetry: 0, setAside: [:], failingApps: [:],
                nextAttempt: nextAttempt, since: nil,
                lastSuccess: nil,
                lastFailure: nil, pauseTokens: [], counters: counters)
        ]
        return (QueueSnapshot(), delivery, SpoolFigures())
    }

    /// The pipeline while reading waits for a commit.
    static var heldBack: ProgressWatch.State {
        var state: ProgressWatch.State = (QueueSnapshot(), DeliverySnapshot(), SpoolFigures())
        state.spool.isHeldBack = true
        state.spool.bytesRead = 1_000
        state.queue.health.commits = 7
        return state
    }

    @Test("an agent without work makes progress, however long it waits")
    func idleIsNoStall() {
        var watch = ProgressWatch()
        for _ in 0..<20 { #expect(ask(&watch, sending()) == []) }
    }

    @Test("waiting for a commit that does not come is a stall; waiting for room is not")
    func fault10_commitsThatDoNotCome() {
        var watch = ProgressWatch()
        var state = ProgressWatchTests.heldBack
        #expect(ask(&watch, state) == [])
        #expect(ask(&watch, state) == ["reading waits for a commit that does not end"])
        state.queue.health.commits += 1
        #expect(ask(&watch, state) == [])
        #expect(ask(&watch, state) != [])
        state.queue.accepting = .nothing(.full)
        for _ in 0..<20 { #expect(ask(&watch, state) == []) }
    }

    @Test("a commit that keeps failing in the same way is no progress, whatever else the queue does")
    func commitsThatFail() {
        var watch = ProgressWatch()
        var state = ProgressWatchTests.heldBack
        state.queue.health.commitFailure = QueueError(.fileFull, "no pages")
        #expect(ask(&watch, state) == [])
        for _ in 0..<3 {
            // Acknowledgements are written all the time.
            state.queue.health.transactions += 100
            #expect(
                ask(&watch, state) == ["reading waits for a commit that fails again and again (file_full)"])
        }
        #expect(state.queue.accepting == .all)
        state.queue.health.commitFailure = nil
        state.queue.health.commits += 1
        #expect(ask(&watch, state) == [])
    }

    @Test("requests that exceed their time without an answer are a stall; slow answers are not")
    func fault10_requestsThatDoNotEnd() {
        var watch = ProgressWatch()
        watch.requestTimeouts = [main: .seconds(600)]
        var counters = DeliveryCounters()
        for _ in 0..<5 { #expect(ask(&watch, sending(3, counters)) == []) }
        #expect(ask(&watch, sending(3, counters)) == ["main: 3 requests in flight do not end"])
        for _ in 0..<2 {
            counters.sentEvents += 50
            for _ in 0..<4 { #expect(ask(&watch, sending(3, counters)) == []) }
        }
        for _ in 0..<9 { #expect(ask(&watch, sending(0, counters)) == []) }
    }

    @Test("an attempt that is overdue is a stall, also after the time of day was set")
    func fault10_attemptsThatAreNotMade() {
        var watch = ProgressWatch()
        let state = sending(nextAttempt: time.wallTime + .seconds(1_200))
        #expect(ask(&watch, state) == [])
        // Somebody sets the clock a year ahead: the wait goes on by the other clock.
        time.step(to: time.wallTime + .seconds(31_536_000))
        for _ in 0..<6 { #expect(ask(&watch, state) == []) }
        #expect(ask(&watch, state) == ["main: the next attempt is overdue"])
        #expect(ask(&watch, sending(nextAttempt: time.wallTime + .seconds(60))) == [])
        #expect(ask(&watch, sending()) == [])
    }
}
