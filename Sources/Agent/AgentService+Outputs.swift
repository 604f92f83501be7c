internal import Configuration
internal import EventLoops
internal import Model
internal import Outputs

/// What sends batches, made of the settings.
extension AgentService {
    /// One sender for each destination.
    ///
    /// - Throws: `AgentError` with code `configuration` for settings that cannot be: then nothing has changed.
    func senders(for settings: Settings) throws(AgentError) -> [DestinationName: any BatchSender] {
        var senders: [DestinationName: any BatchSender] = [:]
        var certificates: [DestinationName: OutputCertificates] = [:]
        for destination in settings.destinations {
            let name = DestinationName(destination.name)
            let (output, known) = try output(for: destination)
            certificates[name] = known
            senders[name] = MeasuredSender(name: name, output: output, figures: sending, time: time)
        }
        sending.setCertificates(certificates)
        return senders
    }

    private func output(
        for destination: DestinationSettings
    ) throws(AgentError) -> (output: any MeasuredOutput, certificates: OutputCertificates?) {
        switch try destination.completeTarget() {
        case .http(let url, let format):
            let options = destination.httpOptions(url, userAgent: "spoolship/\(program.version)")
            let encoder = try format.encoder(
                installID: host.senderID, hostName: host.nameInEvents(for: settings), version: program.version)
            let http = try make(destination) { () throws(OutputError) in
                try HTTPOutput(
                    DestinationName(destination.name), options, format: encoder, on: loop, log: log, time: time)
            }
            return (http, http.assumeIsolated { $0.certificates })
        case .s3(let endpoint, let settings):
            let options = try make(destination) { () throws(OutputError) in
                try destination.s3Options(endpoint, settings, userAgent: "spoolship/\(program.version)")
            }
            guard let installID = host.senderID else {
                throw AgentError(.configuration, "destination \(destination.name) needs an install id")
            }
            let s3 = try make(destination) { () throws(OutputError) in
                try S3Output(DestinationName(destination.name), options, installID: installID, on: loop, log: log)
            }
            return (s3, s3.assumeIsolated { $0.certificates })
        case .file(let path):
            let loop = try writingLoop(of: destination)
            return (
                try make(destination) { () throws(OutputError) in try FileOutput(path: path, on: loop) }, nil
            )
        case .stdout:
            let loop = try writingLoop(of: destination)
            return (
                try make(destination) { () throws(OutputError) in
                    try StandardOutput(timeout: destination.requestTimeout, on: loop)
                }, nil
            )
        case .nats(let url, let settings):
            let options = destination.natsOptions(url, settings, version: program.version)
            let nats = try make(destination) { () throws(OutputError) in
                try NATSOutput(DestinationName(destination.name), options, on: loop, log: log)
            }
            return (nats, nats.assumeIsolated { $0.certificates })
        case .kafka(let settings):
            // The library makes its threads, and reads certificates, on the thread that calls it.
            let loop = try writingLoop(of: destination)
            let kafka = try make(destination) { () throws(OutputError) in
                try KafkaOutput(
                    DestinationName(destination.name), destination.kafkaOptions(settings), on: loop, log: log)
            }
            return (kafka, kafka.firstCertificates)
        }
    }

    private func make<Output>(
        _ destination: DestinationSettings, _ body: () throws(OutputError) -> Output
    ) throws(AgentError) -> Output {
        do throws(OutputError) {
            return try body()
        } catch {
            throw AgentError(.configuration, "destination \(destination.name): \(error.message)")
        }
    }

    /// A thread of its own for what blocks: a slow disk or a reader that sleeps must hold up nothing else.
    private func writingLoop(of destination: DestinationSettings) throws(AgentError) -> EventLoop {
        if let known = writingLoops[destination.name] { return known }
        do throws(SystemError) {
            let made = try EventLoop(name: destination.name)
            try made.start()
            writingLoops[destination.name] = made
            return made
        } catch {
            throw AgentError(.io, "destination \(destination.name): no thread for it: \(error.description)")
        }
    }
}
