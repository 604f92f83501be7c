import EventLoops
import Model
import Testing

@testable import Delivery

/// How soon requests follow each other, without a destination, a queue or a clock.
@Suite("Pauses at the start and after failures")
struct PacingTests {
    private let start = Moment(
        boot: BootInstant(nanoseconds: 1_000_000_000), wall: Timestamp(milliseconds: 1_000))

    private func later(_ seconds: Int) -> Moment {
        Moment(boot: start.boot + .seconds(seconds), wall: start.wall + .seconds(seconds))
    }

    private func pause(_ pacing: inout Pacing, at now: Moment) {
        var noJitter = NoJitter()
        pacing.pause(RetrySchedule(), using: &noJitter, at: now)
    }

    @Test("pauses are 1, 2 and then 4 s long, and end with an acknowledgement")
    func lengths() {
        var pacing = Pacing()
        for seconds in [1, 2, 4, 4] {
            pause(&pacing, at: start)
            #expect(pacing.startNotBefore == start.boot + .seconds(seconds))
            pacing.passTime(at: start.boot + .seconds(seconds))
            #expect(pacing.startNotBefore == nil)
        }
        #expect(did(pacing.recover()) == 4 && did(pacing.recover()) == 0)
        #expect(pacing.trouble == nil && pacing.failuresInARow == 0)
        pause(&pacing, at: start)
        #expect(pacing.startNotBefore == start.boot + .seconds(1), "failures are counted from zero")
    }

    @Test("a pause never brings a start forward, and trouble lasts since the first failure")
    func neverEarlier() {
        var pacing = Pacing(firstStart: start.boot + .seconds(2))
        pause(&pacing, at: start)
        #expect(pacing.startNotBefore == start.boot + .seconds(2))
        pacing.passTime(at: later(3).boot)
        #expect(pacing.startNotBefore == nil)
        pause(&pacing, at: later(3))
        #expect(pacing.trouble?.since == start.wall && pacing.startNotBefore == later(5).boot)
    }

    @Test(
        "the spread of the start outlasts a network change without trouble, but no failure or acknowledgement"
    )
    func spread() {
        var pacing = Pacing(firstStart: start.boot + .seconds(60))
        pacing.endTrouble()
        #expect(pacing.startNotBefore == start.boot + .seconds(60))
        pause(&pacing, at: start)
        pacing.endTrouble()
        #expect(pacing.startNotBefore == nil && pacing.trouble == nil)
        var other = Pacing(firstStart: start.boot + .seconds(60))
        #expect(did(other.recover()) == 0 && other.startNotBefore == nil)
    }

    @Test("a wait that was asked for is trouble without a pause of its own")
    func askedFor() {
        var pacing = Pacing()
        pacing.noteTrouble(at: start.wall)
        pacing.noteTrouble(at: later(5).wall)
        #expect(pacing.trouble?.since == start.wall && pacing.startNotBefore == nil)
    }
}
