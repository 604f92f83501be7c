internal import Agent
internal import Configuration
internal import Model

/// Commands that decide when and whether the agent sends.
enum SendingCommands {
    /// The option of commands that can be for one destination only.
    private static let destination = Command.Option("destination NAME", "only this destination; default all")

    /// Sends what waits, without changing the interval. Without `--wait` it returns at once, so hooks and
    /// cron jobs may call it.
    static let dispatch = Command(
        name: "dispatch", summary: "sends what is queued now",
        details: """
            With --wait it reports after each request: good and how many events still wait, no_data and \
            why, or error. It then exits with 0 if everything was sent, and with 75 if something cannot be.
            """,
        options: [Command.Option("wait", "wait, and report the result of each request"), destination, .json]
    ) { invocation in
        let body = invocation.body("destination")
        if invocation.has("wait") {
            try followSending(invocation, "/v1/dispatch", body.adding("wait", true))
        } else {
            _ = try invocation.ask("POST", "/v1/dispatch", body: body)
        }
    }

    /// Sends everything, for example before a machine is switched off.
    static let drain = Command(
        name: "drain", summary: "sends until nothing is left, an error occurs or time runs out",
        details: """
            Exits with 0 only if nothing waits, with 75 and the reason if something cannot be sent or \
            collection is disabled, with 124 when time ran out. Periodic dispatch stops meanwhile and is \
            restored afterwards.
            """,
        options: [
            Command.Option("timeout DURATION", "how long to keep sending; default 30s"), destination, .json,
        ]
    ) { invocation in
        let timeout = try invocation.duration("timeout") ?? .seconds(30)
        // The agent reports at the timeout at the latest. Ten seconds more, so that its report arrives.
        try followSending(
            invocation, "/v1/drain",
            invocation.body("destination", and: ["timeout_ms": .integer(timeout.wholeMilliseconds)]),
            silence: timeout + .seconds(10))
    }

    /// Stops sending until `resume`. Tokens let several tools pause without ending each other's pause.
    static let pause = Command(
        name: "pause", summary: "stops sending until `resume`; collection continues",
        details: """
            Each pause holds a token; sending continues when no token is held. The same token counts once. \
            A pause survives restarts, unless --until-restart.
            """,
        options: [
            Command.Option("token TOKEN", "the pause's token; default manual"),
            Command.Option("ttl DURATION", "release the token after this time"), destination,
            Command.Option("until-restart", "a restart releases the token"),
        ],
        run: Command.asking("POST", "/v1/pause") { invocation in
            invocation.body(
                "destination",
                and: [
                    "token": .string(invocation.value("token") ?? "manual"),
                    "ttl_ms": try invocation.duration("ttl").map { .integer($0.wholeMilliseconds) },
                    "until_restart": .bool(invocation.has("until-restart")),
                ])
        })

    /// Ends what holds sending back, and prints what still does: an operator who sees only "resumed" would
    /// wait in vain for a destination that is held for another reason.
    static let resume = Command(
        name: "resume",
        summary: "ends pauses; without --token all of them, and every wait after failures",
        details: """
            Prints what it ended, and what keeps destinations from sending all the same. Without --token it \
            also ends holds, open breakers, waits for a retry and waits that a receiver asked for, and tries \
            events that were set aside.
            """,
        options: [
            Command.Option(
                "token TOKEN", "release only this token, everywhere; an unknown one changes nothing"),
            destination,
        ]
    ) { invocation in
        let answer = try invocation.ask("POST", "/v1/resume", body: invocation.body("token", "destination"))
        let ended = answer["ended"]?.array?.compactMap(\.string) ?? []
        // A token that nobody holds says nothing about other waits.
        let place = invocation.value("destination").map { " of \($0) alone" } ?? ""
        let nothing =
            invocation.value("token").map { "no pause\(place) has the token \($0)" }
            ?? "nothing was held back"
        let words = ended.joined(separator: "; ")
        try invocation.console.print(ended.isEmpty ? nothing : "ended: \(words)")
        for obstacle in answer["remaining"]?.array?.compactMap(\.string) ?? [] {
            try invocation.console.print("still held back: \(obstacle)")
        }
    }

