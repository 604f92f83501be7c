/// A failure with a kind from a closed set and a message for a person: what most modules throw.
///
/// The set is closed because a kind becomes a metric label or determines a command's exit status.
public struct CodedError<Kind: Sendable & Equatable>: Error, Sendable, Equatable, CustomStringConvertible {
    /// Lets a module refer to its kinds as `MyError.Code`.
    package typealias Code = Kind

    package let code: Kind
    /// One line for a person: what is wrong and what to do. Never event content, never a secret.
    public let message: String

    package init(_ code: Kind, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
