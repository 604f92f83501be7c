internal import Configuration
internal import EventLoops
internal import Events
internal import Logs
internal import Model
internal import Outputs
internal import Queue

/// Senders of the destinations: each wraps an output, measures its attempts, and knows its certificates.
extension AgentService {
    /// Makes a sender for each destination. Throws `configuration`, without a change, if a destination's
    /// settings cannot work.
    func senders(for settings: Settings) throws(AgentError) -> [DestinationName: any BatchSender] {
        // A destination's file that another destination writes, or that the agent reads.
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
                // The file is on a network mount whose server is gone. The other destinations must not wait
                // for it: this output is made once the file system answers, and its batches are retried until
                // then.
                log.error(
                    "destination not started: a file that it needs cannot be read",
                    ["destination": name, "reason": error.message])
                output = AwaitedOutput(on: loop) { [self] in
                    try assumeIsolated { try $0.makeOutput(destination, of: settings) }
                }
            } catch {
                throw error as? AgentError ?? AgentError(.configuration, "destination \(name): \(error)")
            }
            certificates[name] = output.firstCertificates
            // The sender is new, but its figures are those of the destination: they outlive the reload.
            senders[name] = MeasuredSender(
                name: name, output: output, figures: sending, time: time, log: log,
                apps: { [weak self] in await self?.apps(of: $0) ?? [] })
        }
        sending.setCertificates(certificates)
        return senders
    }

    /// Apps whose events are in a batch.
    private func apps(of batch: BatchID) async -> [String] { await parts?.queue.apps(of: batch) ?? [] }

    /// An output for the destination's type. Its headers carry an id derived from the install id, not the
    /// install id itself, which tags may hide.
    private func makeOutput(
        _ destination: DestinationSettings, of settings: Settings
    ) throws -> any MeasuredOutput {
        try destination.output(
            version: program.version, installID: host.senderID,
            hostName: host.device(for: settings)?.hostName,
            on: loop, writingLoop: { () throws(AgentError) in try writingLoop(of: destination) }, log: log,
            time: time)
    }

    /// Loop of a destination whose sending blocks, such as one that writes files; made once, and used again
    /// after reloads.
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
