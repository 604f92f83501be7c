internal import Agent
internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// Access to queue, dead letters and quarantine: through the agent, or on the queue's file when no agent
/// runs. Both ways give the same answers, so that a command does not depend on whether an agent runs.
extension Invocation {
    /// Sends a request for records to the agent, or answers it from the queue's file.
    ///
    /// - Throws: `CommandFailure` with code 77 and the line to run as root if this user has no permission,
    ///   otherwise what the refusal means.
    func askForRecords(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        timeout: Duration
    ) throws(CommandFailure) -> JSONValue {
        try throughAgent { () throws(CommandFailure) in
            try ask(method, path, query: query, body: body, timeout: timeout)
        } else: { records -> Result<JSONValue, CommandFailure> in
            let answer = await records.answer(ControlRequest(method, path, query: query, body: body))
            guard case .bytes(let bytes) = answer.body, let json = try? JSONValue(parsing: bytes) else {
                return .failure(CommandFailure(.software, "\(path) was not answered"))
            }
            return answer.status < 300 ? .success(json) : .failure(Invocation.refusal(json))
        }
    }

    /// Writes records to standard output, one a line. From the file they are read page by page, so that the
    /// memory stays bounded however large the queue is.
    func exportRecords(_ store: RecordStore, query: [(String, String)]) throws(CommandFailure) {
        try throughAgent { () throws(CommandFailure) in
            try exportFromAgent("/v1/\(store.rawValue)/export", query: query)
        } else: { [console] records -> Result<Void, CommandFailure> in
            do {
                var after: String?
                repeat {
                    let page = try await records.export(store, query, after: after)
                    try console.write(bytes: page.lines)
                    after = page.next
                } while after != nil
                return .success(())
            } catch let refusal as ControlRefusal {
                return .failure(
                    CommandFailure(refusal.status < 500 ? .badData : .inputOutput, refusal.message))
            } catch {
                return .failure(error as? CommandFailure ?? CommandFailure(.inputOutput, "\(error)"))
            }
        }
    }

    /// Exports from the agent. The stream ends with a line that is not an event and says whether the export
    /// is complete: without it a cut connection would look like the end.
    private func exportFromAgent(_ path: String, query: [(String, String)]) throws(CommandFailure) {
        var last: [UInt8]?
        try lines("GET", path, query: query) { line throws(CommandFailure) in
            // One line is held back, because the last one is the end. The bytes are written unchanged:
            // parsing and printing them again could change numbers.
            if let last {
                try console.write(bytes: last + [UInt8(ascii: "\n")])
            }
            last = line
            return true
        }
        let end = last.flatMap { try? JSONValue(parsing: $0) }
        guard end == ["end": true] else {
            throw CommandFailure(
                .inputOutput, end?["error"]?["message"]?.string ?? "the export is incomplete")
        }
    }

    /// Does some work through the agent or, if none answers, on the queue's file.
    ///
    /// - Parameters:
    ///   - ask: the work through the agent.
    ///   - use: the work on the file. It runs as the owner of the state directory.
    private func throughAgent<Value: Sendable>(
        _ ask: () throws(CommandFailure) -> Value,
        else use: @escaping @Sendable (StoredRecords) async -> Result<Value, CommandFailure>
    ) throws(CommandFailure) -> Value {
        do throws(CommandFailure) {
            return try ask()
        } catch {
            switch error.code {
            case .unreachable: return try onFile(use, unreachable: error)
            case .noPermission:
                throw CommandFailure(.noPermission, "\(error.message); or run: \(lineForRoot)")
            default: throw error
            }
        }
    }

    /// Does some work on the queue's file. Root first becomes the owner of the state directory, for good:
    /// files that root would make there would keep the agent from starting.
    ///
    /// - Parameter unreachable: why the agent was not asked; part of each message, because the user expected
    ///   an agent.
    private func onFile<Value: Sendable>(
        _ use: @escaping @Sendable (StoredRecords) async -> Result<Value, CommandFailure>,
        unreachable: CommandFailure
    ) throws(CommandFailure) -> Value {
        let settings: Settings
        do throws(ConfigurationError) {
            settings = try Settings.loadWithRules(path: configurationPath).settings
        } catch {
            try refuseUnreadableConfiguration()
            throw CommandFailure(.configuration, "\(unreachable.message); \(error.description)")
        }
        try AgentUser.becomeOwner(of: settings.agent.stateDirectory, by: nil)
        let result: Result<Value, CommandFailure>
        do throws(AgentError) {
            result = try StoredRecords.use(settings, use)
        } catch {
            switch error.code {
            case .noPermission: throw CommandFailure(.noPermission, "\(error.message); run: \(lineForRoot)")
            case .locked:
                let directory = settings.agent.stateDirectory
                throw CommandFailure(.unreachable, "\(unreachable.message); an agent uses \(directory)")
            case .missing: throw CommandFailure(.unreachable, "\(unreachable.message); \(error.message)")
            default: throw CommandFailure(error.exitCode, error.message)
            }
        }
        return try result.get()
    }

    /// - Throws: `CommandFailure` with code 77 when this user has no permission to read the configuration.
    func refuseUnreadableConfiguration() throws(CommandFailure) {
        guard access(configurationPath, R_OK) != 0, errno == EACCES else { return }
        throw CommandFailure(.noPermission, "\(configurationPath) is not readable; run: \(lineForRoot)")
    }

    /// This command line as root would run it; the program then becomes the agent's user. For messages.
    var lineForRoot: String {
        (["sudo", "spoolship"] + words.map(Invocation.quoted)).joined(separator: " ")
    }

    /// A word as a shell reads it back: in single quotes, if it has other characters than those that are
    /// safe.
    private static func quoted(_ word: String) -> String {
        guard word.isEmpty || !word.hasOnlyLettersDigits(and: "-._/=:,+@%") else { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
            + "'"
    }
}
