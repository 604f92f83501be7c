/// How a call of a function ended. Closed, because it is a metric label.
package enum FunctionResult: String, Sendable, CaseIterable {
    case success
    /// An earlier result served again.
    case cached
    /// The configuration names no such function.
    case unknown
    case timeout
    /// It ended with another code than 0, or by a signal.
    case exit
    /// It printed something else than one JSON value.
    case badJSON = "bad_json"
    /// It printed, or would have been given, more than is allowed.
    case tooLarge = "too_large"
    case notStarted = "not_started"
    /// So many calls wait already that this one was not taken.
    case busy
}

/// A call of a function that failed.
public struct FunctionFailure: Sendable, Equatable {
    package var function: String
    package var result: FunctionResult
    /// The exit code, 128 and the number for a signal; nil where the program did not end by itself.
    public var code: Int32?
    /// The beginning of what the program wrote to standard error, or why it was not started; of at most 256 bytes.
    public var complaint: String
}

/// What functions did since the start.
public struct FunctionFigures: Sendable, Equatable {
    /// Calls by function and result. Names that the configuration does not know are counted together, as `unknown`.
    package var calls: [String: [FunctionResult: Int]] = [:]
    /// Processes that run now, by function.
    public var running: [String: Int] = [:]
}
