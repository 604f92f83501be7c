internal import CSQLite
internal import Containers
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// A proof by search that a value which containers or rules hide is nowhere after its events have passed. An
/// agent of this binary runs in a directory of its own and takes events of many shapes with a marker in place
/// of the value. Then everything that it wrote and sent is searched for the marker.
///
/// Each event also has a control, a text that no rule hides. A place with the control has seen events; in a
/// place with neither, the absence of the marker proves nothing.
struct PrivacyProof {
    /// One place that was searched.
    struct Place {
        /// The name that is printed.
        let name: String
        /// How often the marker occurs there.
        var found = 0
        /// How often the control occurs there: whether events have been there.
        var controls = 0
        /// Whether all of it was searched; a file larger than `mostBytes` is not.
        var isSearched = true

        /// The sums of two parts of the same place.
        static func + (left: Place, right: Place) -> Place {
            Place(
                name: left.name, found: left.found + right.found, controls: left.controls + right.controls,
                isSearched: left.isSearched && right.isSearched)
        }
    }

    /// What a run found.
    struct Findings {
        /// The places that were searched.
        let places: [Place]
        /// What had not passed when the run gave up waiting, in words; empty if everything had. Otherwise a
        /// place without the marker proves nothing, since events may not have been there yet.
        let late: [String]
    }

    /// The paths at which the marked value is put, as names of members from the outside in.
    let paths: [[String]]
    /// The app that the events belong to, which decides what containers apply.
    let app: String
    /// The events without the marker.
    let events: [JSONValue]
    /// The documents of the containers with their ids.
    let documents: [(id: String, bytes: [UInt8])]
    /// The general settings that decide what tags see of events (limits, device, session, country), as TOML
    /// lines.
    let settings: [String]
    /// The rules of the configuration, each as a TOML section.
    let rules: [String]
    /// The app's settings that decide what tags see of events, as TOML lines without `apps.NAME.`.
    let ofApp: [String]
    /// The directory of the proof, which is removed with everything in it after the run.
    let directory: String
    /// The text that is searched for. It is random, so that no text of the agent can be equal by accident.
    private let sought = "marker\(UInt64.random(in: 1 << 60...1 << 63))"
    /// The text that each event has outside of the marked value.
    private let control = "control\(UInt64.random(in: 1 << 60...1 << 63))"
    /// The marked value: an e-mail address, so that redactions by a pattern for addresses find it, too.
    private var marker: String { sought + "@example.com" }

