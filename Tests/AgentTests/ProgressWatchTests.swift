import Delivery
import EventLoops
import Model
import Queue
import Spool
import TestKit
import Testing

@testable import Agent

@Suite("Progress, as the watchdog judges it")
struct ProgressWatchTests {
    private let main = DestinationName("main")
    private let time = ManualTime()
    private let round = Duration.seconds(180)

    /// Asks, a round after the last time.
    private func ask(_ watch: inout ProgressWatch, _ state: ProgressWatch.State) -> [String] {
        time.advance(by: round)
        return watch.stalls(state, at: time.bootTime, wall: time.wallTime)
    }

    @Test("fault10: an agent that waits for work makes progress, however long")
    func idleIsNoStall() {
        var watch = ProgressWatch()
        let state = ProgressWatch.State(destinations: [main: .init()])
        for _ in 0..<20 { #expect(ask(&watch, state) == []) }
    }

    @Test("fault10: reading that waits for a commit which does not come is a stall; one for want of room is none")
    func fault10_commitsThatDoNotCome() {
        var watch = ProgressWatch()
        var state = ProgressWatch.State(isHeldBack: true, bytesRead: 1_000, commits: 7)
        #expect(ask(&watch, state) == [])
        #expect(ask(&watch, state) == ["reading waits for a commit that does not come"])
        state.commits += 1
        #expect(ask(&watch, state) == [])
        #expect(ask(&watch, state) != [])
        state.isStoring = false
        for _ in 0..<20 { #expect(ask(&watch, state) == []) }
    }

    @Test("a commit that fails the same way again and again is no progress, whatever else the queue does")
    func commitsThatFail() {
        var watch = ProgressWatch()
        var queue = QueueSnapshot()
        var spool = SpoolFigures()
        spool.isHeldBack = true
        queue.commitFailure = QueueError(.fileFull, "no pages")
        func state() -> ProgressWatch.State { .init(queue: queue, delivery: DeliverySnapshot(), spool: spool) }
        #expect(ask(&watch, state()) == [])
        for _ in 0..<3 {
            // Acknowledgements are written all the time.
            queue.transactions += 100
            #expect(
                ask(&watch, state()) == ["reading waits for a commit that fails again and again (file_full)"])
        }
        #expect(queue.accepting == .all)
        queue.commitFailure = nil
        queue.commits += 1
        #expect(ask(&watch, state()) == [])
    }

    @Test("fault10: requests that outlive their time without any answer are a stall; answers and patience are none")
    func fault10_requestsThatDoNotEnd() {
        var watch = ProgressWatch()
        watch.requestTimeouts = [main: .seconds(600)]
        var sending = ProgressWatch.State.Sending(inFlight: 3)
        for _ in 0..<5 { #expect(ask(&watch, .init(destinations: [main: sending])) == []) }
        #expect(
            ask(&watch, .init(destinations: [main: sending])) == ["main: 3 requests in flight do not end"])
        sending.counters.sentEvents += 50
        for _ in 0..<4 { #expect(ask(&watch, .init(destinations: [main: sending])) == []) }
        sending.counters.sentEvents += 50
        for _ in 0..<4 { #expect(ask(&watch, .init(destinations: [main: sending])) == []) }
        sending.inFlight = 0
        for _ in 0..<9 { #expect(ask(&watch, .init(destinations: [main: sending])) == []) }
    }

    @Test("fault10: an attempt that was planned and not made is a stall, also when the time of day is set")
    func fault10_attemptsThatAreNotMade() {
        var watch = ProgressWatch()
        let sending = ProgressWatch.State.Sending(nextAttempt: time.wallTime + .seconds(1_200))
        let state = ProgressWatch.State(destinations: [main: sending])
        #expect(ask(&watch, state) == [])
        // Somebody sets the clock a year ahead: the wait goes on by the other clock.
        time.step(to: time.wallTime + .seconds(31_536_000))
        for _ in 0..<6 { #expect(ask(&watch, state) == []) }
        #expect(ask(&watch, state) == ["main: the next attempt is overdue"])
        let later = ProgressWatch.State.Sending(nextAttempt: time.wallTime + .seconds(60))
        #expect(ask(&watch, .init(destinations: [main: later])) == [])
        #expect(ask(&watch, .init(destinations: [main: .init()])) == [])
    }
}
