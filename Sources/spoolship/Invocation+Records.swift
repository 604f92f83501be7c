internal import Agent
internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// Records by way of the agent; on the queue's file when none runs.
extension Invocation {
    /// Asks the agent or the file for records; throws 77 with the line to run for who may not, and what a refusal means.
    func askForRecords(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil, timeout: Duration
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

    /// Writes records as lines to standard output.
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
                return .failure(CommandFailure(refusal.status < 500 ? .badData : .inputOutput, refusal.message))
            } catch {
                return .failure(error as? CommandFailure ?? CommandFailure(.inputOutput, "\(error)"))
            }
        }
    }

    /// The agent's export ends with a line that is never an event: it says whether the export is whole.
    private func exportFromAgent(_ path: String, query: [(String, String)]) throws(CommandFailure) {
        var last: [UInt8]?
        try lines("GET", path, query: query) { line throws(CommandFailure) in
            // As they are: reading and writing them again would change their numbers.
            if let last { try console.write(bytes: last + [UInt8(ascii: "\n")]) }
            last = line
            return true
        }
        let end = last.flatMap { try? JSONValue(parsing: $0) }
        guard end == ["end": true] else {
            throw CommandFailure(.inputOutput, end?["error"]?["message"]?.string ?? "the export is incomplete")
        }
    }

    /// Does it by way of the agent, or else on the file.
    private func throughAgent<Value: Sendable>(
        _ ask: () throws(CommandFailure) -> Value,
        else use: @escaping @Sendable (StoredRecords) async -> Result<Value, CommandFailure>
    ) throws(CommandFailure) -> Value {
        do throws(CommandFailure) {
            return try ask()
        } catch {
            switch error.code {
            case .unreachable: return try onFile(use, unreachable: error)
            case .noPermission: throw CommandFailure(.noPermission, "\(error.message); or run: \(lineForRoot)")
            default: throw error
            }
        }
    }

    private func onFile<Value: Sendable>(
        _ use: @escaping @Sendable (StoredRecords) async -> Result<Value, CommandFailure>,
        unreachable: CommandFailure
    ) throws(CommandFailure) -> Value {
        let settings: Settings
        do throws(ConfigurationError) {
            settings = try Settings.load(path: configurationPath).settings
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

    /// - Throws: `CommandFailure` with code 77 when the configuration may not be read by this user.
    func refuseUnreadableConfiguration() throws(CommandFailure) {
        guard access(configurationPath, R_OK) != 0, errno == EACCES else { return }
        throw CommandFailure(.noPermission, "\(configurationPath) is not readable; run: \(lineForRoot)")
    }

    /// This command line as root runs it, who becomes the agent's user.
    var lineForRoot: String {
        (["sudo", "spoolship"] + words.map(Invocation.quoted)).joined(separator: " ")
    }

    private static func quoted(_ word: String) -> String {
        guard word.isEmpty || !word.hasOnlyLettersDigits(and: "-._/=:,+@%") else { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
