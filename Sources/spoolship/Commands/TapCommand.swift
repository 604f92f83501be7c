internal import Model

enum TapCommand {
    /// Follows events as they are accepted. The agent never waits for this command: what it cannot print in
    /// time is counted and skipped.
    static let tap = Command(
        name: "tap", summary: "prints events as they pass, without disturbing them",
        details: "Ends with Ctrl-C. Events that pass faster than they can be printed are missed and counted.",
        options: [
            Command.Option("app APP", "only events of this app"),
            Command.Option(
                "priority PRIORITY", choices: ["normal", "critical"], "only normal or only critical ones"),
            Command.Option("name NAME", "only events of this name"),
            Command.Option("count N", letter: "n", "exit after N"),
        ]
    ) { invocation in
        let query = ["app", "priority", "name"].compactMap { name in invocation.value(name).map { (name, $0) }
        }
        var left = try invocation.number("count")
        try invocation.lines("GET", "/v1/tap", query: query) { line throws(CommandFailure) in
            // An event can have any members: only a line without `name` is from the agent itself.
            let json = try? JSONValue(parsing: line)
            if let json, json["error"]?["status"] != nil, json["name"] == nil {
                throw Invocation.refusal(json)
            }
            if let missed = json?["tap"]?["missed"]?.integer, json?["name"] == nil {
                invocation.console.printError("spoolship: \(missed) events were missed")
                return true
            }
            try invocation.console.write(bytes: line + [UInt8(ascii: "\n")])
            left = left.map { $0 - 1 }
            return left != 0
        }
    }
}
