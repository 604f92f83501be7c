/// `[functions.NAME]`: a program that rules of containers may call.
public struct FunctionSettings: Sendable, Equatable {
    /// The program (an absolute path) and its arguments. No shell is involved.
    public var command: [String] = []
    /// Time after which a call is killed; meanwhile the file of the calling event waits.
    package var timeout = Duration.seconds(2)
    /// Number of processes that may run at once.
    public var parallel = 1
    /// How long a result is reused for the same parameters; zero for not at all.
    public var cache = Duration.zero

    package init() {}
}
