/// What a command's end tells its caller.
///
/// Source: sysexits(3); 124 as timeout(1) has it.
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

    /// For the manual.
    var meaning: String {
        switch self {
        case .success: "done"
        case .negative: "the answer is no"
        case .usage: "the command line is wrong"
        case .badData: "the data given is wrong"
        case .unreachable: "the agent cannot be reached"
        case .software: "a defect of spoolship"
        case .cannotCreate: "a file cannot be created"
        case .inputOutput: "reading or writing failed"
        case .temporaryFailure: "it cannot be done now; try again later"
        case .noPermission: "not allowed; run as another user"
        case .configuration: "the configuration is wrong"
        case .deadline: "time ran out"
        }
    }
}

/// Why a command failed: what it ends with, and one line that says what to do.
struct CommandFailure: Error, Sendable {
    let code: ExitCode
    let message: String

    init(_ code: ExitCode, _ message: String) {
        self.code = code
        self.message = message
    }
}
