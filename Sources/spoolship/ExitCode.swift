/// The exit codes of commands, as in sysexits(3); 124 as timeout(1) has it.
enum ExitCode: Int32, Sendable, CaseIterable {
    case success = 0
    /// An answer that is no, and no error.
    case negative = 1
    case usage = 64
    case badData = 65
    /// The agent cannot be reached.
    case unreachable = 69
    case software = 70
    case cannotCreate = 73
    case inputOutput = 74
    case temporaryFailure = 75
    case noPermission = 77
    case configuration = 78
    case deadline = 124
}

/// Why a command did not end well: what it ends with, and one line that says what to do; empty where what it printed has said all.
struct CommandFailure: Error, Sendable {
    let code: ExitCode
    let message: String

    init(_ code: ExitCode, _ message: String = "") {
        self.code = code
        self.message = message
    }
}

/// What some work gives; an error of it ends the command with this code and the error's own words.
func orFail<Value>(
    _ code: ExitCode, about: String? = nil, _ work: @autoclosure () throws -> Value
) throws(CommandFailure) -> Value {
    do { return try work() } catch { throw CommandFailure(code, about.map { "\($0): \(error)" } ?? "\(error)") }
}
