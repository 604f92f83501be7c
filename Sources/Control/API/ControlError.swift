//  Control: HTTP for the stats port and the Unix socket, which request gets to which handler, and the socket's client.
//  Promise: requests are bounded in number, size and time; a waiting one notices that its client is gone; nothing here
//  wakes up an idle agent; what it answers comes from handlers and published figures.
//  It does not know what is asked and answered.

package import EventLoops

package typealias ControlError = CodedError<ControlErrorCode>

package enum ControlErrorCode: String, Sendable, CaseIterable {
    case badAddress = "bad_address"
    case addressInUse = "address_in_use"
    case notPermitted = "not_permitted"
    /// The agent cannot be reached: it does not run, or not with this socket.
    case unreachable
    /// What came back is no answer of the agent.
    case badAnswer = "bad_answer"
    case system
}
