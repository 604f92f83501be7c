internal import Agent
internal import Configuration
internal import Model

/// A command: its name, its help, its options and its action. Help, completions and manual pages are made
/// from the same fields, so they cannot differ from what is parsed.
struct Command: Sendable {
    /// One or two words as they are typed: `check`, `queue list`.
    let name: String
    /// What the command does, as one line without a full stop at the end.
    let summary: String
    /// The arguments as usage shows them, without the options: `NAME [-p KEY=VALUE]…`.
    var arguments = ""
    /// How many arguments are accepted; any other number is a usage error (64) before the command runs.
    var argumentCount: ClosedRange<Int> = 0...0
    /// Some or all of the words that the first argument can be, for completions only. They are not enforced
    /// here.
    var choices: [String] = []
    /// What the summary does not say, as paragraphs, for `help` and the manual page.
    var details = ""
    /// The options of this command. `--config` and `--help` are added to every command, `--socket` to those
    /// that ask an agent.
    var options: [Option] = []
    /// Whether the command asks a running agent through its control socket.
    var asksAgent = false
    /// The action. If it returns, the command was successful (0); a failure is thrown.
    let run: @Sendable (Invocation) throws -> Void

    /// An option of a command.
    struct Option: Sendable {
        /// The long name, without the dashes.
        let name: String
        /// The letter for `-l`, without the dash; nil if there is only the long name.
        let letter: Character?
        /// The name of the value in help (`DURATION`); nil if the option takes no value.
        let value: String?
        /// The words that the value can be, for completions only.
        let choices: [String]
        /// Whether the option can be given more than once. Otherwise a second value is a usage error, because
        /// it would be unclear which one counts.
        let repeats: Bool
        /// What the option does, as one line for help.
        let help: String

        /// - Parameter usage: the long name and, if the option takes a value, the name of the value: `ttl
        ///   DURATION`.
        init(
            _ usage: String, letter: Character? = nil, choices: [String] = [], repeats: Bool = false,
            _ help: String
        ) {
            let words = usage.split(separator: " ", maxSplits: 1).map(String.init)
            name = words[0]
            value = words.count > 1 ? words[1] : nil
            self.letter = letter
            self.choices = choices
            self.repeats = repeats
            self.help = help
        }

        /// Names the configuration file, for every command.
        static let config = Option(
            "config FILE", "the configuration; default \(Invocation.defaultConfiguration)")
        /// Prints the command's help instead of running it.
        static let help = Option("help", letter: "h", "show this help")
        /// The agent's control socket, for every command that asks an agent.
        static let socket = Option(
            "socket FILE", "the agent's control socket; default control.socket of the configuration")
        /// Prints the result as JSON for programs.
        static let json = Option("json", "print JSON")
    }

    /// All options that are parsed, those that are added to every command included.
    var allOptions: [Option] { options + (asksAgent ? [.socket] : []) + [.config, .help] }

    /// A copy of the command that asks a running agent, and so has `--socket`.
    var asking: Command {
        var command = self
        command.asksAgent = true
        return command
    }

    /// The action of a command that sends one request and prints nothing.
    static func asking(
        _ method: String, _ path: String, body: @escaping @Sendable (Invocation) throws -> JSONValue?
    ) -> @Sendable (Invocation) throws -> Void {
        { invocation in _ = try invocation.ask(method, path, body: try body(invocation)) }
    }
}
