internal import EventLoops
internal import Model
internal import Outputs

/// A destination one of whose files did not answer at the start. It is made once the file answers; its batches wait until then.
actor AwaitedOutput: MeasuredOutput {
    nonisolated let loop: EventLoop
    nonisolated let firstCertificates: OutputCertificates? = OutputCertificates()
    nonisolated let followsFiles = true
    /// It may be one that asks.
    nonisolated let asksWhose = true
    var measures = OutputMeasures()
    private let make: @Sendable () throws -> any MeasuredOutput
    private var output: (any MeasuredOutput)?

    /// - Parameter make: makes it, on the loop; throws while that cannot be done.
    init(on loop: EventLoop, _ make: @escaping @Sendable () throws -> any MeasuredOutput) {
        (self.loop, self.make) = (loop, make)
    }

    func send(_ batch: Batch) async -> Outcome {
        do {
            let output = try output ?? make()
            self.output = output
            let end = await output.sendMeasured(batch)
            measures = end.measures
            return end.outcome
        } catch {
            return .retry(Failure(kind: .local, message: "\(error)"))
        }
    }

    func hasNewCredentials() async -> Bool { await output?.hasNewCredentials() ?? true }
}
