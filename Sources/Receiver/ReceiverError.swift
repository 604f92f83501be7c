//  Receiver: the development receiver. HTTPS with a certificate that it makes itself; takes what the agent sends, shows or
//  stores it, counts it, and fails as it is told to.
//  Promise: every body that it answers with 200 was counted, and stored if it stores, exactly once for each
//  Idempotency-Key; hostile bodies cost bounded memory.
//  It knows nothing of the agent: it could be anybody's destination.

package import EventLoops

/// What can go wrong when a receiver is set up. Bad requests are answers, not errors.
package typealias ReceiverError = CodedError<ReceiverErrorCode>

package enum ReceiverErrorCode: String, Sendable, CaseIterable {
    case invalidSetting = "invalid_setting"
    case listen
    case file
    case certificate
}
