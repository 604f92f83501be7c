internal import Agent
internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Model

enum PrivacyCommand {
    /// Proves that a hidden value is nowhere, with a second agent.
    ///
    /// A document's own tests show what its tags do to one event. They do not show what the agent keeps
    /// elsewhere: in the log, the quarantine, the data layer, or the files of the queue. So this command
    /// plants a marker and searches everything that the second agent has written.
    static let privacyProve = Command(
        name: "privacy prove", summary: "checks whether a value that containers hide remains anywhere",
        details: """
            Starts a second agent in a separate directory, with the containers of the configuration: as \
            the running agent has them, else their default files; or with --document. It gets events with a \
            marker at --path: good ones, lists, disguised and doubled members, records, pushes, lines that \
            are cut off, not JSON, too large or without a time, and the same as text that Docker has \
            wrapped, whole and in pieces. Then the marker is searched for in the queue, the dead letters, \
            the quarantine, the data layer, the files of all of them, the log, diagnose, tap and what \
            receivers of each format got. The running agent and what it has stored are neither touched nor \
            searched (`spoolship erase --dry-run` counts that); functions are not called.

            If rules need other events than these, --events FILE names events to plant the marker in, one \
            object a line; the first of them in every spelling of names and values.

            Exits with 0 if the marker is nowhere and events were seen wherever they go, with 1 if it is \
            somewhere, with 75 if that is not proved: no event came to a receiver, tap, the file or the \
            quarantine, not all of them in time, or a place could not be searched. Rules of the \
            configuration that hide or change members are in force, too.

            A redaction with a condition is proved for these events only: each is named with its condition, \
            because events for which it does not hold keep the value.
            """,
        options: [
            Command.Option(
                "path PATH",
                "where the value is, as in a tag: properties.email, [\"a.b\"]; id, for patterns"),
            Command.Option(
                "document FILE", repeats: true, "a container's document; default the configuration's"),
            Command.Option(
                "app APP", "the app of the events; default the first that a container names, else default"),
            Command.Option("events FILE", "events to plant the marker in; default one named Proof"),
        ]
    ) { invocation in
        guard let path = invocation.value("path") else {
            throw CommandFailure(.usage, "--path is missing: --path properties.email")
        }
        // With `--document` alone the proof does not depend on this machine's configuration.
        let settings =
            invocation.values("document").isEmpty || invocation.has("config")
            ? try invocation.loadSettings().settings : Settings()
        let documents = try PrivacyCommand.documents(settings, invocation)
        let app = try invocation.app() ?? settings.containers.flatMap(\.apps).first ?? "default"
        // The settings of some kind that the configuration sets itself, as TOML lines; `section` is cut off
        // in front.
        func set(_ isWanted: (EffectiveSetting) -> Bool, in section: String = "") -> [String] {
            settings.effective.filter { isWanted($0) && settings.origin(of: $0.path) != .standard }.compactMap
            {
                setting in setting.value.map { "\(setting.path.dropFirst(section.count)) = \($0.toml)" }
            }
        }
        // Only settings that change how lines become events: others, such as `read`, would make the second
        // agent read the machine's own files.
        let own = "apps.\(app)."
        let ids = documents.map(\.id).joined(separator: ", ")
        try invocation.console.print("\(path), app \(app)\(ids.isEmpty ? "" : ", containers \(ids)")")
        // A redaction with a condition is proved for the events of this run only.
        for hiding in try conditionalHiding(documents, settings) {
            try invocation.console.print(
                "  \(invocation.console.styled("conditional:", .yellow)) \(hiding.name) hides only where"
                    + " \(hiding.condition); other events keep the value")
        }
        if settings.spool.afterRead == .archive {
            let title = invocation.console.styled("not proved:", .yellow)
            try invocation.console.print(
                "  \(title) the archive keeps files as apps wrote them (after_read);"
                    + " `spoolship erase` searches them")
        }
        let events = try sampleEvents(invocation)
        // Last, because `run` alone removes the directory that is made here.
        let proof = try PrivacyProof(
            paths: spellings(of: path), app: app, events: events,
            documents: documents,
            settings: set { ["limits", "device", "session", "country"].contains($0.section.path) },
            rules: hidingRules(of: settings),
            ofApp: set(
                { $0.path.hasPrefix(own) && PrivacyProof.decides($0.path.dropFirst(own.count)) }, in: own),
            directory: PrivacyProof.makeDirectory())
        let findings = try proof.run()
        let places = findings.places
        for place in places {
            let verdict = verdict(of: place, isLate: !findings.late.isEmpty)
            let title = HelpText.pad(place.name, to: 36)
            let styled = invocation.console.styled(HelpText.pad(verdict.text, to: 14), verdict.colour)
            try invocation.console.print("  \(title)  \(styled)  \(place.evidence)")
        }
        if let failure = failure(of: findings) { throw failure }
    }

