/// The exit codes of the commands. Those from 64 to 78 are of sysexits(3), so that scripts and systemd
/// (`RestartPreventExitStatus`) can tell causes apart; 124 is that of timeout(1).
enum ExitCode: Int32, Sendable, CaseIterable {
    /// The command did what it was asked to.
    case success = 0
    /// The answer is no, and nothing went wrong: not ready, a test that fails, a question answered with no.
    case negative = 1
    /// A mistake in the command line (EX_USAGE).
    case usage = 64
    /// The data is wrong: lines that are not events, a document that cannot be used (EX_DATAERR).
    case badData = 65
    /// The agent cannot be reached (EX_UNAVAILABLE).
    case unreachable = 69
    /// A defect of the program, or an answer that it does not understand (EX_SOFTWARE).
    case software = 70
    /// A file or directory cannot be made (EX_CANTCREAT).
    case cannotCreate = 73
    /// Reading or writing failed (EX_IOERR).
    case inputOutput = 74
    /// The command cannot be done now; the same command may succeed later (EX_TEMPFAIL).
    case temporaryFailure = 75
    /// The user does not have the permission (EX_NOPERM).
    case noPermission = 77
    /// The configuration has a mistake (EX_CONFIG).
    case configuration = 78
    /// The time given by `--timeout` ran out.
    case deadline = 124
}

/// Why a command was not successful: its exit code and one line that says what to do. The line is empty if
/// the command has already printed the reason.
struct CommandFailure: Error, Sendable {
    /// The code to exit with.
    let code: ExitCode
    /// The line for standard error, without the program's name; empty to print nothing.
    let message: String

    /// A failure with its code; without a message if the output says it all.
    init(_ code: ExitCode, _ message: String = "") {
        self.code = code
        self.message = message
    }
}

/// The value of some work. If it throws, the command fails with the given code and the error's own text.
///
/// - Parameter about: what the work was about, before the text: a path or a URL.
func orFail<Value>(
    _ code: ExitCode, about: String? = nil, _ work: @autoclosure () throws -> Value
) throws(CommandFailure) -> Value {
    do { return try work() } catch {
        throw CommandFailure(code, about.map { "\($0): \(error)" } ?? "\(error)")
    }
}
