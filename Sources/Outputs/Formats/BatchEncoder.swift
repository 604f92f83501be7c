package import EventLoops
package import Model

/// The fixed properties of a format.
package struct FormatTraits: Sendable {
    /// Value of `Content-Type`, unless the settings have one.
    var contentType = "application/json"
    /// Whether the body is exactly the stored lines, so that a stored frame can be the body.
    var sendsLinesAsStored = false
    /// Bytes of an answer that the format reads: a first amount, and more for each event; 0 if only the
    /// status matters.
    var answerBytes = (first: 0, each: 0)
    /// Whether the body of a success lists the fate of the events. A truncated success is then not an
    /// acknowledgement.
    var readsAnswers = false
    /// Where the format's receivers expect a token.
    var tokenPlace = TokenPlace.authorization(scheme: "Bearer")
    /// Arguments that the format adds to the address, escaped: `measurement_id=G-1`; empty for none.
    var arguments = ""
    /// Headers that the format adds, besides `Content-Type`.
    var headers: [(name: String, value: String)] = []
    /// Whether the format may have no place for a value of an event; `leftOut` then counts these values.
    var mayLeaveOut = false
    /// Whether the body names the app of each event from the batch's header, not only from the event.
    var namesOwners = false

    /// Bytes of an answer to keep: at least 2 KiB, which a person can read.
    func answerLimit(events: Int) -> Int { max(answerBytes.first + answerBytes.each * events, 2048) }
}

/// A format: turns events into a body, and reads what an answer in that format says about them. One folder
/// for each.
///
/// Pure: the same batch gives the same bytes at every attempt, unless its templates have more values than
/// their bound.
package protocol BatchEncoder: Sendable {
    /// The format's fixed properties; constant for an encoder.
    var traits: FormatTraits { get }

    /// Templates that events fill in (index, labels); nil for formats without them.
    var templates: EventTemplates? { get }

    /// Number of values of the events that the format leaves out or changes. Called after the batch was
    /// acknowledged, to count each value once.
    func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int

    /// Turns lines into an uncompressed body.
    ///
    /// - Parameter lines: JSON objects, each with a line feed at its end and none inside.
    /// - Throws: `OutputError` with code `badBatch` if a line cannot be put into this format.
    func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8]

    /// Positions of events that, according to the answer, the receiver already had.
    func repeats(inAnswer answer: HTTPAnswer) -> [Int]

    /// The question to ask before the batch counts as acknowledged; nil if the answer itself is enough.
    func confirmation(ofAnswer answer: HTTPAnswer, url: String) -> Confirmation?

    /// The form in which to send the batch again at once, if the answer complains about the form; otherwise
    /// nil.
    func alternative(afterAnswer answer: HTTPAnswer) -> (any BatchEncoder)?

    /// The fate of the events according to a final answer, which is hostile; nil if the status alone
    /// decides.
    ///
    /// - Parameter lines: the lines that were encoded; unpacked again, so called only if the answer needs
    ///   them.
    func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome?
}

/// A format whose receivers limit a request, so that a batch may need several.
package protocol PiecewiseEncoder: BatchEncoder {
    /// The events of each request, as positions in the batch: each event in exactly one request, in order.
    func requests(_ lines: [UInt8]) throws(OutputError) -> [[Int]]

    /// Events that the receiver would drop because of their age, with the reason. They are not sent, and
    /// become dead letters.
    func refusals(_ lines: [UInt8], of header: BatchHeader, at now: Timestamp) throws(OutputError)
        -> [RejectedEvent]
}

/// A question that is repeated until the destination confirms that it has stored a batch.
package struct Confirmation: Sendable {
    /// Address of the question.
    let url: String
    /// Body of the question.
    let body: [UInt8]
    /// Whether a success is the confirmation.
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
