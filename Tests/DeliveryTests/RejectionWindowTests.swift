@testable import Delivery
import TestKit
import Testing

@Suite("Recent results of a destination")
struct RejectionWindowTests {
    @Test(
        "dead letters are at most as many as acknowledged events, and end at a tenth of the last thousand",
        arguments: 0..<40)
    func fault11_tolerates(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        // The same, event by event.
        var fates = Array(repeating: false, count: Int.random(in: 0...1200, using: &random)).suffix(1000)
        var window = RejectionWindow(trusted: fates.count)
        var row = 0
        for _ in 0..<200 {
            let rejected = fates.count { $0 }
            let more = Int.random(in: 0...120, using: &random)
            let expected = rejected < 100 && rejected + more <= fates.count - rejected
            #expect(window.tolerates(more) == expected, "seed \(seed)")
            #expect(window.rejected == rejected, "seed \(seed)")
            let isRejected = Int.random(in: 0..<4, using: &random) == 0
            let count = Int.random(in: 0...60, using: &random)
            window.note(rejected: isRejected, events: count, of: count)
            if count > 0 { row = isRejected ? row + count : 0 }
            #expect(window.toleratesAlone == (row < 10), "seed \(seed)")
            fates = (fates + Array(repeating: isRejected, count: count)).suffix(1000)
        }
    }

    @Test("an app's rejections leave the others their tenth; many apps with a few share it")
    func appsOwnMatter() {
        var window = RejectionWindow(trusted: 1000)
        for _ in 0..<100 {
            #expect(window.tolerates(1, of: "bad"))
            window.note(rejected: true, events: 1, of: 1, by: "bad")
        }
        #expect(!window.tolerates(1, of: "bad") && window.tolerates(1, of: "good") && window.tolerates(1))
        for number in 0..<100 {
            #expect(window.tolerates(1, of: "app\(number % 10)"))
            window.note(rejected: true, events: 1, of: 1, by: "app\(number % 10)")
        }
        #expect(!window.tolerates(1, of: "app1") && !window.tolerates(1, of: "good") && !window.tolerates(1))
        window.note(rejected: false, events: 1000, of: 1000)
        #expect(window.tolerates(1, of: "bad") && window.rejected == 0)
    }
}
