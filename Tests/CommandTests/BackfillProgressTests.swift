import EventLoops
import TestKit
import Model
import Testing

@testable import spoolship

@Suite("Progress of a backfill")
struct BackfillProgressTests {
    private let time = ManualTime()

    @Test(
        "share, rate and time left follow from the last seconds; what an earlier run sent is not in the rate"
    )
    func rates() {
        var progress = BackfillProgress(total: 100_000_000, at: time.bootTime)
        #expect(progress.text(at: time.bootTime) == "0 %, 0 events")
        progress.skip(20_000_000)
        for _ in 0..<10 {
            time.advance(by: .seconds(1))
            progress.reached(progress.taken.value + 1_048_576, events: 3000, at: time.bootTime)
        }
        #expect(progress.text(at: time.bootTime) == "30 %, 30,000 events, 3,000/s, 1 MiB/s, 1m6s left")
        // The rate follows: what was long ago does not count.
        for _ in 0..<60 {
            time.advance(by: .seconds(1))
            progress.reached(progress.taken.value + 104_858, events: 300, at: time.bootTime)
        }
        #expect(
            progress.text(at: time.bootTime).contains(", 300/s, 102.4 KiB/s, "),
            "\(progress.text(at: time.bootTime))")
        progress.obstacle = "312 events wait for main"
        #expect(
            progress.text(at: time.bootTime).hasSuffix("%, 48,000 events, waiting: 312 events wait for main"))
        progress.obstacle = nil
        progress.reached(100_000_000, events: 0, at: time.bootTime)
        #expect(
            !progress.text(at: time.bootTime).contains("left")
                && progress.text(at: time.bootTime).hasPrefix("100 %"))
        #expect(BackfillProgress(total: 0, at: time.bootTime).text(at: time.bootTime) == "100 %, 0 events")
    }

    @Test(
        "on a terminal one line is updated five times a second; elsewhere a line is added every ten seconds"
    )
    func lines() throws {
        for (isTerminal, expected) in [
            (true, "\r\u{1B}[K0\r\u{1B}[K200\r\u{1B}[Kend\n"), (false, "10000\nend\n"),
        ] as [(Bool, String)] {
            let kept = KeptConsole()
            var line = ProgressLine(kept.console(colour: isTerminal))
            let start = time.bootTime
            for milliseconds in isTerminal ? [0, 100, 200] : [0, 100, 200, 9999, 10_000] {
                try line.show("\(milliseconds)", at: start + .milliseconds(milliseconds))
            }
            try line.end(with: "end")
            #expect(kept.output == expected)
        }
    }
}
