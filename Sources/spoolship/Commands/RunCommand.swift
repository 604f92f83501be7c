internal import Agent
internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Spool
internal import Synchronization

enum RunCommand {
    /// Runs the agent, or ships old files with `--once`.
    static let run = Command(
        name: "run", summary: "runs the agent in the foreground; with --once, ships old files",
        arguments: "[FILE]…",
        argumentCount: 0...Int.max,
        details: """
            Reads the spool, keeps the queue and sends to the destinations until SIGTERM or SIGINT; then it \
            stops reading,
            commits, keeps sending for shutdown_drain_timeout, and exits. Nothing is lost either way. A \
            second signal ends it
            at once. systemd starts the agent like this.

            With --once the events of old files go through the same queue, after everything else: through \
            the running agent
            if there is one, otherwise through an agent that runs only for this, and does not read the \
            spool; run by root, it
            has the rights of the state directory's owner, and root's for the files. Files hold one event a \
            line, or are JSON
            texts (.json), compressed (.gz, .zst) or not; they stay as they are. Their events do not expire \
            by age, and go in
            the normal lane. If it is interrupted, even by kill -9, the same command resumes where it \
            stopped and sends no
            event twice; a file that was read to the end is not read again.

            With --once it exits with 0 when all events are queued (delivered, if no agent runs), with 65 \
            when some lines are
            not events, with 75 when something cannot be shipped now, with 124 when --timeout ran out.
            """,
        options: [
            Command.Option("once", "ship the named files, then exit"),
            Command.Option("app APP", "the app whose events the files hold; default default"),
            Command.Option("timeout DURATION", "give up if nothing can proceed this long after the start"),
        ]
    ) { invocation in
        guard invocation.has("once") else {
            guard invocation.arguments.isEmpty, !invocation.has("app"), !invocation.has("timeout") else {
                throw CommandFailure(
                    .usage, "files, --app and --timeout are for --once: spoolship run --once FILE…")
            }
            return try runAgent(invocation.loadSettings(), invocation.configurationPath)
        }
        guard !invocation.arguments.isEmpty else {
            throw CommandFailure(.usage, "--once needs the files: spoolship run --once FILE…")
        }
        try backfill(invocation)
    }

    /// Runs the agent until a signal ends it.
    ///
    /// - Parameter task: the work after which the agent stops by itself; nil for an agent that serves until
    ///   it is told to stop.
    private static func runAgent(
        _ loaded: LoadedSettings, _ path: String, task: (@Sendable () -> Void)? = nil
    ) throws(CommandFailure) {
        let program = ProgramIdentity(
            version: Build.version, commit: Build.commit, toolchain: Build.toolchain)
        try relaying(try AgentService.run(loaded, path: path, program: program, task: task)) {
            (error: AgentError) in
            CommandFailure(error.exitCode, error.message)
        }
    }

    /// Ships old files: through the running agent, otherwise through one in this process that ends
    /// afterwards.
    private static func backfill(_ invocation: Invocation) throws {
        let loaded = try invocation.loadSettings()
        let settings = loaded.settings
        try refuseSpoolFiles(invocation.arguments, settings.spool.directory)
        let app = try invocation.app() ?? "default"
        let deadline = try invocation.duration("timeout").map { SystemTime().bootTime + $0 }
        let client = ControlClient(socket: settings.control.socket)
        /// The run through the running agent, or through one of our own.
        func run(isOwnAgent: Bool) -> BackfillRun {
            BackfillRun(
                console: invocation.console, files: invocation.arguments, app: app, client: client,
                deadline: deadline, isOwnAgent: isOwnAgent, maxEventSize: settings.spool.maxEventSize)
        }
        // The state directory belongs to one agent at a time, so the running agent must be used if there is
        // one.
        if try answers(client) { return try run(isOwnAgent: false).run() }
        guard !settings.destinations.isEmpty else {
            throw CommandFailure(.configuration, "there is no destination; add a [[destination]]")
        }
        let own = run(isOwnAgent: true)
        var opened: [String: BackfillFile] = [:]
        if geteuid() == 0 {
            // Files that root makes in the state directory would keep the agent from starting, so this
            // process becomes its owner. Old files can be root's, so they are opened before.
            for file in invocation.arguments { opened[file] = try own.open(file) }
            try AgentUser.becomeOwner(of: settings.agent.stateDirectory, by: invocation.unit)
        }
        // The task runs on another thread than this function.
        let files = Mutex(opened)
        // The result if a signal ends the agent before the task is done.
        let result = Mutex<Result<Void, CommandFailure>>(
            .failure(
                CommandFailure(
                    .temporaryFailure, "interrupted; the same command resumes where this one ended")))
        try runAgent(loaded, invocation.configurationPath) {
            let ended = files.withLock { opened in Result { () throws(CommandFailure) in try own.run(opened) }
            }
            result.withLock { $0 = ended }
        }
        try result.withLock { $0 }.get()
    }

    /// Whether an agent answers. If one runs and cannot be used, the command ends: with 77 if this user must
    /// not use it.
    private static func answers(_ client: ControlClient) throws(CommandFailure) -> Bool {
        do throws(ControlError) {
            _ = try client.request("GET", "/v1/status")
            return true
        } catch {
            guard error.code == .unreachable else { throw Invocation.failure(error) }
            return false
        }
    }

    /// Refuses files in the spool: the agent reads them anyway, and their events would be sent twice.
    private static func refuseSpoolFiles(_ files: [String], _ spool: String) throws(CommandFailure) {
        guard let root = RealPath.ofExisting(spool) else { return }
        for file in files where RealPath.ofExisting(file)?.hasPrefix(root + "/") == true {
            throw CommandFailure(.usage, "\(file) is in the spool, where the agent reads it anyway")
        }
    }
}

/// What an error of the agent means for the exit code.
extension AgentError {
    var exitCode: ExitCode {
        switch code {
        case .missing: .unreachable
        case .configuration: .configuration
        case .locked, .inUse: .temporaryFailure
        case .cannotCreate: .cannotCreate
        case .io: .inputOutput
        case .noPermission: .noPermission
        }
    }
}