    /// Why the findings are no proof; nil if they are one.
    static func failure(of findings: PrivacyProof.Findings) -> CommandFailure? {
        let places = findings.places
        func unproved(_ reason: String) -> CommandFailure { CommandFailure(.temporaryFailure, reason) }
        // A marker that was found decides first: it disproves the redaction even if few events arrived.
        guard places.allSatisfy({ $0.found == 0 }) else { return CommandFailure(.negative) }
        guard findings.late.isEmpty else {
            return unproved(
                "gave up waiting for \(findings.late.joined(separator: ", ")), so nothing is proved;"
                    + " try again, or with fewer events in --events")
        }
        let unsearched = places.filter { !$0.isSearched }.map(\.name)
        guard unsearched.isEmpty else {
            return unproved(
                "could not be searched: \(unsearched.joined(separator: ", ")), so nothing is proved;"
                    + " try again, or with fewer events in --events")
        }
        guard places.contains(where: { $0.kind == .receiver && $0.controls > 0 }) else {
            return unproved("no event arrived, so nothing is proved; name events with --events FILE")
        }
        let empty = places.filter { $0.verdict(isLate: false) == .nothingCame }.map(\.name)
        guard empty.isEmpty else {
            return unproved(
                "no event came to \(empty.joined(separator: "; ")), so nothing is proved for these;"
                    + " name events that reach them with --events FILE")
        }
        return nil
    }

    /// What is printed about a place, and its colour: green only for a proof.
    private static func verdict(of place: ProofPlace, isLate: Bool) -> (text: String, colour: Console.Style) {
        switch place.verdict(isLate: isLate) {
        case .found(let times): ("FOUND \(times) times", .red)
        case .notSearched: ("not searched", .yellow)
        case .notProved: ("not proved", .yellow)
        case .nothingCame: ("nothing came", .yellow)
        case .notFound: ("not found", .green)
        }
    }

    /// The ways to write an event with a value at a path. A JSON list has the names themselves. A dotted path
    /// `a.b.c` can be `c` in objects `a` and `b`, `b.c` in an object `a`, or one member `a.b.c`; a rule for
    /// the path has to hide all.
    private static func spellings(of path: String) -> [[String]] {
        if case .array(let list)? = try? JSONValue(parsing: path) { return [list.compactMap(\.string)] }
        let names = path.split(separator: ".").map(String.init)
        return names.indices.reversed().map { Array(names[..<$0]) + [names[$0...].joined(separator: ".")] }
    }

