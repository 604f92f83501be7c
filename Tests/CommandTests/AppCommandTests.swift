import Control
import EventLoops
import Glibc
import TestKit
import Testing

@testable import spoolship

@Suite("Directories of apps")
struct AppCommandTests {
    private let directory: TemporaryDirectory
    private let own: String

    private var spool: String { "\(directory.path)/spool" }

    init() throws {
        directory = try TemporaryDirectory()
        own = String(cString: try #require(getpwuid(geteuid())).pointee.pw_name)
        try #require(mkdir("\(directory.path)/spool", 0o755) == 0)
        let file = try #require(fopen("\(directory.path)/spoolship.toml", "w"))
        fputs("[spool]\ndirectory = \"\(directory.path)/spool\"\n", file)
        fclose(file)
    }

    private func run(_ words: String...) -> (code: ExitCode, console: KeptConsole) {
        let kept = KeptConsole()
        let code = CommandLineTool(console: kept.console()).run(
            words + ["--config", "\(directory.path)/spoolship.toml"])
        return (code, kept)
    }

    @Test("control characters in names and content are escaped before they reach the terminal")
    func controlCharacters() throws {
        try #require(mkdir("\(spool)/a\u{1B}]0;x\u{7}b\u{9B}2J\u{202E}c", 0o755) == 0)
        let (code, console) = run("app", "list")
        #expect(code == .success)
        #expect(console.output.contains(#"a\u001b]0;x\u0007b\u009b2J\u202ec"#), "\(console.output)")
        #expect(!console.output.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" && $0 != "\t" })
        let red = Console.marks.styled("red", "31")
        #expect(
            Console.marks.resolved("\(red)\u{1B}[31m\u{1B}[H\r")
                == "\u{1B}[31mred\u{1B}[0m\\u001b[31m\\u001b[H\\u000d")
        let plain = KeptConsole()
        try plain.console().write(bytes: [0x1B, 0x41])
        #expect(plain.output == "\u{1B}A")
        let terminal = KeptConsole()
        try terminal.console(colour: true).write(bytes: [0x1B, 0x41])
        #expect(terminal.output == "\\u001bA")
    }

    @Test("app add makes a directory of the user, with files that the agent can read whatever the umask is")
    func add() throws {
        let (code, console) = run("app", "add", "shop", "--user", own)
        #expect(code == .success && !console.errorOutput.contains("control lists"), "\(console.errorOutput)")
        #expect(console.output == "\(spool)/shop: \(own) writes there as app shop\n")
        let status = try #require(FileStatus("\(spool)/shop"))
        #expect(status.shownMode == "2770" && status.owner == geteuid())
        // The list stands in for the umask, which would have made it 0644.
        let file = Descriptor(open("\(spool)/shop/a.jsonl", O_WRONLY | O_CREAT | O_CLOEXEC, 0o666))
        #expect(file.raw >= 0)
        #expect(FileStatus("\(spool)/shop/a.jsonl")?.shownMode == "0660")
        #expect(FileStatus("\(spool)/shop/a.jsonl")?.group == status.group)
    }

    @Test("app add repairs the mode of an existing directory, but not of another user's")
    func addAgain() throws {
        #expect(run("app", "add", "shop", "--user", own).code == .success)
        try #require(chmod("\(spool)/shop", 0o700) == 0)
        #expect(run("app", "add", "shop", "--user", own).code == .success)
        #expect(FileStatus("\(spool)/shop")?.shownMode == "2770")
        guard geteuid() == 0 else { return }
        let other = try #require(getpwnam("nobody")).pointee.pw_uid
        try #require(mkdir("\(spool)/theirs", 0o700) == 0 && chown("\(spool)/theirs", other, gid_t.max) == 0)
        let (code, console) = run("app", "add", "theirs", "--user", own)
        #expect(
            code == .cannotCreate && console.errorOutput.contains("belongs to nobody"),
            "\(console.errorOutput)")
        #expect(FileStatus("\(spool)/theirs")?.shownMode == "0700")
    }

    @Test(
        "reserved and invalid names of apps are refused, and so are unknown users",
        arguments: [
            (["incoming"], "drop box for everyone"), (["default"], "files at the top"),
            ([".hidden"], "no dot in front"), (["a/b"], "letters, digits"),
            (["shop", "--user", "no-such-user"], "there is no user no-such-user"),
            (["no-such-user"], "--user USER"),
        ])
    func refused(words: [String], message: String) {
        let kept = KeptConsole()
        let code = CommandLineTool(console: kept.console()).run(
            ["app", "add"] + words + ["--config", "\(directory.path)/spoolship.toml"])
        #expect(code == .usage && kept.errorOutput.contains(message), "\(kept.errorOutput)")
    }

    @Test("app list shows the owner of each directory")
    func list() throws {
        #expect(run("app", "list").console.output.contains("spoolship app add"))
        #expect(run("app", "add", "shop", "--user", own).code == .success)
        try #require(mkdir("\(spool)/.spoolship", 0o755) == 0 && mkdir("\(spool)/incoming", 0o755) == 0)
        let lines = run("app", "list").console.output.split(separator: "\n")
        #expect(lines.count == 3 && lines[1].hasPrefix("incoming") && lines[2].hasPrefix("shop"), "\(lines)")
        #expect(lines[1].hasSuffix("the app is the file's owner") && lines[2].hasSuffix("2770"), "\(lines)")
        let json = run("app", "list", "--json").console.output
        #expect(json.contains(#""app""#) && json.contains(#""2770""#), "\(json)")
    }

    @Test("app list warns of a directory that everybody may write to, with a remedy, except the drop box")
    func writableByAll() throws {
        try #require(mkdir("\(spool)/shop", 0o755) == 0 && chmod("\(spool)/shop", 0o2777) == 0)
        try #require(mkdir("\(spool)/incoming", 0o755) == 0 && chmod("\(spool)/incoming", 0o1777) == 0)
        let output = run("app", "list").console.output
        #expect(
            output.contains(
                "2777  can be written by anyone, who can then write as this app: spoolship app add shop --user \(own)"
            ),
            "\(output)")
        #expect(output.contains("1777  anyone; the app is the file's owner"), "\(output)")
    }

    @Test("app add says if there is no spool")
    func noSpool() throws {
        try #require(rmdir(spool) == 0)
        let (code, console) = run("app", "add", "shop", "--user", own)
        #expect(
            code == .cannotCreate && console.errorOutput.contains("there is no spool"),
            "\(console.errorOutput)")
    }
}
