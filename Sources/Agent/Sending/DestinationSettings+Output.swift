internal import EventLoops
internal import Logs
internal import Model
internal import Outputs

extension DestinationSettings {
    /// Makes what sends to it: for the agent, and for `check`, which tries it and throws it away.
    ///
    /// - Parameters:
    ///   - hostName: this machine's as events say it; nil when they do not.
    ///   - loop: where those live that block nothing.
    ///   - writingLoop: where those live that block: a slow disk or a reader that sleeps must hold up nothing else.
    /// - Throws: `AgentError` where there is no thread for it, `OutputError` for bad settings or files.
    func output(
        version: String, installID: String?, hostName: String?, on loop: EventLoop,
        writingLoop: () throws(AgentError) -> EventLoop, log: Log, time: any TimeSource
    ) throws -> any MeasuredOutput {
        let name = DestinationName(name)
        let options = HTTPOptions(self, userAgent: "spoolship/\(version)")
        switch kind {
        case .http:
            let encoder = try encoder(installID: installID, hostName: hostName, version: version, log: log)
            return try HTTPOutput(name, options, format: encoder, installID: installID, on: loop, log: log, time: time)
        case .s3:
            guard let installID else { throw AgentError(.configuration, "destination \(name) needs an install id") }
            return try S3Output(name, options, installID: installID, on: loop, log: log)
        case .nats:
            return try NATSOutput(name, self, version: version, on: loop, log: log)
        case .kafka:
            // The library makes its threads, and reads certificates, on the thread that calls it.
            return try KafkaOutput(name, KafkaOptions(self), on: try writingLoop(), log: log)
        case .file:
            return try FileOutput(path: path ?? "", on: try writingLoop())
        case .stdout:
            return try StandardOutput(timeout: requestTimeout, on: try writingLoop())
        }
    }
}
