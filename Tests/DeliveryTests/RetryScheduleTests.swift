@testable import Delivery
import Model
import TestKit
import Testing

@Suite("Retry schedule")
struct RetryScheduleTests {
    @Test("ac13: three retries, after 5–10 s, 2.5–5 min and 10–20 min, then none")
    func ac13_waitsFallInTheirRanges() throws {
        let schedule = try RetrySchedule(intervals: [.seconds(10), .seconds(300), .seconds(1200)])
        #expect(schedule == .standard)
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

    @Test("a bad setting says what to write instead", arguments: [-0.1, 1.5, .nan])
    func badJitterIsRefused(jitter: Double) {
        #expect(throws: DeliveryError.self) { try RetrySchedule(intervals: [.seconds(1)], jitter: jitter) }
    }

    @Test("ac02: the interval is one total function of a duration")
    func ac02_intervalIsTotal() throws {
        #expect(try DispatchInterval(.zero) == .off)
        #expect(try DispatchInterval(.seconds(-5)) == .off)
        #expect(try DispatchInterval(.seconds(1)) == .every(.seconds(1)))
        #expect(try DispatchInterval(.seconds(86_400)) == .every(.seconds(86_400)))
        for wrong in [Duration.milliseconds(1), .milliseconds(999), .seconds(86_401)] {
            #expect(throws: DeliveryError.self) { try DispatchInterval(wrong) }
        }
    }
}
