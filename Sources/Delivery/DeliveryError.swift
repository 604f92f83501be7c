public import EventLoops

/// What can go wrong in this module before a request is made. Results of requests are values, not errors.
public typealias DeliveryError = CodedError<DeliveryErrorCode>

/// The kinds of `DeliveryError`.
public enum DeliveryErrorCode: String, Sendable, CaseIterable {
    /// A retry schedule that makes no sense.
    case invalidSchedule = "invalid_schedule"
    /// A dispatch interval outside its range.
    case invalidInterval = "invalid_interval"
    /// A deadline whose time or margin makes no sense.
    case invalidDeadline = "invalid_deadline"
    /// A command that names a destination which is not configured.
    case unknownDestination = "unknown_destination"
}
