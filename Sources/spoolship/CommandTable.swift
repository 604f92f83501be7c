internal import Configuration

/// All commands in the order in which help lists them: the agent, its setup, a running agent, its records,
/// containers, tools.
enum CommandTable {
    /// Every command of the program. The completions and manual pages of the package are made from it.
    static let all: [Command] =
        [RunCommand.run, CheckCommand.check, TrackCommand.track, AppCommands.appAdd, AppCommands.appList]
        + (agentCommands + RecordCommands.records + ContainerCommands.containers).map(\.asking)
        + ContainerCommands.containerTools + [
            ContainerTestCommand.containerCheck, ContainerTestCommand.containerTest,
            PrivacyCommand.privacyProve, ReceiveCommand.receive, DiagnoseCommand.diagnose,
            VersionCommand.version, HelpCommand.help,
        ]

    /// Commands that ask a running agent and have no family of their own.
    private static let agentCommands: [Command] = [
        StatusCommand.status, TopCommand.top, SendingCommands.dispatch, SendingCommands.interval,
        SendingCommands.drain, SendingCommands.pause, SendingCommands.resume,
        SendingCommands.networkOn, SendingCommands.networkOff, SendingCommands.networkChanged,
        AgentCommands.logLevel, AgentCommands.enable, AgentCommands.disable, ConsentCommand.consent,
        AgentCommands.sessionStart, AgentCommands.countrySet, AgentCommands.countryClear,
        AgentCommands.reload, TapCommand.tap,
    ]

    /// The error for words that name no command (64). It suggests the nearest command; if the first word is
    /// that of a family, such as `queue`, the second words that exist.
    static func unknown(_ words: [String], among commands: [Command]) -> CommandFailure {
        let known = commands.map(\.name)
        let word = words[0]
        // Commands with the same first word are a family: `queue list`, `queue purge`.
        let family = known.filter { $0.hasPrefix(word + " ") }
        if !family.isEmpty {
            let seconds = family.map { String($0.dropFirst(word.count + 1)) }
            guard words.count > 1, !words[1].hasPrefix("-") else {
                return CommandFailure(.usage, "\(word) needs one of \(seconds.joined(separator: ", "))")
            }
            let hint = nearestName(to: words[1], among: seconds).map { "; did you mean \"\(word) \($0)\"?" }
            return CommandFailure(
                .usage,
                "no command \"\(word) "
                    + "\(words[1])\"\(hint ?? "; there are \(seconds.joined(separator: ", "))")"
            )
        }
        let firsts = known.map { String($0.prefix { $0 != " " }) }
        let hint = nearestName(to: word, among: firsts).map { "did you mean \"\($0)\"?" }
        return CommandFailure(.usage, "no command \"\(word)\"; \(hint ?? "`spoolship help` lists them")")
    }
}