    /// Makes a new directory below `TMPDIR` that only this user can enter.
    static func makeDirectory() throws(CommandFailure) -> String {
        var template = Array(
            "\(Console.environment("TMPDIR") ?? "/tmp")/spoolship-privacy-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure(
                .cannotCreate, "cannot make a temporary directory: \(SystemError.message(errno).lowercased())"
            )
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Events

    /// All lines that the app writes, for each path.
    private var lines: [String] { paths.flatMap { path in lines(with: path) } }

    /// The lines that an app writes for one path: good ones, and each way of being wrong that takes another
    /// way through the agent, because each of these ways stores something: quarantine, dead letters, records,
    /// data layer, memory.
    ///
    /// Only the first event comes in all spellings, ten times as many lines: how a name is spelled does not
    /// depend on the event, and with many events they would take minutes.
    private func lines(with path: [String]) -> [String] {
        events.enumerated().flatMap { index, event -> [String] in
            // A good event with the marker and the control; the control's suffix names the shape.
            func shape(_ name: String, _ change: (JSONValue) -> JSONValue = { $0 }) -> String {
                let planted = PrivacyProof.plant(.string(marker), at: path[...], in: event)
                return change(
                    PrivacyProof.plant(.string("\(control)-\(name)"), at: ["privacy_control"], in: planted)
                )
                .description
            }
            // Adds a member to an event, at its end or at its beginning.
            func with(_ more: JSONValue.Member, before: Bool = false) -> (JSONValue) -> JSONValue {
                { .object(before ? [more] + ($0.members ?? []) : ($0.members ?? []) + [more]) }
            }
            let last = path.last ?? ""
            // A push sets properties directly, without the member `properties`.
            let pushed = path.count > 1 && path[0] == "properties" ? path.dropFirst() : path[...]
            let plain = shape("plain")
            // Larger than the 8 KiB that the proof's configuration allows for an event.
            let pad = JSONValue.Member("pad", .string(String(repeating: "x", count: 9000)))
            // The last name of the path with an escape in it (RFC 8259, section 7): the same name, in other
            // bytes.
            let first = "\\u" + String((last.unicodeScalars.first?.value ?? 0) + 0x10000, radix: 16).suffix(4)
            let escaped = first + String(last.dropFirst()).replacingAll(".", with: "\\u002e")
            let disguised = plain.replacingAll("\"\(last)\":", with: "\"\(escaped)\":")
            // The member twice: which of the two holds differs between parsers, so both must be hidden.
            let twice = plain.replacingAll("\"\(last)\":", with: "\"\(last)\":\"\(marker)\",\"\(last)\":")
            // The object of the path as the only element of a list.
            let list =
                path.count < 2
                ? plain
                : plain.replacingAll("\"\(path[0])\":{", with: "\"\(path[0])\":[{")
                    .replacingAll(",\"privacy_control\"", with: "],\"privacy_control\"")
            let shapes: [String] = [
                plain, shape("rejected"), disguised, twice,
                (try? JSONValue(parsing: list)) == nil ? plain : list,
                shape("record") { .object(($0.members ?? []).filter { $0.key != "name" }) },
                shape("large", with(pad)), shape("late", with(pad, before: true)),
                shape("push", with(.init("type", "data_layer"), before: true)),
                PrivacyProof.plant(.string(marker), at: pushed, in: ["type": "data_layer"]).description,
                shape("timeless", with(.init("timestamp", "no time"))), String(plain.dropLast(2)),
                "\(last)=\(marker) and not JSON at all",
                shape("refused", with(.init("consent", false))),
            ]
            // Each way of being wrong, or of being stored elsewhere, in each spelling.
            let wellSpelled: [String] = [
                shape("spelled"), shape("rejected"),
                shape("pushed", with(.init("type", "data_layer"), before: true)),
                shape("untimed", with(.init("timestamp", "no time"))),
            ]
            return shapes + (index == 0 ? wellSpelled.flatMap { spelled($0, path) } : [])
        }
    }

    /// Ways to write the same event with other bytes: each of the marker's first characters as an escape, all
    /// of them, each character of the path's names, and blanks between the members.
    private func spelled(_ line: String, _ path: [String]) -> [String] {
        let value = "\"\(marker)\""
        func escaped(_ text: String, at place: Int) -> String {
            let unit = String(Array(text.utf16)[place], radix: 16, uppercase: place % 2 == 0)
            let escape = "\\u" + String(repeating: "0", count: max(0, 4 - unit.count)) + unit
            return String(text.prefix(place)) + escape + String(text.dropFirst(place + 1))
        }
        var found = (0..<15).map { line.replacingAll(value, with: "\"\(escaped(marker, at: $0))\"") }
        let all = marker.utf16.map { "\\u00" + String($0, radix: 16) }.joined()
        found.append(line.replacingAll(value, with: "\"\(all)\""))
        for name in path where name.utf8.allSatisfy({ $0 < 0x80 && $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) {
            found += (0..<min(name.utf8.count, 11)).map {
                line.replacingAll("\"\(name)\":", with: "\"\(escaped(name, at: $0))\":")
            }
        }
        return found + [line.replacingAll("\":", with: "\" :\t "), line.replacingAll(",\"", with: "\t,  \"")]
    }

    /// The same events as text: broken in the ways that the output of programs is (cut, doubled, coloured,
    /// with text around), as plain lines, and wrapped by Docker, whole and in pieces.
    private var wrapped: [String] {
        // A line of Docker's json-file log.
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
            // Lines of the other stream between two pieces of one line: the reader must not join them.
            let pieces: [String] = [
                line(behind), line("other\n", "stderr"), line("\"m\":\"\(marker)"), line("b", "stderr"),
                line("\"}\n"),
            ]
            return broken + broken.map { line($0 + "\n") } + pieces + [line("\u{FEFF}\(good)\n")]
        } + [line("\(control)-text\n")]
    }

    /// An object with a value at a path; objects on the way are created, other values there replaced.
    static func plant(_ value: JSONValue, at path: ArraySlice<String>, in object: JSONValue) -> JSONValue {
        guard let first = path.first else { return value }
        let inner = plant(value, at: path.dropFirst(), in: object[first] ?? .object([]))
        return .object((object.members ?? []).filter { $0.key != first } + [.init(first, inner)])
    }

    // MARK: The agent

    /// Whether a setting of an app affects what tags see of its events. Settings about reading its files are
    /// left out, because the proof has its own files.
    static func decides(_ key: Substring) -> Bool {
        let ofFiles = [
            "read", "exclude", "follow", "since", "encoding", "file_path", "format", "text", "first_line",
            "destinations",
        ]
        return !ofFiles.contains(String(key)) && !key.hasPrefix("journal")
    }

    /// The configuration of the proof's agent: everything in the proof's directory, all formats of
    /// destinations sent to one receiver, and no compression, so that the marker can be found in files and
    /// requests.
    private func configuration(_ port: UInt16) -> String {
        var text =
            settings.joined(separator: "\n") + """

                agent.hash_key = "file:\(directory)/hash.key"
                agent.state_directory = "\(directory)/state"
                agent.runtime_directory = "\(directory)/run"
                agent.log = "verbose"
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
        for rule in rules { text += rule + "\n" }
        for document in documents {
            text += "[[container]]\nid = \"\(document.id)\"\ndefault_file = \"\(directory)/\(document.id)\"\n"
            text += "hash_key = \"file:\(directory)/hash.key\"\n"
        }
        text += "[[destination]]\nname = \"file\"\ntype = \"file\"\npath = \"\(directory)/received.jsonl\"\n"
        text += "[[destination]]\nname = \"withheld\"\ntype = \"file\"\npurpose = \"privacy-proof\"\n"
        text += "path = \"\(directory)/withheld.jsonl\"\n"
        let formats = HTTPSettings.Format.allCases.map { ($0.rawValue, $0) }
        // Two destinations besides the formats: one whose events become dead letters, one whose events stay
        // queued.
        for (name, format) in formats + [("rejecting", .ndjson), ("holding", .ndjson)] {
            let end = format == .elasticsearch ? "/_bulk" : format == .otlp ? "/v1/logs" : ""
            text += "[[destination]]\nname = \"\(name)\"\nurl = \"http://127.0.0.1:\(port)/\(name)\(end)\"\n"
            if format == .ga4 {
                text += "ga4.measurement_id = \"G-1\"\n"
            }
            // The template's body is the complete event, so that everything that a body could quote is
            // searched.
            if format == .template {
                text += "body.event = '{{event}}'\n"
            }
            text += "format = \"\(format.rawValue)\"\ncompression = \"none\"\n"
            if [.splunkHEC, .ga4, .appCenter].contains(format) {
                // A token of the form that these formats demand; it opens nothing.
                text += "token = \"6b0ac0b9-5d6f-4f5c-a5a5-1f4d3f0c9d5e\"\n"
            }
        }
        return text
    }

    /// Runs the agent and searches what it leaves. Afterwards the directory is gone.
    ///
    /// - Returns: the places that were searched, and what had not passed by then.
    /// - Throws: `CommandFailure` with code 73 if the files cannot be made, and 75 if the agent does not
    ///   answer within 20 s.
    func run() throws(CommandFailure) -> Findings {
        defer { ChildProgram.end(ChildProgram.start(["rm", "-rf", "--", directory], into: "/dev/null"), 0) }
        let receiver: KeepingReceiver
        do throws(SystemError) {
            receiver = try KeepingReceiver(rejecting: ("rejecting", "\(control)-rejected"))
            for name in ["state", "run", "docker", "spool", "spool/\(app)"] {
                mkdir("\(directory)/\(name)", 0o700)
            }
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
        // The same binary, even if it was replaced on the disk since this process began.
        func program(_ words: String..., into file: String) -> pid_t {
            ChildProgram.start(
                ["/proc/self/exe"] + words + ["--config", "\(directory)/spoolship.toml"],
                into: "\(directory)/\(file)")
        }
        let agent = program("run", into: "log")
        defer { ChildProgram.end(agent) }
        let client = ControlClient(socket: "\(directory)/run/control.sock")
        guard wait(seconds: 20, receiver, { (try? client.request("GET", "/v1/status")) != nil }) else {
            let log = String(decoding: contents("log").suffix(500), as: UTF8.self)
            throw CommandFailure(
                .temporaryFailure, "gave up waiting until the agent answers; its log: \(log)")
        }
        let tap = program("tap", into: "tap")
        defer { ChildProgram.end(tap) }
        // `tap` prints only events that pass while it is connected: the first event is written again until it
        // appears.
        let first = Array((lines[0] + "\n").utf8)
        _ = wait(seconds: 5, receiver) {
            append(first)
            return contents("tap") != []
        }
        append(Array((lines.joined(separator: "\n") + "\n").utf8))
        try? WholeFile.replace(
            "\(directory)/docker/1.log", with: Array((wrapped.joined(separator: "\n") + "\n").utf8),
            mode: 0o600)
        try? WholeFile.replace(
            "\(directory)/spool/\(app)/whole.json", with: Array(lines[0].utf8), mode: 0o600)
        let late = waitUntilPassed(receiver, client)
        // Events that are still on their way, such as retries, have three seconds more.
        _ = wait(seconds: 3, receiver) { false }
        // Runs after the events, so that its output includes everything that the agent says about them.
        ChildProgram.end(program("diagnose", "--log", "\(directory)/log", into: "diagnose"), 0)
        // Searched while the agent runs and again after it: files of SQLite's log exist only while it runs.
        var places = tables() + [files("state", as: "files of the queue, while it runs")]
        ChildProgram.end(tap)
        ChildProgram.end(agent)
        places += [
            files("state", as: "files of the queue, after the stop"), files("run", as: "values for apps"),
        ]
        for (file, name) in [
            ("log", "log (journal)"), ("diagnose", "diagnose"), ("tap", "tap"),
            ("received.jsonl", "destination of type file"),
        ] { places.append(searched(file: file, name)) }
        places.append(withoutConsent())
        // Also those that got nothing, which must show.
        for name in Set(receiver.kept.keys).union(HTTPSettings.Format.allCases.map(\.rawValue)).sorted() {
            places.append(searched(receiver.kept[name] ?? [], "receiver, \(name)"))
        }
        return Findings(places: places, late: late)
    }

    /// Serves the receiver until everything that was written has passed the agent.
    ///
    /// That is so when nothing is on its way, each format has received something, the last event has arrived,
    /// and rejected and quarantined ones are stored. Rules may keep events from a place: if nothing is on its
    /// way for 20 s, there will be no more.
    ///
    /// - Returns: what is on its way if that has not changed for a minute, in words; empty if nothing is.
    private func waitUntilPassed(_ receiver: KeepingReceiver, _ client: ControlClient) -> [String] {
        var late: [String]?
        var deadline = SystemTime().bootTime
        while true {
            receiver.serve()
            let found = onTheWay(client)
            let now = SystemTime().bootTime
            if found != late {
                late = found
                deadline = now + .seconds(found.isEmpty ? 20 : 60)
            }
            if found.isEmpty, hasArrived(receiver) { return [] }
            guard now < deadline else {
                return found.isEmpty && !hasRows("chunk") && !hasRows("quarantine") ? ["all events"] : found
            }
        }
    }

    /// Whether there is something in each place that events without special rules come to.
    private func hasArrived(_ receiver: KeepingReceiver) -> Bool {
        HTTPSettings.Format.allCases.allSatisfy { receiver.kept[$0.rawValue] != nil }
            && PrivacyProof.count("\(control)-text", in: receiver.kept["ndjson"] ?? []) > 0
            && hasRows("quarantine") && hasRows("dead_letter")
    }

    /// What the agent has not read or not sent yet, in words.
    private func onTheWay(_ client: ControlClient) -> [String] {
        guard let answer = try? client.request("GET", "/v1/status"), answer.status == 200,
            let status = try? JSONValue(parsing: answer.body)
        else { return ["events: the agent does not answer"] }
        return PrivacyProof.onTheWay(status)
    }

    /// The same from an answer to `GET /v1/status`. Set-aside events and those for the destinations
    /// `rejecting` and `holding` do not count, because they stay in the queue, where they are searched.
    static func onTheWay(_ status: JSONValue) -> [String] {
        let unread = status["spool"]?["lag_bytes"]?.integer ?? 0
        let unsent = (status["destinations"]?.array ?? []).compactMap { destination -> String? in
            guard let name = destination["name"]?.string, !["rejecting", "holding"].contains(name) else {
                return nil
            }
            let queued = (destination["lanes"]?.array ?? []).compactMap { $0["queued"]?.integer }
            let aside = (destination["set_aside"]?.members ?? []).compactMap(\.value.integer)
            let events = queued.reduce(0, +) - aside.reduce(0, +)
            return events > 0 ? "\(events) events for \(name)" : nil
        }
        return (unread > 0 ? ["\(unread) bytes unread"] : []) + unsent
    }

    /// Appends bytes to the app's file in the spool.
    private func append(_ bytes: [UInt8]) {
        let raw = open(
            "\(directory)/spool/\(app)/events.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard raw >= 0 else { return }
        let file = Descriptor(raw)
        // A write that fails shows later as a place without events.
        _ = write(file.raw, bytes, bytes.count)
    }

    /// Serves the receiver until a condition holds; false if the time is over before.
    private func wait(seconds: Int, _ receiver: KeepingReceiver, _ isDone: () -> Bool) -> Bool {
        let deadline = SystemTime().bootTime + .seconds(seconds)
        while !isDone() {
            guard SystemTime().bootTime < deadline else { return false }
            receiver.serve()
        }
        return true
    }

    // MARK: Searching

    /// The largest file that is searched, in bytes.
    private static let mostBytes = 1 << 28

    /// The bytes of a file of the proof; empty if it does not exist or is too large.
    private func contents(_ file: String) -> [UInt8] {
        (try? WholeFile.bytes(of: "\(directory)/\(file)", atMost: PrivacyProof.mostBytes)) ?? []
    }

    /// Counts the marker and the control in a file of the proof.
    private func searched(file: String, _ name: String) -> Place {
        let bytes = contents(file)
        var place = searched(bytes, name)
        var status = stat()
        // A file that is too large was not read.
        place.isSearched =
            !bytes.isEmpty || stat("\(directory)/\(file)", &status) != 0
            // bounded: only compared.
            || status.st_size <= PrivacyProof.mostBytes
        return place
    }

    /// Counts the marker and the control in some bytes.
    private func searched(_ bytes: [UInt8], _ name: String) -> Place {
        Place(
            name: name, found: PrivacyProof.mentions(of: sought, in: bytes),
            controls: PrivacyProof.count(control, in: bytes))
    }

    /// How often a text occurs in bytes, also where it is spelled with escapes.
    static func mentions(of text: String, in bytes: [UInt8]) -> Int {
        SpelledText.decodings(of: bytes).map { count(text, in: $0) }.max() ?? 0
    }

    /// What a destination got without consent: the events that refuse it.
    private func withoutConsent() -> Place {
        var place = searched(file: "withheld.jsonl", "destination without consent")
        place.found = PrivacyProof.count("\(control)-refused", in: contents("withheld.jsonl"))
        return place
    }

    /// Counts in all files of a directory.
    private func files(_ folder: String, as name: String) -> Place {
        let files = (try? WholeFile.names(in: "\(directory)/\(folder)")) ?? []
        return files.map { searched(file: "\(folder)/\($0)", name) }.reduce(Place(name: name), +)
    }

    /// Whether a table of the queue has a row. Reading all of them would take seconds each time.
    private func hasRows(_ table: String) -> Bool {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        let file = "\(directory)/state/queue.sqlite"
        guard sqlite3_open_v2(file, &database, SQLITE_OPEN_READONLY, nil) == SQLITE_OK else { return false }
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        let query = "SELECT 1 FROM \(table) LIMIT 1"
        return sqlite3_prepare_v2(database, query, -1, &statement, nil) == SQLITE_OK
            && sqlite3_step(statement) == SQLITE_ROW
    }

    /// The rows of the queue's tables. The file is searched, too, but a page can end within a value, so that
    /// a value in two pages would not be found there.
    private func tables() -> [Place] {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard
            sqlite3_open_v2("\(directory)/state/queue.sqlite", &database, SQLITE_OPEN_READONLY, nil)
                == SQLITE_OK
        else {
            return []
        }
        return [
            ("chunk", "queue"), ("dead_letter", "dead letters"), ("quarantine", "quarantine"),
            ("memory", "data layer"),
        ].compactMap { table, name in
            // A table that does not exist yet has no place; another one has its place with its first row.
            var statement: OpaquePointer?
            defer { sqlite3_finalize(statement) }
            guard sqlite3_prepare_v2(database, "SELECT * FROM \(table)", -1, &statement, nil) == SQLITE_OK
            else {
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

    /// How often a text occurs in bytes, overlapping occurrences included.
    static func count(_ text: String, in bytes: [UInt8]) -> Int {
        let part = Array(text.utf8)
        var count = 0
        var start = 0
        while let offset = offset(of: part, in: bytes, from: start) {
            count += 1
            start = offset + 1
        }
        return count
    }

    /// The offset at which some bytes first occur in others from `start` on; nil if they do not.
    static func offset(of part: [UInt8], in bytes: [UInt8], from start: Int = 0) -> Int? {
        bytes.withUnsafeBytes { all in
            guard let base = all.baseAddress else { return nil }
            var offset = start
            while offset + part.count <= all.count,
                let found = memchr(base + offset, Int32(part[0]), all.count - part.count - offset + 1)
            {
                offset = UnsafeRawPointer(found) - base
                if memcmp(found, part, part.count) == 0 { return offset }
                offset += 1
            }
            return nil
        }
    }
}
