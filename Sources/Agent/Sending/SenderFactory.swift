internal import Configuration
internal import EventLoops
internal import Events
internal import Logs
internal import Model
internal import Outputs
internal import Queue
internal import Synchronization

/// Makes the senders of destinations: each wraps an output, measures its attempts, and knows its
/// certificates. Keeps the threads of destinations whose sending blocks. Thread-safe.
final class SenderFactory: Sendable {
    /// Name and version of the program.
    private let program: ProgramIdentity
    /// Facts about the machine, some of which outputs send.
    private let machine: Machine
    /// Figures of the attempts; they outlive reloads.
    let figures = SendingFigures()
    /// The main loop.
    private let loop: EventLoop
    private let log: Log
    private let time: any TimeSource
    /// Loops of destinations that block, by the destination's name. They outlive reloads.
    private let writingLoops = Mutex<[String: EventLoop]>([:])

    init(_ program: ProgramIdentity, _ machine: Machine, on loop: EventLoop, log: Log, time: any TimeSource) {
        self.program = program
        self.machine = machine
        self.loop = loop
        self.log = log
        self.time = time
    }

    /// The loops of destinations that block.
    var loops: [EventLoop] { writingLoops.withLock { Array($0.values) } }

    /// Makes a sender for each destination.
    ///
    /// - Throws: `configuration`, without a change, if a destination's settings cannot work.
    func senders(
        for settings: Settings, of queue: QueueStore
    ) throws(AgentError) -> [DestinationName: any BatchSender] {
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
                output = AwaitedOutput(on: loop) { [self] in try makeOutput(destination, of: settings) }
            } catch {
                throw error as? AgentError ?? AgentError(.configuration, "destination \(name): \(error)")
            }
            certificates[name] = output.firstCertificates
            // The sender is new, but its figures are those of the destination: they outlive the reload.
            senders[name] = MeasuredSender(
                name: name, output: output, figures: figures, time: time, log: log,
                apps: { [weak queue] in await queue?.apps(of: $0) ?? [] })
        }
        figures.setCertificates(certificates)
        return senders
    }

    /// An output for the destination's type. Its headers carry an id derived from the install id, not the
    /// install id itself, which tags may hide.
    private func makeOutput(
        _ destination: DestinationSettings, of settings: Settings
    ) throws -> any MeasuredOutput {
        let host = machine.facts
        return try destination.output(
            version: program.version, installID: host.senderID,
            hostName: host.device(for: settings)?.hostName,
            messages: MessagePaths(settings.apps.compactMapValues(\.message)), on: loop,
            writingLoop: { () throws(AgentError) in try writingLoop(of: destination) }, log: log, time: time)
    }

    /// Loop of a destination whose sending blocks, such as one that writes files; made once, and used again
    /// after reloads.
    private func writingLoop(of destination: DestinationSettings) throws(AgentError) -> EventLoop {
        if let known = writingLoops.withLock({ $0[destination.name] }) { return known }
        do throws(SystemError) {
            let made = try EventLoop(name: destination.name)
            try made.start()
            writingLoops.withLock { $0[destination.name] = made }
            return made
        } catch {
            throw AgentError(.io, "destination \(destination.name): no thread for it: \(error.description)")
        }
    }
}
