internal import Configuration
internal import EventLoops
internal import Glibc

/// Finds the command, reads its options, runs it, and turns what it throws into a line and an exit code.
struct CommandLineTool: Sendable {
    let console: Console
    /// Whether the process is the command's alone, so that it may become another user for good.
    var ownsProcess = false
    var commands: [Command] = CommandTable.all

    /// Runs a command line, the program's name not included.
    func run(_ words: [String]) -> ExitCode {
        do {
            try dispatch(words)
            return .success
        } catch let failure as CommandFailure {
            if !failure.message.isEmpty { fail(failure.message) }
            return failure.code
        } catch let error as ConfigurationError {
            console.printError(error.description)
            let count = error.problems.count { $0.severity == .error }
            fail("\(count) \(count == 1 ? "mistake" : "mistakes") in the configuration")
            return .configuration
        } catch let error as SystemError {
            fail("\(error)")
            return [EPERM, EACCES].contains(error.number) ? .noPermission : .inputOutput
        } catch {
            fail("\(error)")
            return .software
        }
    }

    private func fail(_ message: String) {
        console.printError(console.styled("spoolship:", .red, isError: true) + " " + message)
    }

    private func dispatch(_ words: [String]) throws {
        var words = words
        let help = HelpText(commands: commands, console: console)
        switch words.first {
        case nil:
            console.printError(help.overview)
            throw CommandFailure(.usage)
        case "-h", "--help": words[0] = "help"
        case "-V", "--version": words[0] = "version"
        default: break
        }
        if words.count == 2, ["-h", "--help"].contains(words[1]), !commands.contains(where: { $0.name == words[0] }),
            let family = help.family(words[0])
        {
            return try console.write(family)
        }
        let (command, rest) = try find(words)
        let parsed = try ArgumentParser(command: command).parse(rest)
        if parsed.options["help"] != nil { return try console.write(help.page(for: command)) }
        guard command.argumentCount.contains(parsed.arguments.count) else {
            let wrong = parsed.arguments.count < command.argumentCount.lowerBound ? "something is missing" : "too much"
            throw CommandFailure(.usage, "\(wrong) after \"\(command.name)\"; usage: \(HelpText.usage(of: command))")
        }
        try command.run(
            Invocation(
                arguments: parsed.arguments, options: parsed.options, console: console, words: words,
                ownsProcess: ownsProcess))
    }

    /// The command that the first words name; two words stand before one.
    private func find(_ words: [String]) throws(CommandFailure) -> (Command, [String]) {
        if words.count > 1, let command = commands.first(where: { $0.name == "\(words[0]) \(words[1])" }) {
            return (command, Array(words.dropFirst(2)))
        }
        if let command = commands.first(where: { $0.name == words[0] }) { return (command, Array(words.dropFirst())) }
        throw CommandTable.unknown(words, among: commands)
    }
}
