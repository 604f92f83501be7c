import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// Whose fault a refusal is, without a destination, a queue or a clock.
@Suite("Blame for refusals and failures")
struct BlameTests {
    private func at(_ seconds: Int) -> Moment {
        Moment(
            boot: BootInstant(nanoseconds: Int64(seconds) * 1_000_000_000),
            wall: Timestamp(milliseconds: Int64(seconds) * 1000))
    }

    /// A batch that was attempted then.
    private func batch(_ events: Int = 1, app: String? = nil, attempted: Int = 0, rejected: Int? = nil)
        -> TrackedBatch
    {
        let header = BatchHeader(
            id: BatchID(high: 1, low: 1), destination: "main", priority: .normal, events: events,
            bytes: events,
            acceptedAt: at(0).wall, firstEventTime: at(0).wall)
        var batch = TrackedBatch(header: header, notBefore: at(0).boot)
        batch.app = app
        batch.attemptedAt = at(attempted).boot
        batch.rejectedAt = rejected.map { at($0).boot }
        return batch
    }

    /// A destination that has accepted so many events in a batch that was sent then.
    private func trusted(_ events: Int = 100, sent: Int = 0) -> Blame {
        var blame = Blame(isWithSettings: false)
        #expect(did(blame.noteAccepted(events, of: batch(events, attempted: sent), app: nil, at: at(sent))))
        return blame
    }

