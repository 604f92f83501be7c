/// Why an event, a setting or a call was not accepted.
public struct AnalyticsError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of errors. More may be added in later versions.
    public enum Code: String, Sendable, CaseIterable {
        /// `Analytics.start` has not been called.
        case notStarted = "not_started"
        /// `Analytics.start` has been called before.
        case alreadyStarted = "already_started"
        /// The spool directory does not exist.
        case spoolMissing = "spool_missing"
        /// The spool directory cannot be written to.
        case notWritable = "not_writable"
        /// The disk is full. What waits in the buffer is written when there is room.
        case diskFull = "disk_full"
        /// The buffer has no room for the event.
        case bufferFull = "buffer_full"
        /// The agent accepts no events now; the message has its reason.
        case refused
        /// The agent accepts only critical events now; the message has its reason.
        case onlyCritical = "only_critical"
        /// The event is not valid: an empty name, a number that JSON does not have, a value nested too
        /// deeply.
        case invalidEvent = "invalid_event"
        /// A setting is not valid; the one before stays.
        case invalidSetting = "invalid_setting"
        /// The time given was not enough. What waits is written later.
        case timedOut = "timed_out"
        /// The client was closed.
        case closed
        /// No agent answers at the control socket, or this user may not use it.
        case agentUnavailable = "agent_unavailable"
    }

    /// The kind of error, for programs.
    public let code: Code
    /// What is wrong and what to do, in one line for a person.
    public let message: String

    /// An error.
    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
