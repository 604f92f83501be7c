internal import Configuration
internal import EventLoops
internal import Events
internal import Logs
internal import Model
internal import Outputs
internal import Queue

extension AgentService {
    /// One sender for each destination; throws `configuration` for settings that cannot be: then nothing has changed.
    func senders(for settings: Settings) throws(AgentError) -> [DestinationName: any BatchSender] {
        if let mistake = settings.fileMistake {
            throw AgentError(.configuration, "\(mistake.setting) \(mistake.message)")
        }
        var senders: [DestinationName: any BatchSender] = [:]
        var certificates: [DestinationName: OutputCertificates] = [:]
        for destination in settings.destinations {
            let name = DestinationName(destination.name)
            let output: any MeasuredOutput
            do {
                output = try makeOutput(destination, of: settings)
            } catch let error as OutputError where error.code == .unanswered {
                log.error("a destination waits for a file", ["destination": name, "reason": error.message])
                output = AwaitedOutput(on: loop) { [self] in
                    try assumeIsolated { try $0.makeOutput(destination, of: settings) }
                }
            } catch {
                throw error as? AgentError ?? AgentError(.configuration, "destination \(name): \(error)")
            }
            certificates[name] = output.firstCertificates
            senders[name] = MeasuredSender(
                name: name, output: output, figures: sending, time: time, log: log,
                apps: { [weak self] in await self?.apps(of: $0) ?? [] })
        }
        sending.setCertificates(certificates)
        return senders
    }

    private func apps(of batch: BatchID) async -> [String] { await parts?.queue.apps(of: batch) ?? [] }

    private func makeOutput(
        _ destination: DestinationSettings, of settings: Settings
    ) throws -> any MeasuredOutput {
        try destination.output(
            version: program.version, installID: host.senderID, hostName: host.device(for: settings)?.hostName,
            on: loop, writingLoop: { () throws(AgentError) in try writingLoop(of: destination) }, log: log, time: time)
    }

    /// A thread of its own for each destination whose sending blocks.
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
