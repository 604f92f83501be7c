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

    private func summary(_ revision: Int, waiting: Int, free: Int = 0, oldest: Timestamp? = nil)
        -> LaneSummary
    {
        var summary = LaneSummary()
        summary.revision = revision
        summary.waitingEvents = waiting
        summary.freeBatches = free
        summary.oldestAcceptedAt = oldest
        return summary
    }

    @Test("of a summary and an answer the newer one counts, whichever arrives first")
    func bothOrders() {
        let published = summary(4, waiting: 100)
        let answered = summary(5, waiting: 60)
        for order in [[published, answered], [answered, published]] {
            var view = LaneView()
            for (place, summary) in order.enumerated() {
                let isNewer = view.show(summary, at: start)
                #expect(isNewer == (place == 0 || summary == answered))
            }
            #expect(view.waiting == 60 && view.summary == answered)
        }
        var view = LaneView()
        _ = view.show(answered, at: start)
        let isNewer = view.show(answered, at: start)
        #expect(!isNewer)
    }

    @Test("a lane that cannot give what it shows is left alone for 1, 2, 4 s, or until it changes")
    func refused() {
        var view = LaneView()
        _ = view.show(summary(1, waiting: 5, free: 1), at: start)
        for wait in [1, 2, 4] {
            #expect(!view.isRefused && view.freeBatches == 1)
            let isEmpty = view.noteEmpty(revision: 1, at: start.boot)
            #expect(isEmpty && view.isRefused && view.freeBatches == 0)
            #expect(view.mayHoldMore, "a drain asks once more")
            view.passTime(at: later(.seconds(wait) - .milliseconds(1)).boot)
            #expect(view.isRefused)
            view.passTime(at: later(.seconds(wait)).boot)
        }
        _ = view.noteEmpty(revision: 1, at: start.boot)
        _ = view.show(summary(2, waiting: 6, free: 1), at: start)
        #expect(!view.isRefused)
        _ = view.noteEmpty(revision: 2, at: start.boot)
        view.passTime(at: later(.seconds(1)).boot)
        #expect(!view.isRefused, "the waits begin anew with each change")
    }

    @Test("an empty answer from before the last change means nothing; of an empty lane it ends no wait")
    func emptyAnswers() {
        var view = LaneView()
        _ = view.show(summary(7, waiting: 5), at: start)
        view.letGo(5)
        let isOldEmpty = view.noteEmpty(revision: 6, at: start.boot)
        #expect(!isOldEmpty && !view.isRefused && view.dueEvents == 5)
        _ = view.show(summary(8, waiting: 0), at: start)
        let isEmpty = view.noteEmpty(revision: 8, at: start.boot)
        #expect(isEmpty && !view.isRefused && !view.mayHoldMore && view.dueEvents == 0)
    }

    @Test("a due lane is sent once, whatever arrives; the oldest event's time is on the boot clock")
    func due() {
        var view = LaneView()
        _ = view.show(summary(1, waiting: 30, oldest: start.wall + (.zero - .seconds(4))), at: start)
        #expect(view.oldestAcceptedAt == start.boot + (.zero - .seconds(4)))
        view.letGo(30)
        view.noteBatch(events: 7, revision: 1)
        #expect(view.dueEvents == 30, "the summary did not count those any more")
        view.noteBatch(events: 20, revision: 2)
        #expect(view.dueEvents == 10)
        view.letGo(5)
        #expect(view.dueEvents == 10)
        view.letNoneGo()
        #expect(view.dueEvents == 0)
        var ahead = LaneView()
        _ = ahead.show(summary(1, waiting: 1, oldest: start.wall + .seconds(3600)), at: start)
        #expect(ahead.oldestAcceptedAt == start.boot, "a time in the future starts the full wait")
    }

    @Test("an emptied lane keeps its revision, so that an older summary does not bring events back")
    func forgotten() {
        var view = LaneView()
        _ = view.show(summary(3, waiting: 100), at: start)
        view.letGo(50)
        view.forget()
        #expect(view.oldestAcceptedAt == nil && view.dueEvents == 0)
        let isNewer = view.show(summary(2, waiting: 100), at: start)
        #expect(!isNewer)
    }
}
