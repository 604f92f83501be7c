internal import Model

extension Command {
    static let status = Command(
        name: "status", summary: "shows the agent's state: what is sent, what waits, and why",
        details: """
            One line for each destination says why; then the ledger, the spool and the queue.

            Exits with 0 if the agent is ready, with 1 if it is not or collection is disabled (--quiet prints nothing),
            with 69 if no agent answers.
            """,
        options: [
            .json, Option("apps", "what was read of each app since the start, busiest first"),
            Option("quiet", letter: "q", "print nothing: only the exit code counts"),
        ]
    ) { invocation in
        let words = invocation.has("json") || invocation.has("quiet") ? nil : invocation.has("apps") ? "apps" : "screen"
        let status = try invocation.status(in: words)
        if let text = status["text"]?.string {
            try invocation.console.write(text)
        } else if invocation.has("json") {
            try invocation.console.print(status.pretty)
        }
        try invocation.end(status["ready"] == true && status["collection_enabled"] == true ? .success : .negative)
    }
}

extension Invocation {
    /// The agent's state, with a text in it: `screen`, `apps` or none.
    func status(in words: String? = nil) throws(CommandFailure) -> JSONValue {
        let query = words.map { [("text", $0), ("colours", "\(console.hasColour)")] } ?? []
        let status = try ask("GET", "/v1/status", query: query)
        guard status["ready"] != nil, words == nil || status["text"] != nil else {
            throw CommandFailure(.unreachable, "the agent's answer is not a status report; is it another version?")
        }
        return status
    }
}

extension JSONValue {
    /// A figure of the ledger, of all lanes of a status report, or of one of its destinations, together.
    func sum(_ figure: String) -> Int {
        let lanes = self["lanes"]?.array ?? (self["destinations"]?.array ?? []).flatMap { $0["lanes"]?.array ?? [] }
        return lanes.reduce(0) { $0 + ($1[figure]?.integer ?? 0) }
    }
}
