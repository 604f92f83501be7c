internal import Control
internal import EventLoops
internal import Model

/// Commands for what the agent stores: the queue, the dead letters and the quarantine. They ask the running
/// agent, or use the queue's file while no agent runs.
enum RecordCommands {
    /// All commands for stored records. The three stores have the same commands with their own words.
    static let records: [Command] =
        stored(
            .queue, "queued events, most important first", purge: "and counts them as discarded",
            filters: [.destination, .priority])
        + [queueMove, queueLeft]
        + stored(
            .deadLetters, "events that destinations rejected, and why", retry: "sends them again",
            filters: [.destination, .app, .reason])
        + stored(
            .quarantine, "lines that could not be read as events, and why", retry: "rereads them",
            filters: [.app, .reason])
        + [erase]

    private static let queueMove = Command(
        name: "queue move", summary: "moves events queued for one destination to another",
        details:
            "For events of a destination that was renamed. A batch that may have been sent keeps its id. "
            + "Batches in flight stay, as do events that the other destination gets or got anyway: "
            + "`queue purge` discards them. A batch that may have been sent stays whole if some of it "
            + "stays and its destination is configured. Dead letters stay: `dead-letters retry` queues "
            + "them first.\n\n" + access,
        options: [.destination, Command.Option("to NAME", "the destination to move to"), .priority]
    ) { invocation in
        guard let source = invocation.value("destination"), let target = invocation.value("to") else {
            throw CommandFailure(.usage, "queue move needs --destination NAME and --to NAME")
        }
        let answer = try invocation.askForRecords(
            "POST", "/v1/queue/move", body: invocation.body("destination", "to", "priority"),
            timeout: .seconds(120))
        let kept = answer["kept"]?.integer ?? 0
        let rest =
            ", \(kept) stay: in flight, or \(target) gets or got them anyway (purge them if \(source) is "
            + "gone)"
        try invocation.console.print("\(answer["moved"]?.integer ?? 0) moved\(kept > 0 ? rest : "")")
    }

    private static let queueLeft = Command(
        name: "queue left", summary: "says in a line what is not sent or not read yet",
        details:
            "The events that wait in the queue, and the files of the spool with bytes that were not read: "
            + "what a purge of the package deletes. Prints nothing if nothing is left.\n\n" + access,
        options: [.json]
    ) { invocation in
        let left = try invocation.askForRecords("GET", "/v1/queue/left", timeout: .seconds(60))
        guard !invocation.has("json") else { return try invocation.console.print(left.pretty) }
        if let text = leftText(left) {
            try invocation.console.print(text)
        }
    }

    /// What is left as part of a sentence; nil if nothing is.
    static func leftText(_ left: JSONValue) -> String? {
        let events = left["events"]?.integer ?? 0
        let files = left["files"]?.integer ?? 0
        var parts: [String] = []
        if events > 0 {
            parts.append("\(HumanText.plural(events, "event")) \(events == 1 ? "is" : "are") not sent")
        }
        if files > 0 {
            let bytes = HumanText.bytes(left["bytes"]?.integer ?? 0)
            parts.append(
                "\(left["whole"] == true ? "" : "at least ")\(HumanText.plural(files, "file")) with \(bytes)"
                    + " \(files == 1 ? "was" : "were") not read yet")
        } else if left["whole"] != true {
            parts.append("the spool could not be counted")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", and ")
    }

    /// The paragraph of help about working without an agent.
    private static let access =
        "While no agent runs, the commands for the queue, the dead letters and the quarantine work on the "
        + "queue's file, for root and the agent's user; others get exit code 77 and the command to run."

