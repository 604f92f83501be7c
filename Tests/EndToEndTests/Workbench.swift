import EventLoops
import Glibc
import Model
import TestKit
import Testing

/// The binary under test: `SPOOLSHIP_BINARY`, or the debug build of this package.
let spoolship: String = {
    if let named = getenv("SPOOLSHIP_BINARY") { return String(cString: named) }
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    return "/\(root)/.build/debug/spoolship"
}()

/// An agent and a receiver on loopback, with directories of their own; both are killed when it goes.
final class Workbench {
    let directory: TemporaryDirectory
    let receiverPort: Int
    let statsPort: Int
    /// Settings by their dotted path, as TOML writes their values.
    var settings: [String: String]
    private(set) var agent: RunningProgram?
    private(set) var receiver: RunningProgram?

    var path: String { directory.path }
    var spool: String { "\(path)/spool" }
    var state: String { "\(path)/state" }
    var configuration: String { "\(path)/spoolship.toml" }
    var caFile: String { "\(path)/receiver/ca.pem" }
    /// What the receiver stores, an event a line.
    var events = ""
    /// What the agent has logged since the test began.
    var agentLog: String { (try? contents(of: "\(path)/agent.log")) ?? "" }

    init() throws {
        directory = try TemporaryDirectory()
        receiverPort = try freePort()
        statsPort = try freePort()
        settings = [
            "agent.state_directory": "\"\(directory.path)/state\"",
            "agent.log": "\"info\"",
            "spool.directory": "\"\(directory.path)/spool\"",
            "dispatch.interval": "\"1s\"",
            // A new session is an event of its own; here events are counted.
            "session.mode": "\"off\"",
            "dispatch.critical_delay": "\"500ms\"",
            "stats.listen": "\"127.0.0.1:\(statsPort)\"",
            "control.socket": "\"\(directory.path)/control.sock\"",
            "agent.runtime_directory": "\"\(directory.path)/runtime\"",
            "destination.name": "\"main\"",
            "destination.type": "\"http\"",
            "destination.url": "\"https://127.0.0.1:\(receiverPort)/\"",
            "destination.tls.ca_file": "\"\(directory.path)/receiver/ca.pem\"",
        ]
        events = "\(directory.path)/events.ndjson"
        for name in ["spool", "spool/.spoolship", "state", "runtime"] {
            try #require(mkdir("\(directory.path)/\(name)", 0o755) == 0)
        }
    }

    deinit {
        // Before the directory goes: they would go on writing into it.
        agent?.kill9()
        receiver?.kill9()
    }

    // MARK: Programs

    /// To be preloaded: a clock that variables set, see Fixtures/clock.c.
    func clockLibrary() throws -> String {
        let library = "\(path)/clock.so"
        let built = try run(
            "cc",
            ["-shared", "-fPIC", "-o", library, "\(GoldenFile.root)/Tests/EndToEndTests/Fixtures/clock.c"])
        try #require(built.code == 0, "\(built.text)")
        return library
    }

    /// Writes the configuration file from `settings`.
    func configure() throws {
        var sections: [String: [String]] = [:]
        for (path, value) in settings {
            let parts = path.split(separator: ".", maxSplits: 1)
            sections[String(parts[0]), default: []].append("\(parts[1]) = \(value)")
        }
        var text = ""
        for (section, lines) in sections.sorted(by: { $0.key < $1.key }) {
            // A second destination is called destination2.
            let isListed = section.hasPrefix("destination") || ["deadline", "container"].contains(section)
            let name = section.hasPrefix("destination") ? "destination" : section
            text += isListed ? "[[\(name)]]\n" : "[\(name)]\n"
            text += lines.sorted().map { $0 + "\n" }.joined()
        }
        try write(text, to: configuration)
    }

