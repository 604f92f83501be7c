import EventLoops
import Model
import Testing

@testable import Delivery

@Suite("What is remembered of a batch after an answer")
struct TrackedBatchTests {
    private let now = BootInstant(nanoseconds: 5)

    @Test("pieces count as rejected only if the answer was about the events, and wait beside others as asked")
    func pieces() {
        var batch = TrackedBatch.made(events: 4)
        batch.mayBeTaken = true
        let refused = batch.pieces(
            [0, 0, 1, 1], apps: ["a", "a", "a", "b"], after: .badRequest, isRejected: true, aside: nil,
            at: now)
        #expect(refused.map(\.app) == ["a", nil] && refused.allSatisfy { $0.rejectedAt == now })
        #expect(refused.allSatisfy { !$0.isSetAside && $0.failedAt == nil && !$0.mayBeTaken })
        let failed = batch.pieces(
            [0, 1, 1, 1], apps: [], after: .unavailable, isRejected: false, aside: .fails, at: now)
        #expect(failed.count == 2 && failed.allSatisfy { $0.rejectedAt == nil && $0.aside == .fails })
        #expect(failed.allSatisfy { $0.failedAt == now && $0.notBefore == now })
    }

    @Test("a failure is a turn only of a batch that was set aside for a refusal, and only in a doubt")
    func failedTurn() {
        for (aside, isInDoubt, turns) in [
            (TrackedBatch.Aside.rejected, true, 1), (.rejected, false, 0), (.fails, true, 0),
        ] {
            var batch = TrackedBatch.made()
            batch.aside = aside
            batch.noteFailedTurn(isInDoubt: isInDoubt)
            #expect(batch.history.tries == turns)
        }
    }

    @Test("a rejected event that waits for proof is sent again after a second, and remembers the first time")
    func unproven() {
        let first = Attempt.Unproven(.made(), .badRequest, at: now)
        #expect(first.until == now + .seconds(1) && first.batch.notBefore == first.until)
        #expect(first.batch.rejectedAt == now && first.batch.history.postponements == 1)
        let second = Attempt.Unproven(first.batch, .badRequest, at: now + .seconds(2))
        #expect(second.batch.rejectedAt == now && second.until == now + .seconds(3))
        #expect(second.batch.history.postponements == 2)
    }
}
