internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Spool

enum TrackCommand {
    static let track = Command(
        name: "track", summary: "puts one event into the spool, atomically and durably", arguments: "NAME",
        argumentCount: 1...1,
        details: """
            No agent needs to run: the event waits in the spool until one does. If the command exits with 0 \
            the event survives a power cut. It exits with 75, and writes nothing, if the agent has said in \
            the spool (.spoolship/state) that it does not accept such an event now.

            The spool is --spool, or the configuration's. A user who may not read the configuration gets \
            the one that the running agent names, or the package's.

            Numbers, true and false keep their type in properties; everything else, and every --text, is text.
            """,
        options: [
            Command.Option(
                "property KEY=VALUE", letter: "p", repeats: true,
                "a property; numbers, true and false keep their type"),
            Command.Option("text KEY=VALUE", letter: "t", repeats: true, "a property that is text"),
            Command.Option("critical", "give it the priority critical"),
            Command.Option("spool DIRECTORY", "the spool; default the configuration's"),
            Command.Option(
                "app APP", "the event's app: its directory in the spool; default incoming/ if there is one"),
        ]
    ) { invocation in
        let tracking = Tracking(invocation: invocation)
        let spool = try tracking.spoolDirectory()
        let event = try tracking.event()
        let directory = try Tracking.directory(in: spool, app: try invocation.app())
        // The agent says in the spool what it accepts: without permission for its socket, and while it does
        // not run.
        let state = Tracking.spool(of: directory).map { SpoolState.read(in: $0) } ?? SpoolState(.all)
        guard state.accepts(critical: invocation.has("critical")) else {
            throw CommandFailure(
                .temporaryFailure,
                "the agent accepts \(state.accepting == .critical ? "critical events only" : "no events") "
                    + "now: \(state.reason)"
            )
        }
        // The file's name is random, so that no other process can create a file of that name first.
        var random = KernelRandom()
        let written = Array(event.utf8).withUnsafeBytes { bytes in
            Result { () throws(SpoolError) in
                try DropFileWriter.put(bytes, in: directory, label: "track", using: &random)
            }
        }
        _ = try written.mapError { CommandFailure(.cannotCreate, $0.message) }.get()
    }
}

/// Where `track` puts its event, and what it puts there.
private struct Tracking {
    let invocation: Invocation

    /// The spool: `--spool`, the configuration's, the running agent's, or the default. Users of apps need not
    /// be able to read the configuration, which can hold secrets.
    func spoolDirectory() throws -> String {
        if let named = invocation.value("spool") { return named }
        do throws(ConfigurationError) {
            return try invocation.loadSettings().settings.spool.directory
        } catch {
            // Continue only if this user may not read the default configuration. A configuration with
            // mistakes is an error: the event could wait in the wrong spool for ever.
            let isOnlyClosed = error.problems.allSatisfy { $0.code == .unreadable || $0.severity != .error }
            guard invocation.configurationPath == Invocation.defaultConfiguration, isOnlyClosed,
                geteuid() != 0
            else {
                throw error
            }
        }
        // Two seconds: `track` is called by scripts, and the default is right on most machines.
        let client = ControlClient(socket: ControlSettings().socket, timeout: .seconds(2))
        let status = try? client.request("GET", "/v1/status").json()
        if let told = status?["spool"]?["directory"]?.string, !told.isEmpty { return told }
        return SpoolSettings().directory
    }

    /// The event as one line of JSON with its line feed.
    func event() throws(CommandFailure) -> String {
        guard !invocation.arguments[0].isEmpty else {
            throw CommandFailure(.usage, "the event's name is empty")
        }
        var properties: [String] = []
        for pair in invocation.values("property") {
            let (key, value) = try Tracking.split(pair, option: "-p")
            properties.append("\(JSONValue.string(key)):\(Tracking.typed(value))")
        }
        for pair in invocation.values("text") {
            let (key, value) = try Tracking.split(pair, option: "-t")
            properties.append("\(JSONValue.string(key)):\(JSONValue.string(value))")
        }
        var members: [JSONValue.Member] = [
            .init("name", .string(invocation.arguments[0])),
            .init("timestamp", .string(SystemTime().wallTime.description)),
        ]
        if invocation.has("critical") {
            members.append(.init("priority", .string(Priority.critical.name)))
        }
        // Properties are put together as text, because numbers must stay as they were written (`1.50`).
        let rest = properties.isEmpty ? "" : ",\"properties\":{\(properties.joined(separator: ","))}"
        return "\("\(JSONValue.object(members))".dropLast())\(rest)}\n"
    }

    /// The key and the value of `KEY=VALUE`; throws with code 64 without a key or `=`.
    private static func split(_ pair: String, option: String) throws(CommandFailure) -> (String, String) {
        guard let equals = pair.firstIndex(of: "="), equals > pair.startIndex else {
            throw CommandFailure(.usage, "\(option) takes KEY=VALUE, such as \(option) seconds=41")
        }
        return (String(pair[..<equals]), String(pair[pair.index(after: equals)...]))
    }

    /// A value as JSON: a number, true or false as it was written; otherwise a string.
    private static func typed(_ text: String) -> String {
        // JSON allows blanks around a value; a text with blanks stays text.
        let value = text.contains(where: \.isWhitespace) ? nil : try? JSONValue(parsing: Array(text.utf8))
        switch value {
        case .integer, .double, .bool: return text
        default: return JSONValue.string(text).description
        }
    }

    /// The spool that a directory is in: the nearest directory above it, or itself, in which the agent says
    /// what it accepts; nil if none does. `--spool` can name an app's directory or one below. A directory
    /// that everyone can write is passed over, because anyone could have put a state there.
    static func spool(of directory: String) -> String? {
        // The agent reads no deeper than 16 levels.
        (0...16).lazy.map { directory + String(repeating: "/..", count: $0) }.first {
            FileStatus($0).map { $0.mode & S_IWOTH == 0 } == true
                && access("\($0)/.spoolship/state", F_OK) == 0
        }
    }

    /// The directory to write to: that of the app, otherwise `incoming`, otherwise the spool itself.
    ///
    /// - Throws: `CommandFailure` with code 73 if the app has no directory, or its directory is a link.
    static func directory(in spool: String, app: String?) throws(CommandFailure) -> String {
        if let app {
            let directory = "\(spool)/\(app)"
            guard let status = FileStatus(link: directory) else {
                throw CommandFailure(
                    .cannotCreate,
                    "the spool has no directory \(directory); as root: spoolship app add \(app) --user USER")
            }
            // The agent does not follow links, so the event would never be read.
            guard !status.isLink else {
                throw CommandFailure(.cannotCreate, "\(directory) is a link, which the agent does not follow")
            }
            return directory
        }
        let shared = "\(spool)/incoming"
        return access(shared, F_OK) == 0 ? shared : spool
    }
}
