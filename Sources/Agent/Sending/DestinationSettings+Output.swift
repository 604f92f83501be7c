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
    ///   - messages: where events have their message, for outputs that take it out of them.
    ///   - loop: the loop for outputs that never block.
    ///   - writingLoop: makes a loop for an output that blocks: a slow disk, or a reader of standard output
    ///     that sleeps, must not hold up other destinations.
    /// - Throws: `AgentError` if no thread can be made, `OutputError` for invalid settings or files.
    func output(
        version: String, installID: String?, hostName: String?, messages: MessagePaths, on loop: EventLoop,
        writingLoop: () throws(AgentError) -> EventLoop, log: Log, time: any TimeSource
    ) throws -> any MeasuredOutput {
        let name = DestinationName(name)
        let options = HTTPOptions(self, userAgent: "spoolship/\(version)")
        switch reach {
        case .http(let http):
            let encoder = try encoder(
                http, installID: installID, hostName: hostName, version: version, messages: messages,
                log: log)
            return try HTTPOutput(
                name, options, format: encoder, installID: installID, on: loop, log: log, time: time)
        case .s3(let s3):
            // The id distinguishes the objects of two machines that write to one bucket.
            guard let installID else {
                throw AgentError(.configuration, "destination \(name) needs an install id")
            }
            return try S3Output(name, options, s3, installID: installID, on: loop, log: log)
        case .nats(let nats):
            return try NATSOutput(name, NATSOptions(self, nats), version: version, on: loop, log: log)
        case .kafka(let kafka):
            // The library makes its threads, and reads certificates, on the thread that calls it.
            return try KafkaOutput(name, KafkaOptions(self, kafka), on: try writingLoop(), log: log)
        case .syslog(let syslog):
            return try SyslogOutput(
                name, self, syslog, hostName: hostName, messages: messages, on: loop, log: log, time: time)
        case .file(let file):
            return try FileOutput(path: file.path ?? "", on: try writingLoop())
        case .stdout:
            return try StandardOutput(timeout: requestTimeout, on: try writingLoop())
        }
    }
}
