// The errors of this module. HTTP/HTTPServer.swift describes the module.

package import EventLoops

/// An error of a server that cannot listen, or of a command that cannot reach the agent. Refused requests
/// are answers (`ControlRefusal`).
package typealias ControlError = CodedError<ControlErrorCode>

/// The reason of a `ControlError`. Closed, because it is the value of a metric label.
package enum ControlErrorCode: String, Sendable, CaseIterable {
    /// An address or path cannot be listened on: it is too long, not of this machine, or not a socket.
    case badAddress = "bad_address"
    /// Another process answers at the address.
    case addressInUse = "address_in_use"
    /// The system forbids it, or the caller may not use the socket.
    case notPermitted = "not_permitted"
    /// The agent cannot be reached: it is not running, or uses another socket.
    case unreachable
    /// The answer did not come from an agent.
    case badAnswer = "bad_answer"
    /// Another system call failed.
    case system
}
