internal import Agent
internal import Configuration
internal import Glibc
internal import Model

/// A command line that was parsed, as the command's action gets it, with what several commands share.
struct Invocation: Sendable {
    /// Where the package installs the configuration. Only the service's own configuration is here, so `check`
    /// looks at the service's unit only for this path.
    static let defaultConfiguration = "/etc/spoolship/spoolship.toml"

    /// The words after the command that are not options or their values.
    let arguments: [String]
    /// The values of the options by their long names. An option without a value has an empty string for each
    /// time it was given.
    let options: [String: [String]]
    /// Where the command prints.
    let console: Console
    /// The command line without the program's name, for a message that tells the user what to run as root.
    var words: [String] = []
    /// Whether the process may become another user for good; see `CommandLineTool.ownsProcess`.
    var ownsProcess = false

    /// Whether the option was given.
    func has(_ option: String) -> Bool { options[option] != nil }

    /// The value of an option, the last one if it was given several times; nil if it was not given.
    func value(_ option: String) -> String? { options[option]?.last }

    /// All values of an option, in the order given; empty if it was not given.
    func values(_ option: String) -> [String] { options[option] ?? [] }

    /// The path of the configuration: `--config` or the default.
    var configurationPath: String { value("config") ?? Invocation.defaultConfiguration }

    /// Reads the configuration with its rules. Warnings are printed to standard error; an error ends the
    /// command with code 78.
    func loadSettings() throws(ConfigurationError) -> LoadedSettings {
        let loaded = try Settings.loadWithRules(path: configurationPath)
        // Notes about old keys are for `check`.
        for warning in loaded.warnings where warning.severity != .note { console.printError(warning.text) }
        return loaded
    }

    // MARK: Options

    /// A request's body with the options that were given, by their names, and more members. Members that are
    /// nil are left out.
    func body(_ options: String..., and more: KeyValuePairs<String, JSONValue?> = [:]) -> JSONValue {
        let members = options.map { ($0, value($0).map(JSONValue.string)) } + more.map { ($0.key, $0.value) }
        return .object(members.compactMap { key, value in value.map { JSONValue.Member(key, $0) } })
    }

    /// Prints the result of a command: as JSON with `--json`, otherwise as text.
    func show(_ json: JSONValue, or text: @autoclosure () -> String) throws(CommandFailure) {
        try console.write(has("json") ? "\(json)\n" : text())
    }

    /// Ends the command with a code; what was printed before is the reason.
    func end(_ code: ExitCode) throws(CommandFailure) {
        guard code == .success else { throw CommandFailure(code) }
    }

    /// The whole number that an option gives; nil if it was not given. Throws with code 64 outside of the
    /// range.
    func number(_ option: String, _ range: ClosedRange<Int> = 1...Int.max) throws(CommandFailure) -> Int? {
        let bound =
            range.upperBound == .max
            ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
        return try read(option, as: "a whole number, \(bound)") {
            Int($0).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// The duration that an option gives; nil if it was not given. Negative durations are usage errors.
    func duration(_ option: String) throws(CommandFailure) -> Duration? {
        try read(option, as: "a duration such as 30s or 5m") {
            DurationText.parse($0).flatMap { $0 >= .zero ? $0 : nil }
        }
    }

    /// The value that an option gives, read from its text; nil if it was not given.
    ///
    /// - Parameter wanted: what the option takes, for the message of the usage error.
    func read<Value>(
        _ option: String, as wanted: String, _ read: (String) -> Value?
    ) throws(CommandFailure) -> Value? {
        guard let text = value(option) else { return nil }
        if let found = read(text) { return found }
        throw CommandFailure(.usage, "--\(option) \(text): give \(wanted)")
    }

    /// A request's body with the first argument as `id`; empty without an argument.
    var bodyOfID: JSONValue { body(and: ["id": arguments.first.map(JSONValue.string)]) }

    /// The app that `--app` names; nil without the option. It becomes a path in the spool, so it must not
    /// lead out of it.
    func app() throws(CommandFailure) -> String? {
        guard let app = value("app") else { return nil }
        guard !app.contains("/"), !app.hasPrefix(".") else {
            throw CommandFailure(.usage, "--app takes the name of a directory of the spool")
        }
        return app
    }

    /// What the service gives the agent and takes from it. Only for the default configuration, because the
    /// service does not start the agent with another one.
    var unit: UnitSandbox? { configurationPath == Invocation.defaultConfiguration ? UnitSandbox() : nil }

    // MARK: The terminal

    /// Asks the person at the terminal for confirmation, unless `--yes` is given.
    ///
    /// - Throws: `CommandFailure` with code 1 when the answer is not yes, and 64 when standard input is not a
    ///   terminal.
    func confirm(_ what: String) throws(CommandFailure) {
        if has("yes") { return }
        guard isatty(STDIN_FILENO) == 1 else { throw CommandFailure(.usage, "\(what): confirm with --yes") }
        try console.write("\(what). Go on? [y/N] ")
        guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
            throw CommandFailure(.negative, "nothing was changed")
        }
    }
}
