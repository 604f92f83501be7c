public import EventLoops

/// Why the agent cannot start or continue.
public typealias AgentError = CodedError<AgentErrorCode>

extension AgentError {
    /// The error for a resource that every start needs and the system refuses, such as a thread.
    init(start error: SystemError) { self.init(.io, "cannot start: \(error)") }
}

/// The kinds of `AgentError`.
public enum AgentErrorCode: String, Sendable, CaseIterable {
    /// The configuration asks for something impossible.
    case configuration
    /// Another agent uses the state directory.
    case locked
    /// A directory or socket cannot be created.
    case cannotCreate = "cannot_create"
    /// There is no queue yet.
    case missing
    /// The system or the disk reports an error.
    case io
    /// The caller may not use the state directory.
    case noPermission = "no_permission"
    /// A port or socket is already in use.
    case inUse = "in_use"
}
