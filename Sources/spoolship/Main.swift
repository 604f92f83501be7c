//  spoolship: the one program of the project. It is the agent (`spoolship run`), the tool that administers a
//  running agent, and the tool that checks configurations and container documents.
//
//  What it promises:
//  - Exit codes as in sysexits(3) (`ExitCode`): a script can tell a mistake in the command line from a
//    missing agent, a missing permission and a temporary failure.
//  - Standard output has what was asked for, standard error everything else. In texts for either, control
//    characters that come from outside are escaped (`Console`), so that an event cannot control the terminal.
//  - A write to standard output that fails ends the command with an error: a full disk must not look like
//    success.
//  - Commands for a running agent use its control socket only. Commands for queue, dead letters and
//    quarantine also work without an agent, on the queue's file, as the agent's user.
//
//  The parts:
//  - `CommandLineTool.swift`, `Command.swift`, `Invocation.swift`, `CommandTable.swift`,
//    `ArgumentParser.swift`, `HelpText.swift`: one table of commands drives parsing, help, suggestions,
//    completions and manual pages.
//    To add a command, write one file in `Commands/` and one entry in the table.
//  - `Commands/`: one file for each command or family. What a command does happens in the modules; here its
//    options are read and its result is printed.
//  - `Invocation+Agent.swift`, `Invocation+Records.swift`: requests to the agent, and the way without one.
//  - `Startup/`: `check`, a rehearsal of the agent's start that changes nothing.
//  - `Backfill/`: `run --once`, which ships old files.
//  - `Privacy/`: `privacy prove`, which looks for a marked value in everything that a second agent leaves.
//  - `Diagnose/`: `diagnose`, the facts for a bug report without secrets and contents of events.
//
//  The rules:
//  - Commands run on the main thread and may block. A command that needs an event loop (`run`, `receive`,
//    work on the queue's file, test connections) runs one until it is done.
//  - Root becomes another user for good (`AgentUser`) before it touches what that user owns; only files of a
//    backfill are opened with their owners' rights and root's restored afterwards (`PathOwner`).
//  - The command line, the environment, files named in it, and every answer of an agent are untrusted: sizes
//    are bounded, text is escaped.
//
//  To read it, begin with `CommandTable.swift` for what there is, `CommandLineTool.swift` for the way of a
//  command line, and `Commands/StatusCommand.swift` for a small command.

internal import CLinux
internal import Glibc

/// The entry point. Not `async`: an asynchronous `main` would run on Swift's default executor and start its
/// threads, which the agent does not use (it has its own event loops).
@main
enum Main {
    /// Prepares the process, runs the command line and exits with its code. The order matters: signals and
    /// memory limits first, because threads inherit the one and allocations are made under the other;
    /// standard descriptors before any file is opened.
    static func main() {
        waitForReloads()
        clinux_bound_memory()
        // With the default action SIGXFSZ would kill the agent at the limit of `ulimit -f`. Ignored, the
        // write fails with EFBIG (setrlimit(2)), and the error is handled as that of a full disk.
        signal(SIGXFSZ, SIG_IGN)
        takeStandardDescriptors()
        // libcurl and OpenSSL write the keys of TLS sessions to the file that this variable names: anyone who
        // could set it could read the traffic.
        unsetenv("SSLKEYLOGFILE")
        refuseWhatIsNoText()
        let code = CommandLineTool(console: .standard, ownsProcess: true).run(
            Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }

    /// Blocks SIGHUP until the agent reads it, for `run` only. A reload can be requested before the agent is
    /// ready, by `systemctl reload` right after a start; with the default action the signal would end the
    /// process. Blocked it stays pending until the agent's signal watcher takes it.
    private static func waitForReloads() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.contains("run"), !arguments.contains("--once") else { return }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGHUP)
        // Fails only for an invalid first argument (pthread_sigmask(3)).
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Ends the program with code 64 if an argument is not UTF-8. `CommandLine.arguments` would replace the
    /// wrong bytes: another file would be named, and `track` would write a text that was never given.
    private static func refuseWhatIsNoText() {
        for number in 0..<Int(CommandLine.argc) {
            guard let word = CommandLine.unsafeArgv[number] else { continue }
            let bytes = UnsafeBufferPointer(start: word, count: strlen(word)).map { UInt8(bitPattern: $0) }
            guard String(validating: bytes, as: UTF8.self) == nil else { continue }
            Console.standard.printError("spoolship: argument \(number) is not UTF-8")
            exit(ExitCode.usage.rawValue)
        }
    }

    /// Opens `/dev/null` for each of the descriptors 0, 1 and 2 that the caller has closed. Otherwise the
    /// next file that is opened, the queue for example, would get that number, and messages would be written
    /// into it.
    private static func takeStandardDescriptors() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // open(2) returns the lowest free number, and all lower ones are open by now.
            _ = open("/dev/null", O_RDWR)
        }
    }
}
