internal import Agent
internal import Configuration
internal import Control
internal import EventLoops
internal import Model

/// What the commands for a running agent share. They use its control socket and nothing else: no file of the
/// agent is read, so they work for every user who may use the socket.
extension Invocation {
    /// A client for the agent's control socket: `--socket`, or the one that the configuration names.
    ///
    /// If the machine's own configuration has mistakes, the default socket is used: its agent still runs with
    /// the old configuration and can be asked. If a configuration named with `--config` has mistakes, its
    /// socket is unknown. The default socket would be that of another agent, which must not get commands
    /// meant for this one: `disable` and `purge` delete.
    ///
    /// - Parameters:
    ///   - timeout: how long one answer may take.
    ///   - isForMistakes: whether the agent is to judge a configuration with mistakes itself, as `reload`
    ///     wants. Then its control socket is enough.
    /// - Throws: `CommandFailure` with code 78 when a configuration named with `--config` cannot be used, and
    ///   77 when this user may not read it.
    func agent(timeout: Duration = .seconds(10), isForMistakes: Bool = false) throws(CommandFailure)
        -> ControlClient
    {
        var socket = value("socket") ?? ControlSettings().socket
        if !has("socket") {
            do throws(ConfigurationError) {
                socket = try Settings.loadWithRules(path: configurationPath).settings.control.socket
            } catch {
                // `reload` asks the agent even then: the agent reports the mistakes, counts the failed reload
                // and logs it.
                if isForMistakes, let named = error.controlSocket {
                    return ControlClient(socket: named, timeout: timeout)
                }
                guard configurationPath == Invocation.defaultConfiguration else {
                    try refuseUnreadableConfiguration()
                    throw CommandFailure(
                        .configuration,
                        "\(configurationPath) cannot be used (`spoolship check --config "
                            + "\(configurationPath)` says why); give the agent's socket with --socket FILE")
                }
                console.printError(
                    "spoolship: \(configurationPath) cannot be used (`spoolship check` says why); using the "
                        + "default socket \(socket); give another with --socket FILE")
            }
        }
        return ControlClient(socket: socket, timeout: timeout)
    }

    /// Sends a request to the agent and returns its answer, which has a status below 300.
    ///
    /// - Throws: `CommandFailure` with code 69 when no agent answers, 77 without permission, and the code of
    ///   the agent's refusal (see `refusal`).
    func answer(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        timeout: Duration = .seconds(10), isForMistakes: Bool = false
    ) throws(CommandFailure) -> ControlClient.Answer {
        let agent = try agent(timeout: timeout, isForMistakes: isForMistakes)
        let answer = try relaying(
            try agent.request(method, path, query: query, body: body), Invocation.failure)
        guard answer.status < 300 else {
            throw Invocation.refusal(try relaying(try answer.json(), Invocation.failure))
        }
        return answer
    }

    /// Sends a request to the agent and returns its JSON answer; throws as `answer`.
    func ask(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        timeout: Duration = .seconds(10), isForMistakes: Bool = false
    ) throws(CommandFailure) -> JSONValue {
        let answer = try answer(
            method, path, query: query, body: body, timeout: timeout, isForMistakes: isForMistakes)
        return try relaying(try answer.json(), Invocation.failure)
    }

    /// Sends a request to the agent and passes each line of the answer to `line` as it arrives, without its
    /// line feed, until the answer ends or `line` returns false.
    ///
    /// - Parameters:
    ///   - silence: the longest pause between two parts of the answer; nil for no limit, because `tap` and
    ///     `watch` can be silent for days.
    ///   - line: gets each line; returns whether to continue.
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
                    // The closure of `stream` cannot throw: the error is kept, and thrown after it has ended.
                    do throws(CommandFailure) {
                        goesOn = try line(text)
                    } catch {
                        failure = error
                        goesOn = false
                    }
                }
                // A line that never ends must not fill the memory: 16 MiB are more than any event.
                return goesOn && rest.count < 16_777_216
            }
        } catch {
            throw Invocation.failure(error)
        }
        if let failure { throw failure }
    }

    /// The agent's status report.
    ///
    /// - Parameters:
    ///   - words: the text that it includes: `screen`, `destination` or `apps`; nil for none.
    ///   - destination: the destination that the text is about.
    /// - Throws: `CommandFailure` as `ask`, and 69 if the answer is not a status report.
    func status(in words: String? = nil, of destination: String? = nil) throws(CommandFailure) -> JSONValue {
        var query: [(String, String)] = []
        if let words {
            query.append(("text", words))
        }
        // The agent marks styles with this process's key, and `Console` turns the marks into escape
        // sequences: the agent cannot send any by itself.
        if words != nil, console.hasColour {
            query.append(("styles", Console.marks.key))
        }
        if let destination {
            query.append(("destination", destination))
        }
        let status = try ask("GET", "/v1/status", query: query)
        guard status["ready"] != nil, words == nil || status["text"] != nil else {
            throw CommandFailure(
                .unreachable, "the agent's answer is not a status report; is it another version?")
        }
        return status
    }

    /// The failure that an agent's refusal means. The agent's code and status decide the exit code.
    ///
    /// - Parameter json: the answer's body: `{"error": {"code", "status", "message"}}`.
    static func refusal(_ json: JSONValue) -> CommandFailure {
        // A value of an option or argument outside of its range, which only the agent knows: a usage error.
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
        return CommandFailure(
            code, json["error"]?["message"]?.string ?? "the agent refuses without saying why")
    }

    /// The failure that an error of the control client means: 69 if no agent answers, 77 without permission,
    /// else 70.
    static func failure(_ error: ControlError) -> CommandFailure {
        switch error.code {
        case .unreachable: CommandFailure(.unreachable, error.message)
        case .notPermitted: CommandFailure(.noPermission, error.message)
        default: CommandFailure(.software, error.message)
        }
    }
}
