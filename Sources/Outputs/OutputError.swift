//  Outputs: takes a batch, makes a request of it, sends it, and turns every answer into an `Outcome`.
//  Promise: an attempt ends within the destination's timeouts, whatever the other side does; the same batch is the same
//  bytes under the same key; a secret appears in no message.
//  It knows nothing of scheduling, retries or SQL.

package import EventLoops

/// What is wrong with a destination's settings, or with what they name. Results of requests are values, not errors.
package typealias OutputError = CodedError<OutputErrorCode>

package enum OutputErrorCode: String, Sendable, CaseIterable {
    /// A setting has no meaning: an address, a header, a pin.
    case invalidSetting = "invalid_setting"
    /// A file that the settings name cannot be read.
    case unreadable
    /// A file that the settings name is on a file system that does not answer.
    case unanswered
    /// A file was read and holds something else than it should: a certificate, a key, a secret.
    case badFile = "bad_file"
    /// A batch cannot be turned into a body: a frame is damaged, or memory is short.
    case badBatch = "bad_batch"
    case library
}

/// Refuses a setting unless it is right; throws with code `invalidSetting`.
func require(_ isRight: Bool, _ message: @autoclosure () -> String) throws(OutputError) {
    guard isRight else { throw OutputError(.invalidSetting, message()) }
}
