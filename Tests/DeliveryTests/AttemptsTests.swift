import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// What is on its way, without a destination, a queue or a clock.
@Suite("Attempts in flight")
struct AttemptsTests {
    private let now = BootInstant(nanoseconds: 1)

    private func batch(_ ids: inout UUIDv7Generator, _ random: inout SplitMix64) -> TrackedBatch {
        let time = Timestamp(milliseconds: 1)
        let header = BatchHeader(
            id: ids.next(at: time, using: &random), destination: "main", priority: .normal, events: 3,
            bytes: 3,
            acceptedAt: time, firstEventTime: time)
        var batch = TrackedBatch(header: header, notBefore: now)
        if Bool.random(using: &random) { batch.aside = .fails }
        return batch
    }

    /// The totals, counted anew.
    private func counted(_ all: [Attempt]) -> Attempts.Counts {
        var counts = Attempts.Counts()
        for priority in Priority.allCases {
            let own = all.filter { $0.priority == priority }
            counts.places[priority] = own.count { $0.takesPlace }
            counts.leasing[priority] = own.count { $0.isLeasing }
            counts.askingForNew[priority] = own.count { $0.awaitsNewBatch }
            counts.known[priority] =
                own.count { $0.awaitsKnownBatch } + own.reduce(0) { $0 + $1.batchesToCome }
            counts.ready[priority] = own.count { $0.isReady }
        }
        counts.ahead = all.count { $0.isWaitingAhead }
        counts.sending = all.count { $0.isSending }
        counts.unproven = all.count { $0.isUnproven }
        counts.probes = all.count { $0.isProbe }
        counts.pushed = all.count { $0.isPushed }
        counts.coming = all.reduce(0) { $0 + $1.batchesToCome }
        counts.setAside = all.count { $0.batch?.isSetAside == true }
        return counts
    }

    @Test(
        "totals are right after every change, and numbers are never reused",
        arguments: Seeds.list(1...20))
    func totals(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var ids = UUIDv7Generator()
        var attempts = Attempts()
        var used: Set<UInt64> = []
        for _ in 0..<1_000 {
            let number = attempts.numbers.randomElement(using: &random)
            switch (Int.random(in: 0..<8, using: &random), number) {
            case (0..<3, _), (_, nil):
                let known = Boxed(batch(&ids, &random))
                let wish =
                    [Attempt.Wish.next, .nextAhead, .free, .known(known)].randomElement(using: &random)
                    ?? .next
                let begun = attempts.begin(
                    Attempt(
                        wish, priority: Bool.random(using: &random) ? .critical : .normal,
                        isProbe: Bool.random(using: &random), isPushed: Bool.random(using: &random)))
                #expect(used.insert(begun).inserted)
            case (3..<7, let number?): goOn(number, &attempts, batch(&ids, &random), &random)
            case (_, let number?): attempts.end(number)
            }
            if Int.random(in: 0..<50, using: &random) == 0 { attempts.updateAll { $0.isPushed = false } }
            #expect(attempts.counts == counted(attempts.values))
            let begun = attempts.values.count { !$0.isWaitingAhead && !$0.isUnproven }
            #expect(attempts.begun == begun)
        }
        for number in attempts.numbers { attempts.end(number) }
        #expect(attempts.isEmpty && attempts.counts == Attempts.Counts())
    }

    /// The next phase of an attempt.
    private func goOn(
        _ number: UInt64, _ attempts: inout Attempts, _ batch: TrackedBatch, _ random: inout SplitMix64
    ) {
        let isEnd = Bool.random(using: &random)
        attempts.update(number) { attempt in
            switch attempt.phase {
            case .leasing(.nextAhead): attempt.wait(with: batch)
            case .leasing, .ready: attempt.send(batch)
            case .sending where !isEnd:
                attempt.awaitProof(.init(batch, .badRequest, at: now))
            case .sending, .unproven:
                attempt.settle(.acknowledged(batch.header), isEnd ? [] : [batch, batch])
            case .settling: attempt.tell(again: isEnd ? now : nil)
            }
        }
    }
}
