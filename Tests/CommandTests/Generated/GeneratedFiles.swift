import Configuration

@testable import spoolship

/// The files of the repository that are made of the tables of commands and settings; `scripts/generate`
/// writes them.
enum GeneratedFiles {
    /// Paths in the repository, and texts.
    static var all: [(path: String, text: String)] {
        let completions = Completions(CommandTable.all)
        let manual = ManualPages(commands: CommandTable.all)
        return [
            ("etc/spoolship.toml", ShippedFile.text),
            ("docs/reference.md", ReferencePage.text),
            ("packaging/completions/spoolship.bash", completions.bash),
            ("packaging/completions/spoolship.zsh", completions.zsh),
            ("packaging/completions/spoolship.fish", completions.fish),
            ("packaging/man/spoolship.1", manual.program),
            ("packaging/man/spoolship.toml.5", manual.configuration),
        ]
    }
}