    /// The commands for one store: list, show, export, retry and purge.
    ///
    /// - Parameters:
    ///   - what: what is in the store, for the summary.
    ///   - retry: what retrying does, for the summary; nil if the store has no retry.
    ///   - purge: what purging does, for the summary.
    ///   - filters: the options that select records.
    private static func stored(
        _ store: RecordStore, _ what: String, retry: String? = nil, purge: String = "permanently",
        filters: [Command.Option]
    ) -> [Command] {
        let word = store.rawValue
        let path = "/v1/\(word)"
        var commands = [
            Command(
                name: "\(word) list", summary: "lists \(what)", details: access,
                options: filters + [
                    Command.Option("limit N", "at most N; default 100"),
                    Command.Option("count", "print only how many events they are"),
                    .json,
                ]
            ) { invocation in
                let selection = RecordSelection(invocation: invocation, filters: filters)
                guard invocation.has("count") else { return try selection.list(path) }
                try invocation.console.print("\(try selection.count(path))")
            },
            Command(
                name: "\(word) show", summary: "shows one of them, with its content", arguments: "ID",
                argumentCount: 1...1, details: access
            ) { invocation in
                // An empty id would make the path that of the list.
                guard !invocation.arguments[0].isEmpty else {
                    throw CommandFailure(.usage, "the ID is empty")
                }
                let record = try invocation.askForRecords(
                    "GET", "\(path)/\(invocation.arguments[0])", timeout: .seconds(60))
                try invocation.console.print(record.pretty)
            },
            Command(
                name: "\(word) export", summary: "writes them to standard output, one a line",
                details: access,
                options: filters
            ) { invocation in
                try invocation.exportRecords(
                    store, query: RecordSelection(invocation: invocation, filters: filters).query)
            },
        ]
        if let retry {
            commands.append(
                Command(
                    name: "\(word) retry", summary: retry, arguments: "[ID]…", argumentCount: 0...1000,
                    details: "Without ids and filters: all of them.\n\n"
                        + (store == .quarantine ? "This needs a running agent." : access),
                    options: filters + (store == .quarantine ? [.files] : [])
                ) { invocation in
                    let selection = RecordSelection(invocation: invocation, filters: filters)
                    let answer = try invocation.askForRecords(
                        "POST", "\(path)/retry", body: selection.body, timeout: .seconds(120))
                    try invocation.console.print("\(answer["retried"]?.integer ?? 0) retried")
                })
        }
        commands.append(
            Command(
                name: "\(word) purge", summary: "removes them \(purge)", arguments: "[ID]…",
                argumentCount: 0...1000,
                details: "Without ids and filters: all of them."
                    + (store == .queue
                        ? " An entry in one batch with others goes only with them: name the batch." : "")
                    + "\n\n\(access)", options: filters + [.yes]
            ) { invocation in
                let selection = RecordSelection(invocation: invocation, filters: filters)
                // Without `--yes` the question has the number of records, which needs another request.
                if !invocation.has("yes") {
                    let named = invocation.arguments.count
                    let count = named > 0 ? named : try selection.count(path)
                    let what = named > 0 ? (one: "named entry", several: "named entries") : store.noun
                    try invocation.confirm(
                        "\(HumanText.count(count)) \(count == 1 ? what.one : what.several) will be removed")
                }
                let answer = try invocation.askForRecords(
                    "POST", "\(path)/purge", body: selection.body, timeout: .seconds(120))
                try invocation.console.print("\(answer["purged"]?.integer ?? 0) removed")
            })
        return commands
    }

    /// Erases events for which a condition holds, in all stores: for the right to erasure (GDPR, article 17).
    private static let erase = Command(
        name: "erase", summary: "erases events for which a condition holds, wherever the agent stores them",
        details: """
            The condition is written as the `when` of a rule: --where "properties.user == '4711'". It is \
            tried on the events in the queue, the dead letters, the quarantine and the archive, as they are \
            stored: where tags hash a member, compare it with the digest; in the archive it is as the app \
            wrote it. Texts that are no events (quarantined \
            lines, answers of destinations, data layers, sessions) go if they mention all values that the \
            condition compares members with.

            Other events of the same batch stay. If that batch was sent before, they are sent again in a \
            new batch, which a receiver may store a second time. Events in flight have a minute to arrive \
            or come back.

            Prints a receipt as JSON: what was erased, where, how much, when, and what was not searched. \
            Files of other programs (those in the spool, those read in place) are not changed, and what was \
            sent is not erased. Exits with 75 if \
            something is left; run it again then.

            While no agent runs, the command works on the queue's file, for root and the agent's user.
            """,
        options: [
            Command.Option("where CONDITION", "the condition, as in a rule: \"properties.user == '4711'\""),
            Command.Option("dry-run", "counts only; changes nothing"),
            .yes,
        ]
    ) { invocation in
        guard let condition = invocation.value("where") else {
            throw CommandFailure(.usage, "--where is missing: --where \"properties.user == '4711'\"")
        }
        // An hour, because the condition is tried on each stored event.
        func ask(isTrial: Bool) throws(CommandFailure) -> JSONValue {
            try invocation.askForRecords(
                "POST", "/v1/erase", body: ["where": .string(condition), "dry_run": .bool(isTrial)],
                timeout: .seconds(3600))
        }
        if invocation.has("dry-run") {
            try invocation.console.print(try ask(isTrial: true).pretty)
            return
        }
        if !invocation.has("yes") {
            try invocation.confirm(found(in: try ask(isTrial: true)))
        }
        let receipt = try ask(isTrial: false)
        try invocation.console.print(receipt.pretty)
        // Events in flight cannot be erased, so the command can end with a part.
        guard receipt["complete"] == true else {
            throw CommandFailure(
                .temporaryFailure, "not all is erased: events are in flight or cannot be read; run it again")
        }
    }

