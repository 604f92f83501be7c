internal import Control
internal import Model

enum StatusCommand {
    /// Shows the agent's state. The agent makes the text itself, so that all tools show the same.
    static let status = Command(
        name: "status", summary: "shows the agent's state: what is sent, what waits, and why",
        details: """
            One line for each destination says why, those that fail first; then the ledger, the spool and \
            the queue.

            Exits with 0 if the agent is ready, with 1 if it is not or collection is disabled (--quiet \
            prints nothing),
            with 69 if no agent answers.
            """,
        options: [
            .json, Command.Option("destination NAME", "one destination in detail"),
            Command.Option("apps", "what was read of each app since the start, busiest first"),
            Command.Option("quiet", letter: "q", "print nothing: only the exit code counts"),
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

extension JSONValue {
    /// The sum of a figure over all lanes of a status report, or of one of its destinations.
    func sum(_ figure: String) -> Int {
        let lanes =
            self["lanes"]?.array ?? (self["destinations"]?.array ?? []).flatMap { $0["lanes"]?.array ?? [] }
        return lanes.reduce(0) { $0 + ($1[figure]?.integer ?? 0) }
    }
}
