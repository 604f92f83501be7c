public import Configuration
package import Control
public import EventLoops
internal import Glibc
internal import Logs
public import Model
internal import Queue

/// The queue, dead letters and quarantine while no agent runs: in the file, whose directory nobody else owns meanwhile.
public struct StoredRecords: Sendable {
    private let queue: QueueStore

    /// Opens the queue of a configuration and hands over what is stored.
    ///
    /// - Throws: `AgentError` with code `locked` while an agent runs, `missing` without a queue, `noPermission` for who
    ///   is not the directory's owner: whatever SQLite makes must stay the agent's.
    public static func use<Value: Sendable>(
        _ settings: Settings, _ body: @escaping @Sendable (StoredRecords) async -> Value
    ) throws(AgentError) -> Value {
        let directory = settings.agent.stateDirectory
        guard FileStatus(directory).map({ $0.owner == geteuid() }) ?? true else {
            throw AgentError(.noPermission, "the queue in \(directory) is the agent's")
        }
        let sink = StandardErrorLog(level: .error)
        defer { sink.finish() }
        var options = settings.queueOptions
        options.opener = .command
        let begun = { (error: SystemError) in AgentError(.io, "cannot begin: \(error)") }
        return try EventLoop.runProgram(name: "records", failure: begun) { [options] loop throws(AgentError) in
            sink.attach(to: loop)
            let queue = try relaying(
                try QueueStore(options, on: loop, time: SystemTime(), log: Log(sink)), AgentError.init(_:))
            let value = await body(StoredRecords(queue: queue))
            await queue.close()
            return value
        }
    }

    /// Answers a request as the control API does that asks for no more than the records.
    package func answer(_ request: ControlRequest) async -> ControlResponse {
        var routes = ControlRoutes()
        routes.addRecords(AgentRecords(queue: queue, rereader: nil))
        return await routes.answer(request)
    }

    /// The next records that a query selects as lines, each ended, at most about 1 MiB.
    ///
    /// - Parameter after: the `next` of the page before.
    /// - Throws: `ControlRefusal`.
    public func export(
        _ store: RecordStore, _ query: [(String, String)], after: String?
    ) async throws -> (lines: [UInt8], next: String?) {
        let said = JSONValue.object(query.map { JSONValue.Member($0.0, .string($0.1)) })
        let page = try await relaying(
            awaiting: try await queue.export(store, try RecordSelection(said), after: after)
        ) { (error: any Error) in ControlRefusal(error) }
        return (page.lines, page.next)
    }
}

extension AgentError {
    /// The error for a caller if the queue cannot be opened.
    init(_ error: QueueError) {
        switch error.code {
        case .locked: self.init(.locked, error.message)
        case .missing: self.init(.missing, error.message)
        case .noPermission: self.init(.noPermission, error.message)
        // Nothing that starting again would change.
        case .capBelowStored, .misuse, .newerSchema, .foreign: self.init(.configuration, error.message)
        default: self.init(.io, error.message)
        }
    }
}
