internal import Control
internal import Glibc
internal import Model

/// Commands that change the agent as a whole.
extension Command {
    static let enable = Command(
        name: "enable", summary: "turns collection on; survives restarts",
        run: asking("PUT", "/v1/collection") { _ in ["enabled": true] })

    static let disable = Command(
        name: "disable", summary: "turns collection off and deletes queued events; survives restarts",
        details: """
            Files that arrive are read and discarded, and counted as such. Batches in flight have ten seconds to \
            arrive. To collect without sending, use `network off` or `pause` instead.
            """,
        options: [.yes]
    ) { invocation in
        let queued = try invocation.status().sum("queued")
        try invocation.confirm("\(HumanText.count(queued)) queued deliveries will be deleted")
        let answer = try invocation.ask("PUT", "/v1/collection", body: ["enabled": false], timeout: .seconds(120))
        var text = "collection is off; \(HumanText.count(Int(answer["discarded"]?.integer ?? 0))) deliveries discarded"
        if let inFlight = answer["in_flight"]?.integer, inFlight > 0 {
            text += ", \(HumanText.count(Int(inFlight))) of them in flight: their arrival is unknown"
        }
        try invocation.console.print(text)
    }

    static let sessionStart = Command(
        name: "session start", summary: "starts a new session",
        options: [Option("app APP", "the session's app; default default")]
    ) { invocation in
        let answer = try invocation.ask("POST", "/v1/session", body: invocation.body("app"))
        if let message = answer["message"]?.string { try invocation.console.print(message) }
    }

    static let countrySet = Command(
        name: "country set", summary: "overrides the country code of events", arguments: "CC",
        argumentCount: 1...1, run: asking("PUT", "/v1/country") { ["code": .string($0.arguments[0])] })

    static let countryClear = Command(
        name: "country clear", summary: "ends the override", run: asking("PUT", "/v1/country") { _ in ["code": .null] })

    static let logLevel = Command(
        name: "log-level", summary: "changes the log's level until a restart or a change of it", arguments: "LEVEL",
        argumentCount: 1...1, choices: ["error", "warning", "info", "debug", "verbose", "default"],
        details: "LEVEL is error, warning, info, debug or verbose, or default: the configured one.",
        run: asking("PUT", "/v1/log-level") { ["level": .string($0.arguments[0])] })

    static let reload = Command(
        name: "reload", summary: "makes the agent reread its configuration; all changes apply, or none",
        details:
            "Prints what changed, what needs a restart, and what is probably unintended. If there is a mistake, the old configuration stays in force."
    ) { invocation in
        let answer = try invocation.ask("POST", "/v1/reload", timeout: .seconds(60), isForMistakes: true)
        let changed = (answer["changed"]?.array ?? []).compactMap(\.string)
        for change in short(changed) { try invocation.console.print(change) }
        let later = (answer["need_restart"]?.array ?? []).compactMap(\.string)
        for change in later { try invocation.console.print("\(change) (after a restart)") }
        if changed.isEmpty && later.isEmpty { try invocation.console.print("nothing has changed") }
        for warning in (answer["warnings"]?.array ?? []).compactMap(\.string) {
            invocation.console.printError("warning: \(warning)")
        }
    }

    /// The changes of a reload, each `SECTION.NAME.SETTING before -> after`: of a section with more than four, as of one that is
    /// new or gone, only how many.
    private static func short(_ changes: [String]) -> [String] {
        var counts: [Substring: Int] = [:]
        for change in changes { counts[section(of: change) ?? "", default: 0] += 1 }
        var told: Set<Substring> = []
        return changes.compactMap { change in
            guard let section = section(of: change), let count = counts[section], count > 4 else { return change }
            return told.insert(section).inserted ? "\(section): \(count) settings" : nil
        }
    }

    /// `destination.main` of `destination.main.url`; nil for settings outside such a section.
    private static func section(of change: String) -> Substring? {
        let path = change.prefix { $0 != " " }
        let parts = path.split(separator: ".")
        return parts.count > 2 ? path[..<parts[1].endIndex] : nil
    }
}

extension Command.Option {
    static let yes = Command.Option("yes", letter: "y", "do not ask")
}

extension Invocation {
    /// Asks the person at the terminal, unless --yes is given; throws when the answer is no, or nobody can give one.
    func confirm(_ what: String) throws(CommandFailure) {
        if has("yes") { return }
        guard isatty(STDIN_FILENO) == 1 else { throw CommandFailure(.usage, "\(what): confirm with --yes") }
        try console.write("\(what). Go on? [y/N] ")
        guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
            throw CommandFailure(.negative, "nothing was changed")
        }
    }
}
