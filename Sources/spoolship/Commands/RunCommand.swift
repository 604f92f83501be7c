internal import Agent

extension Command {
    static let run = Command(
        name: "run", summary: "runs the agent in the foreground",
        details: """
            Reads the spool, keeps the queue, sends to the destinations, until SIGTERM or SIGINT; then it stops reading,
            commits, sends for shutdown_drain_timeout what it can, and ends. Nothing is lost either way. A second signal ends
            it at once. systemd starts the agent like this.
            """
    ) { invocation in
        let loaded = try invocation.loadSettings()
        let program = ProgramIdentity(
            version: Build.version, commit: Build.commit, toolchain: Build.toolchain)
        do throws(AgentError) {
            try AgentService.run(loaded, path: invocation.configurationPath, program: program)
            return .success
        } catch {
            throw CommandFailure(error.exitCode, error.message)
        }
    }
}

extension AgentError {
    /// What the command ends with.
    fileprivate var exitCode: ExitCode {
        switch code {
        case .configuration: .configuration
        case .locked, .inUse: .temporaryFailure
        case .cannotCreate: .cannotCreate
        case .io: .inputOutput
        case .noPermission: .noPermission
        }
    }
}
