import Glibc
import Model
import TestKit
import Testing

@testable import Spool

@Suite("The figure of what is unread", .timeLimit(.minutes(1)))
struct UnreadFigureTests {
    @Test("from the start on, no figure says that all is read while lines wait; it follows the commits")
    func neverTooGood() async throws {
        let harness = try SpoolHarness()
        let count = 60_000
        let line = String(repeating: "x", count: 99) + "\n"
        try #require(mkdir("\(harness.path)/app", 0o755) == 0)
        harness.write(String(repeating: line, count: count), to: "app/a.jsonl")
        harness.queue.with { $0.room = 64 << 10 }
        let reader = try await harness.start()
        var seen: Set<Int64> = []
        while true {
            let figures = reader.figures
            let isDone = harness.queue.with { $0.lines.count } == count
            seen.insert(figures.unreadBytes.value)
            // The figures were taken before the lines were counted, so they may say less than is true now.
            if isDone { break }
            try #require(figures.unlistedReaders > 0 || figures.unreadBytes > 0, "\(figures)")
        }
        #expect(seen.count > 1)
        await harness.until("the figures say that all is read") {
            reader.figures.unlistedReaders == 0 && reader.figures.unreadBytes == 0
        }
        await reader.stop()
    }
}
