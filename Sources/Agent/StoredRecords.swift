public import Configuration
package import Control
public import EventLoops
internal import Glibc
internal import Logs
public import Model
internal import Queue

/// The queue, dead letters and quarantine while no agent runs, for commands such as `dead-letters list`.
///
/// The queue is opened as the agent opens it, with its lock, so that no agent can start meanwhile.
public struct StoredRecords: Sendable {
    /// The queue, open until `body` returns.
    private let queue: QueueStore
    /// The files around the queue, for an erasure.
    private let places: ErasurePlaces
    /// The spool's directory.
    private let spoolDirectory: String

    /// Opens the queue of a configuration, runs `body` on an event loop and closes the queue. Blocks until
    /// then.
    ///
    /// - Throws: `AgentError` with code `locked` while an agent runs, `missing` without a queue,
    ///   `noPermission` if the caller does not own the state directory: files that SQLite makes there must
    ///   belong to the agent.
    public static func use<Value: Sendable>(
        _ settings: Settings, _ body: @escaping @Sendable (StoredRecords) async -> Value
    ) throws(AgentError) -> Value {
        let directory = settings.agent.stateDirectory
        guard FileStatus(directory).map({ $0.owner == geteuid() }) ?? true else {
            throw AgentError(.noPermission, "the queue in \(directory) belongs to another user")
        }
        let sink = StandardErrorLog(level: .error)
        defer { sink.finish() }
        var options = settings.queueOptions
        options.opener = .command
        let begun = { (error: SystemError) in AgentError(.io, "cannot start an event loop: \(error)") }
        return try EventLoop.runProgram(name: "records", failure: begun) {
            [options] loop throws(AgentError) in
            sink.attach(to: loop)
            let queue = try relaying(
                try QueueStore(options, on: loop, time: SystemTime(), log: Log(sink)), AgentError.init(_:))
            let value = await body(
                StoredRecords(
                    queue: queue, places: settings.erasurePlaces, spoolDirectory: settings.spool.directory))
            await queue.close()
            return value
        }
    }

    /// Answers a request to the control API, if it concerns records only.
    package func answer(_ request: ControlRequest) async -> ControlResponse {
        var routes = ControlRoutes()
        routes.addRecords(
            AgentRecords(queue: queue, rereader: nil, places: places, spoolDirectory: spoolDirectory))
        return await routes.answer(request)
    }

    /// The next page of the records that a query selects, as lines that each end with a line feed, about 1
    /// MiB at most.
    ///
    /// - Parameter after: `next` of the page before; nil for the first page.
    /// - Returns: the lines, and where the next page begins; nil after the last page.
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
        // A new start would fail in the same way, so the exit status must keep systemd from trying again and
        // again.
        case .capBelowStored, .misuse, .newerSchema, .foreign: self.init(.configuration, error.message)
        default: self.init(.io, error.message)
        }
    }
}
