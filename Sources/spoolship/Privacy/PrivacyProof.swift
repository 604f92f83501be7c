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
    /// What a run found.
    struct Findings {
        /// The places that were searched.
        let places: [ProofPlace]
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
    private let marker = "marker\(UInt64.random(in: 1 << 60...1 << 63))"
    /// The text that each event has outside of the marked value.
    private let control = "control\(UInt64.random(in: 1 << 60...1 << 63))"
    /// What the names of the proof's destinations begin with. It is random, so that a tag which ships to a
    /// destination of the real configuration does not name one of the proof's: its events would come only to
    /// that one, and nothing would be proved of the others.
    private let prefix = "proof-\(UInt32.random(in: 1 << 30...1 << 31))-"
    /// What the app writes. The marked value is an e-mail address, so that redactions by a pattern for
    /// addresses find it, too.
    private var written: ProofEvents {
        ProofEvents(
            events: events, paths: paths, marker: marker + "@example.com", control: control,
            hasPushes: !ofApp.contains("kind = \"log\""))
    }
    /// The search of what the agent leaves.
    private var search: ProofSearch {
        ProofSearch(directory: directory, marker: marker, control: control)
    }

    /// Makes a new directory below `TMPDIR` that only this user can enter.
    static func makeDirectory() throws(CommandFailure) -> String {
        var template = Array(
            "\(Console.environment("TMPDIR") ?? "/tmp")/spoolship-privacy-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure(
                .cannotCreate, "cannot make a temporary directory: \(SystemError.clause(errno))"
            )
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

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
        text += "[[destination]]\nname = \"\(prefix)file\"\ntype = \"file\"\n"
        text += "path = \"\(directory)/received.jsonl\"\n"
        text += "[[destination]]\nname = \"\(prefix)withheld\"\ntype = \"file\"\n"
        text += "purpose = \"privacy-proof\"\npath = \"\(directory)/withheld.jsonl\"\n"
        let formats = HTTPSettings.Format.allCases.map { ($0.rawValue, $0) }
        // Two destinations besides the formats: one whose events become dead letters, one whose events stay
        // queued.
        for (name, format) in formats + [("rejecting", .ndjson), ("holding", .ndjson)] {
            let end = format == .elasticsearch ? "/_bulk" : format == .otlp ? "/v1/logs" : ""
            text += "[[destination]]\nname = \"\(prefix)\(name)\"\n"
            text += "url = \"http://127.0.0.1:\(port)/\(name)\(end)\"\n"
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
            let log = String(decoding: search.contents("log").suffix(500), as: UTF8.self)
            throw CommandFailure(
                .temporaryFailure, "gave up waiting until the agent answers; its log: \(log)")
        }
        let tap = program("tap", into: "tap")
        defer { ChildProgram.end(tap) }
        // `tap` prints only events that pass while it is connected: the first event is written again until it
        // appears.
        let lines = written.lines
        let first = Array((lines[0] + "\n").utf8)
        _ = wait(seconds: 5, receiver) {
            append(first)
            return search.contents("tap") != []
        }
        append(Array((lines.joined(separator: "\n") + "\n").utf8))
        try? WholeFile.replace(
            "\(directory)/docker/1.log", with: Array((written.wrapped.joined(separator: "\n") + "\n").utf8),
            mode: 0o600)
        try? WholeFile.replace(
            "\(directory)/spool/\(app)/whole.json", with: Array(lines[0].utf8), mode: 0o600)
        let late = waitUntilPassed(receiver, client)
        // Events that are still on their way, such as retries, have three seconds more.
        _ = wait(seconds: 3, receiver) { false }
        // Runs after the events, so that its output includes everything that the agent says about them.
        let isDiagnosed = ChildProgram.end(
            program("diagnose", "--log", "\(directory)/log", into: "diagnose"), 0, within: .seconds(120))
        // Searched while the agent runs and again after it: files of SQLite's log exist only while it runs.
        var places = search.tables() + [search.files("state", as: "files of the queue, while it runs")]
        ChildProgram.end(tap)
        ChildProgram.end(agent)
        places += [
            search.files("state", as: "files of the queue, after the stop"),
            search.files("run", as: "values for apps"),
        ]
        places.append(search.searched(file: "log", "log (journal)"))
        var diagnosis = search.searched(file: "diagnose", "diagnose")
        if !isDiagnosed {
            // It prints at its end, so one that was killed has printed nothing.
            diagnosis.isSearched = false
        }
        places.append(diagnosis)
        var outputs = [
            search.searched(file: "tap", "tap"),
            search.searched(file: "received.jsonl", "destination of type file"),
            // There the events that refuse consent are searched for.
            search.searched(
                file: "withheld.jsonl", "destination without consent", for: "\(control)-refused"),
        ]
        for index in outputs.indices { outputs[index].kind = .output }
        places += outputs
        // Also those that got nothing, which must show.
        for name in Set(receiver.kept.keys).union(HTTPSettings.Format.allCases.map(\.rawValue)).sorted() {
            var place = search.searched(receiver.kept[name] ?? [], "receiver, \(name)")
            place.kind = .receiver
            places.append(place)
        }
        return Findings(places: places, late: late)
    }

    /// Serves the receiver until everything that was written has passed the agent.
    ///
    /// That is so when nothing is on its way, each format has received something, the last event has arrived,
    /// and rejected and quarantined ones are stored. Rules may keep events from a place: if nothing is on its
    /// way for 20 s, there will be no more.
    ///
    /// - Returns: what is late when the wait ends, in words; empty if nothing is. See `ProofPatience`.
    private func waitUntilPassed(_ receiver: KeepingReceiver, _ client: ControlClient) -> [String] {
        let began = SystemTime().bootTime
        var patience = ProofPatience()
        while true {
            receiver.serve()
            let found = onTheWay(client)
            if found == [], hasArrived(receiver) { return [] }
            switch patience.step(found, after: SystemTime().bootTime - began) {
            case .wait: continue
            case .quiet:
                return !search.hasRows("chunk") && !search.hasRows("quarantine") ? ["all events"] : []
            case .giveUp(let late): return late
            }
        }
    }

    /// Whether there is something in each place that events without special rules come to.
    private func hasArrived(_ receiver: KeepingReceiver) -> Bool {
        HTTPSettings.Format.allCases.allSatisfy { receiver.kept[$0.rawValue] != nil }
            && ProofSearch.count("\(control)-text", in: receiver.kept["ndjson"] ?? []) > 0
            && search.hasRows("quarantine") && search.hasRows("dead_letter")
    }

    /// What the agent has not read or not sent yet, in words; nil if it does not answer.
    private func onTheWay(_ client: ControlClient) -> [String]? {
        guard let answer = try? client.request("GET", "/v1/status"), answer.status == 200,
            let status = try? JSONValue(parsing: answer.body)
        else { return nil }
        return PrivacyProof.onTheWay(status, prefix)
    }

    /// The same from an answer to `GET /v1/status`. Set-aside events and those for the destinations
    /// `rejecting` and `holding` do not count, because they stay in the queue, where they are searched. The
    /// names of destinations are given without the prefix.
    static func onTheWay(_ status: JSONValue, _ prefix: String) -> [String] {
        let unread = status["spool"]?["lag_bytes"]?.integer ?? 0
        let unsent = (status["destinations"]?.array ?? []).compactMap { destination -> String? in
            guard let whole = destination["name"]?.string else { return nil }
            let name = whole.hasPrefix(prefix) ? String(whole.dropFirst(prefix.count)) : whole
            guard !["rejecting", "holding"].contains(name) else { return nil }
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
}
