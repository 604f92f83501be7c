internal import Configuration
internal import EventLoops
internal import Logs
internal import Model
internal import Outputs

/// Makes what sends to a destination of its settings: for the agent, and for `check`, which tries it and throws it away.
struct OutputMaker {
    /// The agent's.
    let version: String
    /// Names this installation, on request.
    let installID: String?
    /// This machine's as events say it; nil when they do not.
    let hostName: String?
    /// Where those live that block nothing.
    let loop: EventLoop
    /// Where those live that block: a slow disk or a reader that sleeps must hold up nothing else.
    let writingLoop: (DestinationSettings) throws(AgentError) -> EventLoop
    let log: Log
    let time: any TimeSource

    /// One sender, with a look at its certificates that its loop may take.
    ///
    /// - Throws: `AgentError` for settings that lack something, `OutputError` for what they or the files that they name hold.
    func output(
        for destination: DestinationSettings
    ) throws -> (output: any MeasuredOutput, certificates: () -> OutputCertificates?) {
        let name = DestinationName(destination.name)
        let options = HTTPOptions(destination, userAgent: "spoolship/\(version)")
        try destination.checkComplete()
        switch destination.kind {
        case .http:
            let encoder = try destination.encoder(installID: installID, hostName: hostName, version: version, log: log)
            let http = try HTTPOutput(
                name, options, format: encoder, installID: installID, on: loop, log: log, time: time)
            return (http, { http.assumeIsolated { $0.certificates } })
        case .s3:
            guard let installID else { throw AgentError(.configuration, "destination \(name) needs an install id") }
            let s3 = try S3Output(name, options, installID: installID, on: loop, log: log)
            return (s3, { s3.assumeIsolated { $0.certificates } })
        case .nats:
            let nats = try NATSOutput(name, destination, version: version, on: loop, log: log)
            return (nats, { nats.assumeIsolated { $0.certificates } })
        case .kafka:
            // The library makes its threads, and reads certificates, on the thread that calls it.
            let kafka = try KafkaOutput(name, KafkaOptions(destination), on: try writingLoop(destination), log: log)
            return (kafka, { kafka.firstCertificates })
        case .file:
            return (try FileOutput(path: destination.path ?? "", on: try writingLoop(destination)), { nil })
        case .stdout:
            let loop = try writingLoop(destination)
            return (try StandardOutput(timeout: destination.requestTimeout, on: loop), { nil })
        }
    }
}

extension DestinationSettings {
    /// - Throws: `AgentError` with code `configuration` if something is missing.
    func checkComplete() throws(AgentError) {
        guard !missing.isEmpty else { return }
        throw AgentError(.configuration, "destination \(name) has no \(missing.joined(separator: " and no "))")
    }
}
