public import EventLoops

/// What can go wrong in this module before a request is made. Results of requests are values, not errors.
public typealias DeliveryError = CodedError<DeliveryErrorCode>

/// The kinds of `DeliveryError`.
public enum DeliveryErrorCode: String, Sendable, CaseIterable {
    /// A command names a destination that is not configured.
    case unknownDestination = "unknown_destination"
}
