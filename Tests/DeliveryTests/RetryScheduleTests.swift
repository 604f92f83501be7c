@testable import Delivery
import Model
import TestKit
import Testing

@Suite("Retry schedule")
struct RetryScheduleTests {
    @Test("ac13: three retries, after 5–10 s, 2.5–5 min and 10–20 min, then none")
    func ac13_waitsFallInTheirRanges() throws {
        let schedule = RetrySchedule()
        var random = SplitMix64(seed: 42)
        var thirds = [0, 0, 0]
        for _ in 0..<10_000 {
            let waits = (1...3).compactMap { schedule.wait(afterFailures: $0, using: &random) }
            try #require(waits.count == 3)
            #expect((.seconds(5) ... .seconds(10)).contains(waits[0]))
            #expect((.seconds(150) ... .seconds(300)).contains(waits[1]))
            #expect((.seconds(600) ... .seconds(1200)).contains(waits[2]))
            #expect(schedule.wait(afterFailures: 4, using: &random) == nil)
            thirds[min(2, Int((waits[2] - .seconds(600)) / .seconds(200)))] += 1
        }
        // Chance spreads evenly: each third of the range gets a third of the waits.
        for count in thirds { #expect((3100...3570).contains(count), "\(thirds)") }
    }

    @Test("ac02: a stored interval reads back, and an invalid text is no interval")
    func ac02_keptInterval() {
        let intervals = [Duration.seconds(1), .milliseconds(1500), .seconds(86_400)].map {
            DispatchInterval.every($0)
        }
        for interval in [.off] + intervals { #expect(DispatchInterval(kept: interval.kept) == interval) }
        for wrong in ["", "0 ms", "999 ms", "86400001 ms", "-5 ms", "2 s", "ms", "99999999999999999999 ms"] {
            #expect(DispatchInterval(kept: wrong) == nil, "\(wrong)")
        }
    }
}
