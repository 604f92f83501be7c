import Synchronization
import Testing

@testable import spoolship

/// A console that keeps what is written to it.
final class KeptConsole: Sendable {
    private let out = Mutex<[UInt8]>([])
    private let errors = Mutex<[UInt8]>([])

    var output: String { out.withLock { String(decoding: $0, as: UTF8.self) } }
    var errorOutput: String { errors.withLock { String(decoding: $0, as: UTF8.self) } }

    func console(colour: Bool = false) -> Console {
        Console(
            isTerminal: colour, hasColour: colour, errorHasColour: colour,
            writeOut: { bytes in
                self.out.withLock { $0 += bytes }
                return true
            },
            writeError: { bytes in
                self.errors.withLock { $0 += bytes }
                return true
            })
    }

    /// Runs a command line; gives its exit code.
    static func run(_ words: String..., commands: [Command]? = nil) -> (ExitCode, KeptConsole) {
        run(words, commands: commands)
    }

    static func run(_ words: [String], commands: [Command]? = nil) -> (ExitCode, KeptConsole) {
        let kept = KeptConsole()
        var tool = CommandLineTool(console: kept.console())
        if let commands { tool.commands = commands }
        return (tool.run(words), kept)
    }
}

@Suite("The command line")
struct CommandLineTests {
    @Test(
        "an unknown word is answered by one line with the nearest word, and exit code 64",
        arguments: [
            (["chekc"], "no command \"chekc\"; did you mean \"check\"?"),
            (["xyzzy"], "`spoolship help` lists them"),
            (["check", "--prnt"], "no option --prnt of \"check\"; did you mean --print?"),
            (["check", "-print"], "did you mean --print?"),
            (["check", "-x"], "`spoolship help check` lists them"),
            (["check", "--config"], "--config needs a value: --config FILE"),
            (["track", "e", "-p", "--critical"], "-p needs a value before --critical"),
            (["interval", "5"], "interval"),
            (["check", "--print=1"], "takes no value"),
            (["check", "now"], "too much after \"check\"; usage: spoolship check [OPTIONS]"),
            (["check", "--config", "a", "--config", "b"], "twice"),
            (["help", "chekc"], "did you mean \"check\"?"),
            (["help", "configuration", "queu"], "did you mean \"queue\"?"),
        ])
    func mistakesOfUsage(words: [String], message: String) {
        let kept = KeptConsole()
        #expect(CommandLineTool(console: kept.console()).run(words) == .usage)
        #expect(kept.output.isEmpty)
        #expect(kept.errorOutput.contains(message), "\(kept.errorOutput)")
        #expect(kept.errorOutput.hasPrefix("spoolship: "))
        #expect(kept.errorOutput.split(separator: "\n").count == 1)
    }

    @Test("help lists every command, and each command has a page with its options")
    func helpIsComplete() {
        let (code, kept) = KeptConsole.run("help")
        #expect(code == .success)
        for command in CommandTable.all {
            #expect(kept.output.contains("  \(command.name) "))
            let (code, page) = KeptConsole.run("help", command.name)
            #expect(code == .success)
            #expect(page.output.hasPrefix("usage: spoolship \(command.name)"))
            for option in command.allOptions { #expect(page.output.contains("--\(option.name)")) }
            #expect(!command.summary.hasSuffix("."))
            #expect(KeptConsole.run(command.name, "--help").1.output == page.output)
        }
        #expect(Set(CommandTable.all.map(\.name)).count == CommandTable.all.count)
    }

    @Test("without a command, help goes to standard error, with exit code 64")
    func nothingGiven() {
        let (code, kept) = KeptConsole.run()
        #expect(code == .usage)
        #expect(kept.output.isEmpty)
        #expect(kept.errorOutput.contains("usage: spoolship COMMAND"))
    }

    static let sample = Command(
        name: "queue list", summary: "lists", arguments: "NAME…", argumentCount: 0...9,
        options: [
            .init("property KEY=VALUE", letter: "p", repeats: true, "a property"),
            .init("critical", letter: "c", "critical"),
        ]
    ) { invocation in
        try invocation.console.print(
            "\(invocation.arguments) \(invocation.values("property")) \(invocation.has("critical"))")
    }

    @Test(
        "options are accepted at any position and in each form; -- ends them, negative numbers are values",
        arguments: [
            (["a", "-p", "k=v", "b"], "[\"a\", \"b\"] [\"k=v\"] false"),
            (["-pk=v", "--property=x=y", "--property", "", "-c"], "[] [\"k=v\", \"x=y\", \"\"] true"),
            (["-1", "-", "--", "-c", "--"], "[\"-1\", \"-\", \"-c\", \"--\"] [] false"),
        ])
    func waysOfWritingOptions(words: [String], understood: String) {
        let kept = KeptConsole()
        var tool = CommandLineTool(console: kept.console())
        tool.commands = [CommandLineTests.sample]
        #expect(tool.run(["queue", "list"] + words) == .success)
        #expect(kept.output == understood + "\n")
    }

    @Test("an empty value of an option is refused")
    func emptyValues() {
        for words in [["status", "--socket", ""], ["status", "--socket="], ["tap", "--app", ""]] {
            let (code, kept) = KeptConsole.run(words)
            #expect(code == .usage && kept.errorOutput.contains(" needs a value: --"), "\(kept)")
        }
    }

    @Test("a command without its second word lists the choices")
    func families() {
        let commands = [CommandLineTests.sample]
        #expect(
            KeptConsole.run("queue", commands: commands).1.errorOutput
                == "spoolship: queue needs one of list\n")
        let (code, kept) = KeptConsole.run("queue", "lits", commands: commands)
        #expect(code == .usage)
        #expect(kept.errorOutput == "spoolship: no command \"queue lits\"; did you mean \"queue list\"?\n")
        for word in ["-h", "--help"] {
            let (code, kept) = KeptConsole.run("queue", word, commands: commands)
            #expect(code == .success && kept.output == "  queue list  lists\n", "\(kept)")
        }
    }

    @Test("version lists the libraries, also as JSON")
    func versionNamesLibraries() {
        let (code, kept) = KeptConsole.run("--version")
        #expect(code == .success)
        #expect(kept.output.hasPrefix("spoolship \(Build.version)\n"))
        for word in ["commit", "toolchain", "sqlite", "curl", "openssl", "zstd", "isa-l"] {
            #expect(kept.output.contains("  \(word) "))
            #expect(KeptConsole.run("version", "--json").1.output.contains("\"\(word)\":\""))
        }
        #expect(!kept.output.contains("unknown") || Build.commit == "unknown")
    }

    @Test("colours are used only on terminals, or if they are requested")
    func colours() {
        let kept = KeptConsole()
        _ = CommandLineTool(console: kept.console(colour: true)).run(["help"])
        #expect(kept.output.contains("\u{1B}[1m"))
        #expect(!KeptConsole.run("help").1.output.contains("\u{1B}"))
    }

    @Test("an output that cannot be written is an error")
    func outputThatCannotBeWritten() {
        let console = Console(
            isTerminal: false, hasColour: false, errorHasColour: false, writeOut: { _ in false },
            writeError: { _ in true })
        #expect(CommandLineTool(console: console).run(["version"]) == .inputOutput)
    }
}