    /// Starts the agent, with a configuration written anew.
    ///
    /// - Parameters:
    ///   - waits: whether to return only when it answers.
    ///   - wrapper: a program and words that run it, by replacing themselves with it.
    ///   - environment: variables besides the usual ones.
    func startAgent(
        waits: Bool = true, under wrapper: [String] = [], environment: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try configure()
        let words = wrapper + [spoolship, "run", "--config", configuration]
        agent = try RunningProgram(
            words[0], Array(words.dropFirst()), output: "\(path)/agent.log", environment: environment)
        if waits { try waitForAgent(sourceLocation: sourceLocation) }
    }

    func waitForAgent(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try wait(.seconds(30), "the agent to answer; its log:\n\(agentLog)", sourceLocation: sourceLocation) {
            try fetch("http://127.0.0.1:\(statsPort)/healthz").status == 200
        }
    }

    /// Ends the agent as systemd would; gives its exit code.
    func stopAgent(within limit: Duration = .seconds(40)) throws -> Int32 {
        let agent = try #require(agent)
        agent.send(SIGTERM)
        let code = try agent.exit(within: limit)
        self.agent = nil
        return code
    }

    func killAgent() {
        agent?.kill9()
        agent = nil
    }

    /// Starts the receiver, which makes its certificate the first time.
    func startReceiver(_ options: String...) throws {
        let arguments = [
            "receive", "--listen", "127.0.0.1:\(receiverPort)", "--certificates", "\(path)/receiver",
        ]
        receiver = try RunningProgram(
            spoolship, arguments + ["--output", events] + options, output: "\(path)/receiver.log")
        try wait(.seconds(30), "the receiver: \(receiver?.printed ?? "")") { receiverStats != nil }
    }

    func stopReceiver() throws {
        receiver?.send(SIGTERM)
        _ = try receiver?.exit()
        receiver = nil
    }

    /// Runs a command of the binary with this bench's configuration.
    func command(_ words: String...) throws -> (code: Int32, text: String) {
        try run(spoolship, words + ["--config", configuration])
    }

    // MARK: Input

