/// What can go wrong in this module before a request is made. Results of requests are values, not errors.
public struct DeliveryError: Error, Sendable, Equatable {
    /// Closed, because each code is a metric label.
    public enum Code: String, Sendable, CaseIterable {
        /// A retry schedule that makes no sense.
        case invalidSchedule = "invalid_schedule"
        /// A dispatch interval outside its range.
        case invalidInterval = "invalid_interval"
        /// A deadline whose time or margin makes no sense.
        case invalidDeadline = "invalid_deadline"
        /// A command that names a destination which is not configured.
        case unknownDestination = "unknown_destination"
        /// The agent is stopping, or has not started.
        case notRunning = "not_running"
        /// The kernel's network messages cannot be read.
        case noNetworkMonitor = "no_network_monitor"
    }

    /// The kind of failure, for code and metrics.
    public let code: Code

    /// One line for a person: what is wrong and what to do. Never event content, never a secret.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
