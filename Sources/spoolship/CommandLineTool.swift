internal import Configuration
internal import EventLoops
internal import Glibc

/// Runs a command line: finds the command, parses its options, runs it, and turns the error that it throws
/// into a line on standard error and an exit code. `Main` has the only one of the process; tests make their
/// own with a console that records.
struct CommandLineTool: Sendable {
    /// Where the command prints.
    let console: Console
    /// Whether the process exists for this command only, so that it may become another user for good. False
    /// in tests, which run many commands in one process.
    var ownsProcess = false
    /// The commands that can be called; tests pass their own.
    var commands: [Command] = CommandTable.all

    /// Runs a command line without the program's name, and returns the code to exit with. Every error ends
    /// here: a configuration with mistakes is printed with all of them, an error of the system gives 77 if it
    /// is about permission and 74 otherwise, and an unknown error 70.
    func run(_ words: [String]) -> ExitCode {
        do {
            try dispatch(words)
            return .success
        } catch let failure as CommandFailure {
            if !failure.message.isEmpty {
                fail(failure.message)
            }
            return failure.code
        } catch let error as ConfigurationError {
            console.printError(error.description)
            // The description has a line for each problem; this is the sum.
            let count = error.problems.count { $0.severity == .error }
            fail("\(count) \(count == 1 ? "mistake" : "mistakes") in the configuration")
            return .configuration
        } catch let error as SystemError {
            fail("\(error)")
            // A missing permission has a code of its own, so that a script can repeat the command as root.
            return [EPERM, EACCES].contains(error.number) ? .noPermission : .inputOutput
        } catch {
            fail("\(error)")
            return .software
        }
    }

    /// Prints why the command failed, after the program's name.
    private func fail(_ message: String) {
        console.printError(console.styled("spoolship:", .red, isError: true) + " " + message)
    }

    /// Finds the command of a command line, parses the rest and runs it.
    private func dispatch(_ words: [String]) throws {
        var words = words
        let help = HelpText(commands: commands, console: console)
        switch words.first {
        case nil:
            console.printError(help.overview)
            throw CommandFailure(.usage)
        // The options that every program has are commands here: `spoolship --help` is `spoolship help`.
        case "-h", "--help": words[0] = "help"
        case "-V", "--version": words[0] = "version"
        default: break
        }
        // `spoolship queue --help`: the first word is not a command but the first word of some.
        if words.count == 2, ["-h", "--help"].contains(words[1]),
            !commands.contains(where: { $0.name == words[0] }),
            let family = help.family(words[0])
        {
            return try console.write(family)
        }
        let (command, rest) = try find(words)
        let parsed = try ArgumentParser(command: command).parse(rest)
        if parsed.options["help"] != nil { return try console.write(help.page(for: command)) }
        guard command.argumentCount.contains(parsed.arguments.count) else {
            let wrong =
                parsed.arguments.count < command.argumentCount.lowerBound
                ? "something is missing" : "too much"
            throw CommandFailure(
                .usage, "\(wrong) after \"\(command.name)\"; usage: \(HelpText.usage(of: command))")
        }
        try command.run(
            Invocation(
                arguments: parsed.arguments, options: parsed.options, console: console, words: words,
                ownsProcess: ownsProcess))
    }

    /// The command that the first words name, and the words that follow. Names of two words are tried first,
    /// because `queue list` would not be found after a command `queue`.
    private func find(_ words: [String]) throws(CommandFailure) -> (Command, [String]) {
        if words.count > 1, let command = commands.first(where: { $0.name == "\(words[0]) \(words[1])" }) {
            return (command, Array(words.dropFirst(2)))
        }
        if let command = commands.first(where: { $0.name == words[0] }) {
            return (command, Array(words.dropFirst()))
        }
        throw CommandTable.unknown(words, among: commands)
    }
}
