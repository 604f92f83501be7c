//  JournalError: why a journal is not read. What the module promises is in JournalReader.swift.

package import EventLoops

/// Why a journal cannot be read: a code, which is a label of metrics, and a message that says what to do.
package typealias JournalError = CodedError<JournalErrorCode>

/// The codes of `JournalError`.
package enum JournalErrorCode: String, Sendable, CaseIterable {
    /// libsystemd is not installed, or lacks a function that is needed.
    case library
    /// The journal has files, and the agent's user may read none of them.
    case noPermission = "no_permission"
    /// The directory does not exist, or a file is gone or not yet written.
    case missing
    /// The file system does not answer.
    case hangs
    /// Any other error of libsystemd, with its errno in the message.
    case failed
}

extension JournalError {
    /// The error for a journal whose file system does not answer.
    package static let hangs = JournalError(.hangs, "its file system does not answer")
}
