internal import Control
internal import Glibc
internal import Model

/// Commands that change the agent as a whole.
enum AgentCommands {
    /// Turns collection on again. What was deleted by `disable` does not come back.
    static let enable = Command(
        name: "enable", summary: "turns collection on, of all apps or of one; survives restarts",
        options: [appOption],
        run: Command.asking("PUT", "/v1/collection") { $0.body("app", and: ["enabled": true]) })

    /// Names one app instead of all.
    private static let appOption = Command.Option("app APP", "this app only")

    /// Turns collection off and deletes what is queued, after a question.
    static let disable = Command(
        name: "disable", summary: "turns collection off and deletes queued events; survives restarts",
        details: """
            Files that arrive are read and discarded, and counted as such. Batches in flight have ten \
            seconds to arrive. To collect without sending, use `network off` or `pause` instead.

            Dead letters and quarantined lines stay, unless --all is given; the question says how many there \
            are. Sessions and data layers stay in either case: they are needed when collection is turned on \
            again, and `erase` removes single values from them.

            With --app only this app's events are discarded when they are read, and deleted if they are \
            queued; events of other apps that share a batch with them are sent without them.
            """,
        options: [.yes, appOption, Command.Option("all", "delete dead letters and quarantined lines, too")]
    ) { invocation in
        if let app = invocation.value("app") { return try disable(app, invocation) }
        // The counts are needed for the question, and for the hints after the change.
        let status = try invocation.status()
        let queued = status.sum("queued")
        // The stores beside the queue that hold something: count, what it is, its path and commands.
        let stores = [
            ("dead_letters", "dead letters", "dead-letters"),
            ("quarantined", "quarantined lines", "quarantine"),
        ].compactMap { store, noun, command in
            (status["queue"]?[store]?.integer).flatMap { count in
                count > 0 ? (count: Int(count), noun: noun, command: command) : nil
            }
        }
        let names = stores.map { "\(HumanText.count($0.count)) \($0.noun)" }.joined(separator: " and ")
        let stay = invocation.has("all") ? " with \(names)" : "; \(names) stay (--all)"
        let also = names.isEmpty ? "" : stay
        try invocation.confirm("\(HumanText.count(queued)) queued deliveries will be deleted\(also)")
        // Two minutes, because the agent first waits for batches in flight (10 seconds) and then deletes the
        // queue.
        let answer = try invocation.ask(
            "PUT", "/v1/collection", body: ["enabled": false], timeout: .seconds(120))
        var text =
            "collection is off; \(HumanText.count(Int(answer["discarded"]?.integer ?? 0))) deliveries "
            + "discarded"
        if let inFlight = answer["in_flight"]?.integer, inFlight > 0 {
            text += ", \(HumanText.count(Int(inFlight))) of them in flight: their arrival is unknown"
        }
        try invocation.console.print(text)
        if invocation.has("all") {
            // Both stores are emptied, also of what came after the question.
            for command in ["dead-letters", "quarantine"] {
                let answer = try invocation.ask(
                    "POST", "/v1/\(command)/purge", body: [:], timeout: .seconds(120))
                let count = Int(answer["purged"]?.integer ?? 0)
                try invocation.console.print("\(command): \(HumanText.count(count)) removed")
            }
            return
        }
        // A user who disables collection for privacy has to know what stays.
        for store in stores {
            try invocation.console.print(
                "\(HumanText.count(store.count)) \(store.noun) stay: `spoolship \(store.command) purge`")
        }
    }

    /// Turns collection of one app off and deletes what is queued of it, after a question.
    private static func disable(_ app: String, _ invocation: Invocation) throws {
        let count = try invocation.ask("GET", "/v1/collection", query: [("app", app)], timeout: .seconds(120))
        let queued = HumanText.count(Int(count["queued"]?.integer ?? 0))
        let isAll = invocation.has("all")
        let also = isAll ? " with its dead letters and quarantined lines" : ""
        try invocation.confirm("\(queued) queued deliveries of \(app) will be deleted\(also)")
        // The agent waits ten seconds for batches in flight, and may have to look through a large queue.
        let answer = try invocation.ask(
            "PUT", "/v1/collection", body: ["enabled": false, "app": .string(app)], timeout: .seconds(600))
        let discarded = HumanText.count(Int(answer["discarded"]?.integer ?? 0))
        var text = "collection of \(app) is off; \(discarded) deliveries discarded"
        if let inFlight = answer["in_flight"]?.integer, inFlight > 0 {
            text += "; \(HumanText.count(Int(inFlight))) are in flight and may arrive"
        }
        try invocation.console.print(text)
        // Asked before the change, which deletes what the agent may know the app by.
        try UnknownApp(app, in: count)?.tell(on: invocation, undoneBy: "enable --app \(app)")
        for (command, records) in [("dead-letters", "dead letters"), ("quarantine", "quarantined lines")] {
            guard isAll else {
                // A user who disables collection for privacy has to know what may stay.
                try invocation.console.print(
                    "\(records) of \(app) stay, if there are any: `spoolship \(command) purge --app \(app)`")
                continue
            }
            let answer = try invocation.ask(
                "POST", "/v1/\(command)/purge", body: ["app": .string(app)], timeout: .seconds(120))
            let count = Int(answer["purged"]?.integer ?? 0)
            try invocation.console.print("\(command): \(HumanText.count(count)) removed")
        }
    }

