internal import Configuration

enum HelpCommand {
    /// Prints help: for all commands, for one, for a family, or for the settings.
    static let help = Command(
        name: "help", summary: "explains the commands and the settings",
        arguments: "[COMMAND | configuration [SECTION]]", argumentCount: 0...2,
        details: """
            `spoolship help configuration` prints the reference of the settings: each with its default, \
            what is
            allowed, and why one would change it. With a section's name it prints only that section.
            """
    ) { invocation in
        let text = HelpText(commands: CommandTable.all, console: invocation.console)
        let words = invocation.arguments
        guard let first = words.first else { return try invocation.console.write(text.overview) }
        if first == "configuration" {
            try invocation.console.write(configurationHelp(words.count > 1 ? words[1] : nil))
        } else if let command = CommandTable.all.first(where: { $0.name == words.joined(separator: " ") }) {
            try invocation.console.write(text.page(for: command))
        } else if words.count == 1, let family = text.family(first) {
            try invocation.console.write(family)
        } else {
            throw CommandTable.unknown(words, among: CommandTable.all)
        }
    }

    /// The reference of the settings, or one section of it.
    ///
    /// - Throws: `CommandFailure` with code 64 for a section that does not exist.
    private static func configurationHelp(_ name: String?) throws(CommandFailure) -> String {
        guard let name else { return ShippedFile.reference }
        guard let section = Settings.description.first(where: { $0.name == name }) else {
            let names = Settings.listed.map(\.name)
            let hint = nearestName(to: name, among: names).map { "did you mean \"\($0)\"?" }
            throw CommandFailure(
                .usage, "no section \"\(name)\"; \(hint ?? "there are \(names.joined(separator: ", "))")")
        }
        return section.shippedText()
    }
}
