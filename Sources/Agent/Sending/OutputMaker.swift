internal import Configuration
internal import EventLoops
internal import Logs
internal import Model
internal import Outputs

/// Makes what sends to a destination of its settings: for the agent, and for `check`, which tries it and throws it away.
struct OutputMaker {
    let version: String
    let installID: String?
    /// This machine's as events say it; nil when they do not.
    let hostName: String?
    /// Where those live that block nothing.
    let loop: EventLoop
    /// Where those live that block: a slow disk or a reader that sleeps must hold up nothing else.
    let writingLoop: (DestinationSettings) throws(AgentError) -> EventLoop
    let log: Log
    let time: any TimeSource

    /// One sender; throws `AgentError` where there is no thread for it, `OutputError` for bad settings or files.
    func output(for destination: DestinationSettings) throws -> any MeasuredOutput {
        let name = DestinationName(destination.name)
        let options = HTTPOptions(destination, userAgent: "spoolship/\(version)")
        switch destination.kind {
        case .http:
            let encoder = try destination.encoder(installID: installID, hostName: hostName, version: version, log: log)
            return try HTTPOutput(
                name, options, format: encoder, installID: installID, on: loop, log: log, time: time)
        case .s3:
            guard let installID else { throw AgentError(.configuration, "destination \(name) needs an install id") }
            return try S3Output(name, options, installID: installID, on: loop, log: log)
        case .nats:
            return try NATSOutput(name, destination, version: version, on: loop, log: log)
        case .kafka:
            // The library makes its threads, and reads certificates, on the thread that calls it.
            return try KafkaOutput(name, KafkaOptions(destination), on: try writingLoop(destination), log: log)
        case .file:
            return try FileOutput(path: destination.path ?? "", on: try writingLoop(destination))
        case .stdout:
            return try StandardOutput(timeout: destination.requestTimeout, on: try writingLoop(destination))
        }
    }
}
