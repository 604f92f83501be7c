/// Why the agent cannot start or go on.
public struct AgentError: Error, Sendable, Equatable {
    /// Closed; decides the exit code.
    public enum Code: String, Sendable, CaseIterable {
        /// The configuration asks for what cannot be.
        case configuration
        /// Another agent has the state directory.
        case locked
        /// A directory or socket cannot be made.
        case cannotCreate = "cannot_create"
        /// There is no queue yet.
        case missing
        /// The disk fails.
        case io
        /// Something may not be read or written.
        case noPermission = "no_permission"
        /// A port or socket is taken.
        case inUse = "in_use"
    }

    /// The kind of failure.
    public let code: Code
    /// One line that says what is wrong and what to do.
    public let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
