internal import Control
internal import Model

extension Command {
    /// Shows the agent's state. The agent makes the text itself, so that all tools show the same.
    static let status = Command(
        name: "status", summary: "shows the agent's state: what is sent, what waits, and why",
        details: """
            One line for each destination says why, those that fail first; then the ledger, the spool and the queue.

            Exits with 0 if the agent is ready, with 1 if it is not or collection is disabled (--quiet prints nothing),
            with 69 if no agent answers.
            """,
        options: [
            .json, Option("destination NAME", "one destination in detail"),
            Option("apps", "what was read of each app since the start, busiest first"),
            Option("quiet", letter: "q", "print nothing: only the exit code counts"),
        ]
    ) { invocation in
        let words =
            invocation.has("json") || invocation.has("quiet")
            ? nil : invocation.has("apps") ? "apps" : "screen"
        let destination = words == nil ? nil : invocation.value("destination")
        let status = try invocation.status(in: destination == nil ? words : "destination", of: destination)
        if let text = status["text"]?.string {
            try invocation.console.write(text)
        } else if invocation.has("json") {
            try invocation.console.print(status.pretty)
        }
        // Ready, and collecting: monitoring needs no parsing.
        try invocation.end(
            status["ready"] == true && status["collection_enabled"] == true ? .success : .negative)
    }
}

extension Invocation {
    /// The agent's status report.
    ///
    /// - Parameters:
    ///   - words: the text that it includes: `screen`, `destination` or `apps`; nil for none.
    ///   - destination: the destination that the text is about.
    /// - Throws: `CommandFailure` as `ask`, and 69 if the answer is not a status report.
    func status(in words: String? = nil, of destination: String? = nil) throws(CommandFailure) -> JSONValue {
        var query: [(String, String)] = []
        if let words {
            query.append(("text", words))
        }
        // The agent marks styles with this process's key, and `Console` turns the marks into escape
        // sequences: the agent cannot send any by itself.
        if words != nil, console.hasColour {
            query.append(("styles", Console.marks.key))
        }
        if let destination {
            query.append(("destination", destination))
        }
        let status = try ask("GET", "/v1/status", query: query)
        guard status["ready"] != nil, words == nil || status["text"] != nil else {
            throw CommandFailure(
                .unreachable, "the agent's answer is not a status report; is it another version?")
        }
        return status
    }
}

extension JSONValue {
    /// The sum of a figure over all lanes of a status report, or of one of its destinations.
    func sum(_ figure: String) -> Int {
        let lanes =
            self["lanes"]?.array ?? (self["destinations"]?.array ?? []).flatMap { $0["lanes"]?.array ?? [] }
        return lanes.reduce(0) { $0 + ($1[figure]?.integer ?? 0) }
    }
}
