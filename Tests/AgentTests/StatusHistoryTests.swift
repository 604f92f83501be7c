import EventLoops
import Testing

@testable import Agent

@Suite("The last hour")
struct StatusHistoryTests {
    private let start = Timestamp(milliseconds: 1_795_168_800_000)

    private func sample(_ seconds: Int, bytes: Int = 0) -> StatusHistory.Sample {
        .init(at: start + .seconds(seconds), accepted: seconds, acknowledged: 0, queued: 0, bytes: bytes)
    }

    @Test("one sample a minute is stored for an hour, however often figures arrive")
    func bounded() {
        var history = StatusHistory()
        for second in 0..<20_000 { history.add(sample(second)) }
        #expect((61...63).contains(history.samples.count))
        #expect(history.samples.last == sample(19_999))
        let steps = zip(history.samples, history.samples.dropFirst()).map { $1.at - $0.at }
        #expect(steps.dropLast().allSatisfy { $0 >= .seconds(60) && $0 <= .seconds(61) })
        // The first one lies just before the hour, so that the plot begins at its edge.
        #expect(history.samples[0].at <= history.samples.last.map { $0.at - .seconds(3600) } ?? start)
        #expect(history.samples[1].at > history.samples.last.map { $0.at - .seconds(3600) } ?? start)
    }

    @Test("figures that arrive less often are all stored")
    func seldom() {
        var history = StatusHistory()
        for second in [0, 600, 1800, 3000] { history.add(sample(second)) }
        #expect(history.samples.map(\.accepted) == [0, 600, 1800, 3000])
        history.add(sample(20_000))
        #expect(history.samples.map(\.accepted) == [3000, 20_000])
    }

    @Test("growth is measured over the last ten minutes, and unknown before")
    func growth() {
        var history = StatusHistory()
        #expect(history.growth == nil)
        history.add(sample(0, bytes: 1000))
        history.add(sample(30, bytes: 5000))
        #expect(history.growth == nil)
        history.add(sample(100, bytes: 11_000))
        #expect(history.growth == 100)
        for minute in 2...30 { history.add(sample(minute * 60, bytes: 11_000)) }
        #expect(history.growth == 0)
    }

    @Test("a clock that was set back restarts the history")
    func clockStep() {
        var history = StatusHistory()
        history.add(sample(1000))
        history.add(sample(2000))
        history.add(sample(500))
        #expect(history.samples == [sample(500)])
    }
}