    /// The documents of the containers: those of `--document`, otherwise those that the running agent has in
    /// force, otherwise the default files.
    ///
    /// - Throws: `CommandFailure` with code 77 if the agent may not be asked, 69 if a container has neither,
    ///   65 for a document that cannot be used, and 78 if there is nothing that hides.
    private static func documents(
        _ settings: Settings, _ invocation: Invocation
    ) throws(CommandFailure) -> [(id: String, bytes: [UInt8])] {
        var found: [[UInt8]] = []
        for file in invocation.values("document") {
            found.append(SignedDocument.document(in: try NamedFile.contents(of: file)))
        }
        if found.isEmpty {
            let agent = ControlClient(socket: settings.control.socket)
            for container in settings.containers {
                let answer = Result { () throws(ControlError) in
                    try agent.request("GET", "/v1/containers/\(container.id)/document")
                }
                // Without permission the default file would be taken for the document in force: another
                // proof.
                if case .failure(let error) = answer, error.code == .notPermitted {
                    throw Invocation.failure(error)
                }
                if let answer = try? answer.get(), answer.status == 200 {
                    found.append(SignedDocument.document(in: answer.body))
                    // Files with these suffixes have values only, and hide nothing.
                } else if let file = container.defaultFile, !file.hasSuffix(".json"),
                    !file.hasSuffix(".plist")
                {
                    found.append(SignedDocument.document(in: try NamedFile.contents(of: file)))
                } else if container.defaultFile == nil {
                    throw CommandFailure(
                        .unreachable,
                        "\(container.id): no agent answers, and it has no default_file; name its document"
                            + " with --document FILE")
                }
            }
        }
        // Without anything that hides there is nothing to prove, and "not found" would be misleading.
        guard !found.isEmpty || settings.rulesForCheck?.hides == true else {
            throw CommandFailure(
                .configuration,
                "neither a [[rule]] nor a [[container]] hides anything; name a document with --document FILE")
        }
        return try found.map { bytes throws(CommandFailure) in
            (
                try orFail(
                    .badData, about: "a document cannot be used", try ContainerDocument(reading: bytes)
                ).id, bytes
            )
        }
    }

    /// The rules that hide or change members, each as a section of a configuration. Other rules would only
    /// keep the proof's events from arriving.
    private static func hidingRules(of settings: Settings) -> [String] {
        let wanted = ["name", "when", "redact", "hash", "remove", "rename", "set"]
        var sections: [SectionPlace] = []
        // Sections in the order of the configuration, because rules act one after the other.
        var lines: [SectionPlace: [String]] = [:]
        for setting in settings.effective
        where setting.path.hasPrefix("rule.") && wanted.contains(setting.name) {
            guard let value = setting.value else { continue }
            if lines[setting.section] == nil {
                sections.append(setting.section)
            }
            lines[setting.section, default: []].append("\(setting.name) = \(value.toml)")
        }
        return sections.compactMap { section in
            let settings = lines[section] ?? []
            // A rule with a name and a condition only does nothing, which a configuration must not have.
            guard settings.contains(where: { !$0.hasPrefix("name ") && !$0.hasPrefix("when ") }) else {
                return nil
            }
            return (["[[rule]]"] + settings).joined(separator: "\n")
        }
    }

    /// The redactions that depend on a condition, those of the rules first.
    private static func conditionalHiding(
        _ documents: [(id: String, bytes: [UInt8])], _ settings: Settings
    ) throws(CommandFailure) -> [CompiledContainer.ConditionalHiding] {
        var facts = AgentFacts()
        facts.hashKey = .trial
        var found = settings.rulesForCheck?.conditionalHiding ?? []
        for document in documents {
            found += try orFail(
                .badData, about: "a document cannot be used",
                try CompiledContainer(try ContainerDocument(reading: document.bytes), facts: facts)
            ).conditionalHiding
        }
        return found
    }

    /// The events in which the marker is put: those of `--events`, otherwise one named Proof.
    private static func sampleEvents(_ invocation: Invocation) throws(CommandFailure) -> [JSONValue] {
        guard let file = invocation.value("events") else { return [["name": "Proof"]] }
        let lines = try NamedFile.contents(of: file).split(separator: UInt8(ascii: "\n"))
        let events = lines.compactMap { try? JSONValue(parsing: Array($0)) }.filter { $0.members != nil }
        guard !events.isEmpty, events.count == lines.count else {
            throw CommandFailure(.badData, "\(file): each line must be a JSON object")
        }
        return events
    }
}
