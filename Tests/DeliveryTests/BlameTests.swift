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

    /// A request of the app `bad` fails.
    private func fail(_ blame: inout Blame, at second: Int) {
        let failure = Failure(kind: .connection, message: "the connection broke")
        let evidence = Blame.Evidence(kind: .failed, batch: batch(), failure: failure, apps: ["bad"])
        _ = blame.judge(evidence, of: .init(), at: at(second).boot)
    }

    /// The verdict on a batch that the destination refuses event by event.
    private func refused(_ batch: TrackedBatch, by blame: Blame, _ facts: Blame.Facts = .init())
        -> Blame.Verdict
    {
        verdict(.named, batch, .badRequest, apps: [], by: blame, facts)
    }

    /// A verdict that leaves the memory as it is.
    private func verdict(
        _ kind: Blame.Evidence.Kind, _ batch: TrackedBatch, _ failure: Failure, apps: [String],
        by blame: Blame, _ facts: Blame.Facts = .init()
    ) -> Blame.Verdict {
        var blame = blame
        let evidence = Blame.Evidence(kind: kind, batch: batch, failure: failure, apps: apps)
        return blame.judge(evidence, of: facts, at: at(1_000).boot)
    }

    @Test(
        "a refused batch is cut, or sampled if nothing of its app is accepted; one that is too large is halved"
    )
    func cut() {
        var blame = trusted(sent: 10)
        let apps = ["bad", "bad", "bad"]
        #expect(verdict(.tooLarge, batch(3), .tooLarge, apps: apps, by: blame) == .halve)
        #expect(verdict(.refused, batch(3), .badRequest, apps: apps, by: blame) == .cut)
        blame.noteKept(50, app: "bad")
        #expect(verdict(.refused, batch(3), .badRequest, apps: apps, by: blame) == .sample)
        #expect(verdict(.refused, batch(3), .badRequest, apps: ["bad", "a", "b"], by: blame) == .cut)
        let ordered = Blame.Facts(order: .kept)
        #expect(verdict(.refused, batch(3), .badRequest, apps: apps, by: blame, ordered) == .cut)
        let full = Blame.Facts(isFull: true)
        #expect(verdict(.refused, batch(3), .badRequest, apps: apps, by: blame, full) == .cut)
        let held = Blame.Facts(isHeld: true)
        #expect(verdict(.refused, batch(3), .badRequest, apps: [], by: blame, held) == .doubt)
    }

    @Test("a body that is too large teaches a ceiling, unless larger ones are accepted")
    func ceiling() {
        var blame = trusted(100, sent: 10)
        blame.noteTooLarge(batch(100), wireBytes: 50)
        #expect(blame.ceiling == nil, "as large a batch was accepted")
        blame.noteTooLarge(batch(200), wireBytes: 100)
        #expect(blame.ceiling?.bytes == 180)
        blame.noteTooSlow(batch(101))
        #expect(blame.ceiling?.bytes == 45)
        blame.forgetSettings()
        #expect(blame.ceiling == nil)
    }

    @Test(
        "without any acknowledgement a refusal puts the destination in doubt, and so does a piece that nothing proves"
    )
    func doubt() {
        #expect(refused(batch(), by: Blame(isWithSettings: false)) == .doubt)
        let blame = trusted(sent: 10)
        #expect(refused(batch(rejected: 11), by: blame) == .doubt)
        #expect(refused(batch(3, rejected: 11), by: blame, .init(hasOthersOnTheirWay: true)) == .doubt)
        #expect(refused(batch(rejected: 11), by: blame, .init(hasOthersOnTheirWay: true)) == .awaitProof)
        #expect(
            refused(batch(rejected: 11), by: blame, .init(isHeld: true, hasOthersOnTheirWay: true)) == .doubt)
    }

    @Test(
        "an event is given up once something sent after its refusal was accepted; ten single events before that"
    )
    func deadLetter() {
        var blame = trusted(sent: 10)
        #expect(refused(batch(rejected: 10), by: blame) == .deadLetter)
        #expect(
            refused(batch(rejected: 10), by: blame, .init(isHeld: true)) == .setAside,
            "only a probe ends a hold")
        for _ in 0..<10 {
            #expect(refused(batch(), by: blame) == .deadLetter)
            #expect(
                refused(batch(), by: blame, .init(isProbe: true, isHeld: true, isInDoubt: true)) == .doubt)
            blame.noteGivenUp(1, of: 1, app: nil)
        }
        #expect(refused(batch(), by: blame) == .doubt)
    }

    @Test("an event waits for proof at most three times")
    func postponements() {
        let blame = trusted()
        var event = batch(rejected: 5)
        for expected in [Blame.Verdict.awaitProof, .awaitProof, .awaitProof, .doubt] {
            #expect(refused(event, by: blame, .init(hasOthersOnTheirWay: true)) == expected)
            event.history.postponements += 1
        }
    }

    @Test(
        "beyond a hundred of a thousand an app's events are set aside, or given up without room; others' are given up"
    )
    func setAside() {
        var blame = trusted(1_000, sent: 10)
        for _ in 0..<100 { blame.noteGivenUp(1, of: 1, app: "bad") }
        #expect(refused(batch(app: "bad", rejected: 5), by: blame) == .setAside)
        #expect(refused(batch(app: "bad", rejected: 5), by: blame, .init(isFull: true)) == .deadLetter)
        #expect(refused(batch(app: "good", rejected: 5), by: blame) == .deadLetter)
    }

    @Test("a batch that keeps failing alone blames its app, is halved if refused, and otherwise set aside")
    func failing() {
        var blame = trusted(sent: 0)
        let facts = Blame.Facts()
        let forbidden = Failure(kind: .status, status: 403, message: "forbidden")
        func judge(_ tracked: TrackedBatch, _ failure: Failure, _ second: Int, _ facts: Blame.Facts)
            -> Blame.Verdict
        {
            let apps = Array(repeating: "bad", count: tracked.header.events)
            let evidence = Blame.Evidence(kind: .failed, batch: tracked, failure: failure, apps: apps)
            return blame.judge(evidence, of: facts, at: at(second).boot)
        }
        #expect(did(judge(batch(4), forbidden, 100, facts)) == .none, "the first failure proves nothing")
        #expect(blame.asked == ["bad"] && blame.asksMore)
        _ = blame.noteAccepted(1, of: batch(attempted: 101), app: "other", at: at(101))
        #expect(blame.asked.isEmpty)
        var again = batch(4)
        again.note(forbidden, at: at(100).boot)
        #expect(did(judge(again, forbidden, 102, facts)) == .halve)
        #expect(did(judge(batch(1), forbidden, 103, facts)) == .setAside)
        #expect(did(judge(batch(1), forbidden, 103, .init(isFull: true))) == .deadLetter)
        #expect(
            did(judge(again, forbidden, 104, .init(isHeld: true))) == .none,
            "while it is held nothing is known"
        )
        #expect(did(judge(again, forbidden, 104, .init(isBroken: true))) == .none)
        // It may be stored: no other ids.
        let lost = Failure(kind: .timeout, message: "no answer")
        var uncertain = batch(4)
        uncertain.mayBeTaken = true
        uncertain.note(lost, at: at(100).boot)
        #expect(did(judge(uncertain, lost, 105, facts)) == .setAside)
        blame.clear("bad")
        #expect(!blame.hasSuspects)
    }

    @Test("suspicion ends a probe interval after the last failure, if others are accepted, or by command")
    func forgiven() {
        var blame = trusted()
        fail(&blame, at: 10)
        blame.forgetSuspects(olderThan: .seconds(60), at: at(100).boot)
        #expect(blame.hasSuspects, "nothing was accepted since")
        _ = blame.noteAccepted(1, of: batch(attempted: 101), app: nil, at: at(101))
        blame.forgetSuspects(olderThan: .seconds(600), at: at(102).boot)
        #expect(blame.hasSuspects)
        blame.forgetSuspects(olderThan: .seconds(60), at: at(102).boot)
        #expect(!blame.hasSuspects)
        fail(&blame, at: 110)
        blame.forgiveAll()
        #expect(!blame.hasSuspects)
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
        fail(&blame, at: 1)
        blame.forgetSettings()
        #expect(
            !blame.hasSuspects && !blame.asksAppsOfAccepted && blame.share(of: "bad") == nil)
        #expect(!blame.acknowledged.isWithSettings && !blame.hasAccepted(since: at(0).boot))
    }

    @Test("a batch is cut into runs, a piece and a small batch of an earlier run into single events")
    func pieces() {
        let blame = trusted()
        #expect(blame.pieces(of: batch(8), apps: [], isFree: true) == [0, 0, 1, 1, 2, 2, 3, 3])
        var known = batch(8)
        known.mayBeTaken = true
        #expect(blame.pieces(of: known, apps: [], isFree: true) == [0, 0, 1, 1, 2, 2, 3, 3])
        known.history.isOfEarlierRun = true
        #expect(blame.pieces(of: known, apps: [], isFree: true) == Array(0..<8))
        var large = batch(9)
        large.history.isOfEarlierRun = true
        #expect(Set(blame.pieces(of: large, apps: [], isFree: true)).count == 3)
        let apps = ["a", "b", "a"]
        #expect(blame.pieces(of: batch(3), apps: apps, isFree: true) == [0, 2, 1])
        #expect(blame.pieces(of: batch(3), apps: apps, isFree: false) == [0, 1, 2])
    }

    @Test("a batch is parted between apps: all of a suspected one, or one event of each that was not tried")
    func parted() {
        var blame = trusted()
        let apps = ["bad", "good", "bad", "other"]
        #expect(blame.parted(apps, isFailing: false) == nil, "nobody is suspected")
        fail(&blame, at: 10)
        #expect(blame.parted(apps, isFailing: false) == [0, Blame.mostAsked, 0, Blame.mostAsked])
        let sampled = blame.parted(apps, isFailing: true)
        #expect(sampled.map { Set($0).count } == 3, "one of each app that was not tried, and the rest")
        #expect(blame.parted(["bad", "bad"], isFailing: false) == nil)
    }

    /// An answer about each event of a batch of three.
    private func answer(rejected: [Int] = [], final: [Int] = [], again: [Int] = []) -> PartialAnswer {
        let all =
            rejected.map { RejectedEvent(index: $0, failure: .badRequest) }
            + final.map { RejectedEvent(index: $0, failure: .tooLarge, isFinal: true) }
        return PartialAnswer(events: 3, rejected: all, retry: again)
    }

    @Test("an answer that accepts nothing may be about the whole batch, and one that accepts anything is not")
    func scope() {
        let blame = trusted(sent: 10)
        func scope(
            _ answer: PartialAnswer, rejectedAt: Int? = 5, apps: [String] = ["a", "a", "b"],
            app: String? = nil, by blame: Blame, isFull: Bool = false
        ) -> Blame.Scope {
            blame.scope(of: answer, batch(3, rejected: rejectedAt), apps: apps, app: app, isFull: isFull)
        }
        let none = answer(rejected: [0, 1, 2])
        #expect(scope(answer(rejected: [0, 1]), by: blame) == .events, "one was accepted")
        #expect(scope(none, by: blame) == .events, "it is proven that the destination accepts others")
        #expect(scope(none, rejectedAt: nil, by: blame) == .rejectsBatch(.badRequest), "nothing proves it")
        #expect(scope(answer(final: [0, 1, 2]), rejectedAt: nil, by: blame) == .events, "nothing to judge")
        guard case .wantsAllAgain = scope(answer(again: [0, 1, 2]), by: blame) else {
            Issue.record("a request for all events is a failure")
            return
        }
        let mine = ["a", "a", "a"]
        var strict = blame
        strict.noteGivenUp(100, of: 100, app: "a")
        #expect(scope(none, apps: mine, app: "a", by: blame) == .events, "they may be given up")
        #expect(scope(none, apps: mine, app: "a", by: strict) == .rejectsBatch(.badRequest))
        #expect(scope(none, apps: mine, app: "a", by: strict, isFull: true) == .events, "no room to keep it")
        #expect(scope(none, by: strict) == .events, "it is cut between its apps")
    }

    @Test("what is asked for again waits, but not if others of the answer are rejected for good")
    func again() {
        let batch = batch(3)
        var noJitter = NoJitter()
        let options = DestinationOptions(name: "main")
        func pieces(_ answer: PartialAnswer, of batch: TrackedBatch) -> [TrackedBatch] {
            answer.piecesAgain(of: batch, options, using: &noJitter, at: at(7).boot)
        }
        #expect(pieces(answer(rejected: [0, 1]), of: batch).isEmpty)
        let later = pieces(answer(rejected: [0], again: [1]), of: batch)
        #expect(later.map(\.notBefore) == [at(17).boot] && later.map(\.failures) == [1])
        let smaller = pieces(answer(final: [0], again: [1, 2]), of: batch)
        #expect(smaller.map(\.notBefore) == [at(7).boot] && smaller.map(\.failures) == [0])
        let taken = pieces(answer(final: [0], again: [1]), of: batch)
        #expect(taken.map(\.failures) == [1], "an event was accepted")
        var failing = batch
        failing.failures = 3
        let last = pieces(answer(again: [0, 1]), of: failing)
        #expect(last.map(\.failures) == [3], "no more than there are retries")
        #expect(last.map(\.notBefore) == [at(7).boot + options.probeInterval])
    }

    @Test("events that an answer rejects by name are judged app by app; those given up leave less room")
    func named() {
        var blame = Blame(isWithSettings: true)
        var large = TrackedBatch.made(events: 1_000)
        large.attemptedAt = at(0).boot
        _ = blame.noteAccepted(1_000, of: large, app: nil, at: at(0))
        let apps = Array(repeating: "one", count: 90) + Array(repeating: "two", count: 90) + [""]
        let rejected = apps.indices.map { RejectedEvent(index: $0, failure: .badRequest) }
        func judge(isFull: Bool) -> [Blame.NamedVerdict] {
            var blame = blame
            return blame.judgeNamed(rejected, of: 200, isFull: isFull) { apps[$0].isEmpty ? nil : apps[$0] }
        }
        let verdicts = judge(isFull: false)
        #expect(verdicts.map(\.app) == [nil, "one", "two"] && verdicts.map(\.events.count) == [1, 90, 90])
        // Each app may have a tenth rejected by itself.
        #expect(verdicts.map(\.isGivenUp) == [true, true, true])
        var known = blame
        known.noteGivenUp(100, of: 1_000, app: "one")
        let later = known.judgeNamed(rejected, of: 200, isFull: false) { apps[$0].isEmpty ? nil : apps[$0] }
        #expect(later.map(\.isGivenUp) == [true, false, true])
        #expect(judge(isFull: true).map(\.isGivenUp) == [true, true, true], "no more can be kept")
    }
}
