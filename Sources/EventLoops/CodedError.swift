/// A failure of a closed set of kinds, and a line for a person: what most modules throw.
///
/// The set is closed because each kind is a metric label, or decides what a command ends with.
public struct CodedError<Kind: Sendable & Equatable>: Error, Sendable, Equatable, CustomStringConvertible {
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
