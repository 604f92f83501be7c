/// How a call of a function ended. Closed, because it is the label of a metric.
package enum FunctionResult: String, Sendable, CaseIterable {
    /// The program printed a JSON value.
    case success
    /// The result of an earlier call was used.
    case cached
    /// The configuration has no function of that name.
    case unknown
    /// The program ran longer than its `timeout`.
    case timeout
    /// The program ended with another code than 0, or by a signal.
    case exit
    /// The program printed something other than one JSON value.
    case badJSON = "bad_json"
    /// The program printed more than 64 KiB, or its input would be longer than that.
    case tooLarge = "too_large"
    /// The program could not be started, or must not be: others could change it.
    case notStarted = "not_started"
    /// Too many calls of the function wait.
    case busy
}

/// A failed call of a function, for the log.
public struct FunctionFailure: Sendable, Equatable {
    /// Name of the function.
    package var function: String
    /// The kind of failure.
    package var result: FunctionResult
    /// Exit code, or 128 plus the number of a signal; nil if the program did not end by itself.
    public var code: Int32?
    /// The beginning of the program's standard error, at most 256 bytes, or why it was not started.
    public var complaint: String
}

/// What functions did since the start.
public struct FunctionFigures: Sendable, Equatable {
    /// Calls by function and result. Names that the configuration does not have are counted together, as
    /// `unknown`: names come from documents, and would make any number of series.
    package var calls: [String: [FunctionResult: Int]] = [:]
    /// Programs that run now, by function.
    public var running: [String: Int] = [:]
}
