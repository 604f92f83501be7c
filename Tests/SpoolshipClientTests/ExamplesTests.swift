import Foundation
import TestKit
import Testing

@Suite("The examples in other languages")
struct ExamplesTests {
    private static let examples = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("examples").path

    /// Whether the machine has a command.
    private static func has(_ command: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(command)")
        }
    }

    /// Runs a command with a deadline; its exit status. What it says about an error goes to `errors`, when that is given: a log of
    /// passing tests is no place for it.
    private func run(_ arguments: [String], errors: String? = nil) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["timeout", "400"] + arguments
        if let errors {
            try Data().write(to: URL(fileURLWithPath: errors))
            process.standardError = FileHandle(forWritingAtPath: errors)
        }
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    private func check(_ command: [String], language: String) throws {
        let root = try TemporaryDirectory()
        let spool = "\(root.path)/shop"
        mkdir(spool, 0o755)
        #expect(try run(command + [spool, "Video clicked"]) == 0)
        #expect(try run(command + [spool, "Ünïcode 😀"]) == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: spool)
        #expect(
            names.count == 2 && names.allSatisfy { $0.hasSuffix(".json") && !$0.hasPrefix(".") }, "\(names)")
        let events = try names.map { name -> [String: Any] in
            let path = "\(spool)/\(name)"
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o640)
            let found = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
            let event = (found as? [Any])?.first ?? found
            return try #require(event as? [String: Any])
        }
        #expect(Set(events.compactMap { $0["name"] as? String }) == ["Video clicked", "Ünïcode 😀"])
        for event in events {
            #expect((event["properties"] as? [String: Any])?["language"] as? String == language)
            let formats = ISO8601DateFormatter()
            formats.formatOptions = [.withInternetDateTime]
            let text = try #require(event["timestamp"] as? String)
            let whole = text.prefix(19) + "Z"
            #expect(
                text.hasSuffix("Z")
                    && formats.date(from: String(whole)).map { abs($0.timeIntervalSinceNow) < 600 } == true)
        }
        // ac08: what the agent accepts is obeyed.
        for (word, status) in [("none", 75), ("critical", 75), ("all", 0)] as [(String, Int32)] {
            try FileManager.default.createDirectory(
                atPath: "\(root.path)/.spoolship", withIntermediateDirectories: true)
            try "\(word)\nreason\n".write(
                toFile: "\(root.path)/.spoolship/state", atomically: true, encoding: .utf8)
            #expect(try run(command + [spool, "x"]) == status)
            // A directory inside the app's, the spool itself, and a link to the app's directory.
            try FileManager.default.createDirectory(
                atPath: "\(spool)/web/eu", withIntermediateDirectories: true)
            #expect(try run(command + ["\(spool)/web/eu", "x"]) == status)
            #expect(try run(command + [root.path, "x"]) == status)
            if access("\(root.path)-link", F_OK) != 0 { symlink(spool, "\(root.path)-link") }
            #expect(try run(command + ["\(root.path)-link", "x"]) == status)
        }
        unlink("\(root.path)-link")
        // 31: in a drop box nobody says for others what is accepted.
        let box = "\(root.path)/incoming"
        try FileManager.default.createDirectory(
            atPath: "\(box)/.spoolship", withIntermediateDirectories: true)
        #expect(chmod(box, 0o3733) == 0 && mkfifo("\(box)/.spoolship/state", 0o644) == 0)
        #expect(try run(command + [box, "x"]) == 0)
        // The agent takes the file before its name is synced.
        let tools = "\(root.path)/tools"
        try FileManager.default.createDirectory(atPath: tools, withIntermediateDirectories: true)
        try "#!/bin/sh\n[ \"$1\" != -f ] || rm -f -- \"$2\"\nexec /usr/bin/env -i /bin/sync \"$@\"\n"
            .write(toFile: "\(tools)/sync", atomically: true, encoding: .utf8)
        #expect(chmod("\(tools)/sync", 0o755) == 0)
        let path = "PATH=\(tools):\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
        #expect(try run(["env", path] + command + [spool, "x"]) == 0)
        let errors = "\(root.path)/errors"
        #expect(try run(command + ["\(root.path)/nowhere", "x"], errors: errors) != 0)
        #expect(try String(contentsOfFile: errors, encoding: .utf8).contains("nowhere"))
    }

    @Test("Python", .enabled(if: has("python3")))
    func python() throws { try check(["python3", "\(Self.examples)/python/track.py"], language: "Python") }

    @Test("Node.js", .enabled(if: has("node")))
    func node() throws { try check(["node", "\(Self.examples)/node/track.mjs"], language: "Node.js") }

    @Test("Go", .enabled(if: has("go")))
    func go() throws {
        let root = try TemporaryDirectory()
        // `go run` ends with 1 whatever the program ends with.
        let program = "\(root.path)/track-go"
        #expect(try run(["go", "build", "-o", program, "\(Self.examples)/go/track.go"]) == 0)
        try check([program], language: "Go")
    }

    @Test("shell") func shell() throws {
        try check(["sh", "\(Self.examples)/shell/track.sh"], language: "shell")
    }

    @Test("Swift: the example and the code in docs/swift-client.md build as their own package")
    func swift() throws {
        let directory = try TemporaryDirectory()
        let package = "\(directory.path)/package"
        try FileManager.default.copyItem(atPath: "\(Self.examples)/swift", toPath: package)
        let page = try String(contentsOfFile: "\(Self.examples)/../docs/swift-client.md", encoding: .utf8)
        let blocks = page.components(separatedBy: "```").filter { $0.hasPrefix("swift\n") }.map {
            $0.dropFirst(6)
        }
        try #require(blocks.count == 3)
        let manifest = try String(contentsOfFile: "\(package)/Package.swift", encoding: .utf8)
        #expect(
            blocks[0].replacingOccurrences(of: "\"shop\"", with: "\"track\"")
                .replacingOccurrences(of: "../spoolship", with: "../..") == manifest)
        let root = URL(fileURLWithPath: Self.examples).deletingLastPathComponent().path
        try manifest.replacingOccurrences(of: "\"../..\"", with: "\"\(root)\"")
            .write(toFile: "\(package)/Package.swift", atomically: true, encoding: .utf8)
        let shown = blocks[1].replacingOccurrences(of: "import SpoolshipClient\n", with: "")
        let called = "func called() throws {\n\(blocks[2])}\n"
        try "import SpoolshipClient\nfunc shown() throws {\n\(shown)}\n\(called)"
            .write(toFile: "\(package)/Sources/track/Shown.swift", atomically: true, encoding: .utf8)
        let log = "\(directory.path)/log"
        let build =
            "swift build --package-path '\(package)' --scratch-path '\(directory.path)/build' >'\(log)' 2>&1"
        #expect(
            try run(["sh", "-c", build]) == 0,
            "\((try? String(contentsOfFile: log, encoding: .utf8)) ?? "no log")")
        try check(["\(directory.path)/build/debug/track"], language: "Swift")
    }

    @Test(
        "Swift: an app can depend on a tag of the repository, as docs/swift-client.md says",
        .enabled(if: has("git")))
    func tagOfTheRepository() throws {
        let directory = try TemporaryDirectory()
        let root = URL(fileURLWithPath: Self.examples).deletingLastPathComponent().path
        let (repository, package) = ("\(directory.path)/spoolship", "\(directory.path)/package")
        // What is in the work tree now, not the last commit.
        mkdir(repository, 0o755)
        for name in ["Package.swift", "Sources", "Tests", "examples"] {
            try FileManager.default.copyItem(atPath: "\(root)/\(name)", toPath: "\(repository)/\(name)")
        }
        try FileManager.default.copyItem(atPath: "\(Self.examples)/swift", toPath: package)
        let manifest = try String(contentsOfFile: "\(package)/Package.swift", encoding: .utf8)
        let tagged = manifest.replacingOccurrences(
            of: ".package(name: \"spoolship\", path: \"../..\")",
            with: ".package(url: \"file://\(repository)\", from: \"0.1.0\")")
        #expect(tagged != manifest)
        try tagged.write(toFile: "\(package)/Package.swift", atomically: true, encoding: .utf8)
        let log = "\(directory.path)/log"
        let git = "git -C '\(repository)' -c user.name=test -c user.email=test"
        let script = """
            { git init -q '\(repository)' && \(git) add . && \(git) commit -qm test && \(git) tag 0.1.0 &&
            swift build --package-path '\(package)' --scratch-path '\(directory.path)/build'; } >'\(log)' 2>&1
            """
        #expect(
            try run(["sh", "-c", script]) == 0,
            "\((try? String(contentsOfFile: log, encoding: .utf8)) ?? "no log")")
        try check(["\(directory.path)/build/debug/track"], language: "Swift")
    }

    @Test("C", .enabled(if: has("cc")))
    func c() throws {
        let directory = try TemporaryDirectory()
        #expect(
            try run([
                "cc", "-Wall", "-Wextra", "-Werror", "-o", "\(directory.path)/track",
                "\(Self.examples)/c/track.c",
            ]) == 0)
        try check(["\(directory.path)/track"], language: "C")
    }
}
