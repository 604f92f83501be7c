internal import Agent
internal import Configuration
internal import EventLoops
internal import Glibc
internal import Model

enum CheckCommand {
    /// Rehearses a start. A configuration that `check` calls good must start; one that a start refuses must
    /// be a mistake here.
    static let check = Command(
        name: "check",
        summary: "reads the configuration and every file it names, and prints each mistake with its place",
        details: """
            Goes through the steps of a start, and changes nothing: the text of the configuration, what \
            this version does not do, directories and their permissions, free space, sockets, certificates, \
            containers, the queue, and what spoolship.service lets the agent use: its directories, groups \
            and variables. Run by root, it first becomes the user spoolship, if there is one, and so can \
            read and do exactly what the agent can. Exits with 0 if the agent could start, with 78 if it \
            could not, or should not: a state directory that does not exist yet, or that others may write, \
            is a mistake here, although a start accepts it. Warnings do not change that.

            --connect also opens a connection to each destination, through its proxy if it has one, with \
            TLS and all certificates, and closes it again. No request and no secret is sent, except to \
            NATS, to S3 (a signed GET of an object that does not exist, which tests bucket, region and key, \
            not whether writing is allowed) and to ClickHouse (DESCRIBE TABLE: members without a column are \
            named). Exits with 75 if only that fails.

            --connect --send also sends each destination an event called spoolship_test of the app \
            spoolship, as the agent would send it, and shows the answer: its status, the beginning of its \
            body, and the time. The event is stored there. Exits with 75 if one is not acknowledged (see \
            accept).

            --sample shows how each line of a file would be read: event or record, its name, its time and \
            severity and where they were found, what is added, what would be quarantined and why; and what \
            the rules of the configuration do: before and after for the first lines, and to how many lines \
            each rule applies, also where it finds nothing to change. Nothing is sent, and no agent is needed.

            --print prints the settings in force, each with its origin; secrets are masked.
            """,
        options: [
            Command.Option("connect", "also open a connection to each destination"),
            Command.Option(
                "send", "with --connect: also send each destination a test event, and show the answer"),
            Command.Option("sample FILE", "show how each line of a file would be read"),
            Command.Option("print", "print the effective configuration, with the origin of each value"),
            Command.Option("user USER", "the agent's user, for root; default spoolship"),
            Command.Option("text-only", "check only the text, not this machine: for another machine's files"),
            .json,
        ]
    ) { invocation in
        if invocation.has("connect"), invocation.has("text-only") {
            throw CommandFailure(.usage, "--connect and --text-only exclude each other")
        }
        if invocation.has("send"), !invocation.has("connect") {
            throw CommandFailure(
                .usage, "--send sends a test event to each destination; write --connect --send")
        }
        if let path = invocation.value("sample") { return try sample(path, invocation) }
        // In tests many commands share the process, which must keep its user.
        if invocation.ownsProcess {
            try AgentUser.become(invocation.value("user"), by: invocation.unit)
        }
        try CheckReport(invocation).print()
    }

    /// Shows how the lines of a file would be read. No change of the user: the file is the caller's.
    private static func sample(_ path: String, _ invocation: Invocation) throws {
        // Whoever tries the product has files, and no configuration yet.
        var settings = Settings()
        let configuration = invocation.configurationPath
        if invocation.value("config") == nil, access(configuration, F_OK) != 0, errno == ENOENT {
            invocation.console.printError("\(configuration) does not exist: shown as with the defaults")
        } else {
            settings = try invocation.loadSettings().settings
        }
        guard let whole = RealPath.ofExisting(path) else {
            throw CommandFailure(.inputOutput, "\(path): \(SystemError.message(errno))")
        }
        let report = try SampleReport(whole, settings)
        guard let rules = report.rules(of: settings) else {
            return try invocation.show(report.json, or: report.text)
        }
        try invocation.show(report.json.adding("rules", rules.json), or: report.text + rules.text)
    }
}

/// The result of `check`, collected first and printed afterwards, so that text and JSON have the same.
private struct CheckReport {
    /// The options.
    let invocation: Invocation
    /// The configuration; nil if it has mistakes.
    private var loaded: LoadedSettings?
    /// Mistakes and warnings.
    private var problems: [Problem] = []
    /// The results of `--connect`, one for each destination.
    private var connections: [ConnectionReport] = []

    /// Reads the configuration, checks the machine, and opens the connections if all is good so far.
    init(_ invocation: Invocation) {
        self.invocation = invocation
        do throws(ConfigurationError) {
            let loaded = try Settings.loadWithRules(path: invocation.configurationPath)
            self.loaded = loaded
            problems = loaded.warnings
            problems +=
                invocation.has("text-only")
                ? StartupCheck.problemsOfText(of: loaded)
                : StartupCheck.problems(of: loaded, sandbox: invocation.unit)
            // With a mistake the agent could not start, so its connections say nothing.
            if invocation.has("connect"), isGood {
                connections = ConnectionReport.all(of: loaded, sends: invocation.has("send"))
            }
        } catch {
            problems = error.problems
        }
    }

    /// Whether there are only warnings.
    private var isGood: Bool { problems.allSatisfy { $0.severity != .error } }

    /// The exit code: mistakes count more than connections that fail.
    private var code: ExitCode {
        guard isGood else { return .configuration }
        return connections.allSatisfy(\.isGood) ? .success : .temporaryFailure
    }

    /// Prints the result, and ends with its code.
    func print() throws(CommandFailure) {
        if invocation.has("json") {
            try invocation.console.print(json.description)
        } else {
            try printText()
        }
        try invocation.end(code)
    }

    /// Prints the result as text: problems to standard error, the rest to standard output.
    private func printText() throws(CommandFailure) {
        let console = invocation.console
        if invocation.has("print"), let loaded {
            try console.write(EffectiveConfiguration(loaded.settings).toml)
        }
        for problem in problems { console.printError(problem.text) }
        let count = problems.count { $0.severity == .error }
        guard count == 0 else {
            console.printError(
                "\(console.styled("spoolship:", .red, isError: true)) \(count) "
                    + "\(count == 1 ? "mistake" : "mistakes")"
            )
            return
        }
        if let loaded, !invocation.has("print") {
            let more = loaded.files.count == 1 ? "" : " and \(loaded.files.count - 1) more in conf.d"
            try console.print("\(invocation.configurationPath)\(more): \(console.styled("good", .green))")
        }
        for connection in connections {
            for problem in connection.problems { console.printError(problem.text) }
            for line in connection.lines(console) { try console.print(line) }
        }
    }

    /// The result as JSON. Problems of connections come after those of the configuration and the machine.
    private var json: JSONValue {
        var json: JSONValue = ["good": .bool(code == .success)]
        if let loaded {
            json = json.adding("files", .array(loaded.files.map(JSONValue.string)))
            if invocation.has("print") {
                json = json.adding("settings", EffectiveConfiguration(loaded.settings).json)
            }
        }
        if invocation.has("connect") {
            json = json.adding("connections", .array(connections.map(\.json)))
        }
        let all = problems + connections.flatMap(\.problems)
        return json.adding("problems", .array(all.map(CheckReport.value)))
    }

    /// A problem as JSON, with its place if it has one.
    private static func value(_ problem: Problem) -> JSONValue {
        let json: JSONValue = [
            "severity": .string(problem.severity.rawValue), "code": .string(problem.code.rawValue),
            "message": .string(problem.message),
        ]
        guard let position = problem.position else { return json }
        return json.adding("file", .string(position.file)).adding("line", .integer(position.line))
            .adding("column", .integer(position.column))
    }
}