    @Test(
        "without any acknowledgement a refusal puts the destination in doubt, and so does a piece that nothing proves"
    )
    func doubt() {
        #expect(Blame(isWithSettings: false).judgeRefused(batch(), .init()) == .doubt)
        let blame = trusted(sent: 10)
        #expect(blame.judgeRefused(batch(rejected: 11), .init()) == .doubt)
        #expect(blame.judgeRefused(batch(3, rejected: 11), .init(hasOthersOnTheirWay: true)) == .doubt)
        #expect(blame.judgeRefused(batch(rejected: 11), .init(hasOthersOnTheirWay: true)) == .awaitProof)
        #expect(
            blame.judgeRefused(batch(rejected: 11), .init(isHeld: true, hasOthersOnTheirWay: true)) == .doubt)
    }

    @Test(
        "an event is given up once something sent after its refusal was accepted; ten single events before that"
    )
    func deadLetter() {
        var blame = trusted(sent: 10)
        #expect(blame.judgeRefused(batch(rejected: 10), .init()) == .deadLetter)
        #expect(
            blame.judgeRefused(batch(rejected: 10), .init(isHeld: true)) == .setAside,
            "only a probe ends a hold")
        for _ in 0..<10 {
            #expect(blame.judgeRefused(batch(), .init()) == .deadLetter)
            #expect(
                blame.judgeRefused(batch(), .init(isProbe: true, isHeld: true, isInDoubt: true)) == .doubt)
            blame.noteGivenUp(1, of: 1, app: nil)
        }
        #expect(blame.judgeRefused(batch(), .init()) == .doubt)
    }

    @Test("an event waits for proof at most three times")
    func postponements() {
        let blame = trusted()
        var refused = batch(rejected: 5)
        for expected in [Blame.Verdict.awaitProof, .awaitProof, .awaitProof, .doubt] {
            #expect(blame.judgeRefused(refused, .init(hasOthersOnTheirWay: true)) == expected)
            refused.postponements += 1
        }
    }

    @Test(
        "beyond a hundred of a thousand an app's events are set aside, or given up without room; others' are given up"
    )
    func setAside() {
        var blame = trusted(1_000, sent: 10)
        for _ in 0..<100 { blame.noteGivenUp(1, of: 1, app: "bad") }
        #expect(blame.judgeRefused(batch(app: "bad", rejected: 5), .init()) == .setAside)
        #expect(blame.judgeRefused(batch(app: "bad", rejected: 5), .init(isFull: true)) == .deadLetter)
        #expect(blame.judgeRefused(batch(app: "good", rejected: 5), .init()) == .deadLetter)
    }

    @Test("a batch that keeps failing alone blames its app, is halved if refused, and otherwise set aside")
    func failing() {
        var blame = trusted(sent: 0)
        let facts = Blame.Facts()
        let refused = Failure(kind: .status, status: 403, message: "forbidden")
        func judge(_ tracked: TrackedBatch, _ failure: Failure, _ second: Int, _ facts: Blame.Facts)
            -> Blame.Verdict
        {
            blame.judgeFailed(
                tracked, failure, apps: Array(repeating: "bad", count: tracked.header.events), facts,
                at: at(second).boot)
        }
        #expect(did(judge(batch(4), refused, 100, facts)) == .none, "the first failure proves nothing")
        #expect(blame.asked == ["bad"] && blame.asksMore)
        _ = blame.noteAccepted(1, of: batch(attempted: 101), app: "other", at: at(101))
        #expect(blame.asked.isEmpty)
        var again = batch(4)
        again.note(refused, at: at(100).boot)
        #expect(did(judge(again, refused, 102, facts)) == .halve)
        #expect(did(judge(batch(1), refused, 103, facts)) == .setAside)
        #expect(did(judge(batch(1), refused, 103, .init(isFull: true))) == .deadLetter)
        #expect(
            did(judge(again, refused, 104, .init(isHeld: true))) == .none, "while it is held nothing is known"
        )
        #expect(did(judge(again, refused, 104, .init(isBroken: true))) == .none)
        // It may be stored: no other ids.
        let lost = Failure(kind: .timeout, message: "no answer")
        var uncertain = batch(4)
        uncertain.mayBeTaken = true
        uncertain.note(lost, at: at(100).boot)
        #expect(did(judge(uncertain, lost, 105, facts)) == .setAside)
        blame.clear("bad")
        #expect(blame.suspects.isEmpty)
    }

    @Test("suspicion ends a probe interval after the last failure, if others are accepted, or by command")
    func forgiven() {
        var blame = trusted()
        _ = blame.judgeFailed(batch(), .unavailable, apps: ["bad"], .init(), at: at(10).boot)
        blame.forgetSuspects(olderThan: .seconds(60), at: at(100).boot)
        #expect(blame.suspects.count == 1, "nothing was accepted since")
        _ = blame.noteAccepted(1, of: batch(attempted: 101), app: nil, at: at(101))
        blame.forgetSuspects(olderThan: .seconds(600), at: at(102).boot)
        #expect(blame.suspects.count == 1)
        blame.forgetSuspects(olderThan: .seconds(60), at: at(102).boot)
        #expect(blame.suspects.isEmpty)
        _ = blame.judgeFailed(batch(), .unavailable, apps: ["bad"], .init(), at: at(110).boot)
        blame.forgiveAll()
        #expect(blame.suspects.isEmpty)
    }

    @Test("earlier acknowledgements end doubts for 30 seconds after the first one; later doubts last")
    func endlessDoubts() {
        var blame = trusted(sent: 0)
        #expect(did(blame.endsDoubt(nil, at: at(10).boot)))
        #expect(did(blame.endsDoubt(Doubt(began: at(10).boot, isAnnounced: false), at: at(11).boot)))
        #expect(did(blame.endsDoubt(Doubt(began: at(35).boot, isAnnounced: false), at: at(39).boot)))
        #expect(!did(blame.endsDoubt(Doubt(began: at(41).boot, isAnnounced: false), at: at(42).boot)))
        _ = blame.noteAccepted(1, of: batch(attempted: 43), app: nil, at: at(43))
        #expect(did(blame.endsDoubt(Doubt(began: at(44).boot, isAnnounced: false), at: at(45).boot)))
    }

    @Test("other settings begin without what was learned")
    func settings() {
        var blame = trusted()
        blame.noteKept(60, app: "bad")
        blame.noteRefused(20, app: "bad")
        _ = blame.judgeFailed(batch(), .unavailable, apps: ["bad"], .init(), at: at(1).boot)
        blame.forgetSettings()
        #expect(
            blame.suspects.isEmpty && blame.rejections.kept.isEmpty && blame.shares.share(of: "bad") == nil)
        #expect(!blame.acknowledged.isWithSettings && !blame.hasAccepted(since: at(0).boot))
    }
}
