/// Which program runs: for metrics, `status` and the User-Agent header.
public struct ProgramIdentity: Sendable, Equatable {
    /// The version: `0.1.0`.
    public let version: String
    /// The commit it was built from, or `unknown`.
    public let commit: String
    /// The compiler it was built with.
    public let toolchain: String

    /// The main program passes what its build has recorded.
    package init(version: String, commit: String, toolchain: String) {
        self.version = version
        self.commit = commit
        self.toolchain = toolchain
    }
}
