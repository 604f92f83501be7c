import EventLoops
import Model
import Testing

@testable import Delivery

@Suite("Waiting events of a lane")
struct LaneViewTests {
    private let start = Moment(
        boot: BootInstant(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_000_000))

    private func later(_ wait: Duration) -> Moment {
        Moment(boot: start.boot + wait, wall: start.wall + wait)
    }

    private func summary(waiting: Int, handedOut: Int = 0, free: Int = 0, oldest: Timestamp? = nil)
        -> LaneSummary
    {
        var summary = LaneSummary()
        summary.waitingEvents = waiting
        summary.handedOut = handedOut
        summary.freeBatches = free
        summary.oldestAcceptedAt = oldest
        return summary
    }

    @Test("leased events do not count as waiting, whether the summary or the answer arrives first")
    func bothOrders() {
        var answerFirst = LaneView()
        answerFirst.show(summary(waiting: 100), at: start)
        answerFirst.noteLease(events: 40)
        #expect(answerFirst.waiting == 60 && answerFirst.isAheadOfSummary)
        answerFirst.show(summary(waiting: 60, handedOut: 40), at: start)
        #expect(answerFirst.waiting == 60 && !answerFirst.isAheadOfSummary)

        var summaryFirst = LaneView()
        summaryFirst.show(summary(waiting: 100), at: start)
        summaryFirst.show(summary(waiting: 60, handedOut: 40), at: start)
        // Those 40 are on their way here.
        #expect(summaryFirst.waiting == 100)
        summaryFirst.noteLease(events: 40)
        #expect(summaryFirst.waiting == 60)
    }

    @Test("after a lost answer the queue's count applies ten seconds later, unless a request is under way")
    func lostAnswer() {
        var view = LaneView()
        view.show(summary(waiting: 100), at: start)
        view.show(summary(waiting: 60, handedOut: 40), at: start)
        view.passTime(at: later(.seconds(9)).boot, isAsked: false)
        view.passTime(at: later(.seconds(11)).boot, isAsked: true)
        #expect(view.waiting == 100)
        view.passTime(at: later(.seconds(11)).boot, isAsked: false)
        #expect(view.waiting == 60 && !view.isCountUncertain)
    }

    @Test("a lane without events is left alone for 1, 2, 4 s, or until its summary changes")
    func saidEmpty() {
        var view = LaneView()
        view.show(summary(waiting: 5, free: 1), at: start)
        let wasSaidBefore = view.noteEmpty(at: start.boot)
        #expect(!wasSaidBefore && view.isSaidEmpty && view.freeBatches == 0)
        #expect(view.mayHoldMore, "a command asks once more")
        view.passTime(at: later(.seconds(1)).boot, isAsked: false)
        #expect(!view.isSaidEmpty && view.freeBatches == 1)
        let isSaidAgain = view.noteEmpty(at: start.boot)
        #expect(isSaidAgain, "twice is no misunderstanding")
        view.passTime(at: later(.seconds(1)).boot, isAsked: false)
        #expect(view.isSaidEmpty)
        view.show(summary(waiting: 6, free: 1), at: start)
        #expect(!view.isSaidEmpty)
    }

    @Test("a free batch that was leased is not counted as free while the summary may lag")
    func freeBatches() {
        var view = LaneView()
        view.show(summary(waiting: 0, free: 3), at: start)
        view.noteBatch(events: 10, isNew: false, at: start.boot)
        #expect(view.freeBatches == 2 && view.mayHoldMore)
        view.passTime(at: later(.milliseconds(100)).boot, isAsked: false)
        #expect(view.freeBatches == 3)
    }

    @Test("a due lane is sent once, whatever arrives; the oldest event's time is on the boot clock")
    func due() {
        var view = LaneView()
        view.show(summary(waiting: 30, oldest: start.wall + (.zero - .seconds(4))), at: start)
        #expect(view.oldestAcceptedAt == start.boot + (.zero - .seconds(4)))
        view.letGo(30)
        view.noteBatch(events: 20, isNew: true, at: start.boot)
        #expect(view.dueEvents == 10)
        view.letGo(5)
        #expect(view.dueEvents == 10)
        view.letNoneGo()
        #expect(view.dueEvents == 0)
        var ahead = LaneView()
        ahead.show(summary(waiting: 1, oldest: start.wall + .seconds(3600)), at: start)
        #expect(ahead.oldestAcceptedAt == start.boot, "a time in the future starts the full wait")
    }

    @Test("the count of an emptied queue increases again")
    func forgotten() {
        var view = LaneView()
        view.show(summary(waiting: 100, handedOut: 7), at: start)
        view.noteLease(events: 50)
        view.forget()
        #expect(view.waiting == 50 && view.oldestAcceptedAt == nil && view.dueEvents == 0)
    }
}
