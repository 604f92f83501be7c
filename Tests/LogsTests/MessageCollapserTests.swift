import EventLoops
import TestKit
import Testing

@testable import Logs

@Suite("Repeated messages")
struct MessageCollapserTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    private func message(
        _ number: Int, _ level: LogLevel = .warning, _ text: String = "delivery failed"
    ) -> LogMessage {
        LogMessage(level: level, text: text, fields: [("n", "\(number)")])
    }

    @Test("a repeated message is written once, and again with its count when the window ends")
    func repeatsAreCounted() {
        var collapser = MessageCollapser()
        #expect(collapser.add(message(1), at: start) == [message(1)])
        #expect(collapser.nextDue == nil)
        for second in 1...40 { #expect(collapser.add(message(1), at: start + .seconds(second)).isEmpty) }
        #expect(collapser.nextDue == start + .seconds(60))
        #expect(collapser.due(at: start + .seconds(59)).isEmpty)
        let summary = LogMessage(
            level: .warning, text: "delivery failed", fields: [("n", "1"), ("repeated", "40")])
        #expect(collapser.due(at: start + .seconds(60)) == [summary])
        #expect(collapser.nextDue == nil)
        #expect(collapser.add(message(1), at: start + .seconds(61)) == [message(1)])
    }

    @Test("different messages of a kind are written up to a burst, and debug messages always")
    func burstIsLimited() {
        var collapser = MessageCollapser()
        let written = (0..<100).flatMap { collapser.add(message($0), at: start) }
        #expect(written == (0..<20).map { message($0) })
        #expect(collapser.flush().map(\.fields.last?.value) == ["80"])
        let debug = (0..<100).map { message($0, .debug, "batch formed") }
        #expect(debug.flatMap { collapser.add($0, at: start) } == debug)
    }

    @Test("a flood of one app hides no message about another; many apps are not many kinds")
    func apps() {
        func message(_ app: String, _ number: Int) -> LogMessage {
            LogMessage(level: .warning, text: "line quarantined", fields: [("app", app), ("n", "\(number)")])
        }
        var collapser = MessageCollapser()
        for number in 0..<100 { _ = collapser.add(message("noisy", number), at: start) }
        // One in sixteen is in the same part.
        let heard = (0..<64).count { !collapser.add(message("quiet\($0)", 0), at: start).isEmpty }
        #expect(heard > 32)
        let written = (0..<10_000).flatMap { collapser.add(message("app\($0)", 0), at: start) }
        #expect(written.count <= 16 * MessageCollapser.burst)
    }

    @Test("kinds are limited separately, and their number is bounded without losing a count")
    func nothingIsLost() {
        for seed in UInt64(1)...50 {
            var random = SplitMix64(seed: seed)
            var collapser = MessageCollapser()
            var now = start
            var given = 0
            var told = 0
            func count(_ messages: [LogMessage]) {
                for message in messages {
                    let last = message.fields.last
                    told += last?.key == "repeated" ? Int(last?.value ?? "") ?? 0 : 1
                }
            }
            for _ in 0..<2000 {
                now = now + .milliseconds(Int.random(in: 0...500, using: &random))
                let kind = Int.random(in: 0..<300, using: &random) % Int.random(in: 1...300, using: &random)
                let level: LogLevel = Bool.random(using: &random) ? .error : .debug
                given += 1
                let number = Int.random(in: 0...2, using: &random)
                count(collapser.add(message(number, level, "kind \(kind)"), at: now))
            }
            count(collapser.flush())
            #expect(told == given, "seed \(seed)")
            #expect(collapser.nextDue == nil, "seed \(seed)")
        }
    }
}