    /// Changes the interval of the running agent; the configuration is not changed.
    static let interval = Command(
        name: "interval", summary: "changes the dispatch interval of the running agent", arguments: "VALUE",
        argumentCount: 1...1, choices: ["off", "default"],
        details: """
            VALUE is a duration from 1s to 1d, `off` (only dispatch and drain send; 0 and negative numbers \
            mean the same) or `default`, the configured one. It applies to all destinations, including \
            those with their own interval, until `default` restores each one's own. Without --persist a \
            restart restores the persisted value.
            """,
        options: [Command.Option("persist", "keep it across restarts; with default, forget what was kept")]
    ) { invocation in
        // The agent takes milliseconds: 0 is off, null the configured interval.
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
        try invocation.console.print(
            interval == "off" ? "dispatch only by command" : "dispatch every \(interval)")
    }

    /// The counterpart of `network off`, which is durable: a restart alone does not connect again.
    static let networkOn = Command(
        name: "network on", summary: "allows the agent to connect",
        run: Command.asking("PUT", "/v1/network") { _ in ["on": true] })

    /// For metered or forbidden networks: collection continues, and waiting is not an error.
    static let networkOff = Command(
        name: "network off", summary: "lets the agent collect but not connect, until `network on`",
        run: Command.asking("PUT", "/v1/network") { _ in ["on": false] })

    /// For systems where the agent cannot see the change itself, such as a VPN that keeps the default route.
    static let networkChanged = Command(
        name: "network-changed",
        summary: "tells the agent that the network has changed; retries begin at once",
        run: Command.asking("POST", "/v1/network/changed") { _ in nil })

    /// Prints the reports of `dispatch --wait` and `drain` as they arrive, and ends with the code in the last
    /// one.
    private static func followSending(
        _ invocation: Invocation, _ path: String, _ body: JSONValue, silence: Duration? = nil
    ) throws(CommandFailure) {
        var end: ExitCode?
        try invocation.lines("POST", path, body: body, silence: silence) { text throws(CommandFailure) in
            let line = try orFail(.software, about: "the agent's answer", try JSONValue(parsing: text))
            // The answer began with status 200 before the agent had judged the request, so a refusal arrives
            // as a line.
            if line["error"]?["message"] != nil { throw Invocation.refusal(line) }
            if invocation.has("json") {
                try invocation.console.print(line.description)
            }
            guard let number = line["exit_code"]?.integer else {
                if !invocation.has("json") {
                    try invocation.console.print(report(line))
                }
                return true
            }
            let code = ExitCode(rawValue: Int32(clamping: number)) ?? .temporaryFailure
            end = code
            guard !invocation.has("json") else { return true }
            for obstacle in line["obstacles"]?.members ?? [] {
                invocation.console.printError("\(obstacle.key): \(obstacle.value.string ?? "cannot go")")
            }
            if code == .deadline {
                invocation.console.printError("time ran out")
            }
            if let waiting = line["waiting"]?.integer, waiting > 0 {
                invocation.console.printError("\(waiting) events still wait")
            }
            return true
        }
        // The agent stopped, or the connection was cut.
        guard let end else {
            throw CommandFailure(.unreachable, "the agent ended before the command; unsent events are kept")
        }
        try invocation.end(end)
    }

    /// A report as text: `main: good, 12 waiting`.
    private static func report(_ line: JSONValue) -> String {
        let waiting = line["waiting"]?.integer.map { ", \($0) waiting" } ?? ""
        let reason = line["reason"]?.string.map { ": \($0)" } ?? ""
        return "\(line["destination"]?.string ?? "?"): \(line["outcome"]?.string ?? "?")\(reason)\(waiting)"
    }
}

/// Durations as the control API takes them.
extension Duration {
    /// The length in milliseconds, rounded down.
    var wholeMilliseconds: Int {
        // bounded: durations are parsed as nanoseconds.
        Int(clamping: components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
