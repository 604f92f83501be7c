//  Journal: reads the entries of journald and makes lines of them.
//  Promise: each entry that the journal still has when it is read comes once, in the order of its sequence, with the place to go on from.
//  It knows nothing of the queue, of apps, or of what happens to a line.

package import EventLoops

/// Why a journal cannot be read.
package typealias JournalError = CodedError<JournalErrorCode>

package enum JournalErrorCode: String, Sendable, CaseIterable {
    /// libsystemd is not installed, or too old.
    case library
    /// There are journals, and the agent's user may read none of them.
    case noPermission = "no_permission"
    /// There is no such directory.
    case missing
    /// Its file system does not answer.
    case hangs
    case failed
}

extension JournalError {
    /// What is said of a journal whose file system does not answer.
    package static let hangs = JournalError(.hangs, "its file system does not answer")
}
