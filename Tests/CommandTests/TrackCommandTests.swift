import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import spoolship

@Suite("track")
struct TrackCommandTests {
    private let directory: TemporaryDirectory
    private let configuration: String
    private var spool: String { "\(directory.path)/spool" }

    init() throws {
        directory = try TemporaryDirectory()
        configuration = "\(directory.path)/spoolship.toml"
        mkdir("\(directory.path)/spool", 0o755)
        let destination = "[[destination]]\nname = \"main\"\nurl = \"https://example.com/\"\n"
        try write("spool.directory = \"\(directory.path)/spool\"\n\(destination)", to: configuration)
    }

    private func write(_ text: String, to path: String) throws {
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
    }

    private func track(_ words: String...) -> (ExitCode, KeptConsole) {
        let kept = KeptConsole()
        let code = CommandLineTool(console: kept.console()).run(
            ["track"] + words + ["--config", configuration])
        return (code, kept)
    }

    /// The events in a directory, by the names of their files; the files go.
    private func taken(_ path: String) throws -> [JSONValue] {
        try written(path).map { try JSONValue(parsing: Array($0.utf8)) }
    }

    /// The same as text.
    private func written(_ path: String) throws -> [String] {
        let stream = try #require(opendir(path))
        defer { closedir(stream) }
        var events: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != ".", name != "..", entry.pointee.d_type == DT_REG else { continue }
            // Complete at once: a name that the agent reads, and nothing left of the name it was written under.
            #expect(name.hasSuffix(".json") && !name.hasPrefix("."), "\(name)")
            var status = stat()
            #expect(stat("\(path)/\(name)", &status) == 0 && status.st_mode & 0o777 == 0o640)
            let file = try #require(fopen("\(path)/\(name)", "r"))
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let count = fread(&bytes, 1, bytes.count, file)
            events.append(String(decoding: bytes[..<count], as: UTF8.self))
            unlink("\(path)/\(name)")
        }
        return events
    }

    @Test("with --spool no configuration is read, because users of apps may not be able to")
    func withoutConfiguration() throws {
        let kept = KeptConsole()
        let tool = CommandLineTool(console: kept.console())
        #expect(
            tool.run(["track", "a", "--spool", spool, "--config", "\(directory.path)/none.toml"]) == .success)
        #expect(try taken(spool).map { $0["name"]?.string } == ["a"])
        #expect(tool.run(["track", "a", "--config", "\(directory.path)/none.toml"]) == .configuration)
    }

    @Test("an event has typed properties, time and priority, in a file that is complete from the start")
    func event() throws {
        let before = SystemTime().wallTime
        let (code, kept) = track(
            "Video \"clicked\" 😀", "-p", "seconds=41", "-p", "share=0.5", "--property=yes=true", "-p",
            "text=a=b",
            "-p", "none=null", "-pquoted=\"x\"", "-t", "number=7", "--critical")
        #expect(code == .success && kept.output.isEmpty && kept.errorOutput.isEmpty, "\(kept.errorOutput)")
        let event = try #require(try taken(spool).first)
        #expect(event["name"]?.string == "Video \"clicked\" 😀" && event["priority"]?.string == "critical")
        #expect(
            event["properties"] == [
                "seconds": 41, "share": .double(0.5), "yes": true, "text": "a=b", "none": "null",
                "quoted": "\"x\"",
                "number": "7",
            ])
        let time = try #require(event["timestamp"]?.string)
        #expect(time >= "\(before)" && time <= "\(SystemTime().wallTime)" && time.hasSuffix("Z"))
        #expect(track("plain").0 == .success)
        let plain = try #require(try taken(spool).first)
        #expect(plain["properties"] == nil && plain["priority"] == nil)
    }

    @Test("a number is written with the digits given; a text that is not a JSON number becomes a string")
    func numbersAsGiven() throws {
        let numbers = [
            "18446744073709551616", "12345678901234567890123", "0.1234567890123456789", "1.10", "1e3", "-0",
        ]
        let texts = [" 5", "5 ", "+5", "05", "0x5", "1."]
        for value in numbers { #expect(track("x", "-p", "n=\(value)", "-t", "t=\(value)").0 == .success) }
        for value in texts { #expect(track("x", "-p", "n=\(value)").0 == .success) }
        let found = try written(spool).map { $0.split(separator: "\"properties\":")[1] }
        let wanted =
            numbers.map { "{\"n\":\($0),\"t\":\"\($0)\"}}\n" } + texts.map { "{\"n\":\"\($0)\"}}\n" }
        #expect(found.map { String($0) }.sorted() == wanted.sorted())
    }

    @Test("an event goes to the named app's directory, else to the drop box, else to the spool itself")
    func directories() throws {
        #expect(track("x").0 == .success)
        #expect(try taken(spool).count == 1)
        mkdir("\(spool)/incoming", 0o733)
        mkdir("\(spool)/shop", 0o755)
        #expect(track("x").0 == .success && track("y", "--app", "shop").0 == .success)
        #expect(try taken(spool).isEmpty)
        let (incoming, shop) = (try taken("\(spool)/incoming"), try taken("\(spool)/shop"))
        #expect(incoming.count == 1 && shop.count == 1)
        let (code, kept) = track("x", "--app", "bank")
        #expect(
            code == .cannotCreate && kept.errorOutput.contains("the spool has no directory \(spool)/bank"))
        // The agent would never read it, and whoever made the link chooses where it goes.
        mkdir("\(directory.path)/elsewhere", 0o755)
        #expect(symlink("\(directory.path)/elsewhere", "\(spool)/link") == 0)
        let (refused, said) = track("x", "--app", "link")
        #expect(
            refused == .cannotCreate && said.errorOutput.contains("\(spool)/link is a link"),
            "\(said.errorOutput)")
        #expect(try taken("\(directory.path)/elsewhere").isEmpty)
        #expect(track("x", "--app", "../etc").0 == .usage && track("x", "--app", ".hidden").0 == .usage)
    }

    @Test("ac08: an event that the agent does not accept now is not written, and the exit code is 75")
    func ac08_state() throws {
        mkdir("\(spool)/.spoolship", 0o755)
        for (text, normal, critical) in [
            ("none\nthe disk is full\n", ExitCode.temporaryFailure, ExitCode.temporaryFailure),
            ("critical\nfull of critical events\n", .temporaryFailure, .success),
            ("all\n", .success, .success),
        ] {
            try write(text, to: "\(spool)/.spoolship/state")
            let (code, kept) = track("x")
            #expect(code == normal)
            if code != .success { #expect(kept.errorOutput.contains(text.split(separator: "\n")[1])) }
            #expect(track("x", "--critical").0 == critical)
            #expect(try taken(spool).count == [normal, critical].filter { $0 == .success }.count)
        }
    }

    @Test("in a drop box a state file is ignored, because any user could write it")
    func dropBoxState() throws {
        mkdir("\(spool)/incoming", 0o755)
        mkdir("\(spool)/incoming/.spoolship", 0o755)
        try write("none\nsays anybody\n", to: "\(spool)/incoming/.spoolship/state")
        #expect(track("x").0 == .temporaryFailure)
        #expect(chmod("\(spool)/incoming", 0o3733) == 0)
        #expect(track("x").0 == .success)
    }

    @Test("a word without a meaning is an error that says what to write")
    func mistakes() throws {
        #expect(track("").1.errorOutput.contains("the event's name is empty"))
        #expect(track("x", "-p", "seconds").1.errorOutput.contains("-p takes KEY=VALUE"))
        #expect(track("x", "-t", "=1").0 == .usage && track().0 == .usage && track("a", "b").0 == .usage)
        rmdir(spool)
        #expect(track("x").0 == .cannotCreate)
    }
}
