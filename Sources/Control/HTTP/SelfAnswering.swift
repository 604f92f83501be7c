public import EventLoops

/// A server that can be asked whether it answers: the agent is not ready while one of its ports is dead.
public protocol SelfAnswering: Sendable {
    /// Its label in metrics.
    var label: String { get }
    /// How people call it.
    var name: String { get }
    /// Asks through the kernel, as a client would.
    func isAnswering() async -> Bool
    /// Listens again; connections that are there stay.
    func openAgain() async throws(ControlError)
}
