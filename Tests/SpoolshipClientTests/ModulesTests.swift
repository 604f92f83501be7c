import Foundation
import TestKit
import Testing

/// A language with a module of its own, and the program that the tests run with it.
struct ModuleLanguage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let command: [String]

    private static let files = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let examples = files.deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("examples").path

    static let python = ModuleLanguage(
        testDescription: "Python",
        command: ["python3", "\(files.path)/Fixtures/steps.py", "\(examples)/python/spoolship.py"])
    static let node = ModuleLanguage(
        testDescription: "Node.js",
        command: ["node", "\(files.path)/Fixtures/steps.mjs", "\(examples)/node/spoolship.mjs"])
    static let all = [python, node]

    /// Whether the machine has both.
    static let areThere = ["python3", "node"].allSatisfy { command in
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(command)")
        }
    }
}

@Suite("The modules for Python and Node.js", .enabled(if: ModuleLanguage.areThere))
struct ModulesTests {
    /// Runs steps of the language's program; the lines that it printed.
    private func run(_ language: ModuleLanguage, _ step: String, _ arguments: String...) throws -> [String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["PYTHONDONTWRITEBYTECODE=1", "timeout", "120"] + language.command + [step] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text)")
        return text.split(separator: "\n").map(String.init)
    }

    private func names(_ directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    }

    /// The events of all files that the agent reads, each line whole.
    private func events(_ directory: TemporaryDirectory) throws -> [[String: Any]] {
        try names(directory).filter { $0.hasSuffix(".jsonl") || $0.hasSuffix(".jsonl.1") }.flatMap { name in
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(directory.path)/\(name)"))
            #expect(data.isEmpty || data.last == 0x0A)
            return try data.split(separator: 0x0A).map { line in
                try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
            }
        }
    }

    @Test(
        "every event is written once, as a whole, in files of the stated size", arguments: ModuleLanguage.all)
    func exactness(_ language: ModuleLanguage) throws {
        let directory = try TemporaryDirectory()
        _ = try run(language, "write", directory.path, "2000", "10000")
        let found = try events(directory).compactMap { $0["name"] as? String }
        #expect(found.count == 2000 && Set(found) == Set((0..<2000).map(String.init)))
        let files = try names(directory)
        #expect(files.count > 10 && files.allSatisfy { $0.hasSuffix(".jsonl.1") }, "\(files)")
        for file in files {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory.path)/\(file)")
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o640)
            #expect(((attributes[.size] as? NSNumber)?.intValue ?? 0) <= 10_000 + 200)
        }
    }

    @Test(
        "types, priority, time, country, sessions and pushes follow the protocol",
        arguments: ModuleLanguage.all)
    func protocolIsKept(_ language: ModuleLanguage) throws {
        let directory = try TemporaryDirectory()
        _ = try run(language, "features", directory.path)
        let found = try events(directory)
        #expect(
            found.map { $0["name"] as? String } == ["Video \"clicked\"\n", "start_session", "b", nil, "c"])
        let first = found[0]
        #expect(first["priority"] as? String == "critical" && first["country"] as? String == "IT")
        #expect(first["session_id"] is NSNull && first["pid"] is NSNumber)
        let properties = try #require(first["properties"] as? [String: Any])
        #expect(properties["text"] as? String == "é😀\u{1}" && properties["yes"] as? Bool == true)
        #expect((properties["whole"] as? NSNumber)?.int64Value == 9_007_199_254_740_993)
        #expect((properties["number"] as? NSNumber)?.doubleValue == 0.1)
        #expect(properties["time"] as? String == "2026-11-20T10:00:00.123Z")
        let session = try #require(found[1]["session_id"] as? String)
        #expect(UUID(uuidString: session) != nil && found[1]["type"] as? String == "start_session")
        #expect(found[2]["session_id"] as? String == session && found[2]["country"] == nil)
        let push: NSDictionary = [
            "type": "data_layer", "event": "openScreen", "cart": ["items": [1, 2.5, NSNull()] as [Any]],
        ]
        #expect(found[3] as NSDictionary == push)
        let formats = ISO8601DateFormatter()
        formats.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        let time = try #require((found[4]["timestamp"] as? String).flatMap { formats.date(from: $0) })
        #expect(abs(time.timeIntervalSinceNow) < 600)
    }

    @Test("mistakes raise errors and write nothing", arguments: ModuleLanguage.all)
    func mistakes(_ language: ModuleLanguage) throws {
        let directory = try TemporaryDirectory()
        let lines = try run(language, "mistakes", directory.path)
        #expect(lines.count == 13 && lines.allSatisfy { $0.hasPrefix("refused ") }, "\(lines)")
        #expect(try events(directory).isEmpty)
    }

    @Test("ac08, ac16, ac17: the agent's state, pause and switch are obeyed", arguments: ModuleLanguage.all)
    func switches(_ language: ModuleLanguage) throws {
        let root = try TemporaryDirectory()
        let path = "\(root.path)/shop"
        mkdir(path, 0o755)
        let directory = try TemporaryDirectory()
        // A process that did not live to finish or release its files, one that lives, and another program's.
        for name in [
            "app-2147483647-x-1.jsonl", "app-2147483647-x-2.jsonl.part", "app-\(getpid())-x-1.jsonl.part",
            "app-20261129-x.jsonl.part",
        ] {
            try Data("{\"name\":\"old\"}\n".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/\(name)"))
        }
        #expect(try run(language, "pause", directory.path) == ["3 hidden", "true", "0 hidden", "false"])
        let found = try events(directory).compactMap { $0["name"] as? String }
        #expect(found.sorted() == ["after", "before", "closed", "kept", "old", "old"])
        #expect(try run(language, "disable", directory.path) == ["true", "false"])
        #expect(try run(language, "disable", directory.path) == ["false", "true"])
        #expect(try events(directory).count { $0["name"] as? String == "yes" } == 1)
        #expect(try events(directory).count { $0["name"] as? String == "no" } == 0)
        mkdir("\(root.path)/.spoolship", 0o755)
        for (text, outcome) in [
            ("all\n", ["ok", "ok"]), ("critical\nfull\n", ["refused full", "ok"]),
            ("none\ndisabled", ["refused disabled", "refused disabled"]), ("other\n", ["ok", "ok"]),
        ] {
            try text.write(toFile: "\(root.path)/.spoolship/state", atomically: true, encoding: .utf8)
            #expect(try run(language, "state", path) == outcome, "\(text)")
        }
    }

    @Test("ga05: dispatch returns good, no data, or an error without an agent", arguments: ModuleLanguage.all)
    func dispatch(_ language: ModuleLanguage) async throws {
        let directory = try TemporaryDirectory()
        #expect(try run(language, "dispatch", directory.path, "0.5").first?.hasPrefix("error spool") == true)
        for name in try names(directory) { unlink("\(directory.path)/\(name)") }
        let path = directory.path
        let reader = Task.detached {
            while !Task.isCancelled {
                for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
                where name.hasSuffix(".jsonl.1") { unlink("\(path)/\(name)") }
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
        defer { reader.cancel() }
        let lines = try run(language, "dispatch", directory.path, "30")
        #expect(lines.count == 3 && lines[0] != "error spool" && lines[0].hasSuffix(" queue"), "\(lines)")
        #expect(lines[1...] == ["no_data queue", "no_data spool"])
    }

    @Test("tm19: getters are typed; a missing value gives the standard value", arguments: ModuleLanguage.all)
    func values(_ language: ModuleLanguage) throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/values.json"
        #expect(
            try run(language, "values", file) == [
                ":0:0:false", ":0:0:false", ":0:0:false", ":0:0:false", ":0:0:false",
            ])
        try #"{"values":{"text":"hello","number":"12","whole":7,"part":2.5,"flag":true}}"#
            .write(toFile: file, atomically: true, encoding: .utf8)
        #expect(
            try run(language, "values", file)
                == ["hello:0:0:false", "12:12:12:false", "7:7:7:false", "2.5:0:2.5:false", "true:0:0:true"])
    }

    @Test(
        "an answer that is cut, no object or too long means that there is no agent",
        arguments: ModuleLanguage.all)
    func answers(_ language: ModuleLanguage) throws {
        let directory = try TemporaryDirectory()
        let unavailable = Array(repeating: "unavailable", count: 4)
        #expect(
            try run(language, "answers", directory.path) == unavailable + ["longer", "error queue longer"])
    }

    @Test("a head or a line without an end ends the connection", arguments: ModuleLanguage.all)
    func bounds(_ language: ModuleLanguage) throws {
        let directory = try TemporaryDirectory()
        let lines = try run(language, "bounds", directory.path)
        #expect(lines.count >= 2 && lines.allSatisfy { $0 == "longer" }, "\(lines)")
    }

    @Test("Python: calls come although the hook for failures fails, and after a thread could not be started")
    func threads() throws {
        let directory = try TemporaryDirectory()
        #expect(try run(.python, "hook", directory.path) == ["f 1"])
        let other = try TemporaryDirectory()
        #expect(try run(.python, "start", other.path) == ["refused of the test", "f 1"])
    }

    @Test("Node.js: the functions that one turn registers need one connection, and none after close")
    func turn() throws {
        let directory = try TemporaryDirectory()
        #expect(try run(.node, "turn", directory.path) == ["true", "false", "40,41,last"])
    }
}
