internal import Configuration
internal import Control
internal import EventLoops
internal import Model

/// What the commands share that ask a running agent. They use its control socket and nothing else.
extension Invocation {
    /// The way to the agent, by the configured socket.
    ///
    /// The machine's own configuration with mistakes is no reason not to ask: its agent has the old one in force. Of another
    /// one nobody knows the socket then, and the default one is another agent's, which must not get what was meant for
    /// this: `disable` and `purge` delete.
    /// - Throws: `CommandFailure`: 78 when a configuration named with `--config` cannot be used, 77 when this user may not
    ///   read it.
    func agent(timeout: Duration = .seconds(10), isForMistakes: Bool = false) throws(CommandFailure) -> ControlClient {
        var socket = value("socket") ?? ControlSettings().socket
        if !has("socket") {
            do throws(ConfigurationError) {
                socket = try Settings.load(path: configurationPath).settings.control.socket
            } catch {
                // Whoever reloads wants the agent to judge it, to count the failure and to tell of it.
                if isForMistakes, let named = error.controlSocket {
                    return ControlClient(socket: named, timeout: timeout)
                }
                guard configurationPath == Invocation.defaultConfiguration else {
                    try refuseUnreadableConfiguration()
                    throw CommandFailure(
                        .configuration,
                        "\(configurationPath) cannot be used (`spoolship check --config \(configurationPath)` says why);"
                            + " give the agent's socket with --socket FILE")
                }
                console.printError(
                    "spoolship: \(configurationPath) cannot be used (`spoolship check` says why); using the default"
                        + " socket \(socket); give another with --socket FILE")
            }
        }
        return ControlClient(socket: socket, timeout: timeout)
    }

    /// Asks the agent; throws 69 when none answers, 77 without permission, and what its refusal means.
    func answer(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        timeout: Duration = .seconds(10), isForMistakes: Bool = false
    ) throws(CommandFailure) -> ControlClient.Answer {
        let agent = try agent(timeout: timeout, isForMistakes: isForMistakes)
        let answer = try relaying(try agent.request(method, path, query: query, body: body), Invocation.failure)
        guard answer.status < 300 else {
            throw Invocation.refusal(try relaying(try answer.json(), Invocation.failure))
        }
        return answer
    }

    /// Asks the agent and gives its answer, which is JSON; throws as `answer` does.
    func ask(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        timeout: Duration = .seconds(10), isForMistakes: Bool = false
    ) throws(CommandFailure) -> JSONValue {
        let answer = try answer(method, path, query: query, body: body, timeout: timeout, isForMistakes: isForMistakes)
        return try relaying(try answer.json(), Invocation.failure)
    }

    /// Asks the agent and hands over each line of its answer as it comes, without its line feed, until the answer ends
    /// or `line` returns false.
    ///
    /// - Parameter silence: how long the agent may say nothing; nil: as long as there is nothing to say.
    func lines(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        silence: Duration? = nil, line: ([UInt8]) throws(CommandFailure) -> Bool
    ) throws(CommandFailure) {
        var rest: [UInt8] = []
        var goesOn = true
        var failure: CommandFailure?
        let agent = try agent(timeout: .seconds(10))
        do throws(ControlError) {
            _ = try agent.stream(method, path, query: query, body: body, silence: silence) { piece in
                rest += piece
                while goesOn, let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    let text = Array(rest[..<end])
                    rest.removeSubrange(...end)
                    do throws(CommandFailure) {
                        goesOn = try line(text)
                    } catch {
                        failure = error
                        goesOn = false
                    }
                }
                return goesOn && rest.count < 16_777_216
            }
        } catch {
            throw Invocation.failure(error)
        }
        if let failure { throw failure }
    }

    static func refusal(_ json: JSONValue) -> CommandFailure {
        // An option or argument with a value that there is not.
        let isUsage = json["error"]?["code"] == "out_of_range"
        let code: ExitCode =
            switch json["error"]?["status"]?.integer ?? 500 {
            case 400 where isUsage: .usage
            case 400, 404, 405, 413: .badData
            case 403: .noPermission
            case 409, 503: .temporaryFailure
            case 422: .negative
            default: .inputOutput
            }
        return CommandFailure(code, json["error"]?["message"]?.string ?? "the agent refuses without saying why")
    }

    static func failure(_ error: ControlError) -> CommandFailure {
        switch error.code {
        case .unreachable: CommandFailure(.unreachable, error.message)
        case .notPermitted: CommandFailure(.noPermission, error.message)
        default: CommandFailure(.software, error.message)
        }
    }
}
