package import EventLoops
package import Model

package struct FormatTraits: Sendable {
    var contentType = "application/json"
    /// Whether the body is the stored lines as they are, so that a stored frame may be the body.
    var sendsLinesAsStored = false
    /// How much of an answer the format reads, in bytes, and how much more for each event; 0: its status says all.
    var answerBytes = (first: 0, each: 0)
    /// Whether an answer of success has a body that says what happened to the events.
    var readsAnswers = false
    var tokenPlace = TokenPlace.authorization(scheme: "Bearer")
    /// Arguments of the format's own that the address gets, escaped: `measurement_id=G-1`; empty for none.
    var arguments = ""
    /// Headers of the format's own, besides `Content-Type`.
    var headers: [(name: String, value: String)] = []
    /// Whether the format may have no place for a value of an event; then `leftOut` counts them.
    var mayLeaveOut = false

    /// How much of an answer to so many events is kept: what a person reads of it at least.
    func answerLimit(events: Int) -> Int { max(answerBytes.first + answerBytes.each * events, 2048) }
}

/// A format: how events become a body, and what an answer in that format says. One folder each.
///
/// Bytes in, bytes out: the same batch gives the same bytes at every attempt, unless its templates have more values than they may.
package protocol BatchEncoder: Sendable {
    var traits: FormatTraits { get }

    /// What events fill in; nil where the format has no such place.
    var templates: EventTemplates? { get }

    /// How many values of the events the format has no place for, or has to change; asked once they are acknowledged.
    func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int

    /// Turns lines into a body, uncompressed.
    ///
    /// - Parameter lines: JSON objects that each end with a line feed and hold no other.
    /// - Throws: `OutputError` with code `badBatch` when they cannot be put into this format.
    func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8]

    /// The places of events that, by an answer, the receiver had already.
    func repeats(inAnswer answer: HTTPAnswer) -> [Int]

    /// What is to be asked before a batch that went to `url` and was answered so counts as acknowledged; nil: nothing.
    func confirmation(ofAnswer answer: HTTPAnswer, url: String) -> Confirmation?

    /// The form in which a batch goes once more at once, where an answer is about how it was written; nil: none.
    func alternative(afterAnswer answer: HTTPAnswer) -> (any BatchEncoder)?

    /// What a final answer, which is hostile, says of each event; nil when the status says all.
    ///
    /// `lines`, what was encoded, are made again: only asked for when an answer needs them.
    func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome?
}

/// A format that bounds requests: a batch may take several.
package protocol PiecewiseEncoder: BatchEncoder {
    /// Which events go into which request, as places in the batch: each in one, in their order.
    func requests(_ lines: [UInt8]) throws(OutputError) -> [[Int]]

    /// Which events the format can never carry because of their age, and why: they are not sent, and become dead letters.
    func refusals(_ lines: [UInt8], of header: BatchHeader, at now: Timestamp) throws(OutputError) -> [RejectedEvent]
}

/// A question that is repeated until the destination confirms that it has a batch for good.
package struct Confirmation: Sendable {
    let url: String
    let body: [UInt8]
    /// Whether an answer of success says yes.
    let isGiven: @Sendable (HTTPAnswer) -> Bool
}

extension BatchEncoder {
    package var templates: EventTemplates? { nil }

    package func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int { 0 }

    package func repeats(inAnswer answer: HTTPAnswer) -> [Int] { [] }

    package func confirmation(ofAnswer answer: HTTPAnswer, url: String) -> Confirmation? { nil }

    package func alternative(afterAnswer answer: HTTPAnswer) -> (any BatchEncoder)? { nil }

    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? { nil }
}
