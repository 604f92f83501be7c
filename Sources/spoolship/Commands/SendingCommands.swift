internal import Agent
internal import Configuration
internal import Model

/// Commands that change when and whether the agent sends.
extension Command {
    private static let destination = Option("destination NAME", "only this destination; default all")

    static let dispatch = Command(
        name: "dispatch", summary: "sends what is queued now",
        details: """
            With --wait it reports after each request: good and how many events still wait, no_data and why, or error. \
            It then exits with 0 if everything was sent, and with 75 if something cannot be.
            """,
        options: [Option("wait", "wait, and report the result of each request"), destination, .json]
    ) { invocation in
        let body = invocation.body("destination")
        if invocation.has("wait") {
            try invocation.followSending("/v1/dispatch", body.adding("wait", true))
        } else {
            _ = try invocation.ask("POST", "/v1/dispatch", body: body)
        }
    }

    static let drain = Command(
        name: "drain", summary: "sends until nothing is left, an error occurs or time runs out",
        details: """
            Exits with 0 only if nothing waits, with 75 and the reason if something cannot be sent or \
            collection is disabled, with 124 when time ran out. Periodic dispatch stops meanwhile and is restored \
            afterwards.
            """,
        options: [Option("timeout DURATION", "how long to keep sending; default 30s"), destination, .json]
    ) { invocation in
        let timeout = try invocation.duration("timeout") ?? .seconds(30)
        try invocation.followSending(
            "/v1/drain", invocation.body("destination", and: ["timeout_ms": .integer(timeout.wholeMilliseconds)]),
            silence: timeout + .seconds(10))
    }

    static let pause = Command(
        name: "pause", summary: "stops sending until `resume`; collection continues",
        details: """
            Each pause holds a token; sending continues when no token is held. The same token counts once. A pause \
            survives restarts, unless --until-restart.
            """,
        options: [
            Option("token TOKEN", "the pause's token; default manual"),
            Option("ttl DURATION", "release the token after this time"), destination,
            Option("until-restart", "a restart releases the token"),
        ],
        run: asking("POST", "/v1/pause") { invocation in
            invocation.body(
                "destination",
                and: [
                    "token": .string(invocation.value("token") ?? "manual"),
                    "ttl_ms": try invocation.duration("ttl").map { .integer($0.wholeMilliseconds) },
                    "until_restart": .bool(invocation.has("until-restart")),
                ])
        })

    static let resume = Command(
        name: "resume", summary: "ends pauses; without --token all of them, and holds and open breakers",
        options: [
            Option("token TOKEN", "release only this token, everywhere; an unknown one changes nothing"),
            destination,
        ],
        run: asking("POST", "/v1/resume") { $0.body("token", "destination") })

    static let interval = Command(
        name: "interval", summary: "changes the dispatch interval of the running agent", arguments: "VALUE",
        argumentCount: 1...1, choices: ["off", "default"],
        details: """
            VALUE is a duration from 1s to 1d, `off` (only dispatch and drain send; 0 and negative numbers mean the \
            same) or `default`, the configured one. It applies to all destinations, including those with their own \
            interval, until `default` restores each one's own. Without --persist a restart restores the \
            persisted value.
            """,
        options: [Option("persist", "keep it across restarts; with default, forget what was kept")]
    ) { invocation in
        let value: JSONValue
        if invocation.arguments[0] == "default" {
            value = .null
        } else {
            do throws(Problem) {
                switch try DispatchInterval(text: invocation.arguments[0]) {
                case .off: value = 0
                case .every(let duration): value = .integer(duration.wholeMilliseconds)
                }
            } catch {
                throw CommandFailure(.usage, "\(error.message); give a duration such as 10s, off or default")
            }
        }
        let answer = try invocation.ask(
            "PUT", "/v1/interval", body: ["interval_ms": value, "persist": .bool(invocation.has("persist"))])
        let interval = answer["interval"]?.string ?? "off"
        try invocation.console.print(interval == "off" ? "dispatch only by command" : "dispatch every \(interval)")
    }

    static let networkOn = Command(
        name: "network on", summary: "allows the agent to connect",
        run: asking("PUT", "/v1/network") { _ in ["on": true] })

    static let networkOff = Command(
        name: "network off", summary: "lets the agent collect but not connect, until `network on`",
        run: asking("PUT", "/v1/network") { _ in ["on": false] })

