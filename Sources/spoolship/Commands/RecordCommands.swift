internal import EventLoops
internal import Model

/// Commands that look into the queue, the dead letters and the quarantine: of a running agent, or on the queue's file.
extension Command {
    static let records: [Command] =
        stored(
            .queue, "queued events, most important first", purge: "and counts them as discarded",
            filters: [.destination, .priority])
        + [.queueMove]
        + stored(
            .deadLetters, "events that destinations rejected, and why", retry: "sends them again",
            filters: [.destination, .app, .reason])
        + stored(
            .quarantine, "lines that could not be read as events, and why", retry: "rereads them",
            filters: [.app, .reason])

    private static let queueMove = Command(
        name: "queue move", summary: "moves events queued for one destination to another",
        details: "For events of a destination that was renamed. A batch that may have been sent keeps its id. Batches "
            + "in flight stay, as do events that the other destination gets or got anyway: `queue purge` discards them. "
            + "A batch that may have been sent stays whole if some of it stays and its destination is configured. "
            + "Dead letters stay: `dead-letters retry` queues them first.\n\n" + access,
        options: [.destination, Option("to NAME", "the destination to move to"), .priority]
    ) { invocation in
        guard let source = invocation.value("destination"), let target = invocation.value("to") else {
            throw CommandFailure(.usage, "queue move needs --destination NAME and --to NAME")
        }
        let answer = try invocation.askForRecords(
            "POST", "/v1/queue/move", body: invocation.body("destination", "to", "priority"), timeout: .seconds(120))
        let kept = answer["kept"]?.integer ?? 0
        let rest = ", \(kept) stay: in flight, or \(target) gets or got them anyway (purge them if \(source) is gone)"
        try invocation.console.print("\(answer["moved"]?.integer ?? 0) moved\(kept > 0 ? rest : "")")
    }

    private static let access =
        "While no agent runs, the commands for the queue, the dead letters and the quarantine work on the queue's file, "
        + "for root and the agent's user; others get exit code 77 and the command to run."

    private static func stored(
        _ store: RecordStore, _ what: String, retry: String? = nil, purge: String = "permanently", filters: [Option]
    ) -> [Command] {
        let word = store.rawValue
        let path = "/v1/\(word)"
        var commands = [
            Command(
                name: "\(word) list", summary: "lists \(what)", details: access,
                options: filters + [Option("limit N", "at most N; default 100"), .json]
            ) { try $0.listRecords(path, filters) },
            Command(
                name: "\(word) show", summary: "shows one of them, with its content", arguments: "ID",
                argumentCount: 1...1, details: access
            ) { invocation in
                guard !invocation.arguments[0].isEmpty else { throw CommandFailure(.usage, "the ID is empty") }
                let record = try invocation.askForRecords(
                    "GET", "\(path)/\(invocation.arguments[0])", timeout: .seconds(60))
                try invocation.console.print(record.pretty)
            },
            Command(
                name: "\(word) export", summary: "writes them to standard output, one a line", details: access,
                options: filters
            ) { invocation in
                try invocation.exportRecords(store, query: invocation.filterQuery(filters))
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
                    let answer = try invocation.askForRecords(
                        "POST", "\(path)/retry", body: invocation.filterBody(filters), timeout: .seconds(120))
                    try invocation.console.print("\(answer["retried"]?.integer ?? 0) retried")
                })
        }
        commands.append(
            Command(
                name: "\(word) purge", summary: "removes them \(purge)", arguments: "[ID]…", argumentCount: 0...1000,
                details: "Without ids and filters: all of them."
                    + (store == .queue ? " An entry in one batch with others goes only with them: name the batch." : "")
                    + "\n\n\(access)", options: filters + [.yes]
            ) { invocation in
                let isAll = invocation.arguments.isEmpty && invocation.filterQuery(filters).isEmpty
                try invocation.confirm(isAll ? "everything in \(word) will be removed" : "they will be removed")
                let answer = try invocation.askForRecords(
                    "POST", "\(path)/purge", body: invocation.filterBody(filters), timeout: .seconds(120))
                try invocation.console.print("\(answer["purged"]?.integer ?? 0) removed")
            })
        return commands
    }
}

extension Command.Option {
    fileprivate static let destination = Command.Option("destination NAME", "only of this destination")
    fileprivate static let priority = Command.Option(
        "priority PRIORITY", choices: ["normal", "critical"], "only normal or only critical ones")
    fileprivate static let app = Command.Option("app APP", "only of this app")
    fileprivate static let files = Command.Option(
        "files", "the bad lines of files that stay in the spool because of them; removed files are forgotten")
    fileprivate static let reason = Command.Option("reason REASON", "only for this reason")
}

extension Invocation {
    fileprivate func filterQuery(_ filters: [Command.Option]) -> [(String, String)] {
        filters.compactMap { filter in value(filter.name).map { (filter.name, $0) } }
    }

    fileprivate func filterBody(_ filters: [Command.Option]) -> JSONValue {
        var members = filterQuery(filters).map { JSONValue.Member($0.0, .string($0.1)) }
        if !arguments.isEmpty { members.append(.init("ids", .array(arguments.map(JSONValue.string)))) }
        if has("files") { members.append(.init("files", true)) }
        return .object(members)
    }

    /// Prints records page by page, one a line.
    fileprivate func listRecords(_ path: String, _ filters: [Command.Option]) throws(CommandFailure) {
        let limit = try number("limit") ?? 100
        var left = limit
        var after: String?
        repeat {
            var query = filterQuery(filters) + [("limit", "\(min(left, 1000))")]
            if let after { query.append(("after", after)) }
            let page = try askForRecords("GET", path, query: query, timeout: .seconds(60))
            let records = page["records"]?.array ?? []
            for record in records { try console.print(has("json") ? record.description : Invocation.line(record)) }
            left -= records.count
            after = records.isEmpty ? nil : page["next"]?.string
        } while left > 0 && after != nil
        if after != nil { console.printError("there are more; --limit N shows more than \(limit)") }
    }

    /// A record as `id key=value …`; times as text. Values are quoted as JSON where they are more than a word.
    private static func line(_ record: JSONValue) -> String {
        let members = (record.members ?? []).filter { $0.key != "id" && $0.value != .null }
        let fields = members.map { member in
            if member.key.hasSuffix("_ms"), let milliseconds = member.value.integer {
                return "\(member.key.dropLast(3))=\(Timestamp(milliseconds: Int64(milliseconds)))"
            }
            let text = member.value.string ?? member.value.description
            let isWord = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
            return "\(member.key)=\(isWord ? text : JSONValue.string(text).description)"
        }
        return ([record["id"]?.string ?? "?"] + fields).joined(separator: " ")
    }
}
