internal import CSQLite
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// Whether a value that containers hide is anywhere once its events have passed: an agent of this binary, in its own directory,
/// takes events of many shapes with a marker in the value's place, and everything it wrote and sent is searched.
///
/// Beside the marker each event carries a control, a text that no path names: where that was found, events have been.
struct PrivacyProof {
    struct Place {
        let name: String
        /// How often the marker occurs there.
        var found = 0
        var controls = 0

        static func + (left: Place, right: Place) -> Place {
            Place(name: left.name, found: left.found + right.found, controls: left.controls + right.controls)
        }
    }

    /// The marked value's places in events.
    let paths: [[String]]
    let app: String
    let events: [JSONValue]
    /// Documents by their containers' ids.
    let documents: [(id: String, bytes: [UInt8])]
    /// Settings that decide what tags see, as TOML.
    let settings: [String]
    /// The same of the app, without its name.
    let ofApp: [String]
    /// A directory of the proof's own: it goes with it.
    let directory: String
    private let sought = "marker\(UInt64.random(in: 1 << 60...1 << 63))"
    private let control = "control\(UInt64.random(in: 1 << 60...1 << 63))"
    /// An address, so that the pattern for these finds it.
    private var marker: String { sought + "@example.com" }

    static func makeDirectory() throws(CommandFailure) -> String {
        var template = Array("\(Console.environment("TMPDIR") ?? "/tmp")/spoolship-privacy-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure(.cannotCreate, "no directory can be made: \(SystemError.message(errno).lowercased())")
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Events

    private var lines: [String] { paths.flatMap { path in lines(with: path) } }

    /// The lines that an app writes: good, bad, twice, disguised, too large.
    private func lines(with path: [String]) -> [String] {
        events.flatMap { event -> [String] in
            func shape(_ name: String, _ change: (JSONValue) -> JSONValue = { $0 }) -> String {
                let planted = PrivacyProof.plant(.string(marker), at: path[...], in: event)
                return change(PrivacyProof.plant(.string("\(control)-\(name)"), at: ["privacy_control"], in: planted))
                    .description
            }
            func with(_ more: JSONValue.Member, before: Bool = false) -> (JSONValue) -> JSONValue {
                { .object(before ? [more] + ($0.members ?? []) : ($0.members ?? []) + [more]) }
            }
            let last = path.last ?? ""
            let pushed = path.count > 1 && path[0] == "properties" ? path.dropFirst() : path[...]
            let plain = shape("plain")
            let pad = JSONValue.Member("pad", .string(String(repeating: "x", count: 9000)))
            let first = "\\u" + String((last.unicodeScalars.first?.value ?? 0) + 0x10000, radix: 16).suffix(4)
            let escaped = first + String(last.dropFirst()).replacingAll(".", with: "\\u002e")
            let disguised = plain.replacingAll("\"\(last)\":", with: "\"\(escaped)\":")
            let twice = plain.replacingAll("\"\(last)\":", with: "\"\(last)\":\"\(marker)\",\"\(last)\":")
            let list =
                path.count < 2
                ? plain
                : plain.replacingAll("\"\(path[0])\":{", with: "\"\(path[0])\":[{")
                    .replacingAll(",\"privacy_control\"", with: "],\"privacy_control\"")
            return [
                plain, shape("rejected"), disguised, twice, (try? JSONValue(parsing: list)) == nil ? plain : list,
                shape("record") { .object(($0.members ?? []).filter { $0.key != "name" }) },
                shape("large", with(pad)), shape("late", with(pad, before: true)),
                shape("push", with(.init("type", "data_layer"), before: true)),
                PrivacyProof.plant(.string(marker), at: pushed, in: ["type": "data_layer"]).description,
                shape("timeless", with(.init("timestamp", "no time"))), String(plain.dropLast(2)),
                "\(last)=\(marker) and not JSON at all",
            ]
        }
    }

    /// The same events as text: broken in the ways in which a program's output is, as Docker wraps it and as it is, and in pieces.
    private var wrapped: [String] {
        func line(_ log: String, _ stream: String = "stdout") -> String {
            (["log": .string(log), "stream": .string(stream)] as JSONValue).description
        }
        let planted = events.flatMap { event in
            paths.map { PrivacyProof.plant(.string(marker), at: $0[...], in: event).description }
        }
        return planted.flatMap { good -> [String] in
            let behind = String(good.dropLast()) + ","
            let broken: [String] = [
                behind + "\"half\":\"\\ud83d\"}", behind + "\"cut\":\"of" + good, good + good, "[\(good)]",
                "got \(good)",
                "(" + behind.dropFirst().dropLast() + ")",
                good.replacingAll("\":", with: "\"\u{1B}[0m\u{1B}[1;39m:") + "\u{1B}[0m",
                behind,
            ]
            // Of another stream: a line between two pieces.
            let pieces: [String] = [
                line(behind), line("other\n", "stderr"), line("\"m\":\"\(marker)"), line("b", "stderr"), line("\"}\n"),
            ]
            return broken + broken.map { line($0 + "\n") } + pieces + [line("\u{FEFF}\(good)\n")]
        } + [line("\(control)-text\n")]
    }

    static func plant(_ value: JSONValue, at path: ArraySlice<String>, in object: JSONValue) -> JSONValue {
        guard let first = path.first else { return value }
        let inner = plant(value, at: path.dropFirst(), in: object[first] ?? .object([]))
        return .object((object.members ?? []).filter { $0.key != first } + [.init(first, inner)])
    }

    // MARK: The agent

    /// Whether a setting of an app decides what tags see of its events; how the proof's are read is its own matter.
    static func decides(_ key: Substring) -> Bool {
        !["read", "format", "text", "destinations"].contains(String(key)) && !key.hasPrefix("journal")
    }

    private func configuration(_ port: UInt16) -> String {
        var text =
            settings.joined(separator: "\n") + """

                agent.state_directory = "\(directory)/state"
                agent.runtime_directory = "\(directory)/run"
                agent.log_level = "verbose"
                agent.shutdown_drain_timeout = "1s"
                spool.directory = "\(directory)/spool"
                spool.max_event_size = "8KiB"
                queue.compression = "none"
                dispatch.interval = "1s"
                control.socket = "\(directory)/run/control.sock"
                stats.listen = "off"
                [apps."\(app)"]
                \((ofApp.contains { $0.hasPrefix("kind ") } ? ofApp : ofApp + ["kind = \"event\""]).joined(separator: "\n"))
                read = ["\(directory)/docker/*.log"]
                format = "docker"

                """
        for document in documents {
            text += "[[container]]\nid = \"\(document.id)\"\ndefault_file = \"\(directory)/\(document.id)\"\n"
            text += "hash_key_file = \"\(directory)/hash.key\"\n"
        }
        text += "[[destination]]\nname = \"file\"\ntype = \"file\"\npath = \"\(directory)/received.jsonl\"\n"
        let formats = DestinationSettings.Format.allCases.map { ($0.rawValue, $0) }
        for (name, format) in formats + [("rejecting", .ndjson), ("holding", .ndjson)] {
            let end = format == .elasticsearch ? "/_bulk" : format == .otlp ? "/v1/logs" : ""
            text += "[[destination]]\nname = \"\(name)\"\nurl = \"http://127.0.0.1:\(port)/\(name)\(end)\"\n"
            if format == .ga4 { text += "measurement_id = \"G-1\"\n" }
            text += "format = \"\(format.rawValue)\"\ncompression = \"none\"\n"
            if [.splunkHEC, .ga4, .appCenter].contains(format) {
                text += "token = \"6b0ac0b9-5d6f-4f5c-a5a5-1f4d3f0c9d5e\"\n"
            }
        }
        return text
    }

    /// Runs the agent, and searches what it leaves; the directory is gone afterwards.
    func run() throws(CommandFailure) -> [Place] {
        defer { ChildProgram.end(ChildProgram.start(["rm", "-rf", "--", directory], into: "/dev/null"), 0) }
        let receiver: KeepingReceiver
        do throws(SystemError) {
            receiver = try KeepingReceiver(rejecting: ("rejecting", "\(control)-rejected"))
            for name in ["state", "run", "docker", "spool", "spool/\(app)"] { mkdir("\(directory)/\(name)", 0o700) }
            let random = KernelRandom()
            try WholeFile.replace(
                "\(directory)/hash.key", with: Array("\(random.next())\(random.next())\(random.next())".utf8),
                mode: 0o600)
            for document in documents {
                try WholeFile.replace("\(directory)/\(document.id)", with: document.bytes, mode: 0o600)
            }
            try WholeFile.replace(
                "\(directory)/spoolship.toml", with: Array(configuration(receiver.port).utf8), mode: 0o600)
        } catch {
            throw CommandFailure(.cannotCreate, "\(error)")
        }
        func program(_ words: String..., into file: String) -> pid_t {
            ChildProgram.start(
                ["/proc/self/exe"] + words + ["--config", "\(directory)/spoolship.toml"], into: "\(directory)/\(file)")
        }
        let agent = program("run", into: "log")
        defer { ChildProgram.end(agent) }
        let client = ControlClient(socket: "\(directory)/run/control.sock")
        guard wait(seconds: 20, receiver, { (try? client.request("GET", "/v1/status")) != nil }) else {
            let log = String(decoding: contents("log").suffix(500), as: UTF8.self)
            throw CommandFailure(.temporaryFailure, "gave up waiting until the agent answers; its log: \(log)")
        }
        let tap = program("tap", into: "tap")
        defer { ChildProgram.end(tap) }
        // Until the tap is there, events pass it by: the same one again and again.
        let first = Array((lines[0] + "\n").utf8)
        _ = wait(seconds: 5, receiver) {
            append(first)
            return contents("tap") != []
        }
        append(Array((lines.joined(separator: "\n") + "\n").utf8))
        try? WholeFile.replace(
            "\(directory)/docker/1.log", with: Array((wrapped.joined(separator: "\n") + "\n").utf8), mode: 0o600)
        try? WholeFile.replace("\(directory)/spool/\(app)/whole.json", with: Array(lines[0].utf8), mode: 0o600)
        _ = wait(seconds: 20, receiver) {
            let rows = tables()
            let arrived =
                DestinationSettings.Format.allCases.allSatisfy { receiver.kept[$0.rawValue] != nil }
                && PrivacyProof.count("\(control)-text", in: receiver.kept["ndjson"] ?? []) > 0
            return arrived && ["quarantine", "dead letters"].allSatisfy { name in rows.contains { $0.name == name } }
        }
        // What else is on its way.
        _ = wait(seconds: 3, receiver) { false }
        ChildProgram.end(program("diagnose", "--log", "\(directory)/log", into: "diagnose"), 0)
        var places = tables() + [files("state", as: "files of the queue, while it runs")]
        ChildProgram.end(tap)
        ChildProgram.end(agent)
        places += [files("state", as: "files of the queue, after the stop"), files("run", as: "values for apps")]
        for (file, name) in [
            ("log", "log (journal)"), ("diagnose", "diagnose"), ("tap", "tap"),
            ("received.jsonl", "destination of type file"),
        ] { places.append(searched(contents(file), name)) }
        for (name, bytes) in receiver.kept.sorted(by: { $0.key < $1.key }) {
            places.append(searched(bytes, "receiver, \(name)"))
        }
        return places
    }

    private func append(_ bytes: [UInt8]) {
        let raw = open("\(directory)/spool/\(app)/events.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard raw >= 0 else { return }
        let file = Descriptor(raw)
        // What does not get there shows as a place without events.
        _ = write(file.raw, bytes, bytes.count)
    }

    private func wait(seconds: Int, _ receiver: KeepingReceiver, _ isDone: () -> Bool) -> Bool {
        let deadline = SystemTime().bootTime + .seconds(seconds)
        while !isDone() {
            guard SystemTime().bootTime < deadline else { return false }
            receiver.serve()
        }
        return true
    }

    // MARK: Searching

    private func contents(_ file: String) -> [UInt8] {
        (try? WholeFile.bytes(of: "\(directory)/\(file)", atMost: 1 << 28)) ?? []
    }

    private func searched(_ bytes: [UInt8], _ name: String) -> Place {
        Place(
            name: name, found: PrivacyProof.count(sought, in: bytes), controls: PrivacyProof.count(control, in: bytes))
    }

    private func files(_ folder: String, as name: String) -> Place {
        let files = (try? WholeFile.names(in: "\(directory)/\(folder)")) ?? []
        return files.map { searched(contents("\(folder)/\($0)"), name) }.reduce(Place(name: name), +)
    }

    /// The rows of the queue's tables: pages of the file may cut a value in two.
    private func tables() -> [Place] {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open_v2("\(directory)/state/queue.sqlite", &database, SQLITE_OPEN_READONLY, nil) == SQLITE_OK
        else {
            return []
        }
        return [
            ("chunk", "queue"), ("dead_letter", "dead letters"), ("quarantine", "quarantine"), ("memory", "data layer"),
        ].compactMap { table, name in
            var statement: OpaquePointer?
            defer { sqlite3_finalize(statement) }
            guard sqlite3_prepare_v2(database, "SELECT * FROM \(table)", -1, &statement, nil) == SQLITE_OK else {
                return nil
            }
            var place: Place?
            while sqlite3_step(statement) == SQLITE_ROW {
                for column in 0..<sqlite3_column_count(statement) {
                    let bytes = UnsafeRawBufferPointer(
                        start: sqlite3_column_blob(statement, column),
                        count: Int(sqlite3_column_bytes(statement, column)))
                    place = (place ?? Place(name: name)) + searched(Array(bytes), name)
                }
            }
            return place
        }
    }

    static func count(_ text: String, in bytes: [UInt8]) -> Int {
        let part = Array(text.utf8)
        var count = 0
        var start = 0
        while let place = place(of: part, in: bytes, from: start) {
            count += 1
            start = place + 1
        }
        return count
    }

    /// Where bytes first occur in others.
    static func place(of part: [UInt8], in bytes: [UInt8], from start: Int = 0) -> Int? {
        bytes.withUnsafeBytes { all in
            guard let base = all.baseAddress else { return nil }
            var place = start
            while place + part.count <= all.count,
                let found = memchr(base + place, Int32(part[0]), all.count - part.count - place + 1)
            {
                place = UnsafeRawPointer(found) - base
                if memcmp(found, part, part.count) == 0 { return place }
                place += 1
            }
            return nil
        }
    }
}
