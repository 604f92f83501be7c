//  spoolship: the command line. One table of commands drives parsing, help, suggestions, completions and manual pages;
//  each command is one file in Commands/ and one line in the table. What a command does happens in the modules: it
//  knows nothing of how they work inside.

internal import Glibc

/// The program. Not async: nothing runs on Swift's default executor.
@main
enum Main {
    static func main() {
        let code = CommandLineTool(console: .standard).run(Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }
}
