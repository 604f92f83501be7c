/// The texts of help, made from the table of commands.
struct HelpText {
    /// The commands that are listed.
    let commands: [Command]
    /// Knows whether the output may be styled.
    let console: Console

    /// The list of all commands with their summaries.
    var overview: String {
        """
        Spoolship ships the events that apps write to a spool directory: each one, once, in order of \
        importance.

        \(console.styled("usage:", .bold)) spoolship COMMAND [OPTIONS]

        \(console.styled("commands:", .bold))
        \(HelpText.columns(commands.map { ($0.name, $0.summary) }))
        `spoolship help COMMAND` says more of one, `spoolship help configuration` lists all settings.

        """
    }

    /// The help of one command: usage, summary, details and options.
    func page(for command: Command) -> String {
        var text = "\(console.styled("usage:", .bold)) \(HelpText.usage(of: command))\n\n\(command.summary)\n"
        if !command.details.isEmpty {
            text += "\n\(command.details)\n"
        }
        text += "\n\(console.styled("options:", .bold))\n"
        return text + HelpText.columns(command.allOptions.map { (HelpText.shown($0), $0.help) })
    }

    /// The commands with a first word such as `queue`, with their summaries; nil if no command has it.
    func family(_ word: String) -> String? {
        let members = commands.filter { $0.name.hasPrefix(word + " ") }
        return members.isEmpty ? nil : HelpText.columns(members.map { ($0.name, $0.summary) })
    }

    /// The usage line of a command.
    static func usage(of command: Command) -> String {
        ["spoolship", command.name, command.arguments, "[OPTIONS]"].filter { !$0.isEmpty }.joined(
            separator: " ")
    }

    /// An option as help shows it: `-l, --name VALUE…`.
    static func shown(_ option: Command.Option) -> String {
        let letter = option.letter.map { "-\($0), " } ?? "    "
        return "\(letter)--\(option.name)\(option.value.map { " \($0)" } ?? "")\(option.repeats ? "…" : "")"
    }

    /// Rows of two columns, the first as wide as its widest text.
    static func columns(_ rows: [(String, String)]) -> String {
        let width = (rows.map(\.0.count).max() ?? 0) + 2
        return rows.map { "  \(pad($0.0, to: width))\($0.1)\n" }.joined()
    }

    /// The text filled up with blanks; longer text stays as it is.
    static func pad(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
