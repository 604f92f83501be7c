/// A function that the configuration names: `[functions.NAME]`.
public struct FunctionDefinition: Sendable, Equatable {
    /// The program (an absolute path) and its arguments; no shell.
    public var command: [String]
    /// How long a call may take, waiting for a place included.
    public var timeout: Duration
    /// How many of its processes run at once.
    public var parallel: Int
    /// How long a result serves again for the same parameters; zero for not at all.
    public var cache: Duration

    /// A function of known parts.
    public init(command: [String], timeout: Duration = .seconds(2), parallel: Int = 1, cache: Duration = .zero) {
        self.command = command
        self.timeout = timeout
        self.parallel = parallel
        self.cache = cache
    }
}

/// How a call of a function ended. Closed, because it is a metric label.
public enum FunctionResult: String, Sendable, CaseIterable {
    /// It gave a value.
    case success
    /// An earlier result served again.
    case cached
    /// The configuration names no such function.
    case unknown
    /// It did not end in time and was killed, or no place came free in time.
    case timeout
    /// It ended with another code than 0, or by a signal.
    case exit
    /// It printed something else than one JSON value.
    case badJSON = "bad_json"
    /// It printed, or would have been given, more than is allowed.
    case tooLarge = "too_large"
    /// It could not be started.
    case notStarted = "not_started"
    /// So many calls wait already that this one was not taken.
    case busy
}

/// What functions did since the start.
public struct FunctionFigures: Sendable, Equatable {
    /// Calls by function and result. Names that the configuration does not know are counted together, as `unknown`.
    public var calls: [String: [FunctionResult: Int]] = [:]
    /// Processes that run now, by function.
    public var running: [String: Int] = [:]

    /// Nothing was called.
    public init() {}
}
