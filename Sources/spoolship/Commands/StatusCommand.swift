internal import Control
internal import EventLoops
internal import Model

extension Command {
    static let status = Command(
        name: "status", summary: "shows how the agent stands: what flows, what waits, and why nothing goes",
        details: """
            One line for each destination says why; then the ledger, the spool and the queue.

            Ends with 0 when the agent is ready, with 1 when it is not or collection is disabled (--quiet prints nothing),
            with 69 when no agent answers.
            """,
        options: [
            .json, Option(name: "apps", help: "what each app has written since the start, the busiest first"),
            Option(name: "quiet", letter: "q", help: "print nothing: only the exit code counts"),
        ]
    ) { invocation in
        let json = try invocation.ask("GET", "/v1/status")
        let report = try StatusReport.read(json)
        if invocation.has("json") {
            try invocation.console.print(json.pretty)
        } else if !invocation.has("quiet") {
            let text = StatusText(report, console: invocation.console)
            try invocation.console.write(invocation.has("apps") ? text.apps : text.screen)
        }
        return report.obstacles.isEmpty && report.isEnabled ? .success : .negative
    }
}

extension StatusReport {
    /// The report that an agent sent.
    static func read(_ json: JSONValue) throws(CommandFailure) -> StatusReport {
        return try relaying(try StatusReport(json: json)) { (error: ControlError) in
            CommandFailure(.software, error.message)
        }
    }
}

extension StatusText {
    /// The report in the console's colours.
    init(_ report: StatusReport, console: Console) {
        self.init(report) { text, style in
            switch style {
            case .good: console.styled(text, .green)
            case .warning: console.styled(text, .yellow)
            case .bad: console.styled(text, .red)
            case .heading: console.styled(text, .bold)
            }
        }
    }
}
