import EventLoops
import Glibc
import TestKit
import Testing

@testable import spoolship

@Suite("Generated files")
struct GeneratedFilesTests {
    @Test(
        "completions, manual pages and the shipped configuration are current (`scripts/generate` writes them)"
    )
    func generatedFilesAreCurrent() throws {
        for file in GeneratedFiles.all {
            #expect(try GoldenFile(file.path).difference(from: file.text) == nil)
        }
    }

    /// A table with all that a table can have.
    static let sample: [Command] = [
        CheckCommand.check, HelpCommand.help, CommandLineTests.sample,
        Command(
            name: "queue show", summary: "shows [one]: it's here",
            options: [.init("count N", "it's a [count]: 'many'")]
        ) { _ in },
    ]

    @Test("every command and option is in each completion and in the manual page")
    func generatedFilesAreComplete() {
        let completions = Completions(GeneratedFilesTests.sample)
        let manual = ManualPages(commands: GeneratedFilesTests.sample).program
        for command in GeneratedFilesTests.sample {
            for option in command.allOptions {
                #expect(completions.bash.contains("--\(option.name)"))
                #expect(completions.zsh.contains("--\(option.name)["))
                #expect(completions.fish.contains("-l \(option.name)"))
                #expect(manual.contains(option.name == "text-only" ? "text\\-only" : option.name))
            }
            #expect(manual.contains(".SS \(command.name) "))
        }
    }

    /// Runs a program with a script on its command line; gives what it printed, or nil when there is no such program.
    private func run(_ words: String...) throws -> (status: Int32, output: String)? {
        let directory = try TemporaryDirectory()
        let out = "\(directory.path)/out"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var process = pid_t()
        guard posix_spawnp(&process, words[0], &actions, nil, &arguments, environ) == 0 else { return nil }
        var status: Int32 = 0
        waitpid(process, &status, 0)
        let bytes = (try? WholeFile.bytes(of: out, atMost: 1 << 20)) ?? []
        return (status, String(decoding: bytes, as: UTF8.self))
    }

    private func write(_ text: String, _ directory: TemporaryDirectory) throws -> String {
        let path = "\(directory.path)/file"
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
        return path
    }

    @Test("bash completes commands, families and options")
    func bashCompletes() throws {
        let directory = try TemporaryDirectory()
        let path = try write(Completions(GeneratedFilesTests.sample).bash, directory)
        func complete(_ words: String...) throws -> [Substring] {
            let list = words.map { "'\($0)'" }.joined(separator: " ")
            let script = """
                . \(path); COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); _spoolship; printf '%s\\n' "${COMPREPLY[@]}"
                """
            return try #require(try run("bash", "-c", script)).output.split(separator: "\n")
        }
        #expect(try complete("spoolship", "") == ["check", "help", "queue"])
        #expect(try complete("spoolship", "queue", "s") == ["show"])
        #expect(try complete("spoolship", "queue", "show", "--co") == ["--count", "--config"])
        #expect(try complete("spoolship", "check", "--pr") == ["--print"])
        #expect(try complete("spoolship", "help", "conf") == ["configuration"])
    }

    @Test("bash completes choices and file names where an option takes them, and nothing elsewhere")
    func bashOffersChoices() throws {
        let directory = try TemporaryDirectory()
        let path = try write(Completions(CommandTable.all).bash, directory)
        func complete(_ words: String...) throws -> [Substring] {
            let list = words.map { "'\($0)'" }.joined(separator: " ")
            let script = """
                cd \(directory.path); . \(path); COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); _spoolship
                printf '%s\\n' "${COMPREPLY[@]}"
                """
            return try #require(try run("bash", "-c", script)).output.split(separator: "\n")
        }
        #expect(
            try complete("spoolship", "log-level", "") == [
                "error", "warning", "info", "debug", "verbose", "default",
            ])
        #expect(try complete("spoolship", "interval", "o") == ["off"])
        #expect(try complete("spoolship", "tap", "--priority", "c") == ["critical"])
        #expect(try complete("spoolship", "queue", "list", "--priority", "") == ["normal", "critical"])
        #expect(
            try complete("spoolship", "container", "get", "--type", "") == [
                "string", "integer", "double", "boolean",
            ])
        #expect(try complete("spoolship", "container", "sign", "") == ["file"])
        #expect(try complete("spoolship", "diagnose", "-o", "") == ["file"])
        #expect(try complete("spoolship", "status", "--socket", "") == ["file"])
        for nothing in [
            ["pause", "--token", ""], ["dead-letters", "show", ""], ["track", ""], ["drain", ""],
        ] {
            let words = ["spoolship"] + nothing
            let list = words.map { "'\($0)'" }.joined(separator: " ")
            let script =
                ". \(path); COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); _spoolship; echo ${#COMPREPLY[@]}"
            #expect(try run("bash", "-c", "cd \(directory.path); \(script)")?.output == "0\n", "\(nothing)")
        }
    }

    @Test("the other shells, if installed, accept their completions", arguments: ["zsh", "fish"])
    func otherShellsAccept(shell: String) throws {
        for table in [GeneratedFilesTests.sample, CommandTable.all] {
            try accept(shell, Completions(table))
        }
    }

    private func accept(_ shell: String, _ completions: Completions) throws {
        let directory = try TemporaryDirectory()
        let path = try write(shell == "zsh" ? completions.zsh : completions.fish, directory)
        guard let result = try run(shell, "-n", path) else { return }
        #expect(result.status == 0, "\(result.output)")
    }

    @Test("man, if installed, formats the pages without a warning")
    func manualPagesFormat() throws {
        let directory = try TemporaryDirectory()
        for page in [
            ManualPages(commands: CommandTable.all).program,
            ManualPages(commands: CommandTable.all).configuration,
        ] {
            let path = try write(page, directory)
            guard let result = try run("groff", "-man", "-Tutf8", "-ww", "-z", path) else { return }
            #expect(result.output.isEmpty, "\(result.output)")
            #expect(result.status == 0)
        }
    }
}