    /// Starts a session by hand. With automatic sessions it changes nothing, and the agent's message says so.
    static let sessionStart = Command(
        name: "session start", summary: "starts a new session",
        options: [Command.Option("app APP", "the session's app; default default")]
    ) { invocation in
        let answer = try invocation.ask("POST", "/v1/session", body: invocation.body("app"))
        if let message = answer["message"]?.string {
            try invocation.console.print(message)
        }
    }

    /// Sets the country of all events until it is cleared.
    static let countrySet = Command(
        name: "country set", summary: "overrides the country code of events", arguments: "CC",
        argumentCount: 1...1, run: Command.asking("PUT", "/v1/country") { ["code": .string($0.arguments[0])] }
    )

    /// Ends `country set`: rules and settings decide again.
    static let countryClear = Command(
        name: "country clear", summary: "ends the override",
        run: Command.asking("PUT", "/v1/country") { _ in ["code": .null] })

    /// Changes the log level of the running agent only, so that a level for debugging does not stay after a
    /// restart.
    static let logLevel = Command(
        name: "log-level", summary: "changes the log's level until a restart or a change of it",
        arguments: "LEVEL",
        argumentCount: 1...1, choices: ["error", "warning", "info", "debug", "verbose", "default"],
        details: "LEVEL is error, warning, info, debug or verbose, or default: the configured one.",
        run: Command.asking("PUT", "/v1/log-level") { ["level": .string($0.arguments[0])] })

    /// Makes the agent reread its configuration. The answer names what needs a restart, because such changes
    /// would otherwise be believed to be in force.
    static let reload = Command(
        name: "reload", summary: "makes the agent reread its configuration; all changes apply, or none",
        details:
            "Prints what changed, what needs a restart, and what is probably unintended. If there is a "
            + "mistake, the old configuration stays in force."
    ) { invocation in
        // A minute: certificates, documents and programs are read again.
        let answer = try invocation.ask("POST", "/v1/reload", timeout: .seconds(60), isForMistakes: true)
        let changed = (answer["changed"]?.array ?? []).compactMap(\.string)
        for change in short(changed) { try invocation.console.print(change) }
        let later = (answer["need_restart"]?.array ?? []).compactMap(\.string)
        for change in later { try invocation.console.print("\(change) (after a restart)") }
        if changed.isEmpty && later.isEmpty {
            try invocation.console.print("nothing has changed")
        }
        for warning in (answer["warnings"]?.array ?? []).compactMap(\.string) {
            invocation.console.printError("warning: \(warning)")
        }
    }

    /// The changes of a reload, each as `SECTION.NAME.SETTING before -> after`. A section with more than four
    /// changes, for example a new or a removed one, is one line with their number.
    private static func short(_ changes: [String]) -> [String] {
        var counts: [Substring: Int] = [:]
        for change in changes { counts[section(of: change) ?? "", default: 0] += 1 }
        // The sections for which a line was printed.
        var told: Set<Substring> = []
        return changes.compactMap { change in
            guard let section = section(of: change), let count = counts[section], count > 4 else {
                return change
            }
            return told.insert(section).inserted ? "\(section): \(count) settings" : nil
        }
    }

    /// The section of a change: `destination.main` of `destination.main.url`; nil for a setting outside of
    /// such a section.
    private static func section(of change: String) -> Substring? {
        let path = change.prefix { $0 != " " }
        let parts = path.split(separator: ".")
        return parts.count > 2 ? path[..<parts[1].endIndex] : nil
    }
}

extension Command.Option {
    /// Answers the question of `confirm` beforehand.
    static let yes = Command.Option("yes", letter: "y", "do not ask")
}
