import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("A batch that the queue hands out is recognised")
struct RecognitionTests {
    private let now = BootInstant(nanoseconds: 1_000_000_000_000)

    /// What the recognition says, in a word.
    private func word(
        _ batch: TrackedBatch, _ wish: Attempt.Wish = .next, _ kept: Kept = Kept(),
        _ attempts: Attempts = Attempts()
    ) -> String {
        switch Recognition(of: batch.header.id, wish, kept, attempts, at: now) {
        case .new: "new"
        case .known(let known): "known \(known.failures)"
        case .kept(let kept): "kept \(kept.failures)"
        case .notYet: "not yet"
        case .isOnItsWay: "on its way"
        }
    }

    @Test("a batch that nobody knows is new, and one asked for by id is that one")
    func asked() {
        var batch = TrackedBatch.made()
        batch.failures = 3
        #expect(word(batch) == "new")
        #expect(word(batch, .known(Boxed(batch))) == "known 3")
    }

    @Test("a kept batch is sent with what is remembered of it, unless its wait goes on")
    func keptBetweenAttempts() {
        var batch = TrackedBatch.made(notBefore: now)
        batch.failures = 2
        var kept = Kept()
        kept.keep(batch)
        #expect(word(batch, .next, kept) == "kept 2")
        kept.update(batch.header.id) { $0.notBefore = now + .seconds(1) }
        #expect(word(batch, .next, kept) == "not yet")
        kept.update(batch.header.id) { ($0.notBefore, $0.aside) = (now, .fails) }
        #expect(word(batch, .next, kept) == "not yet", "set-aside batches have turns of their own")
    }

    @Test("a batch that another attempt only asked for goes to this one; one that it holds does not")
    func crossing() {
        var batch = TrackedBatch.made()
        batch.failures = 1
        var attempts = Attempts()
        let asked = Attempt(.known(Boxed(batch)), priority: .normal, isProbe: false, isPushed: false)
        let number = attempts.begin(asked)
        #expect(word(batch, .next, Kept(), attempts) == "known 1")
        attempts.update(number) { $0.send(batch) }
        #expect(word(batch, .next, Kept(), attempts) == "on its way")
    }
}
