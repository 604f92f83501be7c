internal import EventLoops
internal import Logs
internal import Model
internal import Outputs

extension DestinationSettings {
    /// Makes the output of this destination: for the agent, and for `check`, which tries the output and
    /// discards it.
    ///
    /// - Parameters:
    ///   - hostName: this machine's name as events give it; nil if they do not give one.
    ///   - loop: the loop for outputs that never block.
    ///   - writingLoop: makes a loop for an output that blocks: a slow disk, or a reader of standard output
    ///     that sleeps, must not hold up other destinations.
    /// - Throws: `AgentError` if no thread can be made, `OutputError` for invalid settings or files.
    func output(
        version: String, installID: String?, hostName: String?, on loop: EventLoop,
        writingLoop: () throws(AgentError) -> EventLoop, log: Log, time: any TimeSource
    ) throws -> any MeasuredOutput {
        let name = DestinationName(name)
        let options = HTTPOptions(self, userAgent: "spoolship/\(version)")
        switch kind {
        case .http:
            let encoder = try encoder(installID: installID, hostName: hostName, version: version, log: log)
            return try HTTPOutput(
                name, options, format: encoder, installID: installID, on: loop, log: log, time: time)
        case .s3:
            // The id distinguishes the objects of two machines that write to one bucket.
            guard let installID else {
                throw AgentError(.configuration, "destination \(name) needs an install id")
            }
            return try S3Output(name, options, installID: installID, on: loop, log: log)
        case .nats:
            return try NATSOutput(name, self, version: version, on: loop, log: log)
        case .kafka:
            // The library makes its threads, and reads certificates, on the thread that calls it.
            return try KafkaOutput(name, KafkaOptions(self), on: try writingLoop(), log: log)
        case .syslog:
            return try SyslogOutput(name, self, hostName: hostName, on: loop, log: log, time: time)
        case .file:
            return try FileOutput(path: path ?? "", on: try writingLoop())
        case .stdout:
            return try StandardOutput(timeout: requestTimeout, on: try writingLoop())
        }
    }
}
