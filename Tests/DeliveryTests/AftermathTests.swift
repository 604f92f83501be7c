import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("What becomes of a batch after a failure that may pass")
struct AftermathTests {
    private let timeout = Failure(kind: .timeout, message: "no answer within 30 s")

    private func batch(events: Int = 10, _ change: (inout TrackedBatch) -> Void = { _ in }) -> TrackedBatch {
        var batch = TrackedBatch.made(events: events)
        change(&batch)
        return batch
    }

    @Test("retries of the schedule, then the batch is set aside if others go through; else the breaker opens")
    func schedule() {
        var aftermath = Aftermath(retries: 2)
        #expect(aftermath.step(for: batch(), .unavailable) == .retry)
        #expect(aftermath.step(for: batch { $0.failures = 1 }, .unavailable) == .retry)
        #expect(aftermath.step(for: batch { $0.failures = 2 }, .unavailable) == .openBreaker)
        aftermath.othersWentThrough = true
        #expect(aftermath.step(for: batch { $0.failures = 2 }, .unavailable) == .setAside)
        aftermath.order = .promised
        #expect(aftermath.step(for: batch { $0.failures = 2 }, .unavailable) == .openBreaker)
        #expect(Aftermath(retries: 0).step(for: batch(), .unavailable) == .openBreaker)
    }

    @Test("for a probe and while the breaker is open, nothing else counts")
    func decidedByState() {
        let aftermath = Aftermath(
            recognisesRepeats: false, isDecidedByState: true, othersWentThrough: true, isTooMuch: true)
        let slow = batch { ($0.history.timeouts, $0.aside) = (2, .fails) }
        #expect(aftermath.step(for: slow, timeout) == .wait)
    }

    @Test("a set-aside batch is halved if it fails while others go through, and nothing of it may be stored")
    func aside() {
        let aftermath = Aftermath(othersWentThrough: true)
        #expect(aftermath.step(for: batch { $0.aside = .fails }, .unavailable) == .halve)
        #expect(aftermath.step(for: batch(events: 1) { $0.aside = .fails }, .unavailable) == .wait)
        #expect(aftermath.step(for: batch { $0.aside = .rejected }, .unavailable) == .wait)
        let stored = batch { ($0.aside, $0.mayBeTaken) = (.fails, true) }
        #expect(aftermath.step(for: stored, .unavailable) == .wait)
        #expect(aftermath.step(for: stored, .badRequest) == .halve, "a refusal says that nothing is stored")
        #expect(Aftermath().step(for: batch { $0.aside = .fails }, .unavailable) == .wait)
    }

    @Test("a second time-out of its own halves a batch only where the receiver would store repeats")
    func slow() {
        let slow = batch { $0.history.timeouts = 2 }
        #expect(Aftermath().step(for: slow, timeout) == .retry)
        let storing = Aftermath(recognisesRepeats: false)
        #expect(storing.step(for: slow, timeout) == .halveSlow)
        #expect(storing.step(for: slow, .unavailable) == .retry)
        #expect(storing.step(for: batch { $0.history.timeouts = 1 }, timeout) == .retry)
        #expect(storing.step(for: batch(events: 1) { $0.history.timeouts = 2 }, timeout) == .retry)
    }

    @Test("a batch beyond the receiver's burst is halved before retries are counted")
    func burst() {
        let aftermath = Aftermath(isTooMuch: true)
        let failure = Failure(kind: .status, status: 429, message: "too many requests")
        #expect(aftermath.step(for: batch { $0.failures = 9 }, failure) == .halveLarge)
    }
}
