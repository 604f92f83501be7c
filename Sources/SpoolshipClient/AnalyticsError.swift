/// Why an event, or a setting, was not accepted.
public struct AnalyticsError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What went wrong.
    public enum Code: String, Sendable, CaseIterable {
        /// `Analytics.start` has not been called.
        case notStarted = "not_started"
        /// `Analytics.start` has been called before.
        case alreadyStarted = "already_started"
        /// The spool directory is not there.
        case spoolMissing = "spool_missing"
        /// The spool directory cannot be written to.
        case notWritable = "not_writable"
        /// The disk is full; what waits in the buffer is written when there is room.
        case diskFull = "disk_full"
        /// More events than the buffer holds wait to be written.
        case bufferFull = "buffer_full"
        /// The agent accepts no events now.
        case refused
        /// The agent accepts critical events only now.
        case onlyCritical = "only_critical"
        /// The event is none: an empty name, a number that JSON does not have.
        case invalidEvent = "invalid_event"
        /// A setting that cannot be.
        case invalidSetting = "invalid_setting"
        /// The time given was not enough; what waits is written later.
        case timedOut = "timed_out"
        /// The client has been closed.
        case closed
    }

    /// What went wrong.
    public let code: Code
    /// One line for a person: what is wrong and what to do.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
