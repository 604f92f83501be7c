internal import Configuration

extension Command {
    static let check = Command(
        name: "check",
        summary: "reads the configuration and every file it names, and prints each mistake with its place",
        details: """
            Walks the way that a start takes, and changes nothing: the text of the configuration, directories and their
            permissions, free space, sockets, certificates, containers. Run by root, it looks with the eyes of the user
            spoolship. Ends with 0 when the agent could start, with 78 when it could not; warnings do not change that.

            --print prints the settings in force, each with where it comes from; secrets are masked.
            """,
        options: [
            Option(name: "print", help: "print the effective configuration, with the origin of each value"),
            Option(name: "text-only", help: "judge the text only, not this machine: for files of another one"),
            .json,
        ]
    ) { invocation in
        try CheckReport(invocation).print()
    }
}

/// What `check` found, and how it is printed.
private struct CheckReport {
    let invocation: Invocation
    private var loaded: LoadedSettings?
    private var problems: [Problem] = []

    init(_ invocation: Invocation) {
        self.invocation = invocation
        do throws(ConfigurationError) {
            let loaded = try Settings.load(path: invocation.configurationPath)
            self.loaded = loaded
            problems = loaded.warnings
            if !invocation.has("text-only") { problems += StartupCheck.problems(of: loaded) }
        } catch {
            problems = error.problems
        }
    }

    private var isGood: Bool { problems.allSatisfy { $0.severity == .warning } }

    func print() throws(CommandFailure) -> ExitCode {
        if invocation.has("json") {
            try invocation.console.print(json.json)
        } else {
            try printText()
        }
        return isGood ? .success : .configuration
    }

    private func printText() throws(CommandFailure) {
        let console = invocation.console
        if invocation.has("print"), let loaded { try console.write(EffectiveConfiguration(loaded.settings).toml) }
        for problem in problems { console.printError(problem.text) }
        let count = problems.count { $0.severity == .error }
        guard count == 0 else {
            console.printError(
                "\(console.styledError("spoolship:", .red)) \(count) \(count == 1 ? "mistake" : "mistakes")")
            return
        }
        if let loaded, !invocation.has("print") {
            let more = loaded.files.count == 1 ? "" : " and \(loaded.files.count - 1) more in conf.d"
            try console.print("\(invocation.configurationPath)\(more): \(console.styled("good", .green))")
        }
    }

    private var json: SettingValue {
        var members = [SettingValue.Member("good", .boolean(isGood))]
        if let loaded {
            members.append(.init("files", .array(loaded.files.map { .string($0) })))
            if invocation.has("print") {
                members.append(.init("settings", EffectiveConfiguration(loaded.settings).json))
            }
        }
        members.append(.init("problems", .array(problems.map(CheckReport.value))))
        return .table(members)
    }

    private static func value(_ problem: Problem) -> SettingValue {
        var members = [
            SettingValue.Member("severity", .string(problem.severity.rawValue)),
            .init("code", .string(problem.code.rawValue)), .init("message", .string(problem.message)),
        ]
        if let position = problem.position {
            members += [
                .init("file", .string(position.file)), .init("line", .integer(Int64(position.line))),
                .init("column", .integer(Int64(position.column))),
            ]
        }
        return .table(members)
    }
}
