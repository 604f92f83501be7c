import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("The effect of commands on a destination")
struct PushingTests {
    private func push(everything: Bool = false, events: Int = 0, free: Int = 0, _ batches: Set<BatchID> = [])
        -> Push
    {
        Push(
            everything: everything, events: PerPriority(critical: 0, normal: events),
            free: PerPriority(critical: 0, normal: free), batches: batches)
    }

    @Test("a dispatch covers what waited at its beginning, once")
    func dispatch() {
        var random = SplitMix64(seed: 1)
        var ids = UUIDv7Generator()
        let batch = ids.next(at: Timestamp(milliseconds: 1), using: &random)
        let other = ids.next(at: Timestamp(milliseconds: 2), using: &random)
        var pushing = Pushing()
        #expect(!pushing.isActive && !pushing.concerns(batch) && !pushing.wants(more: 0, .normal))
        pushing.begin(push(events: 60, free: 1, [batch]))
        #expect(pushing.concerns(batch) && !pushing.concerns(other) && !pushing.wants(more: 0, .critical))
        pushing.begun(batch)
        #expect(!pushing.concerns(batch))
        #expect(pushing.wants(more: 59, .normal) && !pushing.wants(more: 60, .normal))
        pushing.got(100, .normal)
        #expect(!pushing.wants(more: 0, .normal) && pushing.wantsFree(.normal))
        pushing.begunFree(.normal)
        #expect(!pushing.wantsFree(.normal))
        pushing.add(other)
        #expect(pushing.concerns(other), "the pieces of its batches belong to it")
    }

    @Test("events that were leased before a dispatch counted what waits are not subtracted from it")
    func leasedBefore() {
        var pushing = Pushing()
        var counted = push(events: 60)
        counted.revisions.normal = 5
        pushing.begin(counted)
        pushing.got(40, .normal, revision: 5)
        #expect(pushing.wants(more: 59, .normal))
        pushing.got(40, .normal, revision: 6)
        #expect(pushing.wants(more: 19, .normal) && !pushing.wants(more: 20, .normal))
    }

    @Test("a drain covers all waiting and new events, and one attempt passes an open breaker")
    func drain() {
        var pushing = Pushing()
        pushing.begin(push(everything: true))
        pushing.got(100, .normal)
        pushing.foundNothing(.normal)
        #expect(pushing.isEverything && pushing.wants(more: 1_000, .critical) && pushing.wantsFree(.normal))
        #expect(pushing.hasProbe)
        pushing.usedProbe()
        #expect(!pushing.hasProbe)
    }

    @Test("a command ends with a reason unless all was sent, and a new one begins without the last reason")
    func ends() {
        var pushing = Pushing()
        pushing.begin(push(events: 1))
        pushing.note(.unavailable)
        pushing.stop(.waitingForRetry)
        #expect(!pushing.isActive && pushing.reason == .waitingForRetry && pushing.ends == [.unavailable])
        pushing.clearEnds()
        pushing.begin(push(events: 1))
        #expect(pushing.reason == nil && pushing.ends.isEmpty)
        pushing.note(nil)
        pushing.stop(nil)
        #expect(pushing.reason == nil && pushing.ends == [nil])
    }

    @Test("a push ends at an obstacle, but one probe may find out whether the receiver was repaired")
    func obstacles() {
        var pushing = Pushing()
        #expect(!pushing.ends(at: .paused, probes: 0), "no push is on")
        pushing.begin(push(events: 1))
        #expect(pushing.ends(at: .paused, probes: 0) && pushing.ends(at: .retryAfter, probes: 1))
        for obstacle in [DestinationStateName.held, .breakerOpen, .waitingForRetry] {
            #expect(!pushing.ends(at: obstacle, probes: 0))
        }
        pushing.usedProbe()
        #expect(!pushing.ends(at: .held, probes: 1) && pushing.ends(at: .held, probes: 0))
    }

    @Test("the queue is asked once more while it could not give what its summary shows")
    func more() {
        let now = Moment(boot: BootInstant(nanoseconds: 1), wall: Timestamp(milliseconds: 1))
        var summary = LaneSummary()
        (summary.revision, summary.waitingEvents) = (1, 10)
        var views = PerPriority(both: LaneView())
        _ = views.normal.show(summary, at: now)
        var pushing = Pushing()
        pushing.begin(push(events: 10))
        #expect(!pushing.mayFindMore(in: .made(views)))
        _ = views.normal.noteEmpty(revision: 1, at: now.boot)
        #expect(pushing.mayFindMore(in: .made(views)))
        pushing.foundNothing(.normal)
        #expect(!pushing.mayFindMore(in: .made(views)))
    }
}
