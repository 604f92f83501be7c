// The errors of this module. DevelopmentReceiver.swift describes the module.

package import EventLoops

/// An error in setting up a receiver. Bad requests are answers, not errors.
package typealias ReceiverError = CodedError<ReceiverErrorCode>

/// The reason of a `ReceiverError`.
package enum ReceiverErrorCode: String, Sendable, CaseIterable {
    /// An option has no meaning, such as a name in place of an address.
    case invalidSetting = "invalid_setting"
    /// The address cannot be listened on, or the server does not start.
    case listen
    /// A file or directory cannot be made, read or written.
    case file
    /// OpenSSL could not make a certificate.
    case certificate
}
