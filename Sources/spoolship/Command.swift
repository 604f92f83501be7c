internal import Configuration

/// A command: what it is called with, what help says of it, what it does.
struct Command: Sendable {
    /// Its word or words: `check`, `queue list`.
    let name: String
    /// What it does, in one line that ends without a full stop.
    let summary: String
    /// What follows it, as usage shows it: `NAME [-p KEY=VALUE]…`; options are added by themselves.
    var arguments = ""
    var argumentCount: ClosedRange<Int> = 0...0
    /// The words that its first argument can be, or some of them, for completion.
    var choices: [String] = []
    /// What the summary leaves open; paragraphs.
    var details = ""
    /// Its options, besides `--config` and `--help`, which every command has.
    var options: [Option] = []
    /// Whether it asks a running agent, over its control socket.
    var asksAgent = false
    /// Does it. What is not thrown ended well.
    let run: @Sendable (Invocation) throws -> Void

    struct Option: Sendable {
        /// Its long name, without the dashes.
        let name: String
        /// Its letter, without the dash.
        let letter: Character?
        /// What its value is called in help; nil for an option without one.
        let value: String?
        /// The words that its value can be, for completion.
        let choices: [String]
        /// Whether it may be given more than once.
        let repeats: Bool
        let help: String

        /// - Parameter usage: its long name, and what its value is called where it has one, as help shows them: `ttl DURATION`.
        init(_ usage: String, letter: Character? = nil, choices: [String] = [], repeats: Bool = false, _ help: String) {
            let words = usage.split(separator: " ", maxSplits: 1).map(String.init)
            name = words[0]
            value = words.count > 1 ? words[1] : nil
            self.letter = letter
            self.choices = choices
            self.repeats = repeats
            self.help = help
        }

        static let config = Option("config FILE", "the configuration; default \(Invocation.defaultConfiguration)")
        static let help = Option("help", letter: "h", "show this help")
        /// The agent's control socket: for every command that asks one.
        static let socket = Option(
            "socket FILE", "the agent's control socket; default control.socket of the configuration")
        static let json = Option("json", "print JSON")
    }

    /// All options, those that every command has included.
    var allOptions: [Option] { options + (asksAgent ? [.socket] : []) + [.config, .help] }

    /// The command as one that asks a running agent.
    var asking: Command {
        var command = self
        command.asksAgent = true
        return command
    }
}

/// A command line that was understood.
struct Invocation: Sendable {
    static let defaultConfiguration = "/etc/spoolship/spoolship.toml"

    /// What follows the command and is no option.
    let arguments: [String]
    /// The values of the options by their long names; an option without a value has one empty value each time.
    let options: [String: [String]]
    let console: Console
    /// The command line without the program's name, for a message that repeats it.
    var words: [String] = []
    var ownsProcess = false

    func has(_ option: String) -> Bool { options[option] != nil }

    /// The value of an option; the last one if it is given more than once.
    func value(_ option: String) -> String? { options[option]?.last }

    func values(_ option: String) -> [String] { options[option] ?? [] }

    var configurationPath: String { value("config") ?? Invocation.defaultConfiguration }

    /// Reads the configuration; warnings go to standard error, and its error ends the command with 78.
    func loadSettings() throws(ConfigurationError) -> LoadedSettings {
        let loaded = try Settings.load(path: configurationPath)
        for warning in loaded.warnings { console.printError(warning.text) }
        return loaded
    }
}
