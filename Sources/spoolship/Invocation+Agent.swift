internal import Configuration
internal import Control
internal import Model

/// What the commands share that ask a running agent. They use its control socket and nothing else.
extension Invocation {
    /// The way to the agent, by the configured socket.
    ///
    /// A configuration with mistakes is no reason not to ask: a running agent has the old one in force.
    func agent(timeout: Duration? = .seconds(10)) -> ControlClient {
        var socket = value("socket") ?? ControlSettings().socket
        if !has("socket") {
            do throws(ConfigurationError) {
                socket = try Settings.load(path: configurationPath).settings.control.socket
            } catch {
                console.printError(
                    "spoolship: \(configurationPath) cannot be used (`spoolship check` says why); asking at the default"
                        + " socket \(socket); an agent elsewhere is asked with --socket FILE")
            }
        }
        var client = ControlClient(socket: socket)
        client.timeout = timeout
        return client
    }

    /// Asks the agent and gives its answer.
    ///
    /// - Throws: `CommandFailure`: 69 when no agent answers, 77 without permission, and what the agent's refusal means.
    func ask(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        timeout: Duration? = .seconds(10)
    ) throws(CommandFailure) -> JSONValue {
        let answer: ControlClient.Answer
        let json: JSONValue
        do throws(ControlError) {
            answer = try agent(timeout: timeout).request(method, path, query: query, body: body)
            json = try answer.json()
        } catch {
            throw Invocation.failure(error)
        }
        guard answer.status < 300 else { throw Invocation.refusal(json) }
        return json
    }

    /// Asks the agent and hands over each value of its answer as it comes; one that tells an error ends it.
    func follow(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        value: (JSONValue) throws(CommandFailure) -> Void
    ) throws(CommandFailure) {
        try lines(method, path, query: query, body: body) { line throws(CommandFailure) in
            let json: JSONValue
            do throws(JSONError) {
                json = try JSONValue(parsing: line)
            } catch {
                throw CommandFailure(.software, "the agent's answer is \(error); is it another version?")
            }
            if json["error"]?["message"] != nil { throw Invocation.refusal(json) }
            try value(json)
            return true
        }
    }

    /// Asks the agent and hands over each line of its answer as it comes, without its line feed, until the answer ends
    /// or `line` returns false.
    func lines(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        line: ([UInt8]) throws(CommandFailure) -> Bool
    ) throws(CommandFailure) {
        var rest: [UInt8] = []
        var goesOn = true
        var failure: CommandFailure?
        do throws(ControlError) {
            _ = try agent(timeout: nil).stream(method, path, query: query, body: body) { piece in
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
        let code: ExitCode =
            switch json["error"]?["status"]?.integer ?? 500 {
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
