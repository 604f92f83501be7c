/// `[functions.NAME]`: a function that containers may call.
public struct FunctionSettings: Sendable, Equatable {
    /// The program (an absolute path) and its arguments; no shell.
    public var command: [String] = []
    package var timeout = Duration.seconds(2)
    /// How many of its processes run at once.
    public var parallel = 1
    /// How long a result serves again for the same parameters; zero for not at all.
    public var cache = Duration.zero

    package init() {}
}