    /// Adds bytes to a file of the spool in one write, as an app would that keeps it open.
    func append(_ bytes: [UInt8], to name: String) throws {
        let file = try Descriptor(
            checking: open("\(spool)/\(name)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644), "open")
        try #require(Glibc.write(file.raw, bytes, bytes.count) == bytes.count)
    }

    func append(_ text: String, to name: String) throws { try append(Array(text.utf8), to: name) }

    /// Drops a file into the spool under another name and renames it, as the protocol asks.
    func drop(_ text: String, as name: String) throws {
        let draft = "\(spool)/.draft.tmp"
        try write(text, to: draft)
        try #require(rename(draft, "\(spool)/\(name)") == 0)
    }

    // MARK: What became of it

    /// The receiver's figures; nil while it does not answer.
    var receiverStats: JSONValue? {
        guard let answer = try? fetch("https://127.0.0.1:\(receiverPort)/stats", authority: caFile),
            answer.status == 200
        else { return nil }
        return try? JSONValue(parsing: answer.body)
    }

    func receiverFigure(_ name: String) -> Int { receiverStats?[name]?.integer ?? 0 }

    /// The agent's figures.
    func figures() throws -> Figures {
        let answer = try fetch("http://127.0.0.1:\(statsPort)/metrics")
        try #require(answer.status == 200)
        return Figures(answer.body)
    }

    /// Waits until the agent has read so many events, and the destination has acknowledged all but the quarantined.
    func waitUntilDelivered(
        _ read: Int, quarantined: Int = 0, within limit: Duration = .seconds(60),
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var last = Figures("")
        defer { expectBalance(last, sourceLocation: sourceLocation) }
        try wait(
            limit,
            "\(read) events to be delivered; read \(last.total("spoolship_events_read_total")), acknowledged "
                + "\(last.total("spoolship_deliveries_acknowledged_total")); the agent's log:\n\(agentLog.suffix(2000))",
            sourceLocation: sourceLocation, every: .milliseconds(100)
        ) {
            last = try figures()
            return last.total("spoolship_events_read_total") >= read
                && last.total("spoolship_deliveries_acknowledged_total") >= read - quarantined
        }
        #expect(last.total("spoolship_events_read_total") == read, sourceLocation: sourceLocation)
        #expect(
            last.total("spoolship_events_quarantined_total") == quarantined, sourceLocation: sourceLocation)
        #expect(last.total("spoolship_deliveries_queued") == 0, sourceLocation: sourceLocation)
    }

    /// The ledger's equations hold now.
    func expectBalance(sourceLocation: SourceLocation = #_sourceLocation) throws {
        expectBalance(try figures(), sourceLocation: sourceLocation)
    }

    private func expectBalance(_ figures: Figures, sourceLocation: SourceLocation) {
        #expect(figures.imbalances == [], sourceLocation: sourceLocation)
    }

    /// Waits until as many events have arrived as are expected; a failure says which have not, and what the agent says.
    func waitForOnce(
        _ expected: Set<String>, member: String, within limit: Duration,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        func arrived() throws -> [String] { values(of: member, in: try bytes(of: events)) }
        func situation() -> String {
            let missing = (try? expected.subtracting(arrived()).sorted()) ?? []
            return "all to arrive: \(missing.count) missing, \(missing.prefix(5)); "
                + "\((try? command("status").text) ?? ""); \(agentLog.suffix(4000))"
        }
        try wait(limit, situation(), sourceLocation: sourceLocation) { try arrived().count >= expected.count }
        try expectOnce(expected, member: member, sourceLocation: sourceLocation)
    }

    /// Each of these values of a member is in what the receiver has stored exactly once, and no other does.
    func expectOnce(
        _ expected: Set<String>, member: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var counts: [String: Int] = [:]
        for value in values(of: member, in: try bytes(of: events)) { counts[value, default: 0] += 1 }
        let missing = expected.filter { counts[$0] == nil }
        let repeated = counts.filter { $0.value > 1 }.map(\.key)
        let unknown = counts.keys.filter { !expected.contains($0) }
        func sample(_ values: some Collection<String>) -> String {
            "\(values.count): \(values.sorted().prefix(5))"
        }
        #expect(missing.isEmpty, "missing \(sample(missing))", sourceLocation: sourceLocation)
        #expect(repeated.isEmpty, "more than once \(sample(repeated))", sourceLocation: sourceLocation)
        #expect(unknown.isEmpty, "never sent \(sample(unknown))", sourceLocation: sourceLocation)
    }
}

/// Asks for a page with curl; status 0 when there was no answer.
///
/// - Parameter authority: the file of the certificate authority to trust.
func fetch(_ url: String, authority: String? = nil) throws -> (status: Int, body: String) {
    let trust = authority.map { ["--cacert", $0] } ?? []
    let answer = try run(
        "curl", ["-s", "--noproxy", "*", "--max-time", "20", "-w", "\n%{http_code}"] + trust + [url])
    guard let end = answer.text.lastIndex(of: "\n") else { return (0, "") }
    return (Int(answer.text[answer.text.index(after: end)...]) ?? 0, String(answer.text[..<end]))
}

/// The texts of a member, wherever it stands in lines of JSON; they must need no escaping.
func values(of member: String, in lines: [UInt8]) -> [String] {
    let key = Array("\"\(member)\":\"".utf8)
    var found: [String] = []
    lines.withUnsafeBytes { raw in
        guard let base = raw.baseAddress else { return }
        var offset = 0
        while let quote = memchr(base + offset, 0x22, raw.count - offset) {
            offset = UnsafeRawPointer(quote) - base
            guard raw.count - offset > key.count else { return }
            guard memcmp(quote, key, key.count) == 0 else {
                offset += 1
                continue
            }
            let start = offset + key.count
            guard let last = memchr(base + start, 0x22, raw.count - start) else { return }
            offset = UnsafeRawPointer(last) - base
            found.append(String(decoding: raw[start..<offset], as: UTF8.self))
        }
    }
    return found
}
