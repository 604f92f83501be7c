internal import EventLoops
internal import Model
internal import Outputs

/// A destination that needs a file whose file system did not answer at the start. The output is made when the
/// file answers; until then every batch fails and is retried, and all other destinations work.
actor AwaitedOutput: MeasuredOutput {
    nonisolated let loop: EventLoop
    /// Nothing is known about certificates until the output is made.
    nonisolated let firstCertificates: OutputCertificates? = OutputCertificates()
    /// Delivery looks for changed files, and so finds out when this one answers.
    nonisolated let followsFiles = true
    /// The output may need to know the app of each event; until it is made that is unknown, so assume it.
    nonisolated let asksWhose = true
    /// The measures of the last attempt.
    var measures = OutputMeasures()
    /// Makes the output; throws while the file does not answer.
    private let make: @Sendable () throws -> any MeasuredOutput
    /// The output; nil until it is made.
    private var output: (any MeasuredOutput)?

    /// - Parameter make: makes the output, on `loop`; throws while that is impossible.
    init(on loop: EventLoop, _ make: @escaping @Sendable () throws -> any MeasuredOutput) {
        self.loop = loop
        self.make = make
    }

    /// Makes the output if necessary, and sends the batch; a failure to make it is a local failure, which is
    /// retried.
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

    /// True until the output is made, so that delivery tries to send and the file is looked at again.
    func hasNewCredentials() async -> Bool { await output?.hasNewCredentials() ?? true }

    func dropIssuedCredentials() async { await output?.dropIssuedCredentials() }
}