    /// Says what a dry run has found; shown before the user is asked whether to erase it.
    private static func found(in receipt: JSONValue) -> String {
        let counts: [(JSONValue?, String)] = [
            (receipt["queue"]?["events"], "queued events"),
            (receipt["queue"]?["in_flight"], "events in flight"),
            (receipt["dead_letters"]?["events"], "dead letters"),
            (receipt["quarantine"], "quarantined lines"),
            (receipt["data_layers"], "data layers"),
            (receipt["sessions"], "sessions"),
            (receipt["archive"]?["events"], "archived events"),
        ]
        let texts = counts.map { "\($0.0?.integer ?? 0) \($0.1)" }
        return "\(texts.joined(separator: ", ")) will be erased"
    }
}

extension RecordStore {
    /// What the store contains, for questions.
    fileprivate var noun: (one: String, several: String) {
        switch self {
        case .queue: ("queued delivery", "queued deliveries")
        case .deadLetters: ("dead letter", "dead letters")
        case .quarantine: ("quarantined line", "quarantined lines")
        }
    }
}

extension Command.Option {
    /// Records for one destination.
    fileprivate static let destination = Command.Option("destination NAME", "only of this destination")
    /// Records of one priority.
    fileprivate static let priority = Command.Option(
        "priority PRIORITY", choices: ["normal", "critical"], "only normal or only critical ones")
    /// Records of one app.
    fileprivate static let app = Command.Option("app APP", "only of this app")
    /// Bad lines of files that stay in the spool because of them.
    fileprivate static let files = Command.Option(
        "files", "the bad lines of files that stay in the spool because of them; removed files are forgotten")
    /// Records that were stored for one reason.
    fileprivate static let reason = Command.Option("reason REASON", "only for this reason")
}

/// The records that a command's filters and ids select.
private struct RecordSelection {
    let invocation: Invocation
    /// The options that select records.
    let filters: [Command.Option]

    /// The filters that were given, as a query.
    var query: [(String, String)] {
        filters.compactMap { filter in invocation.value(filter.name).map { (filter.name, $0) } }
    }

    /// The filters and ids that were given, as a request's body.
    var body: JSONValue {
        var members = query.map { JSONValue.Member($0.0, .string($0.1)) }
        if !invocation.arguments.isEmpty {
            members.append(.init("ids", .array(invocation.arguments.map(JSONValue.string))))
        }
        if invocation.has("files") {
            members.append(.init("files", true))
        }
        return .object(members)
    }

    /// How many events the filters select: all pages are read, so the count of a large queue takes a moment.
    func count(_ path: String) throws(CommandFailure) -> Int {
        var count = 0
        var after: String?
        repeat {
            var query = self.query + [("limit", "1000")]
            if let after {
                query.append(("after", after))
            }
            let page = try invocation.askForRecords("GET", path, query: query, timeout: .seconds(60))
            let records = page["records"]?.array ?? []
            // An entry of the queue can hold many events; one of the other stores is one event or line.
            count += records.reduce(0) { $0 + ($1["events"]?.integer ?? 1) }
            after = records.isEmpty ? nil : page["next"]?.string
        } while after != nil
        return count
    }

    /// Prints records page by page, one a line, up to `--limit` (100).
    func list(_ path: String) throws(CommandFailure) {
        let limit = try invocation.number("limit") ?? 100
        var left = limit
        var after: String?
        repeat {
            var query = self.query + [("limit", "\(min(left, 1000))")]
            if let after {
                query.append(("after", after))
            }
            let page = try invocation.askForRecords("GET", path, query: query, timeout: .seconds(60))
            // A page has at most 1000 records.
            let records = page["records"]?.array ?? []
            for record in records {
                try invocation.console.print(
                    invocation.has("json") ? record.description : RecordSelection.line(record))
            }
            left -= records.count
            after = records.isEmpty ? nil : page["next"]?.string
        } while left > 0 && after != nil
        if after != nil {
            invocation.console.printError("there are more; --limit N shows more than \(limit)")
        }
    }

    /// A record as `id key=value …`, with times as text. A value that is not one word is quoted as JSON.
    private static func line(_ record: JSONValue) -> String {
        let members = (record.members ?? []).filter { $0.key != "id" && $0.value != .null }
        let fields = members.map { member in
            // Members with this suffix are times in milliseconds since 1970.
            if member.key.hasSuffix("_ms"), let milliseconds = member.value.integer {
                return "\(member.key.dropLast(3))=\(Timestamp(milliseconds: Int64(milliseconds)))"
            }
            let text = member.value.string ?? member.value.description
            let isWord =
                !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
            return "\(member.key)=\(isWord ? text : JSONValue.string(text).description)"
        }
        return ([record["id"]?.string ?? "?"] + fields).joined(separator: " ")
    }
}