    static let networkChanged = Command(
        name: "network-changed", summary: "tells the agent that the network has changed; retries begin at once",
        run: asking("POST", "/v1/network/changed") { _ in nil })

    /// What a command does that asks the agent for something and prints nothing.
    static func asking(
        _ method: String, _ path: String, body: @escaping @Sendable (Invocation) throws -> JSONValue?
    ) -> @Sendable (Invocation) throws -> Void {
        { invocation in _ = try invocation.ask(method, path, body: try body(invocation)) }
    }
}

extension Invocation {
    /// A request's body: the texts that options give, by their names, and more; without what is not there.
    func body(_ options: String..., and more: KeyValuePairs<String, JSONValue?> = [:]) -> JSONValue {
        let members = options.map { ($0, value($0).map(JSONValue.string)) } + more.map { ($0.key, $0.value) }
        return .object(members.compactMap { key, value in value.map { JSONValue.Member(key, $0) } })
    }

    /// Prints what a command has found, for programs where `--json` is given.
    func show(_ json: JSONValue, or text: @autoclosure () -> String) throws(CommandFailure) {
        try console.write(has("json") ? "\(json)\n" : text())
    }

    /// Ends the command; what it has printed says why.
    func end(_ code: ExitCode) throws(CommandFailure) {
        guard code == .success else { throw CommandFailure(code) }
    }

    /// The whole number that an option gives; nil when it is not given.
    func number(_ option: String, _ range: ClosedRange<Int> = 1...Int.max) throws(CommandFailure) -> Int? {
        let bound =
            range.upperBound == .max ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
        return try read(option, as: "a whole number, \(bound)") { Int($0).flatMap { range.contains($0) ? $0 : nil } }
    }

    /// The duration that an option gives; nil when it is not given.
    func duration(_ option: String) throws(CommandFailure) -> Duration? {
        try read(option, as: "a duration such as 30s or 5m") {
            DurationText.parse($0).flatMap { $0 >= .zero ? $0 : nil }
        }
    }

    /// What an option gives, read from its text; nil when it is not given.
    func read<Value>(
        _ option: String, as wanted: String, _ read: (String) -> Value?
    ) throws(CommandFailure) -> Value? {
        guard let text = value(option) else { return nil }
        if let found = read(text) { return found }
        throw CommandFailure(.usage, "--\(option) \(text): give \(wanted)")
    }

    /// Prints the reports of a command as they come; its exit code is the result's.
    fileprivate func followSending(
        _ path: String, _ body: JSONValue, silence: Duration? = nil
    ) throws(CommandFailure) {
        var end: ExitCode?
        try lines("POST", path, body: body, silence: silence) { text throws(CommandFailure) in
            let line = try orFail(.software, about: "the agent's answer", try JSONValue(parsing: text))
            if line["error"]?["message"] != nil { throw Invocation.refusal(line) }
            if has("json") { try console.print(line.description) }
            guard let number = line["exit_code"]?.integer else {
                if !has("json") { try console.print(Invocation.report(line)) }
                return true
            }
            let code = ExitCode(rawValue: Int32(clamping: number)) ?? .temporaryFailure
            end = code
            guard !has("json") else { return true }
            for obstacle in line["obstacles"]?.members ?? [] {
                console.printError("\(obstacle.key): \(obstacle.value.string ?? "cannot go")")
            }
            if code == .deadline { console.printError("time ran out") }
            if let waiting = line["waiting"]?.integer, waiting > 0 {
                console.printError("\(waiting) events still wait")
            }
            return true
        }
        guard let end else {
            throw CommandFailure(.unreachable, "the agent ended before the command; unsent events are kept")
        }
        try self.end(end)
    }

    private static func report(_ line: JSONValue) -> String {
        let waiting = line["waiting"]?.integer.map { ", \($0) waiting" } ?? ""
        let reason = line["reason"]?.string.map { ": \($0)" } ?? ""
        return "\(line["destination"]?.string ?? "?"): \(line["outcome"]?.string ?? "?")\(reason)\(waiting)"
    }
}

extension Duration {
    /// The length in milliseconds, rounded down.
    var wholeMilliseconds: Int {
        // bounded: durations are parsed as nanoseconds.
        Int(clamping: components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
