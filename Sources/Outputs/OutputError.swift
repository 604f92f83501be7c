// The errors of this module. MeasuredOutput.swift describes the module.

package import EventLoops

/// An error in a destination's settings, in a file that they name, or in a stored batch. Results of
/// requests are values (`Outcome`), not errors.
package typealias OutputError = CodedError<OutputErrorCode>

/// The reason of an `OutputError`. Closed, because it is the value of a metric label.
package enum OutputErrorCode: String, Sendable, CaseIterable {
    /// A setting has no meaning: an address, a header, a pinned key.
    case invalidSetting = "invalid_setting"
    /// A file that the settings name cannot be read.
    case unreadable
    /// A file that the settings name is on a file system that does not answer, such as a network mount
    /// whose server is gone.
    case unanswered
    /// A file was read, and holds something other than the certificate, key or secret that it should hold.
    case badFile = "bad_file"
    /// A batch cannot be turned into a body: a stored frame is damaged, or memory is short.
    case badBatch = "bad_batch"
    /// A library could not be set up or loaded; usually there is no memory.
    case library
}

/// Throws `OutputError` with code `invalidSetting` and this message unless the setting is right.
func require(_ isRight: Bool, _ message: @autoclosure () -> String) throws(OutputError) {
    guard isRight else { throw OutputError(.invalidSetting, message()) }
}
