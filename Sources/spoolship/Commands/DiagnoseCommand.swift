internal import EventLoops
internal import Model

enum DiagnoseCommand {
    /// Collects a bug report. It must work when nothing else does, so a part that fails becomes a line of the
    /// report and not the end of the command.
    static let diagnose = Command(
        name: "diagnose", summary: "collects the facts for a bug report in one text",
        details: """
            Version, system, configuration with secrets masked, what check finds, status and ledger of the \
            running agent, the newest lines of its log, and the files of spool and state directory by name, \
            size and time. No content of events and no secrets: values that the configuration marks as \
            secret are removed everywhere. Still, check it before you send it.

            Works without an agent, and with a configuration that has mistakes; parts that are missing say \
            why. Root sees most.
            """,
        options: [
            Command.Option("output FILE", letter: "o", "write to FILE (mode 0600) instead of printing"),
            Command.Option("hash-names", "show files of the spool by a hash of their names"),
            Command.Option("log FILE", "take the log from FILE; default the journal of spoolship.service"),
            .socket,
        ]
    ) { invocation in
        let text = DiagnoseReport(invocation).text
        guard let path = invocation.value("output") else { return try invocation.console.write(text) }
        // Created with mode 0600, and never over an existing file: the report describes the machine.
        try relaying(try WholeFile.create(path, with: Array(text.utf8))) { (error: SystemError) in
            CommandFailure(
                .cannotCreate, "cannot make \(path): \(SystemError.clause(error.number))")
        }
        try invocation.console.print("\(path): \(text.utf8.count) bytes; check it before you send it")
    }
}
