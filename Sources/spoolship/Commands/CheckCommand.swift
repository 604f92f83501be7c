internal import Agent
internal import Configuration
internal import EventLoops
internal import Glibc
internal import Model

extension Command {
    static let check = Command(
        name: "check",
        summary: "reads the configuration and every file it names, and prints each mistake with its place",
        details: """
            Goes through the steps of a start, and changes nothing: the text of the configuration, what this version \
            does not do, directories and their permissions, free space, sockets, certificates, containers, the queue, \
            and what spoolship.service lets the agent use: its directories, groups and variables. Run by root, it first becomes the user spoolship, if \
            there is one, and so can read and do exactly what the agent can. Exits with 0 if the agent could start, \
            with 78 if it could not, or should not: a state directory that does not exist yet, or that others may \
            write, is a mistake here, although a start accepts it. Warnings do not change that.

            --connect also opens a connection to each destination, through its proxy if it has one, with TLS and all \
            certificates, and closes it again. No request and no secret is sent, except to NATS, to S3 (a signed GET \
            of an object that does not exist, which tests bucket, region and key, not whether writing is allowed) and \
            to ClickHouse (DESCRIBE TABLE: members without a column are named). Exits with 75 if only that fails.

            --sample shows how each line of a file would be read: event or record, its name, its time and severity \
            and where they were found, what is added, what would be quarantined and why. Nothing is sent, and no agent \
            is needed.

            --print prints the settings in force, each with its origin; secrets are masked.
            """,
        options: [
            Option("connect", "also open a connection to each destination"),
            Option("sample FILE", "show how each line of a file would be read"),
            Option("print", "print the effective configuration, with the origin of each value"),
            Option("user USER", "the agent's user, for root; default spoolship"),
            Option("text-only", "check only the text, not this machine: for another machine's files"),
            .json,
        ]
    ) { invocation in
        if invocation.has("connect"), invocation.has("text-only") {
            throw CommandFailure(.usage, "--connect and --text-only exclude each other")
        }
        if let path = invocation.value("sample") { return try sample(path, invocation) }
        if invocation.ownsProcess { try AgentUser.become(invocation.value("user"), by: invocation.unit) }
        try CheckReport(invocation).print()
    }

    /// Prints what would become of the lines of a file.
    private static func sample(_ path: String, _ invocation: Invocation) throws {
        let settings = try invocation.loadSettings().settings
        guard let whole = RealPath.ofExisting(path) else {
            throw CommandFailure(.inputOutput, "\(path): \(SystemError.message(errno))")
        }
        let report = try SampleReport(whole, settings)
        try invocation.show(report.json, or: report.text)
    }
}

extension Invocation {
    /// What the service gives the agent and keeps from it: it starts the agent with the default configuration, and no other.
    var unit: UnitSandbox? { configurationPath == Invocation.defaultConfiguration ? UnitSandbox() : nil }
}

private struct CheckReport {
    let invocation: Invocation
    private var loaded: LoadedSettings?
    private var problems: [Problem] = []
    private var connections: [Connection] = []

    /// How opening a connection to a destination ended: what failed, and what else was found: an error where nothing would arrive.
    private typealias Connection = (destination: String, milliseconds: Int, problem: Problem?, note: Problem?)

    init(_ invocation: Invocation) {
        self.invocation = invocation
        do throws(ConfigurationError) {
            let loaded = try Settings.load(path: invocation.configurationPath)
            self.loaded = loaded
            problems = loaded.warnings
            if !invocation.has("text-only") { problems += StartupCheck.problems(of: loaded, sandbox: invocation.unit) }
            if invocation.has("connect"), isGood { connections = CheckReport.connect(loaded) }
        } catch {
            problems = error.problems
        }
    }

    private static func connect(_ loaded: LoadedSettings) -> [Connection] {
        let rehearsal = StartupRehearsal(loaded.settings, version: Build.version)
        let time = SystemTime()
        return loaded.settings.destinations.map { destination in
            let start = time.bootTime
            let failure = rehearsal.connect(to: destination)
            let took = time.bootTime - start
            let setting = "destination.\(destination.name).\(destination.addressKey)"
            let complaint = failure == nil ? rehearsal.complaint(of: destination) : nil
            return (
                destination.name, took.wholeMilliseconds,
                failure.map { loaded.problem(.environment, "cannot be reached: \($0)", about: setting) },
                complaint.map {
                    loaded.problem(.environment, $0.message, about: setting, severity: $0.isRefused ? .error : .warning)
                }
            )
        }
    }

    private var isGood: Bool { problems.allSatisfy { $0.severity == .warning } }

    private var code: ExitCode {
        guard isGood else { return .configuration }
        let isWell = connections.allSatisfy { $0.problem == nil && $0.note?.severity != .error }
        return isWell ? .success : .temporaryFailure
    }

    func print() throws(CommandFailure) {
        if invocation.has("json") {
            try invocation.console.print(json.description)
        } else {
            try printText()
        }
        try invocation.end(code)
    }

    private func printText() throws(CommandFailure) {
        let console = invocation.console
        if invocation.has("print"), let loaded { try console.write(EffectiveConfiguration(loaded.settings).toml) }
        for problem in problems { console.printError(problem.text) }
        let count = problems.count { $0.severity == .error }
        guard count == 0 else {
            console.printError(
                "\(console.styled("spoolship:", .red, isError: true)) \(count) \(count == 1 ? "mistake" : "mistakes")")
            return
        }
        if let loaded, !invocation.has("print") {
            let more = loaded.files.count == 1 ? "" : " and \(loaded.files.count - 1) more in conf.d"
            try console.print("\(invocation.configurationPath)\(more): \(console.styled("good", .green))")
        }
        for connection in connections {
            if let note = connection.note { console.printError(note.text) }
            if let problem = connection.problem {
                console.printError(problem.text)
            } else {
                let took = "connected in \(connection.milliseconds) ms"
                try console.print("\(connection.destination): \(console.styled(took, .green))")
            }
        }
    }

    private var json: JSONValue {
        var json: JSONValue = ["good": .bool(code == .success)]
        if let loaded {
            json = json.adding("files", .array(loaded.files.map(JSONValue.string)))
            if invocation.has("print") { json = json.adding("settings", EffectiveConfiguration(loaded.settings).json) }
        }
        if invocation.has("connect") {
            let list = connections.map { connection -> JSONValue in
                [
                    "destination": .string(connection.destination), "connected": .bool(connection.problem == nil),
                    "milliseconds": .integer(connection.milliseconds),
                ]
            }
            json = json.adding("connections", .array(list))
        }
        let all = problems + connections.flatMap { [$0.problem, $0.note].compactMap { $0 } }
        return json.adding("problems", .array(all.map(CheckReport.value)))
    }

    private static func value(_ problem: Problem) -> JSONValue {
        let json: JSONValue = [
            "severity": .string(problem.severity.rawValue), "code": .string(problem.code.rawValue),
            "message": .string(problem.message),
        ]
        guard let place = problem.position else { return json }
        return json.adding("file", .string(place.file)).adding("line", .integer(place.line))
            .adding("column", .integer(place.column))
    }
}
