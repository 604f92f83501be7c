public import EventLoops

/// Why the agent cannot start or go on.
public typealias AgentError = CodedError<AgentErrorCode>

extension AgentError {
    /// What the system does not give that every start needs.
    init(start error: SystemError) { self.init(.io, "cannot start: \(error)") }
}

/// The kinds of `AgentError`.
public enum AgentErrorCode: String, Sendable, CaseIterable {
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
    case noPermission = "no_permission"
    /// A port or socket is taken.
    case inUse = "in_use"
}
