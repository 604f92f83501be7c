import EventLoops
import Logs
import Model
import Outputs
import TestKit
import Testing

@testable import Agent

@Suite("Sending a batch and measuring it")
struct MeasuredSenderTests {
    private actor Output: MeasuredOutput {
        nonisolated let loop: EventLoop
        nonisolated let asksWhose: Bool
        var measures = OutputMeasures()
        private(set) var sent: [[String]] = []

        init(_ loop: EventLoop, asksWhose: Bool) { (self.loop, self.asksWhose) = (loop, asksWhose) }

        func send(_ batch: Batch) async -> Outcome {
            sent.append(batch.header.apps)
            return .acknowledged
        }
    }

    private func send(asksWhose: Bool, _ apps: [String]) async throws -> (outcome: Outcome, sent: [[String]])
    {
        try await withLoop { loop in
            let output = Output(loop, asksWhose: asksWhose)
            let sender = MeasuredSender(
                name: "main", output: output, figures: SendingFigures(), time: SystemTime(),
                log: Log(KeptLog()),
                apps: { _ in apps })
            let now = SystemTime().wallTime
            let header = BatchHeader(
                id: BatchID(high: 0x0193_0000_0000_7000, low: 1), destination: "main", priority: .normal,
                events: 2,
                bytes: 6, acceptedAt: now, firstEventTime: now)
            return (await sender.send(Batch(header: header, parts: [])), await output.sent)
        }
    }

    @Test("a destination whose format needs the apps gets them; if they are unknown, nothing is sent")
    func whose() async throws {
        var end = try await send(asksWhose: true, ["shop", ""])
        #expect(end.outcome == .acknowledged && end.sent == [["shop", ""]])
        end = try await send(asksWhose: false, ["shop", ""])
        #expect(end.outcome == .acknowledged && end.sent == [[]])
        end = try await send(asksWhose: true, [])
        guard case .retry(let failure) = end.outcome else {
            Issue.record("\(end.outcome)")
            return
        }
        #expect(failure.kind == .local && end.sent.isEmpty)
    }
}
