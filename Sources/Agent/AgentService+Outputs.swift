internal import Configuration
internal import EventLoops
internal import Events
internal import Model
internal import Outputs

extension AgentService {
    /// One sender for each destination.
    ///
    /// - Throws: `AgentError` with code `configuration` for settings that cannot be: then nothing has changed.
    func senders(for settings: Settings) throws(AgentError) -> [DestinationName: any BatchSender] {
        if let mistake = settings.fileMistake {
            throw AgentError(.configuration, "\(mistake.setting) \(mistake.message)")
        }
        let maker = OutputMaker(
            version: program.version, installID: host.senderID, hostName: host.device(for: settings)?.hostName,
            loop: loop, writingLoop: { [self] destination throws(AgentError) in try writingLoop(of: destination) },
            log: log, time: time)
        var senders: [DestinationName: any BatchSender] = [:]
        var certificates: [DestinationName: OutputCertificates] = [:]
        for destination in settings.destinations {
            let name = DestinationName(destination.name)
            do {
                let output = try maker.output(for: destination)
                certificates[name] = output.firstCertificates
                senders[name] = MeasuredSender(name: name, output: output, figures: sending, time: time)
            } catch let error as AgentError {
                throw error
            } catch {
                let message = (error as? OutputError)?.message ?? "\(error)"
                throw AgentError(.configuration, "destination \(name): \(message)")
            }
        }
        sending.setCertificates(certificates)
        return senders
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
