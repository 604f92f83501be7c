import EventLoops
import TestKit
import Testing

@testable import Events

@Suite("Times of events: the quick reader and the parser")
struct TimestampReaderTests {
    @Test("both agree on valid and mutated texts and on extreme times, in any order")
    func agrees() {
        let seed = Seeds.one(7)
        var random = SplitMix64(seed: seed)
        var reader = TimestampReader()
        let texts = [
            "2026-11-20T10:00:00.123Z", "2026-11-20T23:59:59.999Z", "2026-11-20T23:59:60.000Z",
            "2026-11-20T00:00:00.000Z",
            "2026-11-21T24:00:00.000Z", "2024-02-29T12:34:56.789Z", "2023-02-29T12:34:56.789Z",
            "1969-12-31T23:59:59.001Z",
            "1677-09-21T00:12:43.145Z", "2262-04-11T23:47:16.854Z", "2262-04-11T23:47:16.855Z",
            "0001-01-01T00:00:00.000Z",
            "9999-12-31T23:59:59.999Z", "2026-11-20t10:00:00.123z", "2026-11-20 10:00:00.123Z",
            "2026-11-20T10:00:00+01:00",
            "2026-11-20T10:00:00.1-01:30", "2026-11-20T10:00:00.1234Z", "2026-11-20T10:00:00Z",
            "2026-11-20T10:00:00.12+1Z",
            "2026-11-20T10:00:00.123456Z", "2026-11-20T23:59:59.999999999Z", "2026-11-21T10:00:00.000001Z",
            "2026-11-20T10:00:00.123456789Z", "2026-11-20T10:00:00.12+01:00", "2026-11-20T10:00:00.123456z",
            "2262-04-11T23:47:16.854775807Z", "1677-09-21T00:12:43.145224193Z",
        ]
        var taken = 0
        for _ in 0..<60_000 {
            var text = Array((texts.randomElement(using: &random) ?? "").utf8)
            if Bool.random(using: &random) {
                let index = Int.random(in: 0..<text.count, using: &random)
                text[index] =
                    Bool.random(using: &random)
                    ? UInt8.random(in: 0x2D...0x3B, using: &random)
                    : UInt8.random(in: 1...0xFF, using: &random)
            }
            let (quick, careful) = text.withUnsafeBufferPointer {
                (reader.parse($0), TimestampText.parse($0))
            }
            if careful != nil { taken += 1 }
            guard quick == careful else {
                let shown = String(decoding: text, as: UTF8.self)
                Issue.record("\(shown), \(Seeds.again(seed)): \(String(describing: quick))")
                return
            }
        }
        #expect(taken > 20_000)
    }
}
